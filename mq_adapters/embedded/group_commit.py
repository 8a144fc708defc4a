"""Group commit: all units of work of one turn of the event loop become one SQLite transaction, one fsync.

One commit is in flight at a time. If commits are quick, they happen at once. If they are slow, the fsync runs in a
thread and the next group gathers meanwhile. Groups complete in order. A group without durable changes completes at
once, and its audit notes wait for the next group, or for `want_notes`. Those that wait are packed some hundred at a
time, so that no turn of the event loop packs all of them.
"""

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from mq_adapters.embedded.counters import Counters
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.store.rows import MessageRow, rows_of
from mq_adapters.embedded.store.store import SEQUENCE_BLOCK, Store
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import StoreError

#: If commits are slower than this on average (seconds), a thread makes them, so that the event loop can go on.
SLOW_COMMIT_S: Final = 0.004
#: Notes of units without durable changes are packed when there are so many: in a third of a millisecond, where ten
#: thousand at once take four.
NOTES_AT_ONCE: Final = 500
#: So many bytes of packed notes may wait for a group to join; to write them takes 2 ms and the fsync. If fewer could
#: wait, clients of QoS 0 would wait for more fsyncs.
MAXIMUM_LATER_BYTES: Final = 512 * 1024
#: Weight of the newest commit in the average.
_AVERAGE_WEIGHT: Final = 0.2

#: So many commits in a tenth of a second leave time for other work.
_FEW_COMMITS: Final = 10

