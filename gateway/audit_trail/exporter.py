"""The exporter: takes packed batches off the audit queue and writes them to the trail, each record exactly once.

The last station on the way of a PUBLISH, in a process of its own that the daemon starts:

    python -m gateway.audit_trail.exporter --data DIR --socket NUMBER

The daemon gives it one end of a socket pair: only over this connection can notes be taken off the queue. The exporter
gets batches in a unit of work, writes and syncs their lines, and then commits the get. If it dies in between, the
batches come again, and the trail itself says how far it had come. At SIGTERM it writes the batches that wait, closes
the segment and ends. If the gateway goes away, it exits 1 and leaves the segment open for the next exporter.
"""

import argparse
import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Protocol, get_args

from gateway import log
from gateway.audit_trail.disclosure import disclosure_of
from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.newest_time import newest_us
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.plan import TrailPlan, Versions
from gateway.audit_trail.records import Chain, fits_in_one_line
from gateway.audit_trail.reserve import Reserve
from gateway.audit_trail.segment import Trail, TrailInUse
from gateway.audit_trail.termination import StopRequest, TerminationSignal
from gateway.audit_trail.trail_end import beginning_of
from gateway.audit_trail.trail_head import EMPTY_HEAD, AnotherBatch, TrailHead
from gateway.config import ConfigurationError
from gateway.private_process import forbid_inspection
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import Message
from mq_adapters.plausible_clock import PlausibleClock
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.system_queues import AUDIT_QUEUE, DEAD_LETTER_QUEUE, HELD_QUEUE
from spark_audit.record import ZERO_HASH
from spark_audit.record.batch_line import Summary, summary_of
from spark_audit.record.disclosure import IN_CLEAR, Disclosure
from spark_audit.record.expansion import Expander, MalformedBatch

TRAIL_FOLDER: Final = "trail"
#: How long an idle exporter waits before it looks again, seconds.
IDLE_S: Final = 1.0
#: Most batches, and bytes of them, under one sync and one commit of the get. The gateway's event loop makes the answer:
#: 64 short batches or 512 KiB take it less than a millisecond, 4 MiB take 5 ms.
UNIT_BATCHES: Final = 64
UNIT_BYTES: Final = 512 * 1024
#: Seconds for which more batches gather after a unit that was less than half full. Each unit costs the gateway a
#: commit, and the disk two syncs. At 1,000 messages a second 66 units do what 250 to 280 did without the pause.
GATHER_S: Final = 0.01
#: Seconds for which a starting exporter waits for the trail, which an ending one may still hold.
_OPEN_WAIT_S: Final = 10.0
_OPEN_PAUSE_S: Final = 0.05
_APPLICATION_NAME: Final = "rfhbridge exporter"
_KEEPER_NAME: Final = "rfhbridge trail keeper"
#: Added to the process's niceness: the gateway's own work goes first.
_NICENESS: Final = 10
#: Linux shares the cores among sessions of processes first, and niceness counts only within a session. The exporter has
#: a session of its own, whose niceness stands here (sched(7), "The autogroup feature").
_NICENESS_OF_SESSION: Final = Path("/proc/self/autogroup")
_INCARNATION: Final = slice(4, 16)  # of a MsgId, see Message.msg_id
_NO_RESERVE: Final = Reserve(Path(), 0)
#: Seconds after which a busy exporter looks for work that is due by the clock.
_TEND_S: Final = 1.0
_SECOND_US: Final = 1_000_000

#: The full name, because the process runs this module as `__main__`, which would say nothing in the log.
_log = logging.getLogger("gateway.audit_trail.exporter")


class AuditQueue(Protocol):
    """What the exporter needs of a queue manager: Client and Direct of mq_adapters/embedded have it."""

    name: str
    incarnation: bytes

    def begin(self) -> None: ...
    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> Sequence[Message]:
        """Gets the oldest messages in the open unit of work; none if none waits."""
        ...

    def put(self, queue_name: str, message: Message) -> bytes: ...
    def trail_head(self) -> str:
        """The head of the trail that the store keeps; "" if it keeps none."""
        ...

    def keep_trail_head(self, head: str) -> None:
        """Writes the head of the trail in the open unit of work."""
        ...

    def commit(self) -> None: ...
    def back_out(self) -> None: ...


