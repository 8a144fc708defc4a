"""The exporter: takes packed batches off the audit queue and writes them to the trail, each record exactly once.

The last station on the way of a PUBLISH, in a process of its own that the daemon starts:

    python -m gateway.audit_trail.exporter --data DIR

It gets batches in a unit of work, writes and syncs their lines, and then commits the get. When it dies in between, the
batches come again and the trail itself says how far it had come. SIGTERM: writes what waits, closes the segment, ends.
When the gateway goes away it exits 1 and leaves the segment open for the next exporter.
"""

import argparse
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from gateway.audit_trail.records import Chain, Expander, MalformedBatch
from gateway.audit_trail.segment import STANDARD_LIMITS, SegmentLimits, Trail, TrailInUse
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.client import Client
from mq_adapters.embedded.engine import AUDIT_QUEUE, DEAD_LETTER_QUEUE
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

TRAIL_FOLDER: Final = "trail"
#: How long an idle exporter waits before it looks again, seconds.
IDLE_S: Final = 1.0
#: Batches or bytes of batches written under one sync and one commit of the get.
UNIT_BATCHES: Final = 64
UNIT_BYTES: Final = 4 * 1024 * 1024
#: How long a starting exporter waits for the gateway's socket, seconds.
CONNECT_WAIT_S: Final = 10.0
_APPLICATION_NAME: Final = "rfhbridge exporter"
_CONNECT_PAUSE_S: Final = 0.05
#: Added to the process's niceness: the gateway's own work goes first.
_NICENESS: Final = 10
_INCARNATION: Final = slice(4, 16)  # of a MsgId, see Message.msg_id


class AuditQueue(Protocol):
    """What the exporter needs of a queue manager: Client and Direct of mq_adapters/embedded have it."""

    name: str

    def begin(self) -> None: ...
    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> Sequence[Message]:
        """The oldest messages, into the open unit of work; none where none waits."""
        ...

    def put(self, queue_name: str, message: Message) -> bytes: ...
    def commit(self) -> None: ...
    def back_out(self) -> None: ...


class Exporter:
    """Moves batches from the audit queue of a queue manager to a trail."""

    def __init__(self, queue_manager: AuditQueue, trail: Trail) -> None:
        self._queue_manager = queue_manager
        self._trail = trail
        self._expander: Expander | None = None
        self._chain = Chain(sequence=0, head=trail.head)
        self._batch = 0
        #: Records of batch `_batch` that the trail holds already, from before a crash.
        self._written = 0

    def step(self) -> int:
        """One unit of work: returns how many batches left the queue, 0 when none waits."""
        queue_manager = self._queue_manager
        queue_manager.begin()
        try:
            messages = queue_manager.take_batch(AUDIT_QUEUE, most_messages=UNIT_BATCHES, most_bytes=UNIT_BYTES)
            for message in messages:
                self._write(message)
            self._trail.sync()
        except BaseException:
            _back_out(queue_manager)
            raise
        if messages:
            queue_manager.commit()
        else:
            queue_manager.back_out()
        return len(messages)

    def drain(self) -> int:
        """Writes until the audit queue is empty; returns the number of batches."""
        total = 0
        while count := self.step():
            total += count
        return total

    def _write(self, message: Message) -> None:
        expander = self._expander_for(message.msg_id[_INCARNATION].hex())
        try:
            batch, records = expander.expand(message.body)
        except MalformedBatch as error:
            self._set_aside(message, error)
            return
        if batch < self._batch:
            return
        if batch == self._batch:
            records = records[self._written :]
        if records:
            self._trail.append(self._chain.seal(records), self._chain.head)
        self._written = len(records) + (self._written if batch == self._batch else 0)
        self._batch = batch

    def _expander_for(self, gateway: str) -> Expander:
        """The expander of a store's incarnation; another incarnation begins its own sequence in the same chain."""
        if self._expander is None or self._expander.gateway != gateway:
            end = self._trail.end_of(gateway)
            self._expander = Expander(gateway)
            self._chain = Chain(sequence=end.sequence, head=self._trail.head)
            self._batch, self._written = end.batch, end.records_of_batch
        return self._expander

    def _set_aside(self, message: Message, error: MalformedBatch) -> None:
        """A batch that cannot be read does not stop the ones behind it; the audit will miss its number and say so."""
        print(f"rfhbridge exporter: {error}; it is on {DEAD_LETTER_QUEUE}, whole", file=sys.stderr)
        self._queue_manager.put(DEAD_LETTER_QUEUE, _dead_letter(message, self._queue_manager.name))


