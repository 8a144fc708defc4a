"""A replay that was put into JSON and taken out again goes on as if nothing had happened, wherever it was cut."""

from collections.abc import Callable, Iterable
from operator import attrgetter

import pytest

from spark_audit.custody.findings import Finding
from spark_audit.custody.memory import MADE, PARTS, Memory, UnusableMemory, replayed_from
from spark_audit.custody.replay import Record, Replay, replayed
from tests.every_case import for_every
from tests.spark_audit.custody import test_confirmations, test_programs, test_queues, test_replay
from tests.spark_audit.custody.scenes import Scene, connected, record

SCENES: dict[str, Callable[[], Scene]] = {
    **test_replay.TRUE,
    **test_confirmations.TRUE,
    **test_confirmations.WRONG,
    **{name: made for name, (_control, made) in test_replay.WRONG.items()},
    **{name: lambda made=made: made().scene for name, made in (test_queues.TRUE | test_queues.WRONG).items()},
    **{name: lambda made=made: made().scene for name, made in test_programs.TRUE.items()},
    **{name: lambda made=made: made().scene for name, (made, _detail) in test_programs.WRONG.items()},
}


def _told(records: Iterable[Record], memory: Memory) -> tuple[set[Finding], Memory]:
    """What is found, and the next memory, which goes through its text."""
    *found, last = replayed_from(memory, records)
    assert isinstance(last, Memory)
    return {each for each in found if isinstance(each, Finding)}, Memory.parse(last.as_text())


@for_every(SCENES)
def test_a_trail_that_is_cut_anywhere_has_the_findings_of_the_whole(made: Callable[[], Scene]) -> None:
    rows = list(test_replay.ended(made()).rows())
    whole = set(replayed(rows))
    for cut in range(1, len(rows)):
        first, memory = _told(rows[:cut], Memory())
        assert memory.sequence < rows[cut - 1]["sequence"], "the last commit is taken once more"
        second, _ = _told((row for row in rows if row["sequence"] > memory.sequence), memory)
        # what is wrong at an end alone may be right later: that a message was left behind, say
        assert first == set(replayed(rows[:cut]))
        assert (first & whole) | second == whole, f"cut behind record {cut}"


@for_every(SCENES)
def test_a_memory_that_is_written_again_is_the_same(made: Callable[[], Scene]) -> None:
    _, memory = _told(made().rows(), Memory())
    assert Memory.of(memory.replay()) == memory


def test_the_order_of_a_set_does_not_show_in_a_memory() -> None:
    there, back = Replay(), Replay()
    for number in range(1_000):
        there._lanes.fresh.add(f"lane {number}")
        back._lanes.fresh.add(f"lane {999 - number}")
    assert list(there._lanes.fresh) != list(back._lanes.fresh)
    assert Memory.of(there).as_text() == Memory.of(back).as_text()


def test_a_memory_has_everything_that_a_replay_knows() -> None:
    replay = Replay()
    for part, names in PARTS.items():
        there = set(vars(attrgetter(part)(replay) if part else replay))
        assert there == set(names) | set(MADE.get(part, ())), f"part {part!r}: remember it, or say how it is made"


def test_a_text_that_is_no_memory_is_refused() -> None:
    scene = connected("pump")
    scene.commit(*scene.subscribe("pump", "#"), record("started"))
    _, memory = _told(scene.rows(), Memory())
    text = memory.as_text()
    for old, new in (
        ('"object"', '"posix"'),
        ('"Session"', '"Popen"'),
        ('"dict"', '"same"'),
        ('"parts":{', '"parts":{"x":'),
    ):
        assert old in text
        with pytest.raises(UnusableMemory):
            Memory.parse(text.replace(old, new, 1)).replay()
    for text in ("", "[]", "{}", "null", '{"sequence":1,"retained":[],"parts":{"":[]}}', "[" * 5_000):
        with pytest.raises(UnusableMemory):
            Memory.parse(text).replay()
