"""Filters and topics that are chosen to make the search for subscriptions long: no publication takes much longer."""

import itertools
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.end_to_end.attacks.attacker import ACCEPTED, Attacker, connect, number, packet, publish, subscribe
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway

pytestmark = pytest.mark.proof

FILTERS_OF_A_SESSION = 500  # maximum_subscriptions of the attacked gateway
FAILURE = 0x80
#: PUBLISHes whose CPU time is measured, and what each may take: so many times that of one among no filters, and so much
#: more. Up to commit 6285f90 it was 2 ms here. CPU time hardly depends on what else the machine does.
PUBLISHES, TIMES, MORE_S = 300, 4, 0.0005


def subscribed(attacker: Attacker, filters: list[str]) -> bytes:
    """Sends one SUBSCRIBE; the codes of its SUBACK."""
    attacker.send(subscribe(filters))
    length = number(len(filters) + 2)
    attacker.expect(b"\x90" + length + b"\x00\x01")
    return attacker.receive(len(filters))


def cpu_s_of_a_publish(gateway: Gateway, writer: Attacker, beginning: str) -> float:
    """CPU time that the gateway takes for a PUBLISH of QoS 0 of an ever new topic."""
    before_s = _cpu_s(gateway)
    for each in range(PUBLISHES):
        assert writer.send(publish(f"{beginning}new{each}", b""))
    assert writer.send(publish("last", b"", qos=1, identifier=1))
    writer.expect(b"\x40\x02\x00\x01")
    return (_cpu_s(gateway) - before_s) / PUBLISHES


def _cpu_s(gateway: Gateway) -> float:
    """User and system time of the gateway's own process (proc(5), /proc/PID/stat: fields 14 and 15)."""
    fields = Path(f"/proc/{gateway.process_identifier}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_every_way_to_place_wildcards_makes_no_publication_slow(attacked: Gateway, scale: Scale) -> None:
    """All {a,+}^k/z, from clients of many networks, and topics that match none of them after k levels."""
    choices = scale(11, 14)
    filters = ["/".join((*levels, "z")) for levels in itertools.product("a+", repeat=choices)]
    with watched(attacked, memory_mib=120), ExitStack() as stack:
        writer = stack.enter_context(_connected(attacked, "lights-it", "127.201.1.1"))
        ordinary_s = cpu_s_of_a_publish(attacked, writer, "b/" * choices)
        granted = 0
        bombs = []
        for place, first in enumerate(range(0, len(filters), FILTERS_OF_A_SESSION)):
            bombs.append(stack.enter_context(Attacker(attacked.port, f"127.{place + 1}.1.1")))
            bombs[-1].send(connect(f"matcher-{place}"))
            bombs[-1].expect(ACCEPTED)
            granted += subscribed(bombs[-1], filters[first : first + FILTERS_OF_A_SESSION]).count(0)
        assert 0 < granted < len(filters), "the limit on shapes has refused the rest"
        assert cpu_s_of_a_publish(attacked, writer, "a/" * choices) <= TIMES * ordinary_s + MORE_S
        honest = subscribed(stack.enter_context(_connected(attacked, "honest", "127.202.1.1")), ["honest/+/state", "#"])
        assert honest == b"\0\0", "what is kept for newcomers is there for them"
        for bomb in bombs:
            bomb.send(packet(0xE0, b""))


def test_an_ever_new_topic_takes_no_longer_among_many_subscriptions(attacked: Gateway) -> None:
    with (
        watched(attacked, memory_mib=120),
        _connected(attacked, "many", "127.203.1.1") as many,
        _connected(attacked, "new-topics", "127.204.1.1") as writer,
    ):
        ordinary_s = cpu_s_of_a_publish(attacked, writer, "others/1/2/")
        codes = subscribed(many, [f"topics/{place}/+" for place in range(FILTERS_OF_A_SESSION)])
        assert codes == bytes(FILTERS_OF_A_SESSION)
        assert cpu_s_of_a_publish(attacked, writer, "topics/1/2/") <= TIMES * ordinary_s + MORE_S
        many.send(packet(0xE0, b""))


def test_a_session_gets_no_copy_for_each_of_a_thousand_groups(attacked: Gateway, scale: Scale) -> None:
    groups = scale(200, 2_000)
    with watched(attacked, memory_mib=120) as watch, Attacker(attacked.port, "127.205.1.1") as attacker:
        attacker.send(connect("groups", level=5))
        assert attacker.receive(1) == b"\x20"
        attacker.receive(_length(attacker))
        codes = b""
        for first in range(0, groups, 100):
            attacker.send(subscribe([f"$share/g{first + place}/groups/#" for place in range(100)], level=5))
            codes += _codes_of_level_5(attacker, 100)
        assert codes.count(0) == 100, "maximum_shared_groups"
        assert set(codes) == {0, 0x97}
        attacker.send(publish("groups/one", b"x", properties=b""))
        watch.others_are_served()
        attacker.send(packet(0xE0, b""))


def _connected(gateway: Gateway, client: str, source: str) -> Attacker:
    attacker = Attacker(gateway.port, source)
    attacker.send(connect(client))
    attacker.expect(ACCEPTED)
    return attacker


def _codes_of_level_5(attacker: Attacker, count: int) -> bytes:
    """The codes of the next SUBACK, whatever came in front of it."""
    while True:
        kind, length = attacker.receive(1), _length(attacker)
        body = attacker.receive(length)
        if kind == b"\x90":
            return body[-count:]


def _length(attacker: Attacker) -> int:
    length = shift = 0
    while True:
        byte = attacker.receive(1)[0]
        length, shift = length | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return length
