"""The channel over pymqi and ibmmq: messages of 300 B in batches, beside one commit for each message.

From a gateway's store to a queue manager behind IBM's interface. IBM's library is not here: both packages load the
stand-in of the tests, whose queue manager is an embedded one in another process. So the rates say little of IBM MQ;
what holds there too is the cost of the channel's own process, and that each commit, which waits for a disk and a
network, is shared by all messages of a batch.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.channel import (
    STATE_QUEUE,
    STREAM,
    TRANSMISSION_QUEUE,
    QueueManagerProcess,
    Watch,
    fill_messages,
)
from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from mq_adapters.channel import Outbound, OutboundSettings
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.transmission import read_transmission
from tests.ibm_mq_stand_in.process import BINDINGS, VARIABLE, Binding, StandInQueueManager, load, why_unavailable

NAME: Final = "channel_ibm_mq"
BATCHES: Final = (1, 10, 100, 500)
_TITLE: Final = "exactly once over IBM's packages and the stand-in for its library, 300 B, persistent"


def run(seconds: float) -> Report:
    """Each package with each size of a batch, and one by one. Without the stand-in there is nothing to measure."""
    if why_unavailable():
        return Report(name=NAME, title=_TITLE, rows=(), notes=(f"Not measured: {why_unavailable()}.",))
    share_s = seconds / 4
    rows: list[Row] = []
    notes: list[str] = []
    for binding in BINDINGS:
        measured = [measure_channel(binding, batch, share_s) for batch in BATCHES]
        alone = measure_one_by_one(binding, share_s)
        rows += [*measured, alone]
        best = max(row.value("delivered") for row in measured)
        notes.append(f"{binding}: the best batches deliver {best / alone.value('delivered'):.1f} times one by one.")
    return Report(name=NAME, title=_TITLE, rows=tuple(rows), notes=tuple(notes))


def measure_channel(binding: Binding, batch_messages: int, seconds: float) -> Row:
    """An outbound channel for so many seconds after its first batch."""
    with _store_and_stand_in(binding, seconds) as (store, stand_in):
        watch = Watch(seconds)
        channel = Outbound(
            OutboundSettings(
                channel="BENCH.OUT.0",
                transmission_queue=TRANSMISSION_QUEUE,
                remote_state_queue=STATE_QUEUE,
                batch_messages=batch_messages,
            ),
            connect_local=lambda: SocketClient(store.folder),
            connect_remote=lambda: IbmMq(ConnectionSettings(package=binding)),
            listener=watch,
        )
        before_s = time.process_time()
        channel.run(watch.stop)
        cpu_s = time.process_time() - before_s
        _check_arrived(stand_in, channel.status.messages)
    return _row(
        binding, f"batches of {batch_messages}", watch.messages / watch.elapsed_s, cpu_s / channel.status.messages
    )


def measure_one_by_one(binding: Binding, seconds: float) -> Row:
    """Get, put, commit there, commit here, for each message: what is in doubt comes twice."""
    with (
        _store_and_stand_in(binding, seconds) as (store, stand_in),
        closing(SocketClient(store.folder)) as here,
        closing(IbmMq(ConnectionSettings(package=binding))) as there,
    ):
        before_s = time.process_time()
        started = time.perf_counter()
        messages = 0
        while not messages or (time.perf_counter() - started < seconds and messages < fill_messages(seconds)):
            here.begin()
            sent = read_transmission(here.get(TRANSMISSION_QUEUE), now_us=0)
            there.begin()
            there.put(sent.queue_name, sent.message)
            there.commit()
            here.commit()
            messages += 1
        elapsed_s = time.perf_counter() - started
        cpu_s = time.process_time() - before_s
        _check_arrived(stand_in, messages)
    return _row(binding, "one by one", messages / elapsed_s, cpu_s / messages)


def _row(binding: Binding, case: str, rate: float, cpu_s: float) -> Row:
    return Row(
        subject=binding,
        case=case,
        measures=(
            Measure(name="delivered", value=rate, unit="messages/s"),
            Measure(name="CPU of the channel", value=cpu_s * 1e6, unit="us/message"),
        ),
    )


@contextmanager
def _store_and_stand_in(binding: Binding, seconds: float) -> Iterator[tuple[QueueManagerProcess, StandInQueueManager]]:
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder:
        store = QueueManagerProcess(Path(folder) / "here", fill=fill_messages(seconds))
        with StandInQueueManager(Path(folder) / "there") as stand_in:
            try:
                store.wait()
                stand_in.control.mqsc(f"DEFINE QLOCAL({STATE_QUEUE})", f"DEFINE QLOCAL({STREAM}) MAXDEPTH(999999999)")
                os.environ[VARIABLE] = str(stand_in.socket)
                load(binding)
                yield store, stand_in
            finally:
                store.end()


def _check_arrived(stand_in: StandInQueueManager, messages: int) -> None:
    with stand_in.client() as there:
        arrived = there.depth(STREAM)
    if arrived != messages:
        raise BenchmarkError(f"{messages:,} messages were delivered, and {arrived:,} are there")
