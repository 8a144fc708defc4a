"""Refused CONNECTs in the trail: the first one whole, then numbers by reason and network, bounded whatever comes."""

import tracemalloc

import ormsgpack
import pytest

from gateway.access.refused_connects import ROW_KEY, ConnectRefusal, RefusedConnects
from gateway.access.tally import INTERVAL_US, KEPT_AFTER_US
from gateway.audit_trail.notes.notes import NoteKind
from gateway.mqtt.connection import Connection
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.unit_of_work import Note, StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

AT = 1_795_000_000_000_000
#: Place of each item in a note.
CLIENT, NETWORK, LEVEL, RULE, CONNECTS, SINCE, CODE, REASON = range(3, 11)
CONNECT = {
    3: bytes.fromhex("10 10 0006 4d5149736470 03 02 003c 0002 6331"),
    4: bytes.fromhex("10 0e 0004 4d515454 04 02 003c 0002 6331"),
    5: bytes.fromhex("10 0f 0004 4d515454 05 02 003c 00 0002 6331"),
}
#: The same with a Maximum Packet Size of 4 bytes, so that no CONNACK fits.
TAKES_NOTHING = bytes.fromhex("10 14 0004 4d515454 05 02 003c 05 27 00000004 0002 6331")


def refused_at(level: int, reason_code: ReasonCode = ReasonCode.QUOTA_EXCEEDED, data: bytes = b"") -> Connection:
    """A connection whose CONNECT was refused. Level 0: it could not be read."""
    connection = Connection(levels=(3, 4, 5))
    connection.receive_data(data or CONNECT.get(level, b""))
    connection.closing_packet(reason_code)
    return connection


def refuse(
    refused: RefusedConnects, peer: str = "192.0.2.1:5", rule: str = "connections", client: str = "c1", level: int = 5
) -> None:
    refused.count(ConnectRefusal.LIMIT, refused_at(level), peer=peer, now_us=AT, rule=rule, client=client)


def written(refused: RefusedConnects, now_us: int, *, is_last: bool = False) -> list[Note]:
    unit = UnitOfWork()
    has_written = refused.write(unit, now_us, is_last=is_last)
    assert has_written or not unit.notes
    assert unit.notes_are_due or not unit.notes
    return unit.notes


def test_the_first_of_a_network_is_told_at_once_and_whole_and_further_ones_are_counted() -> None:
    refused = RefusedConnects()
    for client in ("c1", "c2", "c3"):
        refuse(refused, client=client)
    (first,) = written(refused, AT + 9)
    kind = (NoteKind.CONNECTS_REFUSED, AT, "limit")
    assert first == (*kind, "c1", "192.0.2.0/24", 5, "connections", 1, AT, b"\x97", "")
    assert written(refused, AT + INTERVAL_US - 1) == []
    (counted,) = written(refused, AT + INTERVAL_US)
    assert counted == (kind[0], AT + INTERVAL_US, "limit", "", "192.0.2.0/24", 5, "connections", 2, AT, b"\x97", "")


def test_each_level_is_told_in_its_own_codes() -> None:
    """MQTT 3.1.1 table 3.1 and MQTT 5.0 table 3-1."""
    refused = RefusedConnects()
    for level in (3, 4, 5, 0):
        refuse(refused, level=level)
        malformed = refused_at(level, ReasonCode.MALFORMED_PACKET)
        refused.count(ConnectRefusal.MALFORMED, malformed, peer="192.0.2.1:5", now_us=AT)
    told = [(note[2], note[LEVEL], note[CODE]) for note in written(refused, AT)]
    assert told == [
        *(("limit", 3, b"\3"), ("malformed", 3, b"")),
        *(("limit", 4, b"\3"), ("malformed", 4, b"")),
        *(("limit", 5, b"\x97"), ("malformed", 5, b"\x81")),
        *(("limit", 0, b""), ("malformed", 0, b"")),
    ]


def test_a_client_that_takes_no_connack_was_told_nothing_in_any_level() -> None:
    refused = RefusedConnects()
    connection = refused_at(5, data=TAKES_NOTHING)
    refused.count(ConnectRefusal.LIMIT, connection, peer="192.0.2.1:5", now_us=AT, rule="connections")
    ((*_, level, _, _, _, code, _),) = written(refused, AT)
    assert (level, code) == (0, b"")


def test_of_a_strangers_text_the_beginning_is_told_and_a_long_name_is_left_out() -> None:
    refused = RefusedConnects()
    refused.count(
        ConnectRefusal.WILL, refused_at(5), peer="192.0.2.1:5", now_us=AT, client="c" * 600, reason="r" * 70_000
    )
    ((*_, reason),) = notes = written(refused, AT)
    assert (notes[0][CLIENT], reason) == ("", "r" * 200)


def test_a_flood_from_everywhere_writes_few_notes_and_loses_no_count() -> None:
    refused = RefusedConnects()
    connection = refused_at(5)
    tracemalloc.start()
    for number in range(50_000):
        peer = f"{number >> 12 & 255}.{number >> 4 & 255}.{number & 15}.1:5"
        refused.count(
            ConnectRefusal.LIMIT, connection, peer=peer, now_us=AT, rule="connections", client="c" * 1_024, reason="r"
        )
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    notes = written(refused, AT, is_last=True)
    assert taken_bytes < 2_000_000
    assert len(notes) <= 64 + 64 + 1
    assert sum(note[CONNECTS] for note in notes if isinstance(note[CONNECTS], int)) == 50_000
    assert notes[-1][NETWORK] == "", "all others"


def test_a_kill_loses_the_refusals_of_five_seconds_at_most() -> None:
    refused = RefusedConnects()
    for client in ("c1", "c2", "c3"):
        refuse(refused, client=client)
    assert len(written(refused, AT)) == 1
    unit = UnitOfWork()
    assert refused.write(unit, AT + KEPT_AFTER_US)
    ((space, key, row),) = unit.states
    assert (space, key) == (StateKind.GATEWAY, ROW_KEY)
    after = RefusedConnects()
    after.load(row)
    (note,) = written(after, AT + 60_000_000)
    assert (note[CONNECTS], note[SINCE], note[RULE], note[REASON]) == (2, AT, "connections", "")


@pytest.mark.parametrize(
    "row", [[3, AT, []], [2, AT, [["limit", b"", "connections", 5, 1]]], [2, AT, [["?", 1, 1]]], 7]
)
def test_a_row_of_a_later_program_or_a_damaged_one_is_told(row: object) -> None:
    with pytest.raises(StoreError, match="read the refused CONNECTs"):
        RefusedConnects().load(ormsgpack.packb(row))