Group = list[UnitOfWork]
#: Runs a blocking call elsewhere and then calls back with its error, or None, in the engine's thread.
Offload = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]
#: Upper bounds in seconds. An fsync takes some 50 microseconds on a fast disk, and seconds on a failing one.
BOUNDS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class CommitTimes:
    """How long commits took, as a histogram. `counts` has the commits up to each bound, and above the last one."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


class GroupCommit:
    """Gathers units of work and commits them. `complete` is called for each group after its commit, `fail` once."""

    def __init__(
        self,
        store: Store,
        *,
        call_soon: Callable[[Callable[[], None]], object] | None,
        offload: Offload | None,
        counters: Counters,
        next_sequence: Callable[[], int],
        pack_notes: Callable[[int, list[Note]], list[Message]],
        put_batch: Callable[[Message, UnitOfWork], tuple[int, Message]],
        announce: Callable[[Group], None],
        complete: Callable[[Group], None],
        fail: Callable[[StoreError], None],
    ) -> None:
        self._store = store
        self._call_soon = call_soon
        self._offload = offload
        self._counters = counters
        self._next_sequence = next_sequence
        self._pack_notes = pack_notes
        self._put_batch = put_batch
        self._announce = announce
        self._complete = complete
        self._fail = fail
        self.times = CommitTimes()
        self.has_failed = False
        self._next_batch = store.next_batch
        self._group: Group = []
        #: Called before the group is written. Units that they add join it.
        self._asked_before: list[Callable[[], None]] = []
        #: Called when all units before the group are complete. What they return is noted before the group's own notes.
        self._asked_first: list[Callable[[], list[Note]]] = []
        self._committing: Group | None = None
        self._flush_is_due = False
        self._later_notes: list[Note] = []
        #: The notes before these, as batches that wait for the same group; and their length.
        self._packed: list[Message] = []
        self._packed_bytes = 0
        self._notes_are_wanted = False
        self._commit_s = 0.0
        self._commits_before = 0

    @property
    def is_idle(self) -> bool:
        """Whether no unit waits for a commit."""
        return not self._group and self._committing is None

    @property
    def is_in_flight(self) -> bool:
        """Whether a thread is committing."""
        return self._committing is not None

    @property
    def has_later_notes(self) -> bool:
        return bool(self._later_notes or self._packed)

    def add(self, unit: UnitOfWork) -> None:
        """Adds a unit to the group that gathers. It is committed at once, or in the event loop's next turn."""
        self._group.append(unit)
        if self._flush_is_due or self._committing is not None:
            return
        if self._call_soon is None:
            self.flush()
        else:
            self._flush_is_due = True
            self._call_soon(self.flush)

    def before_commit(self, callback: Callable[[], None]) -> None:
        """Calls back once, when the group that gathers is about to be written. Units added then belong to it."""
        self._asked_before.append(callback)

    def note_first(self, make: Callable[[], list[Note]]) -> None:
        """Notes what holds when all units are complete that the notes before tell of, and none of those behind."""
        self._asked_first.append(make)

    def want_notes(self) -> None:
        """From now on the next group is written even if it has only notes."""
        self._notes_are_wanted = True

    def is_committing(self, sequence: int) -> bool:
        """Whether a thread is committing that message: it may be on the disk, but has not arrived."""
        return any(message.sequence == sequence for unit in self._committing or () for _, message in unit.puts)

    def mentions(self, queue: Queue) -> bool:
        """Whether an uncommitted unit puts on the queue or gets from it."""
        return any(found[0] is queue for unit in self.units() for found in (*unit.puts, *unit.removals))

    def units(self) -> Group:
        """The units that are not yet committed."""
        return [*(self._committing or ()), *self._group]

    def is_resting(self) -> bool:
        """Whether no unit waits for a commit, and there were few commits since the last call, some 0.1 s ago."""
        commits = sum(self.times.counts)
        since, self._commits_before = commits - self._commits_before, commits
        return self.is_idle and not self.has_failed and since <= _FEW_COMMITS

    def do_between(self, call: Callable[[], None]) -> None:
        """Writes other data to the store, in a thread if commits are slow. Call it only while idle."""
        if self._offload is not None and self._commit_s > SLOW_COMMIT_S:
            self._committing = []
            self._offload(call, self._commit_ended)
            return
        try:
            call()
        except Exception as error:
            self.stop(error)

    def flush(self, *, here: bool = False) -> None:
        """Commits the gathered units, unless a commit is in flight. With `here` it uses this thread, however slow."""
        if self._committing is not None or not self._group or self.has_failed:
            self._flush_is_due = False
            return
        is_slow = not here and self._offload is not None and self._commit_s > SLOW_COMMIT_S
        try:
            self._let_join(is_slow=is_slow)
        finally:
            self._flush_is_due = False
            self._commit_group(is_slow=is_slow)

    def _let_join(self, *, is_slow: bool) -> None:
        """Calls all who asked to add to the group. Units that are added meanwhile need no flush of their own.

        The group is committed and acknowledged even if one call fails. So the other calls are made all the same,
        because they may add the very change that is acknowledged. The first error is raised after them.
        """
        self._flush_is_due = True
        first, self._asked_first = self._asked_first, []
        for make in first:
            self._later_notes += make()
        asked, self._asked_before = self._asked_before, []
        errors: list[Exception] = []
        for callback in asked:
            try:
                callback()
            except Exception as error:
                errors.append(error)
        if not is_slow:
            self._announce(self._group)
        if errors:
            raise errors[0]

    def _commit_group(self, *, is_slow: bool) -> None:
        group, self._group = self._group, []
        try:
            durable = self._write(group)
            if durable and is_slow and self._offload is not None:
                self._committing = group
                self._offload(self._timed_commit, self._commit_ended)
                return
            if durable:
                self._timed_commit()
        except Exception as error:
            self.stop(error)
            return
        self._complete(group)

    def _write(self, group: Group) -> bool:
        """Writes a group into an open transaction. Returns False if nothing of it is durable."""
        puts = [(queue.identifier, message) for unit in group for queue, message in unit.puts if message.is_stored]
        removals = [(message.sequence,) for unit in group for _, message, _ in unit.removals if message.is_stored]
        states = [state for unit in group for state in unit.states]
        for unit in group:
            self._later_notes += unit.notes
            self._notes_are_wanted = self._notes_are_wanted or unit.notes_are_due
        reserve = self._next_sequence() + SEQUENCE_BLOCK // 2 > self._store.reserved_to
        crowded = self._notes_are_wanted or self._packed_bytes > MAXIMUM_LATER_BYTES
        if not (puts or removals or states or reserve or crowded):
            if len(self._later_notes) >= NOTES_AT_ONCE:
                self._pack_later_notes()
            return False
        rows = rows_of(puts) + self._audit_rows(group[-1])
        states += self._counters.rows(group)
        self._store.write(
            puts=rows,
            removals=removals,
            states=states,
            next_sequence=self._next_sequence(),
            next_batch=self._next_batch,
        )
        return True

    def _audit_rows(self, unit: UnitOfWork) -> list[MessageRow]:
        """The notes of the group, and of earlier groups without durable changes, as messages in its last unit."""
        if self._later_notes:
            self._pack_later_notes()
        packed, self._packed, self._packed_bytes, self._notes_are_wanted = self._packed, [], 0, False
        return rows_of([self._put_batch(batch, unit) for batch in packed])

    def _pack_later_notes(self) -> None:
        """Makes batches of the notes that wait. A crash before they are written takes their numbers back."""
        notes, self._later_notes = self._later_notes, []
        batches = self._pack_notes(self._next_batch, notes)
        self._next_batch += len(batches)
        self._packed += batches
        self._packed_bytes += sum(len(batch.body) for batch in batches)

    def _timed_commit(self) -> None:
        started = time.perf_counter()
        self._store.commit()
        seconds = time.perf_counter() - started
        self._commit_s += _AVERAGE_WEIGHT * (seconds - self._commit_s)
        self.times.add(seconds)

    def _commit_ended(self, error: BaseException | None) -> None:
        group, self._committing = self._committing, None
        assert group is not None
        if error is not None:
            self.stop(error)
            return
        try:
            self._complete(group)
        finally:
            if self._group and not self._flush_is_due:
                self.flush()

    def stop(self, error: BaseException) -> None:
        """Stops the queue manager. The group is not acknowledged, so even an unexpected error must stop it."""
        if self.has_failed:
            return
        self.has_failed = True
        if isinstance(error, StoreError):
            self._fail(error)
            return
        hint = "this is a defect of the program: report it; nothing acknowledged was lost"
        self._fail(StoreError("commit a group of units of work", repr(error), hint))