class Exporter:
    """Moves batches from the audit queue of a queue manager to a trail."""

    def __init__(
        self,
        queue_manager: AuditQueue,
        trail: Trail,
        shown: Disclosure = IN_CLEAR,
        reserve: Reserve = _NO_RESERVE,
    ) -> None:
        self._queue_manager = queue_manager
        self._reserve = reserve
        self._trail = trail
        self._shown = shown
        self._expander: Expander | None = None
        self._chain = Chain(sequence=0, head=trail.head)
        self._batch = 0
        #: Records of batch `_batch` that the trail holds already, from before a crash.
        self._written = 0
        #: Whether the trail has nothing of the gateway yet, and its first batch is still to come.
        self._begins_late = False
        #: Batches in the trail that may come again; None before the first of them has come.
        self._there: dict[int, list[bytes]] | None = None
        #: Whether the last unit of work was at least half full: many batches wait.
        self.is_behind = False

    def step(self) -> int:
        """One unit of work: returns how many batches left the queue, 0 when none waits, or there is no room for one.

        If there is room for a part of the unit only, the lines already written are skipped when the unit comes again.
        """
        queue_manager = self._queue_manager
        queue_manager.begin()
        try:
            messages = queue_manager.take_batch(AUDIT_QUEUE, most_messages=UNIT_BATCHES, most_bytes=UNIT_BYTES)
            self.is_behind = _is_half_full(messages)
            has_room = all(self._write(message) for message in messages)
            self._trail.sync()
            if not messages:
                self._trail.check_confirmed()
            elif has_room:
                self._keep_head()
        except BaseException:
            _back_out(queue_manager)
            raise
        if messages and has_room:
            queue_manager.commit()
        else:
            queue_manager.back_out()
        return len(messages) if has_room else 0

    def begin_keeping(self) -> None:
        """Tells the store the head of its trail if it keeps none, or if the trail begins anew. The log says so.

        A store of an earlier version, and one that no gateway made, keep none.
        """
        kept, reached = self._queue_manager.trail_head(), self._trail.reached
        if kept and (reached is not None or kept == EMPTY_HEAD.to_text()):
            return
        self._queue_manager.begin()
        self._queue_manager.keep_trail_head((reached or EMPTY_HEAD).to_text())
        self._queue_manager.commit()
        if kept:
            _log.warning("trail begins anew reason=the trail that the store knows is not there")
        elif reached is not None:
            _log.info("trail head kept for the first time segment=%s lines=%s", reached.segment, reached.lines)

    def _keep_head(self) -> None:
        """The store keeps the head of the synced trail in the unit of work that takes the notes off the queue."""
        reached = self._trail.reached
        if reached is not None:
            gateway = "" if self._expander is None else self._expander.gateway
            self._queue_manager.keep_trail_head(replace(reached, gateway=gateway, batch=self._batch).to_text())

    def drain(self) -> int:
        """Writes until the audit queue is empty; returns the number of batches."""
        total = 0
        while count := self.step():
            total += count
        return total

    def _write(self, message: Message) -> bool:
        """Writes the lines of a batch; False if the disk has no room for them."""
        packed = message.body
        expander = self._expander_for(message.msg_id[_INCARNATION].hex())
        try:
            summary = summary_of(packed)
            is_one_line = self._shown is IN_CLEAR and fits_in_one_line(packed, summary)
            if summary.batch <= self._batch:
                self._check_repeat(expander, packed, summary)
            if summary.batch < self._batch:
                return True
            # an earlier version may have begun to write the batch, with a line for each record
            is_begun = summary.batch == self._batch and self._written < summary.records
            records = expander.expand(packed)[1] if is_begun or not is_one_line else []
        except MalformedBatch as error:
            self._set_aside(message, error)
            return True
        batch = summary.batch
        written = self._written if batch == self._batch else 0
        chain = self._chain.copy()
        is_late = self._begins_late and batch > 1
        lines = self._late_beginning(chain, summary) if is_late else b""
        if batch > self._batch and is_one_line:
            lines += chain.seal_batch(packed, summary, expander.gateway) if summary.records else b""
        elif written < summary.records:
            lines += chain.seal(records[written:])
        if not self._reserve.allows(len(lines)):
            return False
        if lines:
            self._trail.append(lines, chain.head, expander.gateway)
        if is_late:
            _log.warning("trail began late gateway=%s missing_batches=%s", expander.gateway, batch - 1)
        self._begins_late, self._chain = False, chain
        self._batch, self._written = batch, summary.records
        return True

    def _expander_for(self, gateway: str) -> Expander:
        """The expander of a store's incarnation; another incarnation begins its own sequence in the same chain."""
        if self._expander is None or self._expander.gateway != gateway:
            end = self._trail.end_of(gateway)
            self._expander = Expander(gateway, self._shown)
            self._chain = Chain(sequence=end.sequence, head=self._trail.head)
            self._batch, self._written = end.batch, end.records_of_batch
            self._begins_late, self._there = not (end.sequence or end.batch), None
        return self._expander

    def _check_repeat(self, expander: Expander, packed: bytes, summary: Summary) -> None:
        """After a crash a batch comes again unchanged. Another one under its number shows that something went back."""
        gateway, batch = expander.gateway, summary.batch
        if self._there is None:
            self._there = self._trail.heads_since(gateway, batch)
        there = self._there.get(batch, [])
        if not there:  # retention has removed it
            return
        chain = Chain(sequence=0, head=ZERO_HASH)
        if b'"kind":"batch"' in there[0]:
            lines = chain.seal_batch(packed, summary, gateway)
        else:
            lines = chain.seal(expander.expand(packed)[1][: len(there)])
        if there != [beginning_of(line) for line in lines.splitlines()][: len(there)]:
            raise AnotherBatch(gateway, batch)

    def _late_beginning(self, chain: Chain, coming: Summary) -> bytes:
        """The line that says that the trail begins late: the store is not new, and the trail has nothing of it.

        It has the number of the last missing batch: after a crash the trail goes on from there. Its time is that of the
        next record, so that it is the same line again after a crash.
        """
        why, last_missing = "the trail that there was before is not here", coming.batch - 1
        at_us = coming.at_us if coming.records else time.time_ns() // 1000
        note = (NoteKind.RESTORED, at_us, "trail_begun_late", "", 0, 0, 1, last_missing, "", why)
        packed = pack_batch(last_missing, [note])
        expander = self._expander
        assert expander is not None
        if self._shown is IN_CLEAR:
            return chain.seal_batch(packed, summary_of(packed), expander.gateway)
        return chain.seal(expander.expand(packed)[1])

    def _set_aside(self, message: Message, error: MalformedBatch) -> None:
        """A batch that cannot be read does not stop the next ones. The audit reports that its number is missing."""
        letter = _dead_letter(message, self._queue_manager.name)
        name = DEAD_LETTER_QUEUE
        try:
            self._queue_manager.put(name, letter)
        except QueueManagerError:  # it has no room, and the batches behind this one must not wait for it
            name = HELD_QUEUE
            self._queue_manager.put(name, letter)
        _log.error("batch not read reason=%s put_on=%s", str(error), name)


