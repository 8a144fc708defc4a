"""Refused topics in the trail: the first one whole, then numbers by client and rule, bounded whatever comes."""

import tracemalloc

import ormsgpack
import pytest

from gateway.access.refused_topics import Asked, RefusedTopics
from gateway.access.tally import INTERVAL_US, KEPT_AFTER_US
from gateway.audit_trail.notes.notes import NoteKind
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork

AT = 1_795_000_000_000_000
#: Place of each item in a note.
CLIENT, RULE, TOPIC, REFUSALS, SINCE = 3, 5, 6, 7, 8


def refuse(refused: RefusedTopics, client: str, topic: str = "a", rule: str = "line 7", at_us: int = AT) -> None:
    refused.count(Asked.PUBLISH, topic, client=client, user="anna", rule=rule, now_us=at_us)


def written(refused: RefusedTopics, now_us: int, *, is_last: bool = False) -> list[Note]:
    unit = UnitOfWork()
    has_written = refused.write(unit, now_us, is_last=is_last)
    assert has_written or not unit.notes
    assert unit.notes_are_due or not unit.notes
    return unit.notes


def test_the_first_refusal_of_a_client_by_a_rule_is_told_at_once_and_whole() -> None:
    refused = RefusedTopics()
    refuse(refused, "pump", "a/secret")
    refuse(refused, "pump", "a/other")
    refuse(refused, "pump", "b", "no rule")
    first, other_rule = written(refused, AT + 9)
    assert first == (NoteKind.TOPICS_REFUSED, AT, "publish", "pump", "anna", "line 7", "a/secret", 1, AT, b"")
    assert (other_rule[RULE], other_rule[TOPIC]) == ("no rule", "b")
    assert written(refused, AT + 10) == [], "each is told once"


def test_each_code_that_a_client_was_told_has_a_note_of_its_own() -> None:
    refused = RefusedTopics()
    for code in (0x87, 0, 0x87):
        refused.count(Asked.PUBLISH, "a", client="pump", user="", rule="line 7", now_us=AT, code=code)
    assert [note[9] for note in written(refused, AT + 9)] == [b"\x87", b""]
    (counted,) = (note for note in written(refused, AT + 10, is_last=True))
    assert (counted[REFUSALS], counted[9]) == (1, b"\x87")


def test_a_row_of_version_1_has_no_codes() -> None:
    refused = RefusedTopics()
    refused.load(ormsgpack.packb([1, AT, [["publish", "pump", "anna", "line 7", 3]]]))
    (note,) = written(refused, AT)
    assert note == (NoteKind.TOPICS_REFUSED, AT, "publish", "pump", "anna", "line 7", "", 3, AT, b"")


def test_further_refusals_are_counted_for_five_minutes() -> None:
    refused = RefusedTopics()
    for number in range(7):
        refuse(refused, "pump", f"a/{number}", at_us=AT + number)
    refuse(refused, "fan")
    assert [note[TOPIC] for note in written(refused, AT + 9)] == ["a/0", "a"]
    assert written(refused, AT + INTERVAL_US - 1) == []
    (counted,) = written(refused, AT + INTERVAL_US)
    assert (counted[CLIENT], counted[TOPIC], counted[REFUSALS], counted[SINCE]) == ("pump", "", 6, AT)
    refuse(refused, "pump", "again", at_us=AT + INTERVAL_US)
    (first,) = written(refused, AT + INTERVAL_US)
    assert first[TOPIC] == "again", "the next five minutes begin with a whole one"
    assert written(refused, AT + INTERVAL_US, is_last=True) == [], "a first one alone has no number behind it"


@pytest.mark.parametrize("length", [8, 60_000])
def test_a_flood_of_clients_rules_and_long_topics_writes_few_short_notes_and_loses_no_count(length: int) -> None:
    refused = RefusedTopics()
    topic = "t" * 60_000
    tracemalloc.start()
    notes: list[Note] = []
    for number in range(20_000):
        refuse(refused, f"{number:05}".ljust(length, "x"), topic, f"line {number % 10_000}")
        if number % 1_000 == 0:
            notes += written(refused, AT + 1)
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    notes += written(refused, AT + 2, is_last=True)
    assert taken_bytes < 1_500_000
    assert len(notes) <= 64 + 64 + len(Asked)
    assert max(len(str(note)) for note in notes) < 1_300
    assert sum(int(note[REFUSALS]) for note in notes) == 20_000  # type: ignore[call-overload]
    assert (notes[-1][CLIENT], notes[-1][RULE]) == ("", ""), "all others"


def test_a_kill_loses_the_numbers_of_five_seconds_at_most() -> None:
    refused = RefusedTopics()
    for _ in range(3):
        refuse(refused, "pump")
    unit = UnitOfWork()
    assert refused.write(unit, AT + KEPT_AFTER_US)
    ((_, key, row),) = unit.states
    assert key == refused.row_key
    after = RefusedTopics()
    after.load(row)
    (left,) = written(after, AT + 60_000_000)
    assert (left[CLIENT], left[REFUSALS], left[SINCE]) == ("pump", 2, AT)
