"""No bytes of a peer raise, and no way of cutting them changes what they mean."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.mqtt.connection import Connection
from gateway.mqtt.events import ConnectReceived, Event, Violated
from gateway.mqtt.outgoing_flows import OutgoingFlows

CONNECTS = st.sampled_from(
    [
        bytes.fromhex("10 10 0006 4D5149736470 03 02 003C 0002 6331"),
        bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"),
        bytes.fromhex("10 1B 0004 4D515454 04 CE 000A 0002 6331 0001 77 0002 6869 0001 75 0001 70"),
        bytes.fromhex("10 0F 0004 4D515454 05 02 003C 00 0002 6331"),
        bytes.fromhex("10 22 0004 4D515454 05 CE 000A 05 11 0000000A 0002 6331 00 0001 77 0002 6869 0001 75 0001 70"),
    ]
)
PACKETS = st.sampled_from(
    [
        bytes.fromhex("30 07 0003 612F62 6869"),
        bytes.fromhex("32 07 0003 612F62 000A"),
        bytes.fromhex("34 08 0003 612F62 0001 30"),
        bytes.fromhex("3C 08 0003 612F62 0001 30"),
        bytes.fromhex("30 C1 02 0001 61") + bytes(318),
        bytes.fromhex("40 02 0001"),
        bytes.fromhex("50 02 0002"),
        bytes.fromhex("62 02 0001"),
        bytes.fromhex("70 02 0002"),
        bytes.fromhex("82 0E 000A 0003 612F62 01 0003 632F64 02"),
        bytes.fromhex("A2 0C 000A 0003 612F62 0003 632F64"),
        bytes.fromhex("30 06 0001 61 00 6869"),
        bytes.fromhex("34 0D 0001 61 0001 07 26 0001 6E 0001 76"),
        bytes.fromhex("30 07 0001 61 03 23 0001"),
        bytes.fromhex("30 06 0000 03 23 0001"),
        bytes.fromhex("40 08 0001 97 04 1F 0001 77"),
        bytes.fromhex("50 03 0002 80"),
        bytes.fromhex("62 04 0001 92 00"),
        bytes.fromhex("82 09 000A 02 0B 01 0001 61 2E"),
        bytes.fromhex("A2 06 000A 00 0001 61"),
        bytes.fromhex("E0 07 00 05 11 00000000"),
        bytes.fromhex("C0 00"),
        bytes.fromhex("E0 00"),
    ]
)


@st.composite
def mutated_streams(draw: st.DrawFn) -> bytes:
    """A connection's bytes of which a few are changed, left out or put in."""
    data = bytearray(draw(CONNECTS) + b"".join(draw(st.lists(PACKETS, max_size=12))))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        data[start : start + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


def _kinds(events: list[Event]) -> list[object]:
    """The events, with errors by their kind: which of two faults of one packet is named may depend on the cut."""
    return [type(event.error) if isinstance(event, Violated) else event for event in events]


def _receive(pieces: list[bytes]) -> list[Event]:
    """Hand pieces to a new connection that attaches a session with two deliveries in flight."""
    connection, session = Connection(levels={3, 4, 5}, topic_alias_maximum=2), OutgoingFlows("c1", clean_session=False)
    session.start("message 1", 1)
    session.start("message 2", 2)
    events: list[Event] = []
    for piece in pieces:
        received = connection.receive_data(piece)
        if received and isinstance(received[-1], ConnectReceived):
            connection.attach(session)
            received += connection.receive_data(b"")
        events += received
    assert not any(isinstance(event, Violated) for event in events[:-1])
    if events and isinstance(events[-1], Violated):
        assert connection.receive_data(b"\xc0\x00") == []
    return events


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.binary(max_size=200))
def test_random_bytes_never_raise(data: bytes) -> None:
    assert len(_receive([data])) <= 1


@given(CONNECTS, st.binary(max_size=200))
def test_random_bytes_behind_connect_never_raise(connect: bytes, data: bytes) -> None:
    assert isinstance(_receive([connect + data])[0], ConnectReceived)


@given(mutated_streams(), st.lists(st.integers(0, 10_000), max_size=8))
def test_mutated_packets_mean_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    whole = _kinds(_receive([data]))
    assert _kinds(_receive(_cut(data, cuts))) == whole
    assert _kinds(_receive([bytes((byte,)) for byte in data])) == whole
