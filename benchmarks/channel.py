"""A channel between two embedded queue managers: messages of 300 B, in batches, beside one commit for each message.

Both queue managers are processes of their own, as the store of a gateway is, and the channel is in a third, this one;
each batch is a commit there and two in the store. `one by one` is what a program does that knows no batches and no
state message: get, put, commit here and there; it delivers twice what it did not see committed.
"""

import asyncio
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from benchmarks.servers import cpu_s
from mq_adapters.channel import ChannelStatus, Outbound, OutboundSettings, StartAction
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.server import Server
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE
from mq_adapters.transmission import read_transmission, transmission_message

NAME: Final = "channel"
BATCHES: Final = (1, 10, 100, 1_000)
BODY_BYTES: Final = 300
#: More messages wait than the fastest run of one second carries, and than one batch.
_FILL_PER_SECOND: Final = 20_000
_LEAST_BATCHES: Final = 5
_FILL_BATCH: Final = 1_000
_START_S: Final = 30.0
TRANSMISSION_QUEUE: Final = "RFHBRIDGE.XMIT.BENCH.0"
STATE_QUEUE: Final = "RFHBRIDGE.STATE.0"
STREAM: Final = "STREAM"
_QUEUES: Final = (TRANSMISSION_QUEUE, CHANNEL_STATE_QUEUE, STATE_QUEUE, STREAM)


def run(seconds: float) -> Report:
    """The same time for each size of a batch, and for one by one."""
    share_s = seconds / 2
    rows = (*(measure_channel(batch, share_s) for batch in BATCHES), measure_one_by_one(share_s))
    slow, fast = rows[-1].value("delivered"), max(row.value("delivered") for row in rows[:-1])
    return Report(
        name=NAME,
        title=f"exactly once from one embedded queue manager to another, {BODY_BYTES} B, persistent",
        rows=rows,
        notes=(f"The best batches deliver {fast / slow:.1f} times as many messages as one by one.",),
    )


def measure_channel(batch_messages: int, seconds: float) -> Row:
    """An outbound channel for so many seconds after its first batch."""
    with _two_queue_managers(seconds) as (here, there):
        watch = Watch(seconds)
        channel = Outbound(
            OutboundSettings(
                channel="BENCH.OUT.0",
                transmission_queue=TRANSMISSION_QUEUE,
                remote_state_queue=STATE_QUEUE,
                batch_messages=batch_messages,
            ),
            connect_local=lambda: SocketClient(here.folder),
            connect_remote=lambda: SocketClient(there.folder),
            listener=watch,
        )
        before = time.process_time(), cpu_s(here.process_id), cpu_s(there.process_id)
        channel.run(watch.stop)
        after = time.process_time(), cpu_s(here.process_id), cpu_s(there.process_id)
        _check_arrived(there, channel.status.messages)
    per_message = [(last - first) * 1e6 / channel.status.messages for first, last in zip(before, after, strict=True)]
    return _row("channel", f"batches of {batch_messages:,}", watch.messages / watch.elapsed_s, per_message)


def measure_one_by_one(seconds: float) -> Row:
    """Get, put, commit there, commit here, for each message."""
    with (
        _two_queue_managers(seconds) as (here, there),
        closing(SocketClient(here.folder)) as store,
        closing(SocketClient(there.folder)) as other,
    ):
        before = time.process_time(), cpu_s(here.process_id), cpu_s(there.process_id)
        started = time.perf_counter()
        messages = 0
        while not messages or (time.perf_counter() - started < seconds and store.depth(TRANSMISSION_QUEUE)):
            store.begin()
            sent = read_transmission(store.get(TRANSMISSION_QUEUE), now_us=0)
            other.begin()
            other.put(sent.queue_name, sent.message)
            other.commit()
            store.commit()
            messages += 1
        elapsed_s = time.perf_counter() - started
        after = time.process_time(), cpu_s(here.process_id), cpu_s(there.process_id)
        _check_arrived(there, messages)
    per_message = [(last - first) * 1e6 / messages for first, last in zip(before, after, strict=True)]
    return _row("one by one", "no state message", messages / elapsed_s, per_message)


