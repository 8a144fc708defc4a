"""SUBSCRIBE and UNSUBSCRIBE of many filters are read as their bytes come in."""

import random

import pytest

from gateway.mqtt import subscriptions
from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import MalformedPacket, PeerError, ProtocolViolation
from gateway.mqtt.events import Event, SubscribeReceived, UnsubscribeReceived, Violated
from gateway.mqtt.outgoing_flows import OutgoingFlows

SUBSCRIBE, UNSUBSCRIBE = 0x82, 0xA2
COUNT = 3_000
PIECE_BYTES = 4_096


def number(value: int) -> bytes:
    """A variable byte integer (MQTT 5.0 section 1.5.5)."""
    encoded = b""
    while value > 127:
        encoded, value = encoded + bytes((value & 127 | 128,)), value >> 7
    return encoded + bytes((value,))


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def packet(first_byte: int, entries: bytes, *, properties: bytes | None = None) -> bytes:
    """A packet with the identifier 7; `properties`: those of level 5."""
    middle = b"" if properties is None else number(len(properties)) + properties
    body = b"\x00\x07" + middle + entries
    return bytes((first_byte,)) + number(len(body)) + body


def connection(level: int) -> Connection:
    opened = Connection(levels=(3, 4, 5))
    name = b"\x00\x06MQIsdp" if level == 3 else b"\x00\x04MQTT"
    body = name + bytes((level, 2, 0, 0)) + (b"\x00" if level == 5 else b"") + text("self")
    assert len(opened.receive_data(b"\x10" + number(len(body)) + body)) == 1
    opened.attach(OutgoingFlows("self", clean_session=True, maximum_in_flight=10))
    return opened


def received(opened: Connection, data: bytes, sizes: list[int]) -> list[Event]:
    """The events of bytes that come in pieces, whose lengths repeat."""
    events: list[Event] = []
    position, place = 0, 0
    while position < len(data):
        size = sizes[place % len(sizes)]
        events += opened.receive_data(data[position : position + size])
        position, place = position + size, place + 1
    return events


def error_of(event: Event) -> PeerError:
    assert isinstance(event, Violated)
    return event.error


@pytest.mark.parametrize("sizes", [[1], [700], [1_024], [PIECE_BYTES], [1, 5_000, 3], [20_000]])
@pytest.mark.parametrize("level", [3, 4, 5])
def test_a_long_subscribe_is_the_same_however_it_is_cut(level: int, sizes: list[int]) -> None:
    options = [place % 3 | (0x2C if level == 5 and place % 7 == 0 else 0) for place in range(COUNT)]
    names = [f"a/{place}/{'x' * (place % 50)}" for place in range(COUNT)]
    entries = [text(name) + bytes((each,)) for name, each in zip(names, options, strict=True)]
    properties = (b"\x0b\x05" + 300 * b"\x26\x00\x01n\x00\x01v") if level == 5 else None
    data = packet(SUBSCRIBE, b"".join(entries), properties=properties) + b"\xc0\x00"
    first, ping = received(connection(level), data, sizes)
    assert isinstance(first, SubscribeReceived)
    assert first.packet_identifier == 7
    assert first.entries == tuple(entries)
    assert first.subscriptions == tuple((name, each & 3) for name, each in zip(names, options, strict=True))
    assert [each.retain_handling for each in first.options] == [each >> 4 for each in options if level == 5]
    assert [each.no_local for each in first.options] == [each & 4 != 0 for each in options if level == 5]
    if level == 5:
        assert first.properties is not None
        assert first.properties.subscription_identifier == 5
        assert len(first.properties.user_properties) == 300
    assert type(ping).__name__ == "PingReceived"


@pytest.mark.parametrize("level", [4, 5])
def test_a_long_unsubscribe_is_the_same_however_it_is_cut(level: int) -> None:
    entries = [text(f"a/{place}") for place in range(COUNT)]
    data = packet(UNSUBSCRIBE, b"".join(entries), properties=b"" if level == 5 else None)
    for seed in range(5):
        choose = random.Random(seed)
        (event,) = received(connection(level), data, [choose.randint(1, 9_000) for _ in range(20)])
        assert isinstance(event, UnsubscribeReceived)
        assert event.entries == tuple(entries)
        assert event.topic_filters == tuple(f"a/{place}" for place in range(COUNT))


