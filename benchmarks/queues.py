"""The embedded queue manager alone: puts and destructive gets of 300 B through the engine, one fsync a batch."""

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.figures import Measure, Report, Row
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

NAME: Final = "queues"
BATCHES: Final = (1, 100, 1_000)
BODY_BYTES: Final = 300
_DESCRIPTOR: Final = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"MQHRF2  ", put_appl_name="benchmark")


def run(seconds: float) -> Report:
    """Puts for half of the time, then gets what was put, for each size of a batch."""
    return Report(
        name=NAME,
        title=f"put and get through the engine, {BODY_BYTES} B, one fsync a batch",
        rows=tuple(measure(batch, seconds / 2) for batch in BATCHES),
    )


def measure(batch: int, seconds: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder, closing(Engine.open(Path(folder))) as engine:
        queue = engine.define("BENCHMARK")
        started = time.perf_counter()
        put = 0
        while time.perf_counter() - started < seconds:
            put_batch(engine, queue, batch)
            put += batch
        put_s = time.perf_counter() - started
        started = time.perf_counter()
        while get_batch(engine, queue, batch):
            continue
        get_s = time.perf_counter() - started
    return Row(
        subject="engine",
        case=f"batches of {batch:,}",
        measures=(
            Measure(name="put", value=put / put_s, unit="messages/s"),
            Measure(name="get", value=put / get_s, unit="messages/s"),
            Measure(name="put and get", value=put / (put_s + get_s), unit="messages/s"),
        ),
    )


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
        unit.remove(queue, message)
    engine.submit(unit)
    return len(unit.removals)