def _row(subject: str, case: str, rate: float, cpu_us: list[float]) -> Row:
    names = ("CPU of the channel", "CPU of the store", "CPU of the other side")
    return Row(
        subject=subject,
        case=case,
        measures=(
            Measure(name="delivered", value=rate, unit="messages/s"),
            *(Measure(name=name, value=value, unit="us/message") for name, value in zip(names, cpu_us, strict=True)),
        ),
    )


class Watch:
    """The channel's listener: counts from its first batch on, and stops it when the time is up, or nothing waits."""

    def __init__(self, seconds: float) -> None:
        self.stop = threading.Event()
        self.messages = 0
        self._seconds = seconds
        self._first: tuple[float, int] | None = None
        self.elapsed_s = 0.0

    def status_changed(self, status: ChannelStatus) -> None:
        if not status.messages:
            return
        now_s = time.perf_counter()
        if self._first is None:
            self._first = now_s, status.messages
        self.elapsed_s, self.messages = now_s - self._first[0], status.messages - self._first[1]
        if self.elapsed_s >= self._seconds or status.messages >= fill_messages(self._seconds):
            self.stop.set()

    def queue_manager_changed(self, channel: str, *, before: str, now: str) -> None:
        """There is one only."""

    def action_taken(self, channel: str, action: StartAction, *, batch: int, messages: int) -> None:
        """Nothing is ever in doubt here."""


# -- the queue managers ------------------------------------------------------------------------------------------------


class QueueManagerProcess:
    """An embedded queue manager with its socket, in a process of its own."""

    def __init__(self, folder: Path, *, fill: int) -> None:
        self.folder = folder
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(folder, fill, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def process_id(self) -> int:
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    def wait(self) -> None:
        if not self._ours.poll(_START_S):
            raise BenchmarkError(f"the queue manager in {self.folder} did not start in {_START_S} s")
        self._ours.recv()

    def end(self) -> None:
        self._ours.close()
        self._process.join(_START_S)
        self._process.kill()


@contextmanager
def _two_queue_managers(seconds: float) -> Iterator[tuple[QueueManagerProcess, QueueManagerProcess]]:
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder:
        here = QueueManagerProcess(Path(folder) / "here", fill=fill_messages(seconds))
        there = QueueManagerProcess(Path(folder) / "there", fill=0)
        try:
            here.wait()
            there.wait()
            yield here, there
        finally:
            here.end()
            there.end()


def fill_messages(seconds: float) -> int:
    """How many messages wait at the start."""
    wanted = max(_LEAST_BATCHES * max(BATCHES), int(seconds * _FILL_PER_SECOND))
    return wanted // _FILL_BATCH * _FILL_BATCH


def _serve(folder: Path, fill: int, parent: Connection) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_until_closed(folder, fill, parent))


async def _serve_until_closed(folder: Path, fill: int, parent: Connection) -> None:
    loop = asyncio.get_running_loop()
    _fill(folder, fill)
    with closing(Engine.open(folder, call_soon=loop.call_soon)) as engine:
        server = Server(engine, folder)
        await server.start()
        closed = asyncio.Event()
        loop.add_reader(parent.fileno(), closed.set)
        parent.send("ready")
        await closed.wait()
        await server.stop()


def _fill(folder: Path, messages: int) -> None:
    descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"MQHRF2  ", put_appl_name="benchmark")
    with closing(Engine.open(folder)) as engine:
        for name in _QUEUES:
            engine.ensure(name, "")
        queue = engine.queue(TRANSMISSION_QUEUE)
        for first in range(0, messages, _FILL_BATCH):
            unit = engine.begin()
            for number in range(first, first + _FILL_BATCH):
                own = descriptor.replace(msg_id=b"RFHB" + number.to_bytes(20, "big"))
                sent = transmission_message(
                    Message(own, bytes(BODY_BYTES)),
                    queue_name=STREAM,
                    queue_manager_name="BENCH",
                    own_name="GATEWAY",
                    now_us=engine.now_us(),
                )
                engine.put(unit, queue, sent)
            engine.submit(unit)


def _check_arrived(there: QueueManagerProcess, messages: int) -> None:
    with closing(SocketClient(there.folder)) as other:
        arrived = other.depth(STREAM)
    if arrived != messages:
        raise BenchmarkError(f"{messages:,} messages were delivered, and {arrived:,} are there")
