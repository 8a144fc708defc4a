"""Refused logins in the trail: counted by network, class of user and reason, and bounded whatever comes."""

import tracemalloc

import ormsgpack
import pytest

from gateway.access.refused_logins import ROW_KEY, LoginRefusal, RefusedLogins, UserClass
from gateway.access.tally import INTERVAL_US, KEPT_AFTER_US
from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.unit_of_work import Note, StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

AT = 1_795_000_000_000_000
WRONG = LoginRefusal.WRONG_CREDENTIALS


def counted(*peers: str, user_class: UserClass = UserClass.UNKNOWN) -> RefusedLogins:
    refused = RefusedLogins()
    for peer in peers:
        refused.count(WRONG, user_class, peer, AT, 4)
    return refused


def networks(notes: list[Note]) -> list[tuple[object, object]]:
    """Network and number of each note."""
    return [(note[4], note[5]) for note in notes]


def test_one_note_says_how_many_there_were_of_a_network() -> None:
    refused = counted("192.0.2.1:5", "192.0.2.9:6", "[2001:db8:1:2::1]:7", "[2001:db8:1:3::1]:8", "198.51.100.1:5")
    assert list(refused.notes(AT + 7)) == [
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "192.0.2.0/24", 2, AT, b"\x04"),
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "2001:db8:1::/48", 2, AT, b"\x04"),
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "198.51.100.0/24", 1, AT, b"\x04"),
    ]
    assert list(refused.notes(AT + 8)) == [], "each is noted once"
    assert refused.totals == {WRONG: 5}, "the metric goes on"


def test_reasons_and_classes_of_users_have_notes_of_their_own() -> None:
    refused = counted("192.0.2.1:5")
    refused.count(WRONG, UserClass.KNOWN, "192.0.2.1:5", AT, 4)
    refused.count(LoginRefusal.BUSY, UserClass.KNOWN, "192.0.2.1:5", AT, 4)
    assert [note[2:4] for note in refused.notes(AT)] == [
        ("wrong_credentials", "unknown"),
        ("wrong_credentials", "known"),
        ("busy", "known"),
    ]


@pytest.mark.parametrize(
    ("refusal", "before_5", "at_5"),
    [
        (WRONG, 0x04, 0x86),
        (LoginRefusal.NOT_ALLOWED, 0x05, 0x87),
        (LoginRefusal.WRONG_IDENTIFIER, 0x02, 0x85),
        (LoginRefusal.BUSY, 0x03, 0x89),
    ],
)
def test_each_code_of_connack_has_a_note_of_its_own(refusal: LoginRefusal, before_5: int, at_5: int) -> None:
    """MQTT 3.1.1 table 3.1 and MQTT 5.0 table 3-1."""
    refused = RefusedLogins()
    for level in (3, 4, 5):
        refused.count(refusal, UserClass.KNOWN, "192.0.2.1:5", AT, level)
    assert {note[7]: note[5] for note in refused.notes(AT)} == {bytes([before_5]): 2, bytes([at_5]): 1}


def test_a_row_of_version_1_has_no_codes() -> None:
    refused = RefusedLogins()
    refused.load(ormsgpack.packb([1, AT, [[b"\xc0\x00\x02", "known", "BUSY", 3]]]))
    (note,) = refused.notes(AT)
    assert note == (NoteKind.LOGINS_REFUSED, AT, "busy", "known", "192.0.2.0/24", 3, AT, b"")


def test_notes_are_due_after_five_minutes_or_at_the_end_or_when_the_clock_was_set_back() -> None:
    refused = counted("192.0.2.1:5")
    assert not refused.is_due(AT + INTERVAL_US - 1)
    assert refused.is_due(AT + INTERVAL_US)
    assert refused.is_due(AT, is_last=True)
    assert refused.is_due(AT - 1)
    assert not RefusedLogins().is_due(AT, is_last=True), "there is nothing to say"


