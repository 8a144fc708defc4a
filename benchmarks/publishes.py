"""PUBLISHes that cost more than others: one in flight on each connection, to a new topic, with ten copies to keep."""

from collections.abc import Callable
from typing import Final

from benchmarks.figures import Measure, Report, Row, ratio_notes
from benchmarks.load.task import Task, generate, retain
from benchmarks.load.wire import leave_subscription
from benchmarks.servers import KEPT_BEFORE_PUBACK, Server, cpu_s, each_server

NAME: Final = "publishes"
COPIES: Final = 10
_CONNECTIONS: Final = 20
_WINDOW: Final = 100
_ONE_EACH: Final = 50
_PAYLOAD_BYTES: Final = 64
#: New topics for each second of the measurement, up to the most: a client may name 60,000 in a minute.
_TOPICS_A_SECOND: Final = 5_000
_MOST_TOPICS: Final = 50_000
#: PUBLISHes to new topics before anything is counted.
_FIRST_TOPICS: Final = 500


def one_each(server: Server, seconds: float) -> tuple[int, float]:
    """Fifty publishers that each wait for PUBACK: messages, and the seconds that they took."""
    outcome = generate(
        Task(port=server.port, seconds=seconds, connections=_ONE_EACH, window=1, payload_bytes=_PAYLOAD_BYTES)
    )
    return outcome.messages, outcome.elapsed_s


def new_topics(server: Server, seconds: float) -> tuple[int, float]:
    """One publisher, whose messages have a topic each."""
    count = min(_MOST_TOPICS, int(seconds * _TOPICS_A_SECOND))
    task = Task(
        port=server.port,
        count=count,
        first=_FIRST_TOPICS,
        window=_WINDOW,
        payload_bytes=_PAYLOAD_BYTES,
        topic="bench/new",
        retained=False,
    )
    return count, retain(task)


def many_in_flight(server: Server, seconds: float) -> tuple[int, float]:
    """The publishers of qos1_offline."""
    outcome = generate(
        Task(
            port=server.port,
            seconds=seconds,
            connections=_CONNECTIONS,
            window=_WINDOW,
            payload_bytes=_PAYLOAD_BYTES,
        )
    )
    return outcome.messages, outcome.elapsed_s


Load = Callable[[Server, float], tuple[int, float]]
#: The load of each case, and the subscribers that are away.
_CASES: Final[dict[str, tuple[Load, int]]] = {
    f"{_ONE_EACH} publishers, one in flight each": (one_each, 1),
    "a new topic each": (new_topics, 1),
    f"{COPIES} copies each": (many_in_flight, COPIES),
}


def run(seconds: float) -> Report:
    """Measures each case on the gateway and on mosquitto, each time afresh."""
    rows = [measure(server, case, seconds) for case in _CASES for server in each_server()]
    return Report(
        name=NAME,
        title=f"PUBLISH of QoS 1, {_PAYLOAD_BYTES} B, kept for subscribers that are away",
        rows=tuple(rows),
        notes=tuple(ratio_notes(tuple(rows), "rate")),
    )


def measure(server: Server, case: str, seconds: float) -> Row:
    load, subscribers = _CASES[case]
    for number in range(subscribers):
        leave_subscription(server.port, f"offline-subscriber-{number}")
    before_s = cpu_s(server.process_id)
    messages, elapsed_s = load(server, seconds)
    used_s = cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        case=case,
        durable=server.durable or KEPT_BEFORE_PUBACK,
        measures=(
            Measure(name="rate", value=messages / elapsed_s, unit="messages/s"),
            Measure(name="CPU", value=used_s / messages * 1e6, unit="us/message"),
        ),
    )