def test_filters_that_have_been_read_count_while_their_packet_has_no_end() -> None:
    """They take much more than their bytes."""
    opened = connection(4)
    asked = packet(SUBSCRIBE, (text("a") + b"\0") * COUNT)
    opened.receive_data(asked[:-1])
    assert opened.unfinished_bytes > 50 * len(asked)
    opened.receive_data(asked[-1:])
    assert opened.unfinished_bytes == 0


def test_two_long_packets_are_read_one_behind_the_other() -> None:
    one = packet(SUBSCRIBE, b"".join(text(f"a/{place}") + b"\x01" for place in range(COUNT)))
    two = packet(UNSUBSCRIBE, b"".join(text(f"b/{place}") for place in range(COUNT)))
    first, second, third = received(connection(4), one + two + one, [PIECE_BYTES])
    assert isinstance(first, SubscribeReceived)
    assert isinstance(second, UnsubscribeReceived)
    assert second.topic_filters[-1] == f"b/{COUNT - 1}"
    assert third == first


def test_no_piece_brings_more_work_than_its_own_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one too, though it alone brings the event."""
    read = 0
    check = subscriptions.check_topic_filter

    def counted(topic_filter: str) -> None:
        nonlocal read
        read += 1
        check(topic_filter)

    monkeypatch.setattr(subscriptions, "check_topic_filter", counted)
    entry = text("a/b/c/d") + b"\x00"
    data, opened = packet(SUBSCRIBE, COUNT * 10 * entry), connection(4)
    most = 0
    for position in range(0, len(data), PIECE_BYTES):
        before = read
        opened.receive_data(data[position : position + PIECE_BYTES])
        most = max(most, read - before)
    assert read == COUNT * 10
    assert most <= PIECE_BYTES // len(entry) + 1


def test_filters_of_the_largest_size_that_come_byte_by_byte_are_not_looked_at_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    read_ahead = subscriptions.FilterReader.read_ahead

    def counted(reader: subscriptions.FilterReader, data: bytes) -> None:
        nonlocal looks
        looks += 1
        read_ahead(reader, data)

    monkeypatch.setattr(subscriptions.FilterReader, "read_ahead", counted)
    data = packet(SUBSCRIBE, 3 * (text("a" * 65_535) + b"\x00"))
    (event,) = received(connection(4), data, [1])
    assert isinstance(event, SubscribeReceived)
    assert len(event.entries) == 3
    assert looks <= 6


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (text("a/#/b") + b"\x00", MalformedPacket),
        (text("") + b"\x00", MalformedPacket),
        (text("a") + b"\x03", MalformedPacket),
        (b"\x00\x01\xff\x00", MalformedPacket),
    ],
)
def test_a_filter_that_is_wrong_ends_the_connection_and_nothing_before_it_is_told(
    entry: bytes, error: type[PeerError]
) -> None:
    good = COUNT * (text("a/b/c/d") + b"\x00")
    events = received(connection(4), packet(SUBSCRIBE, good + entry + good), [PIECE_BYTES])
    assert [type(error_of(event)) for event in events] == [error]


def test_a_packet_that_ends_inside_its_last_filter_is_malformed() -> None:
    good = COUNT * (text("a/b/c/d") + b"\x00")
    for cut in (b"\x00", b"\x00\x05", b"\x00\x05a", text("a")):
        (event,) = received(connection(4), packet(SUBSCRIBE, good + cut), [PIECE_BYTES])
        assert isinstance(error_of(event), MalformedPacket)


def test_a_packet_identifier_of_0_is_told_though_the_packet_has_not_ended() -> None:
    data = packet(SUBSCRIBE, COUNT * (text("a/b/c/d") + b"\x00")).replace(b"\x00\x07", b"\x00\x00", 1)
    (event,) = received(connection(4), data[:5_000], [PIECE_BYTES])
    assert isinstance(error_of(event), MalformedPacket)


def test_properties_that_have_no_end_are_waited_for_and_then_wrong() -> None:
    properties = b"\x26\x00\x01n\x00\x01v" * 900
    data = packet(SUBSCRIBE, b"", properties=properties)
    (event,) = received(connection(5), data, [PIECE_BYTES])
    assert isinstance(error_of(event), ProtocolViolation)