def test_a_flood_from_everywhere_writes_few_notes_and_loses_no_count() -> None:
    """100,000 networks; the one that tries most has its own note."""
    refused = RefusedLogins()
    for _ in range(50):
        refused.count(WRONG, UserClass.KNOWN, "192.0.2.1:5", AT, 4)
    tracemalloc.start()
    for number in range(100_000):
        peer = f"{number >> 12 & 255}.{number >> 4 & 255}.{number & 15}.1:5"
        refused.count(WRONG, UserClass.UNKNOWN, peer, AT, 4)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    notes = list(refused.notes(AT))
    assert taken_bytes < 4_000_000
    assert len(notes) <= 64 + len(UserClass) * len(LoginRefusal)
    assert sum(count for _, count in networks(notes) if isinstance(count, int)) == 100_050
    assert ("192.0.2.0/24", 50) in networks(notes)
    assert networks(notes)[-1][0] == "", "all others"


def row_of(unit: UnitOfWork) -> bytes | None:
    """What a unit writes as the row; None: it deletes the row."""
    ((space, key, value),) = unit.states
    assert (space, key) == (StateKind.GATEWAY, ROW_KEY)
    return value


def test_a_kill_loses_the_refusals_of_five_seconds_at_most() -> None:
    refused = counted("192.0.2.1:5", "192.0.2.9:6", "198.51.100.1:5")
    unit = UnitOfWork()
    assert not refused.write(unit, AT + KEPT_AFTER_US - 1)
    assert refused.write(unit, AT + KEPT_AFTER_US)
    assert not refused.write(UnitOfWork(), AT + 2 * KEPT_AFTER_US), "the store has everything"
    refused.count(WRONG, UserClass.UNKNOWN, "192.0.2.1:5", AT + 3 * KEPT_AFTER_US, 4)
    again = UnitOfWork()
    assert refused.write(again, AT + 4 * KEPT_AFTER_US)
    for killed, logins in ((unit, 2), (again, 3)):
        after = RefusedLogins()
        after.load(row_of(killed))
        noted = UnitOfWork()
        assert after.write(noted, AT + 60_000_000)
        assert networks(noted.notes) == [("192.0.2.0/24", logins), ("198.51.100.0/24", 1)]
        assert [note[6] for note in noted.notes] == [AT, AT]
        assert noted.notes_are_due
        assert row_of(noted) is None, "notes and row change in one unit of work"
        assert not after.write(UnitOfWork(), AT + 70_000_000)
        assert after.totals == {}, "the metric counts this run"


def test_what_is_noted_is_no_longer_in_the_store() -> None:
    refused = counted("192.0.2.1:5")
    unit = UnitOfWork()
    assert refused.write(unit, AT, is_last=True)
    assert unit.states == [], "there was no row"
    assert not refused.write(UnitOfWork(), AT + KEPT_AFTER_US)
    refused.count(WRONG, UserClass.NONE, "192.0.2.1:5", AT, 4)
    assert refused.write(UnitOfWork(), AT - 1), "the clock was set back"


def test_the_row_of_a_flood_is_small() -> None:
    refused = counted(*(f"10.{number >> 8}.{number & 255}.1:5" for number in range(3_000)))
    unit = UnitOfWork()
    assert refused.write(unit, AT + KEPT_AFTER_US)
    row = row_of(unit)
    assert row is not None
    assert len(row) < 4_096
    after = RefusedLogins()
    after.load(row)
    assert sum(int(note[5]) for note in after.notes(AT)) == 3_000  # type: ignore[call-overload]


@pytest.mark.parametrize("row", [[3, AT, []], [1, AT], [1, AT, [[b"", "none", "NOBODY", 1]]], 7])
def test_a_row_of_a_later_program_or_a_damaged_one_is_told(row: object) -> None:
    with pytest.raises(StoreError, match="read the refused logins"):
        RefusedLogins().load(ormsgpack.packb(row))
