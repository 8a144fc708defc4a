"""`rfhbridge sessions` beside a running gateway: what an operator sees of clients, and what becomes of them."""

import json
import queue
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from mq_adapters.embedded.engine import Engine
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.processes.forked import rfhbridge

PATIENCE_S = 30.0


@pytest.fixture
def gateway(new_gateway: StartGateway, tmp_path: Path) -> Gateway:
    """A gateway that speaks every version."""
    config = tmp_path / "rfhbridge.toml"
    config.write_text('[mqtt]\nversions = ["3.1", "3.1.1", "5"]\n', encoding="utf-8")
    return new_gateway("--config", str(config)).start()


def sessions(gateway: Gateway, *arguments: str) -> subprocess.CompletedProcess[str]:
    return rfhbridge("sessions", *arguments, "--data", gateway.data)


def as_json(gateway: Gateway, *arguments: str) -> Any:
    done = sessions(gateway, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Device:
    """A paho client of MQTT 5 with a session of an hour and a will, and what happened to it."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        self.happened: queue.Queue[str] = queue.Queue()
        happened = self.happened  # the callbacks hold the queue alone: the client then goes, with its sockets, at once
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
        self.client.will_set("wills", f"{name} has gone", qos=1)
        self.client.on_connect = lambda *_: happened.put("connected")
        self.client.on_subscribe = lambda *_: happened.put("subscribed")
        self.client.on_disconnect = lambda _client, _data, _flags, reason, _properties: happened.put(str(reason))
        self.client.on_message = lambda _client, _data, message: happened.put(message.payload.decode())
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3_600
        self.client.connect("127.0.0.1", gateway.port, keepalive=45, properties=properties)
        self.client.loop_start()
        assert self.next() == "connected"

    def subscribe(self, topic_filter: str, options: SubscribeOptions) -> None:
        self.client.subscribe(topic_filter, options=options)
        assert self.next() == "subscribed"

    def next(self) -> str:
        return self.happened.get(timeout=PATIENCE_S)

    def stop(self) -> None:
        self.client.loop_stop()


@pytest.fixture
def device(gateway: Gateway) -> Iterator[Device]:
    device = Device(gateway, "pump-7")
    yield device
    device.stop()


@pytest.fixture
def watcher(gateway: Gateway) -> Iterator[Device]:
    """Sees the wills."""
    watcher = Device(gateway, "watcher")
    watcher.subscribe("wills", SubscribeOptions(qos=1))
    yield watcher
    watcher.stop()


def test_show_says_what_is_known_of_a_connected_client(gateway: Gateway, device: Device) -> None:
    device.subscribe("plant/+/temp", SubscribeOptions(qos=2, noLocal=True))
    shown = as_json(gateway, "show", "pump-7")
    assert shown.pop("peer").startswith("127.0.0.1:")
    assert shown.pop("connected_since") is not None
    assert shown == {
        "client": "pump-7",
        "connected": True,
        "version": "5",
        "user": None,
        "listener": "default",
        "token_until": None,
        "keep_alive_s": 45,
        "expiry_s": 3600,
        "expires": None,
        "in_flight": {"incoming": 0, "outgoing": 0},
        "queued": {"messages": 0, "bytes": 0},
        "will": {"topic": "wills", "qos": 1, "retain": False, "payload_bytes": 15, "delay_s": 0},
        "subscription_count": 1,
        "subscriptions": [
            {
                "topic_filter": "plant/+/temp",
                "qos": 2,
                "no_local": True,
                "retain_as_published": False,
                "identifier": None,
            }
        ],
    }
    text = sessions(gateway, "show", "pump-7").stdout
    assert "keep alive s        45\n" in text
    assert "  plant/+/temp  QoS 2, no local\n" in text
    (listed,) = as_json(gateway, "list")
    assert (listed["client"], listed["connected"], listed["version"], listed["user"]) == ("pump-7", True, "5", None)


def test_a_disconnected_client_is_told_why_keeps_its_session_and_leaves_its_will(
    gateway: Gateway, device: Device, watcher: Device, connect: Connect
) -> None:
    device.subscribe("plant/#", SubscribeOptions(qos=1))
    device.client.reconnect_delay_set(min_delay=60, max_delay=60)
    assert sessions(gateway, "disconnect", "pump-7").stdout == "disconnected pump-7\n"
    assert device.next() == "Administrative action"
    assert watcher.next() == "pump-7 has gone"
    watcher.client.publish("plant/a", "while it was away", 1).wait_for_publish(PATIENCE_S)
    shown = as_json(gateway, "show", "pump-7")
    assert (shown["connected"], shown["queued"]["messages"], shown["peer"]) == (False, 1, None)
    assert shown["queued"]["bytes"] > len("while it was away")
    assert shown["expires"] is not None
    again = sessions(gateway, "disconnect", "pump-7")
    assert (again.returncode, again.stdout) == (1, "")
    assert "Client 'pump-7' is not connected" in again.stderr


def test_an_expired_session_is_gone_with_what_waited_for_it(
    gateway: Gateway, device: Device, watcher: Device, connect: Connect
) -> None:
    device.subscribe("plant/#", SubscribeOptions(qos=1))
    device.client.reconnect_delay_set(min_delay=60, max_delay=60)
    assert as_json(gateway, "expire", "pump-7") == {"client": "pump-7", "done": "expired"}
    gateway.wait_for_log("session ended by the operator", client="pump-7")
    assert device.next() == "Administrative action"
    assert watcher.next() == "pump-7 has gone"
    gone = sessions(gateway, "show", "pump-7")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "MQTT client 'pump-7' not found" in gone.stderr
    assert [each["client"] for each in as_json(gateway, "list")] == ["watcher"]
    client = connect(gateway)
    client.send("comes back without a clean session", "10 12 0004 'MQTT' 04 00 003C 0006 'pump-7'")
    client.expect("has no session any more", "20 02 00 00")


def test_identifiers_with_quotes_and_blanks_are_named_as_they_are(gateway: Gateway, connect: Connect) -> None:
    client = connect(gateway)
    client.send("connects", "10 17 0004 'MQTT' 04 00 003C 000B", b"it's a pump")
    client.expect("is accepted", "20 02 00 00")
    assert as_json(gateway, "show", "it's a pump")["client"] == "it's a pump"
    assert as_json(gateway, "show", "it's a pump")["version"] == "3.1.1"
    assert sessions(gateway, "expire", "it's a pump").stdout == "expired it's a pump\n"
    client.expect_end("is disconnected")


def test_sessions_that_are_idle_end_together_and_others_stay(
    gateway: Gateway, device: Device, connect: Connect
) -> None:
    for name in ("idle-1", "idle-2"):
        client = connect(gateway)
        client.send("connects", "10 12 0004 'MQTT' 04 00 003C 0006", name.encode())
        client.expect("is accepted", "20 02 00 00")
        client.send("leaves", "E0 00")
        client.expect_end("is closed after its session's row is written")
    idle = ["idle-1", "idle-2"]
    expected = {"dry_run": True, "sessions": 3, "expired": idle}
    assert as_json(gateway, "expire", "--idle", "0s", "--dry-run") == expected
    assert as_json(gateway, "expire", "--idle", "1h", "--dry-run") == expected | {"expired": []}
    assert as_json(gateway, "expire", "--idle", "0s", "--user", "ann")["expired"] == []
    assert sessions(gateway, "expire", "--idle", "0s").stdout == "idle-1\nidle-2\nended 2 sessions of 3\n"
    assert as_json(gateway, "show", "pump-7")["connected"] is True
    assert [each["client"] for each in as_json(gateway, "list")] == ["pump-7"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either CLIENT or --idle"),
        (("pump-7", "--idle", "30d"), "give either CLIENT or --idle"),
        (("--user", "ann"), "give either CLIENT or --idle"),
        (("--idle", "a month"), "write a number with d, h, m or s, for example 30d"),
        (("--idle", "-3d"), "write a number with d, h, m or s, for example 30d"),
    ],
)
def test_expire_says_what_it_needs(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    Engine.open(tmp_path).close()
    done = rfhbridge("sessions", "expire", *arguments, "--data", tmp_path)
    assert (done.returncode, said in " ".join(done.stderr.split())) == (2, True), done.stderr


def test_without_a_gateway_there_is_nobody_to_ask(gateway: Gateway, device: Device) -> None:
    device.stop()
    assert gateway.stop() == 0
    for command in ("show", "disconnect", "expire"):
        done = sessions(gateway, command, "pump-7")
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            "MQTT client 'pump-7' not found: no gateway runs here, and only a running one can be asked" in done.stderr
        )
    (listed,) = as_json(gateway, "list")
    assert (listed["client"], listed["connected"]) == ("pump-7", False)


def test_after_a_crash_nobody_is_listed_as_connected(gateway: Gateway, device: Device) -> None:
    (listed,) = as_json(gateway, "list")
    assert listed["connected"] is True
    gateway.kill()
    (listed,) = as_json(gateway, "list")
    assert (listed["client"], listed["connected"]) == ("pump-7", False)


def test_an_empty_identifier_is_an_error_of_usage(gateway: Gateway) -> None:
    done = sessions(gateway, "show", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a client identifier has at least one character" in done.stderr
