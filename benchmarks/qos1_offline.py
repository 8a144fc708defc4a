"""The measure of the main job: QoS 1 from 20 connections, kept for one subscriber that is not connected.

The gateway turns each message into an MQRFH2 publication, stores the subscriber's copy with fsync before the PUBACK,
and notes all of it for the audit. mosquitto keeps the same messages in memory, and in its second run also saves them
now and then; it never syncs before it acknowledges.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Outcome, Task, generate
from benchmarks.load.wire import BenchmarkError, leave_subscription
from benchmarks.rabbitmq import RabbitMq, rabbitmq_program
from benchmarks.servers import AUTOSAVED, IN_MEMORY, KEPT_BEFORE_PUBACK, Gateway, Mosquitto, Server, Sink, cpu_s, peers
from mq_adapters.embedded.engine import Engine
from mq_adapters.system_queues import AUDIT_QUEUE

NAME: Final = "qos1_offline"
CONNECTIONS: Final = 20
WINDOW: Final = 100
PAYLOAD_BYTES: Final = 64
_SUBSCRIBER_QUEUE: Final = "RFHBRIDGE.SUBSCRIBER"
_SINK_SECONDS: Final = 1.0
#: How long the exporter may take after the load to write the rest of the trail, seconds.
_TRAIL_WAIT_S: Final = 300.0
_TRAIL_POLL_S: Final = 0.2
#: The exporter is idle when it uses less than this share of a core.
_IDLE_SHARE: Final = 0.02


def run(seconds: float) -> Report:
    """Measures the gateway, mosquitto both ways, RabbitMQ, and the generator alone."""
    capacity = generator_capacity()
    gateway_row, kept_note = measure_gateway(seconds)
    rows = (
        gateway_row,
        *(measure_peer(Mosquitto(persistence), seconds) for persistence in peers(IN_MEMORY, AUTOSAVED)),
        *((measure_peer(RabbitMq(), seconds),) if rabbitmq_program() else ()),
    )
    return Report(
        name=NAME,
        title=f"QoS 1, {CONNECTIONS} connections with {WINDOW} in flight, {PAYLOAD_BYTES} B, one offline subscriber",
        rows=rows,
        notes=(
            *ratio_notes(rows, "rate"),
            kept_note,
            f"The load generator alone does {capacity:,.0f} messages/s against a sink that only answers.",
        ),
    )


def generator_capacity() -> float:
    """Messages/s of the generator when the server costs almost nothing; it must not be what the figures show."""
    with Sink() as sink:
        return generate(_task(sink.port, _SINK_SECONDS)).rate


def measure_gateway(seconds: float) -> tuple[Row, str]:
    """The gateway's row, and the sentence on what was on the queue afterwards."""
    with Gateway() as gateway:
        outcome, used_s = measure(gateway, seconds)
        exporter_s, caught_up_s = wait_for_trail(gateway)
        gateway.stop()
        with closing(Engine.open(gateway.data)) as engine:
            kept = engine.queue(_SUBSCRIBER_QUEUE).depth
            waiting = engine.queue(AUDIT_QUEUE).depth
    row = Row(
        subject=gateway.name,
        durable=KEPT_BEFORE_PUBACK,
        measures=(
            *_measures(outcome, used_s),
            Measure(name="CPU of the exporter", value=exporter_s / outcome.messages * 1e6, unit="us/message"),
        ),
    )
    verdict = "all are there" if kept == outcome.messages else f"{outcome.messages - kept:,} ARE MISSING"
    return row, (
        f"On the queue afterwards: {kept:,} of {outcome.messages:,} acknowledged messages, {verdict}; "
        f"the trail was complete {caught_up_s:.1f} s after the load, {waiting} batches left."
    )


def measure_peer(server: Server, seconds: float) -> Row:
    with server:
        outcome, used_s = measure(server, seconds)
    return Row(subject=server.name, durable=server.durable, measures=tuple(_measures(outcome, used_s)))


def measure(server: Server, seconds: float) -> tuple[Outcome, float]:
    """The load's outcome, and the CPU seconds that the server used for it."""
    leave_subscription(server.port)
    before_s = cpu_s(server.process_id)
    outcome = generate(_task(server.port, seconds))
    return outcome, cpu_s(server.process_id) - before_s


def wait_for_trail(gateway: Gateway) -> tuple[float, float]:
    """Waits until the exporter has nothing more to do; its CPU seconds so far, and how long it took."""
    exporter = gateway.exporter
    if exporter is None:
        raise BenchmarkError("the gateway's exporter does not run, so the audit is not on")
    started = time.monotonic()
    used_s = cpu_s(exporter)
    while time.monotonic() - started < _TRAIL_WAIT_S:
        time.sleep(_TRAIL_POLL_S)
        before_s, used_s = used_s, cpu_s(exporter)
        if used_s - before_s < _IDLE_SHARE * _TRAIL_POLL_S:
            break
    return used_s, time.monotonic() - started


def _task(port: int, seconds: float) -> Task:
    return Task(port=port, seconds=seconds, connections=CONNECTIONS, window=WINDOW, payload_bytes=PAYLOAD_BYTES, qos=1)


def _measures(outcome: Outcome, used_s: float) -> Iterator[Measure]:
    yield Measure(name="rate", value=outcome.rate, unit="messages/s")
    yield from latency_measures("PUBACK", outcome.acknowledgement)
    yield Measure(name="CPU", value=used_s / outcome.messages * 1e6, unit="us/message")
