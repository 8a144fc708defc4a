"""Cost against size: what a message takes whose payload has 16 B to 64 KiB."""

from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Task, generate
from benchmarks.load.wire import leave_subscription
from benchmarks.servers import KEPT_BEFORE_PUBACK, Server, cpu_s, each_server

NAME: Final = "sizes"
SIZES: Final = (16, 64, 256, 1_024, 4_096, 16_384, 65_536)
CONNECTIONS: Final = 20
#: 13 MB of the largest messages are under way.
_WINDOW: Final = 10
#: So much of the time of the other benchmarks: the largest messages fill disks.
_SHARE: Final = 0.5
_MIB: Final = 1_048_576


def run(seconds: float) -> Report:
    """Measures each size on the gateway and on mosquitto, each time afresh."""
    rows = [measure(server, size, _SHARE * seconds) for size in SIZES for server in each_server()]
    return Report(
        name=NAME,
        title=f"cost against size: QoS 1, {CONNECTIONS} connections with {_WINDOW} in flight, offline subscriber",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "CPU")),
    )


def measure(server: Server, size: int, seconds: float) -> Row:
    leave_subscription(server.port)
    before_s = cpu_s(server.process_id)
    task = Task(port=server.port, seconds=seconds, connections=CONNECTIONS, window=_WINDOW, payload_bytes=size)
    outcome = generate(task)
    used_s = cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        case=f"{size:,} B",
        durable=server.durable or KEPT_BEFORE_PUBACK,
        measures=(
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
            Measure(name="payload", value=outcome.rate * size / _MIB, unit="MiB/s"),
            Measure(name="CPU", value=used_s / outcome.messages * 1e6, unit="us/message"),
            *latency_measures("PUBACK", outcome.acknowledgement),
        ),
    )
