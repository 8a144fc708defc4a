"""The task of a witness: what it gets, when it is looked at again, and how long it is left alone after a failure."""

from collections.abc import Mapping
from contextlib import suppress

import pytest

from gateway.audit_trail.segment import Trail
from gateway.audit_trail.witnesses.witness import (
    CHECK_S,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    Witnessed,
    WitnessError,
    Witnessing,
    WorthlessWitness,
)
from spark_audit.trail.witness_note import note_path, read_note
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401


class Notary:
    """A witness in this process, that fails as it is told."""

    name, kind = "notary", "git"

    def __init__(self) -> None:
        self.digests: dict[int, bytes] = {}
        self.checks = self.calls = 0
        self.problem: WitnessError | None = None

    def check(self) -> None:
        self.checks += 1

    def last(self) -> Witnessed:
        self.calls += 1
        if self.problem is not None:
            raise self.problem
        last = max(self.digests, default=0)
        return Witnessed(number=last, data=self.digests.get(last, b""))

    def submit(self, digests: Mapping[int, bytes]) -> None:
        self.digests |= digests


class Life:
    """A trail with a witness, and a clock."""

    def __init__(self, trail: Trail, make_batches) -> None:
        self.trail, self.batches, self.now_s, self.notary = trail, make_batches, 0.0, Notary()
        self.task = Witnessing(self.notary, trail.folder, trail.digests, monotonic=lambda: self.now_s)

    def close(self) -> None:
        self.trail.append(*self.batches())
        self.trail.close_segment()


@pytest.fixture
def life(folder, clock, batches):  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        yield Life(trail, batches)


def test_a_witness_is_looked_at_first_and_once_a_day(life) -> None:
    for _ in range(3):
        life.close()
        assert life.task.step()
        assert not life.task.step()
    assert (life.notary.checks, sorted(life.notary.digests)) == (1, [1, 2, 3])
    life.now_s = CHECK_S
    assert not life.task.step()
    assert life.notary.checks == 2


def test_a_witness_that_is_away_is_left_alone_for_longer_and_longer(life) -> None:
    life.close()
    life.notary.problem = WitnessError("show", "it is away", "wait")
    pauses, failed_at_s = [], 0.0
    for _ in range(3 * int(LONGEST_PAUSE_S / FIRST_PAUSE_S)):
        calls = life.notary.calls
        with suppress(WitnessError):
            assert not life.task.step()
        if life.notary.calls > calls:
            pauses.append(life.now_s - failed_at_s)
            failed_at_s = life.now_s
        life.now_s += FIRST_PAUSE_S
    assert pauses[1:4] == [30.0, 60.0, 120.0]
    assert pauses[-1] == LONGEST_PAUSE_S
    life.now_s += LONGEST_PAUSE_S
    life.notary.problem = None
    assert life.task.step()
    assert life.task.note.failure == ""


def test_the_note_keeps_why_a_witness_is_worth_nothing_until_it_is_worth_something(life) -> None:
    life.close()
    life.notary.problem = WorthlessWitness("show", "anybody may rewrite it", "protect it")
    with pytest.raises(WorthlessWitness):
        life.task.step()
    note = read_note(note_path(life.trail.folder, "notary"))
    assert note is not None
    assert "anybody may rewrite it" in note.risk
    life.notary.problem = None
    life.now_s += FIRST_PAUSE_S
    assert life.task.step()
    assert life.task.note.risk == ""