def _is_half_full(unit: Sequence[Message]) -> bool:
    return 2 * len(unit) >= UNIT_BATCHES or 2 * sum(len(batch.body) for batch in unit) >= UNIT_BYTES


def _dead_letter(message: Message, queue_manager_name: str) -> Message:
    """The message whole behind an MQDLH that names the audit queue and MQRC_FORMAT_ERROR."""
    from mq_adapters.dead_letter import dead_letter  # with the readers of all headers: hardly an exporter needs them

    return dead_letter(
        message,
        queue_name=AUDIT_QUEUE,
        reason_code=ReasonCode.MQRC_FORMAT_ERROR,
        queue_manager_name=queue_manager_name,
        now_us=time.time_ns() // 1000,
    )


def export_pending(queue_manager: AuditQueue, trail_dir: Path, *, close_segment: bool) -> int:
    """Writes the batches that wait on the audit queue, for a command while no gateway runs. Returns their number.

    They are written by the last gateway's plan. Raises StoreError when another process writes the trail, the disk
    fails, or a key is missing.
    """
    plan = TrailPlan.kept(trail_dir)
    try:
        known = TrailHead.from_text(queue_manager.trail_head())
        with _open(trail_dir, plan, PlausibleClock(newest_us(trail_dir)), known=known) as trail:
            exporter = Exporter(queue_manager, trail, disclosure_of(plan.personal_key))
            exporter.begin_keeping()
            batches = exporter.drain()
            if close_segment:
                trail.close_segment()
    except ConfigurationError as error:
        raise StoreError("write the waiting notes to the trail", "; ".join(error.problems), error.hint) from error
    return batches


def _open(
    trail_dir: Path,
    plan: TrailPlan,
    clock: PlausibleClock,
    versions: Versions | None = None,
    *,
    known: TrailHead | None = None,
) -> Trail:
    return Trail.open(
        trail_dir,
        limits=plan.limits,
        signing_key=Path(plan.signing_key),
        signing_token=plan.signing_token,
        former_token=plan.former_signing_token,
        provenance=plan.provenance(versions),
        now=lambda: datetime.fromtimestamp(clock.now_us() / _SECOND_US, UTC),
        known=known,
    )


def _back_out(queue_manager: AuditQueue) -> None:
    try:
        queue_manager.back_out()
    except QueueManagerError:
        return  # the connection broke, and with it the unit of work


