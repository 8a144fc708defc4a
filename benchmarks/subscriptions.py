"""What many subscriptions cost: publishing through the broker with 100 and with 100,000, 30 % of them with wildcards.

The publications are the same in both cases, and go to the same subscribers: each matches the three wildcard
subscriptions of its site. What differs is the other subscriptions. The garbage collector is set as the gateway sets it.
"""

import gc
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.servers import resident_mib
from mappings.commands.command import Dialect, Publish, RegisterSubscriber, write_command
from mappings.commands.options import RegistrationOption
from mq_adapters.broker.broker import Broker
from mq_adapters.delivery_listener import Unheard
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM

NAME: Final = "subscriptions"
COUNTS: Final = (100, 100_000)
BODY_BYTES: Final = 64
BATCH: Final = 100
#: Topics that are published in turn: all are in the caches of headers and topics after the first round.
TOPICS: Final = 1_000
#: Sites that are published for: all of those that 100 subscriptions have.
SITES: Final = 10
#: As in gateway/daemon.py, which says why.
_GC_THRESHOLD: Final = (50_000, 20, 10)
#: Of ten subscriptions three have a wildcard: two of MQRFH2, one of MQRFH.
_WILDCARDS: Final = {0: "{site}/+/+", 1: "{site}/pump/#", 2: "{site}/*"}
_OF_MQRFH: Final = frozenset({2, 4, 5})
_QUEUE: Final = "BENCHMARK.SUBSCRIBER"
_FORMATS: Final = {Dialect.MQRFH: b"MQHRF   ", Dialect.MQRFH2: b"MQHRF2  "}


class Deaf(Unheard):
    """A listener for whom nothing is noted, and nothing may go wrong."""

    def refused(self, unit: UnitOfWork, command: Message, verb: str, reason_code: int) -> None:
        raise AssertionError(f"{verb} was refused with {reason_code}")

    def dead_lettered(
        self, unit: UnitOfWork, message: Message, dead_letter: Message, queue_name: str, reason_code: int
    ) -> None:
        raise AssertionError(f"a message for {queue_name} could not be put: {reason_code}")

    def dropped(self, unit: UnitOfWork, message: Message, queue_name: str, reason: str) -> None:
        raise AssertionError(f"a message for {queue_name} was dropped: {reason}")


def run(seconds: float) -> Report:
    """Registers, then publishes for the given time on topics seen before, and as long on topics that are all new."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLD)
    rows = tuple(measure(count, seconds) for count in COUNTS)
    gc.set_threshold(*thresholds)
    few, many = rows
    return Report(
        name=NAME,
        title=f"an MQ application's publications through the broker, {BODY_BYTES} B, persistent, one fsync for {BATCH}",
        rows=rows,
        notes=(*_notes(few, many), "Neither MQTT nor the audit's notes are in these figures: `ways` has both."),
    )


def _notes(few: Row, many: Row) -> Iterator[str]:
    for what in ("topics seen before", "new topics"):
        speed = many.value(what) / few.value(what)
        processor = few.value(f"CPU, {what}") / many.value(f"CPU, {what}")
        yield (
            f"On {what}, {COUNTS[1]:,} subscriptions leave {speed:.2f} of the speed with {COUNTS[0]}, in the "
            f"processor's time {processor:.2f}; the aim is 0.8."
        )


def measure(count: int, seconds: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="rfhbench") as folder, closing(Engine.open(Path(folder))) as engine:
        engine.define(_QUEUE)
        Broker(engine, listener=Deaf()).attach()
        before_mib = resident_mib(os.getpid())
        started = time.perf_counter()
        register(engine, count)
        registered_s = time.perf_counter() - started
        taken_mib = resident_mib(os.getpid()) - before_mib
        gc.freeze()
        publish(engine, map(topic, range(TOPICS)))
        seen = pace(engine, (topic(number % TOPICS) for number in itertools.count()), seconds)
        new = pace(engine, (topic(number) for number in itertools.count(TOPICS)), seconds)
        gc.unfreeze()
    return Row(
        subject="broker",
        case=f"{count:,} subscriptions",
        measures=(
            Measure(name="registering", value=count / registered_s, unit="RegSub/s"),
            *_measures("topics seen before", seen),
            *_measures("new topics", new),
            Measure(name="memory of the subscriptions", value=taken_mib, unit="MiB"),
        ),
    )


def topic(number: int) -> str:
    return f"s{number % SITES}/pump/{number}"


def register(engine: Engine, count: int) -> None:
    """RegSubs in batches of 1,000, each with a CorrelId of its own: ten for each of the sites."""
    queue = engine.queue(CONTROL_QUEUE)
    for first in range(0, count, 1_000):
        unit = engine.begin()
        for number in range(first, min(first + 1_000, count)):
            engine.put(unit, queue, registration(number))
        engine.submit(unit)


def registration(number: int) -> Message:
    site, kind = f"s{number // 10}", number % 10
    pattern = _WILDCARDS.get(kind, f"{{site}}/valve/{kind}").format(site=site)
    dialect = Dialect.MQRFH if kind in _OF_MQRFH else Dialect.MQRFH2
    command = RegisterSubscriber(
        topics=(pattern,), queue_name=_QUEUE, registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY
    )
    descriptor = MessageDescriptor(
        persistence=MQPER_PERSISTENT, format=_FORMATS[dialect], correl_id=(number + 1).to_bytes(24, "big")
    )
    return Message(descriptor, write_command(command, dialect))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many publications were carried out, and in what time of the clock and of the processor."""

    published: int
    took_s: float
    processor_s: float


def _measures(what: str, pace: Pace) -> tuple[Measure, Measure]:
    return (
        Measure(name=what, value=pace.published / pace.took_s, unit="publications/s"),
        Measure(name=f"CPU, {what}", value=pace.processor_s / pace.published * 1e6, unit="us"),
    )


def pace(engine: Engine, topics: Iterator[str], seconds: float) -> Pace:
    """Publishes for that time; what arrived is taken off meanwhile, outside of the clock."""
    queue, published, took_s, processor_s = engine.queue(_QUEUE), 0, 0.0, 0.0
    while took_s < seconds:
        messages = [publication(next(topics)) for _ in range(BATCH)]
        started, processor_started = time.perf_counter(), time.process_time()
        put(engine, messages)
        took_s += time.perf_counter() - started
        processor_s += time.process_time() - processor_started
        published += len(messages)
        clear(engine, queue)
    return Pace(published=published, took_s=took_s, processor_s=processor_s)


def publish(engine: Engine, topics: Iterator[str]) -> None:
    put(engine, [publication(topic) for topic in topics])
    clear(engine, engine.queue(_QUEUE))


def publication(topic: str) -> Message:
    header = write_command(Publish(topics=(topic,)), Dialect.MQRFH2)
    return Message(_PUBLICATION, header + bytes(BODY_BYTES))


def put(engine: Engine, messages: list[Message]) -> None:
    unit, queue = engine.begin(), engine.queue(DEFAULT_STREAM)
    for message in messages:
        engine.put(unit, queue, message)
    engine.submit(unit)


def clear(engine: Engine, queue: Queue) -> None:
    unit = engine.begin()
    while (message := engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)


_PUBLICATION: Final = MessageDescriptor(persistence=MQPER_PERSISTENT, format=_FORMATS[Dialect.MQRFH2])
