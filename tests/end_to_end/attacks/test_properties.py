"""Floods of what MQTT 5 has more: properties, aliases, the receive window."""

import pytest

from tests.end_to_end.attacks.attacker import Attacker, connect, number, packet, publish, text, two
from tests.end_to_end.attacks.bystander import watched
from tests.end_to_end.attacks.conftest import Scale
from tests.end_to_end.gateway_process import Gateway
from tests.reason_strings import plain

pytestmark = pytest.mark.proof

NO_MATCHING_SUBSCRIBERS = b"\x10"
MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
RECEIVE_MAXIMUM_EXCEEDED, TOPIC_ALIAS_INVALID, PACKET_TOO_LARGE, QUOTA_EXCEEDED = 0x93, 0x94, 0x95, 0x97
USER_PROPERTY, TOPIC_ALIAS, CORRELATION_DATA = b"\x26", b"\x23", b"\x09"
RECEIVE_MAXIMUM = 0x21


def _connected(attacker: Attacker, client: str, properties: bytes = b"") -> bytes:
    """Connects at level 5; returns the properties of CONNACK."""
    attacker.send(connect(client, level=5, properties=properties))
    header = attacker.receive(2)
    assert header[0] == 0x20
    connack = attacker.receive(header[1])
    assert connack[:2] == b"\x00\x00"
    return connack[3:]


def _last_reason(attacker: Attacker) -> int:
    """The reason code of the DISCONNECT that ends what the attacker got."""
    received = plain(attacker.read_to_end())
    place = received.rindex(b"\xe0")
    assert place + 2 + received[place + 1] == len(received), received.hex()
    return received[place + 2]


def _user_properties(count: int, size: int) -> bytes:
    return (USER_PROPERTY + text("n" * size) + text("v" * size)) * count


@pytest.mark.parametrize(
    ("count", "size", "reason"),
    [
        (1_001, 1, {PACKET_TOO_LARGE, QUOTA_EXCEEDED}),
        (60_000, 0, {PACKET_TOO_LARGE, QUOTA_EXCEEDED}),
        (3, 65_535, {PACKET_TOO_LARGE, QUOTA_EXCEEDED}),
    ],
    ids=["too many", "endlessly many", "too long"],
)
def test_user_properties_are_taken_up_to_a_limit(attacked: Gateway, count: int, size: int, reason: set[int]) -> None:
    with watched(attacked, memory_mib=60) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "user-properties")
        attacker.send(publish("p", b"", properties=_user_properties(count, size)))
        watch.others_are_served()
        assert _last_reason(attacker) in reason


def test_a_connect_of_properties_is_refused_with_a_reason(attacked: Gateway) -> None:
    with watched(attacked, memory_mib=60), Attacker(attacked.port) as attacker:
        attacker.send(connect("p", level=5, properties=_user_properties(50_000, 0)))
        assert plain(attacker.read_to_end()) in {
            bytes((0x20, 3, 0, code, 0)) for code in (PACKET_TOO_LARGE, QUOTA_EXCEEDED)
        }


def test_messages_full_of_properties_cost_what_they_weigh(attacked: Gateway, scale: Scale) -> None:
    count = scale(200, 5_000)
    properties = _user_properties(100, 500) + CORRELATION_DATA + text(b"c" * 60_000)
    with watched(attacked, memory_mib=250) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "full-of-properties")
        for identifier in range(1, count + 1):
            attacker.send(publish("nobody/listens", b"", qos=1, identifier=identifier, properties=properties))
            attacker.expect(b"\x40\x03" + two(identifier) + NO_MATCHING_SUBSCRIBERS)
        watch.others_are_served()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (number(268_435_455) + b"\x26\x00\x01a", {MALFORMED, PACKET_TOO_LARGE, QUOTA_EXCEEDED}),
        (b"\xff\xff\xff\xff\x7f", {MALFORMED}),
        (b"\x02\x01\x02", {PROTOCOL_ERROR, MALFORMED}),
        (b"\x05\x26\xff\xff\x00\x00", {MALFORMED}),
        (b"\x02\x7f\x00", {MALFORMED}),
        (b"\x04\x01\x00\x01\x00", {PROTOCOL_ERROR}),
    ],
    ids=[
        "longer than the packet",
        "a length of five bytes",
        "a wrong value",
        "text that ends early",
        "unknown",
        "twice",
    ],
)
def test_broken_properties_end_the_connection_with_a_reason(attacked: Gateway, broken: bytes, reason: set[int]) -> None:
    with watched(attacked, memory_mib=40), Attacker(attacked.port) as attacker:
        _connected(attacker, "broken-properties")
        attacker.send(packet(0x30, text("p") + broken))
        assert _last_reason(attacker) in reason


