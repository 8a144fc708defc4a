// MQTT.js, driven by commands on standard input; what comes of them goes to standard output. Both are lines of JSON.
//
//   {"number": 7, "client": "c1", "do": "publish", ...}   is answered by {"number": 7, "result": ...}
//                                                         or by {"number": 7, "error": "..."}
//   {"client": "c1", "event": "message", ...}             comes by itself
//
// Bytes are {"base64": "..."} in both directions. The names of options and properties are those of MQTT.js.
"use strict";

const mqtt = require("mqtt");
const readline = require("node:readline");

Buffer.prototype.toJSON = function () {
  return { base64: this.toString("base64") };
};

const clients = new Map();

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function withBytes(_key, value) {
  return value && typeof value.base64 === "string" ? Buffer.from(value.base64, "base64") : value;
}

function watch(name, client) {
  client.on("message", (topic, payload, packet) => {
    const { qos, retain, dup, properties = {} } = packet;
    say({ client: name, event: "message", topic, payload, qos, retain, dup, properties });
  });
  client.on("connect", ({ sessionPresent }) => say({ client: name, event: "connected", sessionPresent }));
  client.on("disconnect", ({ reasonCode }) => say({ client: name, event: "disconnect", reasonCode }));
  client.on("close", () => say({ client: name, event: "closed" }));
}

const commands = {
  // The first CONNACK, whole.
  connect({ client: name, options }, done) {
    const client = mqtt.connect(options);
    clients.set(name, client);
    watch(name, client);
    client.once("connect", (connack) => done(null, connack));
    client.on("error", (error) => done(error));
    client.once("close", () => done(new Error("closed before CONNACK")));
  },
  // The reason codes of SUBACK.
  subscribe({ client, filter, options }, done) {
    clients.get(client).subscribe(filter, options, (error, granted, suback) =>
      suback ? done(null, suback.granted) : done(error),
    );
  },
  unsubscribe({ client, filter }, done) {
    clients.get(client).unsubscribe(filter, (error, unsuback) => done(error, unsuback?.granted ?? []));
  },
  // Answered when the message is acknowledged, at QoS 0 when it is sent.
  publish({ client, topic, payload, options }, done) {
    clients.get(client).publish(topic, payload, options, (error) => done(error, null));
  },
  // With `force` the connection is dropped without DISCONNECT.
  end({ client, force }, done) {
    clients.get(client).end(force, (error) => done(error, null));
    clients.delete(client);
  },
};

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const command = JSON.parse(line, withBytes);
  let isAnswered = false;
  commands[command.do](command, (error, result) => {
    if (isAnswered) return;
    isAnswered = true;
    say(error ? { number: command.number, error: String(error.message ?? error) } : { number: command.number, result });
  });
});
// Whoever has started this is gone.
process.stdin.on("end", () => process.exit(0));