def run(
    queue_manager: AuditQueue,
    trail: Trail,
    stop: StopRequest,
    *,
    shown: Disclosure = IN_CLEAR,
    on_digest: Callable[[], None] = lambda: None,
    reserve: Reserve = _NO_RESERVE,
) -> None:
    """Exports until it is asked to end, then exports the rest and closes the segment.

    While the disk has no more than its `reserve`, batches stay on the audit queue, also at the end.
    """
    exporter = Exporter(queue_manager, trail, shown, reserve)
    exporter.begin_keeping()
    gateway = queue_manager.incarnation.hex()
    tend_s, told = time.monotonic(), trail.digests.last_number
    while True:
        asked = stop.wait(0)
        moved = exporter.step() if reserve.allows() else 0
        if not moved or time.monotonic() >= tend_s:
            tend_s = time.monotonic() + _TEND_S
            trail.tend()
        if trail.digests.last_number != told:
            told = trail.digests.last_number
            on_digest()
        if moved:
            if not exporter.is_behind:
                stop.wait(GATHER_S)
            continue
        if asked:
            break
        if reserve.allows():
            trail.note_quiet(gateway)
        stop.wait(IDLE_S)
    if reserve.allows():
        trail.finish(gateway)
    else:
        trail.close_segment()


def open_patiently(
    folder: Path,
    plan: TrailPlan,
    parent: int,
    clock: PlausibleClock,
    versions: Versions | None = None,
    *,
    known: TrailHead | None = None,
) -> Trail:
    """Opens the trail, which the exporter of a killed gateway may still hold for a moment. Raises TrailInUse."""
    deadline = time.monotonic() + _OPEN_WAIT_S
    while True:
        check_parent(parent)
        try:
            return _open(folder, plan, clock, versions, known=known)
        except TrailInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_OPEN_PAUSE_S)


def check_parent(parent: int) -> None:
    """QueueManagerError 2009 if the gateway that started this exporter is gone: the next one starts its own."""
    if parent and os.getppid() != parent:
        raise QueueManagerError(ReasonCode.MQRC_CONNECTION_BROKEN, "stay with the gateway that started the exporter")


def main(arguments: list[str] | None = None) -> int:
    """The process. Exit 0: stopped as asked; 1: the gateway went away or the disk failed (one line says which)."""
    forbid_inspection()
    options = _options(arguments)
    log.configure(options.log_level, options.log_format)
    folder = options.data / TRAIL_FOLDER
    stop = TerminationSignal(asked=options.once)
    clock = PlausibleClock(newest_us(folder))
    _step_back()
    try:
        plan = TrailPlan.kept(folder) if options.plan is None else TrailPlan.from_json(options.plan)
        with ExitStack() as stack:
            connected = socket.socket(fileno=options.socket)
            queue_manager = stack.enter_context(SocketClient(connected, application_name=_APPLICATION_NAME))
            known = TrailHead.from_text(queue_manager.trail_head())
            opened = open_patiently(folder, plan, options.parent, clock, options.versions, known=known)
            trail = stack.enter_context(opened)
            check_parent(options.parent)
            plan.keep(folder)
            shown = disclosure_of(plan.personal_key)
            connect = partial(SocketClient, options.data, application_name=_KEEPER_NAME)
            with Housekeeper.of(plan, trail, connect, clock) as keeper:
                reserve = Reserve(folder, plan.reserve_bytes)
                run(queue_manager, trail, stop, shown=shown, on_digest=keeper.wake, reserve=reserve)
    except (QueueManagerError, StoreError, ConfigurationError, OSError) as error:
        _log.error("exporter gave up reason=%s", str(error))
        return 1
    return 0


def _step_back() -> None:
    os.nice(_NICENESS)
    if os.getsid(0) == os.getpid():  # not the session of a shell or of the gateway, which has others in it
        with contextlib.suppress(OSError):  # a system without such groups
            _NICENESS_OF_SESSION.write_text(str(_NICENESS))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gateway.audit_trail.exporter", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the gateway's data folder")
    parser.add_argument("--socket", type=int, required=True, metavar="NUMBER", help="descriptor of its socket")
    parser.add_argument("--plan", metavar="JSON", help="how the trail is written; without it as before (plan.py)")
    parser.add_argument("--versions", nargs=2, metavar=("CODE", "TABLE"), help="what the trail's digests name")
    parser.add_argument("--parent", type=int, default=0, metavar="PID", help="end when this process is gone")
    parser.add_argument("--once", action="store_true", help="write the waiting notes, close the segment and end")
    parser.add_argument("--log-level", default="info", choices=get_args(log.Level))
    parser.add_argument("--log-format", default="text", choices=get_args(log.Format))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
