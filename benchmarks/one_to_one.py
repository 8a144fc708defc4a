"""One publisher and one subscriber, both connected, 100 messages under way, at each QoS.

Both sessions end with their connection. So the gateway keeps the copies in memory, and syncs the audit notes.
"""

from typing import Final

from benchmarks.figures import Measure, Report, Row, latency_measures, ratio_notes
from benchmarks.load.task import Task, generate
from benchmarks.rabbitmq import each_server_and_rabbitmq
from benchmarks.servers import Server, cpu_s, each_server

NAME: Final = "one_to_one"
WINDOW: Final = 100
PAYLOAD_BYTES: Final = 64
#: Both sessions end with their connection, so that copies stay in memory.
_NOTE: Final = "the audit note, synced before {}; the copy stays in memory, as its session ends with the connection"
_DURABLE: Final = ("nothing; the audit note follows soon", _NOTE.format("PUBACK"), _NOTE.format("PUBCOMP"))


def run(seconds: float) -> Report:
    """Measures the gateway and mosquitto at QoS 0, 1 and 2, each time afresh, and RabbitMQ, which has no QoS 2."""
    servers = {0: each_server_and_rabbitmq, 1: each_server_and_rabbitmq, 2: each_server}
    rows = [measure(server, qos, seconds) for qos, each in servers.items() for server in each()]
    return Report(
        name=NAME,
        title=f"publisher to subscriber, both connected, {WINDOW} under way, {PAYLOAD_BYTES} B",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "rate")),
    )


def measure(server: Server, qos: int, seconds: float) -> Row:
    before_s = cpu_s(server.process_id)
    task = Task(port=server.port, seconds=seconds, window=WINDOW, payload_bytes=PAYLOAD_BYTES, qos=qos, subscribers=1)
    outcome = generate(task)
    used_s = cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        case=f"QoS {qos}",
        durable=server.durable or _DURABLE[qos],
        measures=(
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
            *latency_measures("way", outcome.way),
            Measure(name="CPU", value=used_s / outcome.messages * 1e6, unit="us/message"),
        ),
    )
