"""One publisher to fifty subscribers, all connected: how many copies a second, and what one costs the server."""

from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Task, generate
from benchmarks.servers import Server, cpu_s, each_server

NAME: Final = "fan_out"
SUBSCRIBERS: Final = 50
WINDOW: Final = 100
PAYLOAD_BYTES: Final = 64
#: All sessions end with their connection, so that copies stay in memory.
_DURABLE: Final = (
    "nothing; the audit notes follow soon",
    "the audit notes, synced before PUBACK; the copies stay in memory, as their sessions end with their connections",
)


def run(seconds: float) -> Report:
    """Measures the gateway and mosquitto at QoS 0 and 1, each time afresh."""
    rows = [measure(server, qos, seconds) for qos in range(len(_DURABLE)) for server in each_server()]
    return Report(
        name=NAME,
        title=f"one publisher to {SUBSCRIBERS} subscribers, all connected, {WINDOW} under way, {PAYLOAD_BYTES} B",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "rate")),
    )


def measure(server: Server, qos: int, seconds: float) -> Row:
    """`rate` and `CPU` count copies."""
    task = Task(
        port=server.port,
        seconds=seconds,
        window=WINDOW,
        payload_bytes=PAYLOAD_BYTES,
        qos=qos,
        subscribers=SUBSCRIBERS,
    )
    before_s = cpu_s(server.process_id)
    outcome = generate(task)
    used_s = cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        case=f"QoS {qos}",
        durable=server.durable or _DURABLE[qos],
        measures=(
            Measure(name="rate", value=outcome.delivered / outcome.elapsed_s, unit="copies/s"),
            Measure(name="CPU", value=used_s / outcome.delivered * 1e6, unit="us/copy"),
            *latency_measures("way", outcome.way),
        ),
    )
