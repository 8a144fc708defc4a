//! rumqttc, which publishes and subscribes at once, as tests/end_to_end/clients/streams.py asks.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, process, str, thread};

use rumqttc::{Outgoing, TlsConfiguration, Transport};

struct Given {
    level: String,
    transport: String,
    port: u16,
    authority: String,
    name: String,
    count: usize,
    qos: Vec<u8>,
}

impl Given {
    fn read() -> Given {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let [level, transport, port, authority, name, count, qos] = arguments.try_into().expect("seven arguments");
        Given {
            level,
            transport,
            port: port.parse().expect("a port"),
            authority,
            name,
            count: count.parse().expect("a count"),
            qos: qos.bytes().map(|digit| digit - b'0').collect(),
        }
    }

    /// For a WebSocket rumqttc takes the whole address in place of the host.
    fn host(&self) -> String {
        match self.transport.as_str() {
            "websocket" => format!("ws://127.0.0.1:{}/mqtt", self.port),
            "secure-websocket" => format!("wss://127.0.0.1:{}/mqtt", self.port),
            _ => "127.0.0.1".to_string(),
        }
    }

    fn transport(&self) -> Transport {
        match self.transport.as_str() {
            "tcp" => Transport::Tcp,
            "websocket" => Transport::Ws,
            "tls" => Transport::Tls(self.tls()),
            "secure-websocket" => Transport::Wss(self.tls()),
            unknown => fail("the arguments", format!("no transport {unknown}")),
        }
    }

    fn tls(&self) -> TlsConfiguration {
        let ca = fs::read(&self.authority).expect("the authority's certificate");
        TlsConfiguration::Simple { ca, alpn: None, client_auth: None }
    }
}

fn fail(whose: &str, error: impl Display) -> ! {
    eprintln!("{whose}: {error}");
    process::exit(1);
}

/// MQTT 3.1.1 and 5 have types of their own in rumqttc, with the same names.
macro_rules! level {
    ($name:ident, $($import:item)*) => {
        mod $name {
            use super::*;
            $($import)*

            fn options(given: &Given, role: &str) -> MqttOptions {
                let mut options = MqttOptions::new(format!("{}-{role}", given.name), given.host(), given.port);
                options.set_keep_alive(Duration::from_secs(60)).set_transport(given.transport());
                options
            }

            fn qos(level: u8) -> QoS {
                [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce][usize::from(level)]
            }

            /// Returns when the last message has come.
            pub fn watch(given: &Given, is_ready: mpsc::Sender<()>) {
                let (client, mut connection) = Client::new(options(given, "watcher"), 10);
                client.subscribe(format!("{}/#", given.name), QoS::ExactlyOnce).expect("room for SUBSCRIBE");
                for event in connection.iter() {
                    match event.unwrap_or_else(|error| fail("the watcher", error)) {
                        Event::Incoming(Packet::SubAck(_)) => is_ready.send(()).expect("somebody who waits"),
                        Event::Incoming(Packet::Publish(message)) => {
                            let text = str::from_utf8(&message.payload).expect("text");
                            if text == "end" {
                                return;
                            }
                            println!("{{\"received\": {text}, \"qos\": {}}}", message.qos as u8);
                        }
                        _ => {}
                    }
                }
            }

            /// Publishes as fast as rumqttc takes it, and tells what is acknowledged.
            pub fn publish(given: &Given) {
                let (client, mut connection) = Client::new(options(given, "publisher"), 10);
                let (last, name, count, levels) = (client.clone(), given.name.clone(), given.count, given.qos.clone());
                thread::spawn(move || {
                    for number in 0..count {
                        let level = qos(levels[number % levels.len()]);
                        client
                            .publish(format!("{name}/{}", number % 7), level, false, number.to_string())
                            .unwrap_or_else(|error| fail("the publisher", error));
                    }
                });
                let mut under_way: HashMap<u16, VecDeque<usize>> = HashMap::new();
                let (mut sent, mut acknowledged) = (0, 0);
                for event in connection.iter() {
                    let number = match event.unwrap_or_else(|error| fail("the publisher", error)) {
                        Event::Outgoing(Outgoing::Publish(identifier)) => {
                            sent += 1;
                            if identifier != 0 {
                                under_way.entry(identifier).or_default().push_back(sent - 1);
                                continue;
                            }
                            sent - 1
                        }
                        Event::Incoming(Packet::PubAck(answer)) => first(&mut under_way, answer.pkid),
                        Event::Incoming(Packet::PubComp(answer)) => first(&mut under_way, answer.pkid),
                        _ => continue,
                    };
                    if number == count {
                        continue; // the last message
                    }
                    println!("{{\"acknowledged\": {number}}}");
                    acknowledged += 1;
                    if acknowledged == count {
                        last.publish(format!("{}/end", given.name), QoS::ExactlyOnce, false, "end")
                            .unwrap_or_else(|error| fail("the publisher", error));
                    }
                }
            }
        }
    };
}

/// rumqttc uses an identifier again before PUBCOMP, so that two messages may be under way with it.
fn first(under_way: &mut HashMap<u16, VecDeque<usize>>, identifier: u16) -> usize {
    under_way.entry(identifier).or_default().pop_front().expect("a message that is under way")
}

level!(level_4, use rumqttc::{Client, Event, MqttOptions, Packet, QoS};);
level!(
    level_5,
    use rumqttc::v5::mqttbytes::v5::Packet;
    use rumqttc::v5::mqttbytes::QoS;
    use rumqttc::v5::{Client, Event, MqttOptions};
);

fn main() {
    let given: &'static Given = Box::leak(Box::new(Given::read()));
    let (watch, publish): (fn(&Given, mpsc::Sender<()>), fn(&Given)) = match given.level.as_str() {
        "3.1.1" => (level_4::watch, level_4::publish),
        "5" => (level_5::watch, level_5::publish),
        unknown => fail("the arguments", format!("no version {unknown}")),
    };
    let (is_ready, ready) = mpsc::channel();
    thread::spawn(move || {
        ready.recv().expect("a watcher");
        publish(given);
    });
    watch(given, is_ready);
}
