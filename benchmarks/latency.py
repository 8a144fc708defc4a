"""How long a PUBACK takes: one publisher that waits for each, and 20,000 messages a second over 20 connections.

There is one offline subscriber again, so that the gateway stores every message before it answers.
"""

from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Task, generate
from benchmarks.load.wire import leave_subscription
from benchmarks.rabbitmq import each_server_and_rabbitmq
from benchmarks.servers import KEPT_BEFORE_PUBACK, Server

NAME: Final = "latency"
RATE: Final = 20_000
CONNECTIONS: Final = 20
#: Wide enough that the rate holds through a pause of a tenth of a second.
_WINDOW: Final = 200

_CASES: Final = {
    "one publisher, window 1": (1, 1, 0),
    f"{RATE:,}/s over {CONNECTIONS} connections": (CONNECTIONS, _WINDOW, RATE),
}


def run(seconds: float) -> Report:
    """Measures both cases on the gateway, mosquitto and RabbitMQ."""
    rows = [measure(server, case, seconds) for case in _CASES for server in each_server_and_rabbitmq()]
    return Report(
        name=NAME,
        title="QoS 1, PUBLISH to PUBACK, 64 B, one offline subscriber",
        rows=tuple(rows),
        notes=(
            *ratio_notes(tuple(rows), "PUBACK p50"),
            "At the fixed rate latency counts from the moment at which a message was due. `sent late` is how late the "
            "generator itself was: its own share of the p50.",
        ),
    )


def measure(server: Server, case: str, seconds: float) -> Row:
    connections, window, rate = _CASES[case]
    leave_subscription(server.port)
    task = Task(port=server.port, seconds=seconds, connections=connections, window=window, rate=rate)
    outcome = generate(task)
    late = (Measure(name="sent late p50", value=outcome.late.p50_ms, unit="ms"),) if rate else ()
    return Row(
        subject=server.name,
        case=case,
        durable=server.durable or KEPT_BEFORE_PUBACK,
        measures=(
            *latency_measures("PUBACK", outcome.acknowledgement),
            *late,
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
        ),
    )
