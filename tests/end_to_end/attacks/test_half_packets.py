"""Connections that never come to the point, and packets that never end."""

import time

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, Crowd, connect, number, publish, text
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway
from tests.reason_strings import plain

pytestmark = pytest.mark.proof

KIB_A_CONNECTION = 40  # with its buffers in the gateway; the aim for an idle one is 12 KB
LONGEST = 268_435_455


def _mib(connections: int, kib: float = KIB_A_CONNECTION) -> float:
    return 40 + connections * kib / 1_024


def test_a_connect_that_comes_byte_by_byte_is_not_waited_for(attacked: Gateway, scale: Scale) -> None:
    count = scale(100, 1_500)
    whole = connect("slow-connect-" + "x" * 200)
    with watched(attacked, memory_mib=_mib(count)) as watch, Crowd(attacked.port, count) as crowd:
        began_s = time.monotonic()
        for place in range(len(whole) - 1):
            crowd.send(lambda _, place=place: whole[place : place + 1])
            if time.monotonic() > began_s + 3:
                break
            watch.bystander.wait_for_more(1)
        crowd.read_until(lambda _: False)
        assert crowd.ended == count
        assert not any(member.received for member in crowd.members)


def test_connections_that_say_nothing_make_room_for_those_that_do(attacked: Gateway, scale: Scale) -> None:
    """Past maximum_waiting_connections, 2,000 by default, those go first that have waited longest."""
    count = scale(300, 5_000)
    with watched(attacked, memory_mib=_mib(count)) as watch, Crowd(attacked.port, count) as crowd:
        watch.others_are_served()
        with Attacker(attacked.port) as late:
            late.send(connect("late"))
            late.expect(ACCEPTED)
        crowd.read_until(lambda _: False)
        assert crowd.ended == count


@pytest.mark.parametrize(
    "sent", ["a fixed header", "half of a PUBLISH", "half of a SUBSCRIBE", "half a remaining length"]
)
def test_half_a_packet_is_held_for_little_memory(attacked: Gateway, scale: Scale, sent: str) -> None:
    half = {
        "a fixed header": b"\x30" + number(LONGEST),
        "half of a PUBLISH": publish("half/packet", bytes(2_000))[:1_000],
        "half of a SUBSCRIBE": b"\x82" + number(1_000_000) + b"\x00\x01" + text("half/packet/" + "x" * 980),
        "half a remaining length": b"\x30\xff\xff",
    }[sent]
    count = scale(300, 5_000)
    with (
        watched(attacked, memory_mib=_mib(count)) as watch,
        Crowd(attacked.port, count, lambda place: connect(f"half-{place}")) as crowd,
    ):
        crowd.read_until(lambda member: len(member.received) >= len(ACCEPTED))
        assert all(member.received == ACCEPTED for member in crowd.members)
        crowd.send(lambda _: half)
        watch.others_are_served()
        assert crowd.ended == 0


def test_a_length_of_268_million_bytes_costs_what_has_arrived(attacked: Gateway, scale: Scale) -> None:
    count, arrived = scale(50, 500), 20_000
    kib = KIB_A_CONNECTION + 2 * arrived / 1_024
    with (
        watched(attacked, memory_mib=_mib(count, kib)) as watch,
        Crowd(attacked.port, count, lambda place: connect(f"long-{place}")) as crowd,
    ):
        crowd.send(lambda _: b"\x32" + number(LONGEST) + text("long") + bytes(arrived))
        crowd.read_until(lambda member: len(member.received) >= len(ACCEPTED))
        watch.others_are_served()
        assert crowd.ended == 0


def test_what_has_come_of_unfinished_packets_is_dropped_where_it_is_too_much(attacked: Gateway) -> None:
    """maximum_unfinished_bytes_in_all, here 64 MiB: of ten packets of 20 MB without an end three may wait."""
    with (
        watched(attacked, memory_mib=400) as watch,
        Crowd(attacked.port, 10, lambda place: connect(f"unfinished-{place}")) as crowd,
    ):
        crowd.send(lambda _: b"\x32" + number(LONGEST) + text("long"))
        crowd.send(lambda _: bytes(20_000_000))
        crowd.read_until(lambda _: crowd.ended >= 7)
        watch.others_are_served()
        assert crowd.ended == 7


@pytest.mark.parametrize("level", [3, 4, 5])
def test_no_connect_is_longer_than_its_fields_can_be(attacked: Gateway, level: int) -> None:
    with watched(attacked, memory_mib=40), Attacker(attacked.port) as attacker:
        name = {3: "MQIsdp", 4: "MQTT", 5: "MQTT"}[level]
        attacker.send(b"\x10" + number(LONGEST) + text(name) + bytes((level, 2)) + bytes(100_000))
        assert plain(attacker.read_to_end()) in (b"", b"\x20\x03\x00\x95\x00")


def test_connections_that_come_and_go_leave_nothing(attacked: Gateway, scale: Scale) -> None:
    with watched(attacked, memory_mib=60):
        for place in range(scale(500, 5_000)):
            with Attacker(attacked.port) as attacker:
                attacker.send(connect(f"come-and-go-{place}")[: 5 + place % 40])
