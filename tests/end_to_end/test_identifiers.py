"""Clients that use packet identifiers of QoS 2 again, as rumqttc does: PUBREL(7) and PUBLISH(7) in one write."""

from pathlib import Path

import orjson
import pytest

from spark_audit.verify import Verdict, verify
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.metrics_page import scrape_until
from tests.end_to_end.wire import WireClient
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_records

MESSAGES, WINDOW = 1_000, 20
#: CONNECT and SUBSCRIBE of `#` at QoS 0, what they are answered with, and the properties of a PUBLISH, by level.
CONNECTS = {
    3: "10 12 0006 'MQIsdp' 03 02 0000 0004 '{}'",
    4: "10 10 0004 'MQTT' 04 02 0000 0004 '{}'",
    5: "10 11 0004 'MQTT' 05 02 0000 00 0004 '{}'",
}
SUBSCRIBES = "82 06 0001 0001 '#' 00"
CONFIGURATION = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
receive_maximum = 40

[http]
enabled = true
listen = "127.0.0.1:0"
"""


@pytest.fixture
def gateway(new_gateway: StartGateway, tmp_path: Path) -> Gateway:
    path = tmp_path / "rfhbridge.toml"
    path.write_text(CONFIGURATION)
    return new_gateway("--config", str(path)).start()


def _connected(connect: Connect, gateway: Gateway, name: str, level: int) -> WireClient:
    client = connect(gateway, name)
    client.send("connects", CONNECTS[level].format(name))
    assert client.receive_packet()[0] == 0x20
    return client


def _watcher(connect: Connect, gateway: Gateway) -> WireClient:
    client = _connected(connect, gateway, "hear", 4)
    client.send("subscribes", SUBSCRIBES)
    client.expect("is granted QoS 0", "90 03 0001 00")
    return client


def _publish(identifier: int, number: int, level: int, *, duplicate: int = 0) -> bytes:
    body = b"\0\1a" + identifier.to_bytes(2, "big") + (b"\0" if level == 5 else b"") + b"%04d" % number
    return bytes((0x34 | duplicate, len(body))) + body


def _payloads(watcher: WireClient, count: int) -> list[int]:
    return [int(watcher.receive_packet()[-4:]) for _ in range(count)]


def _publish_all(client: WireClient, level: int) -> None:
    """On each PUBREC the next message goes out behind PUBREL, under the same identifier and in the same write."""
    numbers = iter(range(MESSAGES))
    client.send(
        "fills its window", *(_publish(identifier, next(numbers), level) for identifier in range(1, WINDOW + 1))
    )
    completed = 0
    while completed < MESSAGES:
        packet = client.receive_packet()
        assert packet[:2] in (b"\x50\x02", b"\x70\x02"), packet.hex(" ")
        if packet[0] == 0x70:
            completed += 1
            continue
        number = next(numbers, None)
        behind = b"" if number is None else _publish(int.from_bytes(packet[2:4], "big"), number, level)
        client.send("releases, and goes on", b"\x62\x02" + packet[2:4] + behind)


@pytest.mark.parametrize("level", [3, 4, 5])
def test_every_message_arrives_once_and_in_order_though_identifiers_are_used_again_at_once(
    gateway: Gateway, connect: Connect, level: int
) -> None:
    """Of 1,000 messages 506 to 674 arrived."""
    watcher = _watcher(connect, gateway)
    _publish_all(_connected(connect, gateway, "pub1", level), level)
    assert _payloads(watcher, MESSAGES) == list(range(MESSAGES))
    watcher.send("pings", "C0 00")
    watcher.expect("has got nothing more", "D0 00")
    assert gateway.stop() == 0
    assert verify(gateway.data / "trail").verdict is Verdict.INTACT


def test_trail_tells_repeats_and_what_came_too_early_and_is_sound(
    gateway: Gateway, connect: Connect, tmp_path: Path
) -> None:
    """The audit finds no violation, and warns of the one message that its client has lost."""
    watcher = _watcher(connect, gateway)
    client = _connected(connect, gateway, "pub1", 4)
    _publish_all(client, 4)
    _payloads(watcher, MESSAGES)
    client.send("publishes 7", _publish(7, 1, 4))
    client.expect("gets PUBREC", "50 02 0007")
    client.send("repeats it", _publish(7, 1, 4, duplicate=8))
    client.expect("gets PUBREC again", "50 02 0007")
    client.send("publishes another message under 7", _publish(7, 2, 4))
    client.expect("gets PUBREC for it too", "50 02 0007")
    client.send("releases 7", "62 02 0007")
    client.expect("gets PUBCOMP", "70 02 0007")
    assert _payloads(watcher, 1) == [1]
    page = scrape_until(gateway, lambda page: page.value("publishes_repeated_total", event="repeat") == 1)
    assert page.value("publishes_repeated_total", event="identifier_reused") == 1
    gateway.wait_for_log("packet identifier reused too early", client="^pub1$", packet_identifier="^7$")
    assert gateway.stop() == 0
    repeated = [each for each in _records(gateway) if each["kind"] == "repeated"]
    assert [each["event"] for each in repeated] == ["repeat", "identifier_reused"]
    assert len({(each["client"], each["exchange"], each["packet_identifier"]) for each in repeated}) == 1
    report = tmp_path / "report"
    arguments = ("audit", "run", "--engine", "duckdb", "--data", str(gateway.data), "--out", str(report))
    ended = rfhbridge(*arguments, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    controls = {each["identifier"]: each for each in orjson.loads((report / "result.json").read_bytes())["controls"]}
    found = {name: control["violations"] for name, control in controls.items() if control["violations"]}
    found.pop("timeliness.synchronised", None)  # whether something steers the clock is up to the machine
    assert found == {"qos.identifiers": 1}


def _records(gateway: Gateway) -> list[dict[str, object]]:
    return trail_records(gateway.data / "trail")