def _dead_letter(message: Message, queue_manager_name: str) -> Message:
    """The message whole behind an MQDLH that names the audit queue and MQRC_FORMAT_ERROR."""
    return dead_letter(
        message,
        queue_name=AUDIT_QUEUE,
        reason_code=ReasonCode.MQRC_FORMAT_ERROR,
        queue_manager_name=queue_manager_name,
        now_us=time.time_ns() // 1000,
    )


def export_pending(queue_manager: AuditQueue, trail_dir: Path, *, close_segment: bool) -> int:
    """Writes what waits on the audit queue; returns the number of batches. For a command when no gateway runs.

    Raises StoreError when another process writes the trail, or the disk fails.
    """
    with Trail.open(trail_dir) as trail:
        batches = Exporter(queue_manager, trail).drain()
        if close_segment:
            trail.close_segment()
    return batches


def _back_out(queue_manager: AuditQueue) -> None:
    try:
        queue_manager.back_out()
    except QueueManagerError:
        return  # the connection broke, and with it the unit of work


class StopRequest(Protocol):
    """Says when the exporter is to end."""

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`; True, at once, when the end was asked for."""
        ...


class TerminationSignal:
    """SIGTERM as something to wait for. SIGINT is ignored: a terminal sends it to the gateway too, which stops us."""

    def __init__(self, *, asked: bool = False) -> None:
        self._asked = asked
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait(self, seconds: float) -> bool:
        if not self._asked:
            select.select([self._read], [], [], seconds)
        return self._asked

    def close(self) -> None:
        """Lets go of the pipe; signals do not wake `wait` any more."""
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._asked = True


def run(queue_manager: AuditQueue, trail: Trail, stop: StopRequest) -> None:
    """Exports until the end is asked for, then what still waits, and closes the segment."""
    exporter = Exporter(queue_manager, trail)
    while True:
        asked = stop.wait(0)
        if exporter.step():
            continue
        if asked:
            break
        trail.roll_if_due()
        stop.wait(IDLE_S)
    trail.close_segment()


def connect_patiently(data: Path, stop: StopRequest, parent: int = 0) -> Client:
    """Connects to a gateway that may still be starting. QueueManagerError 2059 when it does not come up."""
    deadline = time.monotonic() + CONNECT_WAIT_S
    while True:
        check_parent(parent)
        try:
            return Client(data, application_name=_APPLICATION_NAME)
        except QueueManagerError as error:
            unavailable = error.reason_code == ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE
            if not unavailable or time.monotonic() >= deadline or stop.wait(_CONNECT_PAUSE_S):
                raise


def open_patiently(folder: Path, limits: SegmentLimits, parent: int = 0) -> Trail:
    """Opens the trail; the exporter of a gateway that was killed may still be letting go of it. TrailInUse at last."""
    deadline = time.monotonic() + CONNECT_WAIT_S
    while True:
        check_parent(parent)
        try:
            return Trail.open(folder, limits=limits)
        except TrailInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_CONNECT_PAUSE_S)


def check_parent(parent: int) -> None:
    """QueueManagerError 2009 where the gateway that started this exporter is gone: the next one starts its own."""
    if parent and os.getppid() != parent:
        raise QueueManagerError(ReasonCode.MQRC_CONNECTION_BROKEN, "stay with the gateway that started the exporter")


def main(arguments: list[str] | None = None) -> int:
    """The process. Exit 0: stopped as asked; 1: the gateway went away or the disk failed (one line says which)."""
    options = _options(arguments)
    limits = SegmentLimits(size_bytes=options.segment_bytes, age=timedelta(minutes=options.segment_minutes))
    stop = TerminationSignal(asked=options.once)
    os.nice(_NICENESS)
    try:
        with (
            connect_patiently(options.data, stop, options.parent) as queue_manager,
            open_patiently(options.data / TRAIL_FOLDER, limits, options.parent) as trail,
        ):
            check_parent(options.parent)
            run(queue_manager, trail, stop)
    except (QueueManagerError, StoreError) as error:
        print(f"rfhbridge exporter: {error}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gateway.audit_trail.exporter", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the gateway's data folder")
    parser.add_argument("--segment-bytes", type=int, default=STANDARD_LIMITS.size_bytes, metavar="N")
    minutes = STANDARD_LIMITS.age / timedelta(minutes=1)
    parser.add_argument("--segment-minutes", type=float, default=minutes, metavar="N")
    parser.add_argument("--parent", type=int, default=0, metavar="PID", help="end when this process is gone")
    parser.add_argument("--once", action="store_true", help="write what waits, close the segment and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
