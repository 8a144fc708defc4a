"""SUBSCRIBE to many retained messages: when SUBACK comes, half of them, and the last; each counts from SUBSCRIBE."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from benchmarks.figures import Measure, Report, Row, ratio_notes
from benchmarks.load.task import Task, receive_retained, retain
from benchmarks.servers import Server, cpu_s, each_server

NAME: Final = "retained"
MOST_TOPICS: Final = 10_000
#: So many topics for each second of the measurement, up to the most.
_TOPICS_A_SECOND: Final = 2_000
_PAYLOAD_BYTES: Final = 64
_WINDOW: Final = 100

#: QoS of the subscription, whether the session ends with its connection, and what the gateway has on the disk.
_CASES: Final = {
    "QoS 0": (0, True, "what is retained"),
    "QoS 1": (1, True, "what is retained"),
    "QoS 1, a session that stays": (1, False, "what is retained, the subscription, and the session's copies"),
}


def run(seconds: float) -> Report:
    """Measures each case on the gateway and on mosquitto, with fewer topics in less than five seconds."""
    topics = min(MOST_TOPICS, max(_WINDOW, int(seconds * _TOPICS_A_SECOND)))
    rows = [row for server in each_server() for row in measure(server, topics)]
    return Report(
        name=NAME,
        title=f"SUBSCRIBE to {topics:,} retained messages of {_PAYLOAD_BYTES} B, one on each topic",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "rate")),
    )


def measure(server: Server, topics: int) -> Iterator[Row]:
    """Retains the messages, then subscribes to all of them in each case. BenchmarkError where one is missing."""
    kept = Task(port=server.port, count=topics, window=_WINDOW, payload_bytes=_PAYLOAD_BYTES, topic="kept")
    retain(kept)
    for case, (qos, ends, durable) in _CASES.items():
        before_s = cpu_s(server.process_id)
        arrival = receive_retained(replace(kept, qos=qos, clean=ends))
        used_s = cpu_s(server.process_id) - before_s
        yield Row(
            subject=server.name,
            case=case,
            durable=server.durable or durable,
            measures=(
                Measure(name="SUBACK", value=arrival.suback_ms, unit="ms"),
                Measure(name="half", value=arrival.way.p50_ms, unit="ms"),
                Measure(name="last", value=arrival.way.max_ms, unit="ms"),
                Measure(name="rate", value=topics / arrival.elapsed_s, unit="messages/s"),
                Measure(name="CPU", value=used_s / topics * 1e6, unit="us/message"),
            ),
        )
