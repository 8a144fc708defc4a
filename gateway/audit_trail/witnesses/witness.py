"""A witness of the trail's digests, and the task that keeps it up to date.

The task runs in a thread of its own: a witness that hangs delays neither a line of the trail nor another witness. Its
note lies beside the trail (spark_audit/trail/witness_note.py). A kill between a submission and its note repeats the
submission at most, and the witness is asked first how far it has come.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from gateway.audit_trail.digests import Digests, read_digest
from gateway.audit_trail.durable_file import put_in_place
from mq_adapters.embedded.store.files import make_folder
from mq_adapters.plausible_clock import wall_us
from mq_adapters.reasons import StoreError
from spark_audit.trail.witness_note import WitnessNote, note_path, read_note

#: A witness that failed is tried again after this, then after twice as long, up to the longest, seconds.
FIRST_PAUSE_S: Final = 30.0
LONGEST_PAUSE_S: Final = 3_600.0
#: Seconds after which the gateway checks again whether a witness still refuses changes.
CHECK_S: Final = 86_400.0
#: Digests of one submission.
SUBMISSION_DIGESTS: Final = 1_000


class WitnessError(StoreError):
    """A witness is away, refuses a digest, or cannot serve as one."""


class WorthlessWitness(WitnessError):
    """Anybody who may write to the witness may also change its digests."""


def operation_of(name: str) -> str:
    """The failed operation, for the errors of a witness."""
    return f"let witness {name} see the digests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """The last digest that a witness has; number 0 and no bytes where it has none."""

    number: int = 0
    data: bytes = b""


class Witness(Protocol):
    """A place that keeps digests. Every method raises WitnessError, and ends within a bounded time."""

    name: str

    @property
    def kind(self) -> str:
        """As the configuration names its type."""
        ...

    def check(self) -> None:
        """Checks that it can serve as a witness. Raises WorthlessWitness."""
        ...

    def last(self) -> Witnessed:
        """The last digest that it has."""
        ...

    def submit(self, digests: Mapping[int, bytes]) -> None:
        """Gives it digests that follow the last one, by number, all or none; a repetition does no harm."""
        ...


class Witnessing:
    """The task: gives a witness the digests that it lacks. Raises WitnessError, StoreError, OSError."""

    def __init__(
        self,
        witness: Witness,
        trail: Path,
        digests: Digests,
        *,
        now_us: Callable[[], int] = wall_us,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._witness = witness
        self._digests = digests
        self._now_us = now_us
        self._monotonic = monotonic
        self._path = note_path(trail, witness.name)
        kept = read_note(self._path)
        fresh = WitnessNote(name=witness.name, kind=witness.kind)
        self.note = fresh if kept is None or kept.kind != witness.kind else kept
        #: When the witness is looked at again, and when it is tried again after a failure.
        self._check_at_s = self._try_at_s = monotonic()
        self._pause_s = FIRST_PAUSE_S

    def step(self) -> bool:
        """One submission; False where nothing is left, or it is too early after a failure."""
        if self._monotonic() < self._try_at_s:
            return False
        try:
            has_submitted = self._submit()
        except (WitnessError, OSError) as error:
            self._put_off(error)
            raise
        self._pause_s = FIRST_PAUSE_S
        return has_submitted

    def _submit(self) -> bool:
        if self._monotonic() >= self._check_at_s:
            self._look()
        last = self._digests.last_number
        if self.note.number >= last:
            return False
        until = min(last, self.note.number + SUBMISSION_DIGESTS)
        numbers = range(self.note.number + 1, until + 1)
        self._witness.submit({number: read_digest(self._digests.folder, number)[1] for number in numbers})
        self._come_to(until)
        return True

    def _look(self) -> None:
        """Checks the witness, and how far it has come."""
        there = self._witness.last()
        self._check_same_trail(there)
        self._witness.check()
        self._check_at_s = self._monotonic() + CHECK_S
        self.note = replace(self.note, checked_at_us=self._now_us())
        self._come_to(there.number)

    def _check_same_trail(self, there: Witnessed) -> None:
        """Compares the witness's last digest: digests are a chain, so if it is ours, all before it are."""
        last = self._digests.last_number
        if there.number > last:
            cause = f"it has digest {there.number}, but the trail here ends with {last}: the trail went back"
        elif there.number and read_digest(self._digests.folder, there.number)[1] != there.data:
            cause = f"its digest {there.number} is not the one of this trail"
        elif there.number < self.note.number:
            cause = f"it ends with digest {there.number}, but it had {self.note.number}: somebody took digests away"
        else:
            return
        hint = "keep both as evidence; to go on, name an empty place under another name"
        raise WitnessError(operation_of(self._witness.name), cause, hint)

    def _come_to(self, number: int) -> None:
        """Notes how far the witness has come."""
        at_us = read_digest(self._digests.folder, number)[0].until_us if number else 0
        self._keep(replace(self.note, number=number, digest_at_us=at_us, failure="", risk=""))

    def _put_off(self, error: WitnessError | OSError) -> None:
        self._check_at_s = self._monotonic()
        self._try_at_s = self._monotonic() + self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        risk = str(error) if isinstance(error, WorthlessWitness) else self.note.risk
        self._keep(replace(self.note, failure=str(error), risk=risk))

    def _keep(self, note: WitnessNote) -> None:
        self.note = note
        make_folder(self._path.parent)
        put_in_place(self._path, (note.to_bytes(),))
