"""Latency against load: how long a PUBACK takes at rates from idle to more than the server can do."""

from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Task, generate
from benchmarks.load.wire import leave_subscription
from benchmarks.servers import KEPT_BEFORE_PUBACK, Server, each_server

NAME: Final = "rates"
RATES: Final = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000)
CONNECTIONS: Final = 20
#: Wide enough that the rate holds through a pause of a tenth of a second.
_WINDOW: Final = 200


def run(seconds: float) -> Report:
    """Measures each rate on the gateway and on mosquitto, each time afresh."""
    rows = [measure(server, rate, seconds) for rate in RATES for server in each_server()]
    return Report(
        name=NAME,
        title=f"latency against load: QoS 1, PUBLISH to PUBACK, 64 B, {CONNECTIONS} connections, offline subscriber",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "PUBACK p50")),
    )


def measure(server: Server, rate: int, seconds: float) -> Row:
    leave_subscription(server.port)
    task = Task(port=server.port, seconds=seconds, connections=CONNECTIONS, window=_WINDOW, rate=rate)
    outcome = generate(task)
    return Row(
        subject=server.name,
        case=f"{rate:,}/s",
        durable=server.durable or KEPT_BEFORE_PUBACK,
        measures=(
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
            *latency_measures("PUBACK", outcome.acknowledgement),
            Measure(name="sent late p50", value=outcome.late.p50_ms, unit="ms"),
        ),
    )
