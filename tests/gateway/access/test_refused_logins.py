"""Refused logins in the trail: counted by network, class of user and reason, and bounded whatever comes."""

import tracemalloc

from gateway.access.refused_logins import INTERVAL_US, Refusal, RefusedLogins, UserClass
from gateway.audit_trail.notes import NoteKind
from mq_adapters.embedded.unit_of_work import Note

AT = 1_795_000_000_000_000
WRONG = Refusal.WRONG_CREDENTIALS


def counted(*peers: str, user_class: UserClass = UserClass.UNKNOWN) -> RefusedLogins:
    refused = RefusedLogins()
    for peer in peers:
        refused.count(WRONG, user_class, peer, AT)
    return refused


def networks(notes: list[Note]) -> list[tuple[object, object]]:
    """Network and number of each note."""
    return [(note[4], note[5]) for note in notes]


def test_one_note_says_how_many_there_were_of_a_network() -> None:
    refused = counted("192.0.2.1:5", "192.0.2.9:6", "[2001:db8:1:2::1]:7", "[2001:db8:1:3::1]:8", "198.51.100.1:5")
    assert list(refused.notes(AT + 7)) == [
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "192.0.2.0/24", 2, AT),
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "2001:db8:1::/48", 2, AT),
        (NoteKind.LOGINS_REFUSED, AT + 7, "wrong_credentials", "unknown", "198.51.100.0/24", 1, AT),
    ]
    assert list(refused.notes(AT + 8)) == [], "each is noted once"
    assert refused.totals == {WRONG: 5}, "the metric goes on"


def test_reasons_and_classes_of_users_have_notes_of_their_own() -> None:
    refused = counted("192.0.2.1:5")
    refused.count(WRONG, UserClass.KNOWN, "192.0.2.1:5", AT)
    refused.count(Refusal.BUSY, UserClass.KNOWN, "192.0.2.1:5", AT)
    assert [note[2:4] for note in refused.notes(AT)] == [
        ("wrong_credentials", "unknown"),
        ("wrong_credentials", "known"),
        ("busy", "known"),
    ]


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
        refused.count(WRONG, UserClass.KNOWN, "192.0.2.1:5", AT)
    tracemalloc.start()
    for number in range(100_000):
        peer = f"{number >> 12 & 255}.{number >> 4 & 255}.{number & 15}.1:5"
        refused.count(WRONG, UserClass.UNKNOWN, peer, AT)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    notes = list(refused.notes(AT))
    assert taken_bytes < 4_000_000
    assert len(notes) <= 64 + len(UserClass) * len(Refusal)
    assert sum(count for _, count in networks(notes) if isinstance(count, int)) == 100_050
    assert ("192.0.2.0/24", 50) in networks(notes)
    assert networks(notes)[-1][0] == "", "all others"
