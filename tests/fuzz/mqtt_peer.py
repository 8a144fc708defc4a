"""A server's side of one MQTT connection, as fuzzers give it bytes.

The first byte of an input picks level and limits, the second how the bytes are cut; the others are what the peer sends.
"""

import random
from collections.abc import Iterator

from gateway.mqtt.connection import Connection
from gateway.mqtt.errors import LimitExceeded
from gateway.mqtt.events import ConnectReceived, Event, Violated
from gateway.mqtt.outgoing_flows import OutgoingFlows, OutgoingState

CONNECTS = (
    b"",  # the CONNECT is in the input
    bytes.fromhex("10 10 0006 4D5149736470 03 02 003C 0002 6331"),
    bytes.fromhex("10 0E 0004 4D515454 04 02 003C 0002 6331"),
    bytes.fromhex("10 0F 0004 4D515454 05 02 003C 00 0002 6331"),
)
#: Behind the CONNECT of a client; where the fuzzer starts.
SEEDS = (
    "10 22 0004 4D515454 05 CE 000A 05 11 0000000A 0002 6331 00 0001 77 0002 6869 0001 75 0001 70",
    "32 08 0003 612F62 000A 00 30 06 0001 61 00 6869 3C 08 0003 612F62 0001 00",
    "32 2E 0001 61 000A 26 01 01 02 0000003C 08 0001 72 09 0002 00FF 26 0001 6E 0001 76 26 0001 6E 0002 7632"
    " 03 0004 74657874 6869",
    "30 07 0001 61 03 23 0001 30 06 0000 03 23 0001 30 09 0001 61 05 0B 01 0B 8001",
    "40 02 0001 50 02 0002 62 02 0001 70 02 0002 40 08 0001 97 04 1F 0001 77 50 03 0002 80 62 03 0007 92",
    "82 14 000A 09 0B 01 26 0001 6E 0001 76 0001 61 2E 0001 62 10 82 12 000A 00 000C 2473686172652F672F612F23 01",
    "82 0E 000A 0003 612F62 01 0003 632F64 02 A2 0C 000A 0003 612F62 0003 632F64",
    "A2 0D 000A 07 26 0001 6E 0001 76 0001 61 C0 00 E0 07 00 05 11 00000000",
    "F0 06 19 04 15 0001 6D",
    "38 03 0001 61 6A 02 0001 8A 06 000A 0001 61 01 AA 05 000A 0001 61",
    "30 05 0002 6101 00 30 04 0002 611F 82 06 000A 0001 7F 01 A2 06 000A 0002 C29F 30 0A 0001 61 06 03 0003 EFBFBF",
    "82 0F 000A 00 0009 2473686172652F672F 01 82 0F 000A 00 0009 2473686172652F2F61 05 21 03 00 00 00 91 03 0001 00",
)


class Peer:
    """One connection that is given bytes. Its commits never return, so the cut alone makes a difference."""

    def __init__(self, selector: int) -> None:
        self._session = OutgoingFlows("c1", clean_session=False, maximum_in_flight=4)
        self._session.start("message 1", 1)
        self._session.start("message 2", 2)
        self._session.restore(3, "message 3", 2, OutgoingState.AWAIT_PUBCOMP)
        small = selector >= 128
        limits = {"receive_maximum": 3, "topic_alias_maximum": 2} if small else {}
        maximum = {"maximum_packet_bytes": 200} if small else {}
        told = {"maximum_keep_alive_s": 30} if small else {}
        self._connection = Connection(levels={3, 4, 5}, **limits, **maximum, **told)
        self.events: list[Event] = []
        self.connack = b""

    def receive(self, piece: bytes) -> None:
        connection = self._connection
        received = connection.receive_data(piece)
        if received and isinstance(received[-1], ConnectReceived):
            connection.attach(self._session)
            self.connack = connection.connack(False)
            received += connection.receive_data(b"")
        self.events += received

    def last_word(self) -> bytes:
        """What is sent before the connection is closed."""
        if not self.events:
            return b""
        last = self.events[-1]
        return self._connection.closing_packet(last.error.reason_code if isinstance(last, Violated) else 0x8B)

    def outcome(self) -> object:
        """Which of two faults of one packet is named may depend on the cut; that there is one may not.

        A CONNECT that is too long is refused by its length, and told so where its level came together with that.
        """
        kinds = [type(event) if isinstance(event, Violated) else event for event in self.events]
        due = self._session.repeats_due(len(self.events), 1)
        first = self.events[0] if self.events else None
        is_too_long = isinstance(first, Violated) and isinstance(first.error, LimitExceeded)
        return kinds, self.connack, due, is_too_long or bool(self.last_word())

    def all_outcome(self) -> object:
        """Everything that the connection says."""
        connection = self._connection
        is_due = self._session.repeats_due(1, 1), self._session.repeats_due(9, 5)
        waiting = connection.unfinished_bytes, connection.bytes_to_come, connection.has_finished_packet
        said = self.last_word(), connection.refusal_code, connection.has_said_why, connection.keep_alive_s
        return self.events, self.connack, is_due, waiting, said, self._session.unfinished(), self._session.window()


def pieces_of(data: bytes, seed: int) -> Iterator[bytes]:
    cuts = random.Random(seed)
    start = 0
    while start < len(data):
        size = cuts.choice((1, 1, 2, 3, 7, 50))
        yield data[start : start + size]
        start += size


def seeds() -> Iterator[tuple[str, bytes]]:
    """Every stream at every level, with and without limits."""
    for number, stream in enumerate(SEEDS):
        for selector in (*range(4), 131):
            yield f"stream-{number}-{selector}", bytes((selector, number)) + bytes.fromhex(stream)


def whole_and_cut(given: bytes) -> tuple[Peer, Peer]:
    """One peer that gets an input of two bytes or more in one piece, and one that gets it in random pieces."""
    selector, seed = given[0], given[1]
    data = CONNECTS[selector % 4] + given[2:]
    whole, cut = Peer(selector), Peer(selector)
    whole.receive(data)
    for piece in pieces_of(data, seed):
        cut.receive(piece)
    return whole, cut
