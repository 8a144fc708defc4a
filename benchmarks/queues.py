"""The embedded queue manager alone: puts and destructive gets of 300 B through the engine, one fsync a batch.

Also how a deep queue compares with a shallow one, got after a restart, when nothing is in memory, and what a message
that waits costs in memory.
"""

import gc
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.figures import Measure, Report, Row
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

NAME: Final = "queues"
BATCHES: Final = (1, 100, 1_000)
BODY_BYTES: Final = 300
#: A queue that is deep, one that is not, and how many messages are got from each.
DEEP: Final = 1_000_000
SHALLOW: Final = 50_000
GETS: Final = 50_000
_DEPTH_BATCH: Final = 100
_FILL_BATCH: Final = 5_000
_DESCRIPTOR: Final = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"MQHRF2  ", put_appl_name="benchmark")


def run(seconds: float) -> Report:
    """Puts for half of the time, then gets what was put, for each size of a batch; then the deep queue."""
    shallow, deep = measure_depth(SHALLOW), measure_depth(DEEP)
    slower = 1 - deep.value("get after a restart") / shallow.value("get after a restart")
    return Report(
        name=NAME,
        title=f"put and get through the engine, {BODY_BYTES} B, one fsync a batch",
        rows=(*(measure(batch, seconds / 2) for batch in BATCHES), shallow, deep),
        notes=(f"Gets from {DEEP:,} messages are {slower:.0%} slower than from {SHALLOW:,}.",),
    )


def measure(batch: int, seconds: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder, closing(Engine.open(Path(folder))) as engine:
        queue = engine.define("BENCHMARK")
        started, put_cpu_s = time.perf_counter(), time.process_time()
        put = 0
        while time.perf_counter() - started < seconds:
            put_batch(engine, queue, batch)
            put += batch
        put_s, put_cpu_s = time.perf_counter() - started, time.process_time() - put_cpu_s
        started, get_cpu_s = time.perf_counter(), time.process_time()
        while get_batch(engine, queue, batch):
            continue
        get_s, get_cpu_s = time.perf_counter() - started, time.process_time() - get_cpu_s
    return Row(
        subject="engine",
        case=f"batches of {batch:,}",
        measures=(
            Measure(name="put", value=put / put_s, unit="messages/s"),
            Measure(name="get", value=put / get_s, unit="messages/s"),
            Measure(name="put and get", value=put / (put_s + get_s), unit="messages/s"),
            Measure(name="CPU of a put", value=put_cpu_s / put * 1e6, unit="us"),
            Measure(name="CPU of a get", value=get_cpu_s / put * 1e6, unit="us"),
        ),
    )


def measure_depth(depth: int) -> Row:
    """Fills a queue, opens the store anew, and gets the oldest messages in batches."""
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder:
        with closing(Engine.open(Path(folder))) as engine:
            queue = engine.define("BENCHMARK")
            for _ in range(0, depth, _FILL_BATCH):
                put_batch(engine, queue, _FILL_BATCH)
        del engine, queue
        gc.collect()
        before = resident_bytes()
        started = time.perf_counter()
        with closing(Engine.open(Path(folder))) as engine:
            opened_s = time.perf_counter() - started
            index_bytes = resident_bytes() - before
            queue = engine.queue("BENCHMARK")
            started = time.perf_counter()
            got = 0
            while got < GETS:
                got += get_batch(engine, queue, _DEPTH_BATCH)
            get_s = time.perf_counter() - started
    return Row(
        subject="engine",
        case=f"{depth:,} messages waiting",
        measures=(
            Measure(name="get after a restart", value=got / get_s, unit="messages/s"),
            Measure(name="open", value=opened_s, unit="s"),
            Measure(name="memory", value=index_bytes / depth, unit="B/message"),
        ),
    )


def resident_bytes() -> int:
    """What the process has in memory (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def put_batch(engine: Engine, queue: Queue, batch: int) -> None:
    """One unit of work; without an event loop `submit` returns after the fsync."""
    unit = engine.begin()
    for _ in range(batch):
        engine.put(unit, queue, Message(_DESCRIPTOR, bytes(BODY_BYTES)))
    engine.submit(unit)


def get_batch(engine: Engine, queue: Queue, batch: int) -> int:
    """Takes up to a batch and destroys it; returns how many there were."""
    unit = engine.begin()
    while len(unit.removals) < batch and (message := engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    return len(unit.removals)