def test_aliases_keep_little_however_many_and_long_they_are(attacked: Gateway, scale: Scale) -> None:
    """64 aliases, and 64 KiB of names behind them; setting them anew all the time ends at the size of caches."""
    with watched(attacked, memory_mib=200) as watch, Attacker(attacked.port) as attacker:
        _connected(attacker, "aliases")
        for turn in range(scale(200, 2_000)):
            attacker.send(
                b"".join(
                    publish(f"alias/{turn:06}/{alias}", properties=TOPIC_ALIAS + two(alias)) for alias in range(1, 65)
                )
            )
            if turn % 50 == 49:
                attacker.send(b"\xc0\x00")
                attacker.expect(b"\xd0\x00")
        watch.others_are_served()
        assert not attacker.has_ended
        attacker.send(b"".join(publish("l" * 9_000, properties=TOPIC_ALIAS + two(alias)) for alias in range(1, 65)))
        assert _last_reason(attacker) == QUOTA_EXCEEDED


@pytest.mark.parametrize("alias", [0, 65, 65_535])
def test_an_alias_beyond_what_was_announced_is_refused(attacked: Gateway, alias: int) -> None:
    with watched(attacked, memory_mib=40), Attacker(attacked.port) as attacker:
        _connected(attacker, "beyond")
        attacker.send(publish("a", properties=TOPIC_ALIAS + two(alias)))
        assert _last_reason(attacker) == TOPIC_ALIAS_INVALID


def test_who_publishes_past_the_receive_maximum_is_disconnected(attacked: Gateway) -> None:
    with watched(attacked, memory_mib=80), Attacker(attacked.port) as attacker:
        announced = _connected(attacker, "window")
        place = announced.index(bytes((RECEIVE_MAXIMUM,)))
        maximum = int.from_bytes(announced[place + 1 : place + 3], "big")
        assert 1 <= maximum < 65_535
        for identifier in range(1, maximum + 2):
            attacker.send(publish("window", b"", qos=2, identifier=identifier, properties=b""))
        assert _last_reason(attacker) == RECEIVE_MAXIMUM_EXCEEDED


def test_a_client_that_takes_one_message_at_a_time_and_never_answers_holds_up_itself_alone(attacked: Gateway) -> None:
    with watched(attacked, memory_mib=80) as watch, Attacker(attacked.port) as attacker, Attacker(attacked.port) as one:
        _connected(one, "one-at-a-time", properties=bytes((RECEIVE_MAXIMUM, 0, 1)))
        one.send(packet(0x82, b"\x00\x01\x00" + text("one/at/a/time") + b"\x01"))
        one.expect(b"\x90\x04\x00\x01\x00\x01")
        _connected(attacker, "many-at-a-time")
        for identifier in range(1, 501):
            attacker.send(publish("one/at/a/time", b"x" * 100, qos=1, identifier=identifier, properties=b""))
            attacker.expect(b"\x40\x02" + two(identifier))
        watch.others_are_served()
        first = publish("one/at/a/time", b"x" * 100, qos=1, identifier=1, properties=b"")
        one.expect(first)
        one.send(b"\xc0\x00")
        one.expect(b"\xd0\x00")
