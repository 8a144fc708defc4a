"""What a PUBLISH costs when much is kept: sessions, subscriptions, topics, retained messages; memory; the start."""

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.task import Task, generate, retain
from benchmarks.load.wire import connect, disconnect, leave_subscription, receive_exactly, subscribe_packet
from benchmarks.servers import IN_MEMORY, KEPT_BEFORE_PUBACK, Gateway, Mosquitto, Server, cpu_s, peers, resident_mib
from gateway.mqtt import packets

NAME: Final = "growth"
SESSIONS: Final = 10_000
FILTERS: Final = 10
TOPICS: Final = 100_000
RETAINED: Final = 1_000_000
_WINDOW: Final = 100
_CONNECTIONS: Final = 20
#: So long for each measurement of the cost, at most.
_MOST_S: Final = 3.0
#: A server that has not taken all topics in such a time has failed, seconds.
_MOST_ADDING_S: Final = 3_600.0
#: One publisher names all topics.
CONFIGURATION: Final = "[mqtt]\nnew_topic_rate = 0\n"


def add_sessions(port: int, sessions: int) -> None:
    """Sessions that stay, without a connection, each with filters that match nothing that is published."""
    for number in range(sessions):
        client = connect(port, f"away-{number}", clean_session=False)
        filters = [f"plant/{number}/{place}/{'+' if place < FILTERS // 3 else 'state'}" for place in range(FILTERS)]
        client.sendall(subscribe_packet(1, [(each, 1) for each in filters]))
        receive_exactly(client, len(packets.suback(1, bytes([1] * FILTERS))))
        disconnect(client)


def add_topics(port: int, topics: int) -> None:
    """PUBLISHes to nobody."""
    retain(Task(port=port, seconds=_MOST_ADDING_S, count=topics, window=_WINDOW, topic="seen", retained=False))


def add_retained(port: int, topics: int) -> None:
    retain(Task(port=port, seconds=_MOST_ADDING_S, count=topics, window=_WINDOW, topic="kept"))


def run(seconds: float) -> Report:
    """Measures the gateway and mosquitto; with less than ten seconds each number is a tenth, or a hundredth."""
    share = 1 if seconds >= 10 else 10 if seconds >= 1 else 100
    with Gateway(CONFIGURATION) as gateway:
        rows = list(measure(gateway, seconds, share))
        rows.append(restarted(gateway, seconds))
    for persistence in peers(IN_MEMORY):
        with Mosquitto(persistence) as mosquitto:
            rows += measure(mosquitto, seconds, share)
    return Report(
        name=NAME,
        title=f"QoS 1 kept for an offline subscriber, {_CONNECTIONS} connections with {_WINDOW} in flight, beside more",
        rows=tuple(rows),
        notes=(
            "The steps follow each other on one server, so each has all that the steps before it have left.",
            "The aim is at most 1.3 times the cost of the first step.",
        ),
    )


def measure(server: Server, seconds: float, share: int) -> Iterator[Row]:
    """One row for each step; `share` divides all numbers."""
    steps: tuple[tuple[str, Callable[[int, int], None] | None, int], ...] = (
        ("one session", None, 0),
        (f"{SESSIONS // share:,} sessions, {FILTERS} filters each", add_sessions, SESSIONS // share),
        (f"{TOPICS // share:,} topics", add_topics, TOPICS // share),
        (f"{RETAINED // share:,} retained messages", add_retained, RETAINED // share),
    )
    leave_subscription(server.port)
    for case, add, number in steps:
        if add is not None:
            add(server.port, number)
        yield cost(server, case, seconds)


def restarted(gateway: Gateway, seconds: float) -> Row:
    """The gateway again, with all that it had."""
    start_s = gateway.restart()
    row = cost(gateway, "after a restart", seconds)
    return Row(
        subject=row.subject,
        case=row.case,
        durable=row.durable,
        measures=(*row.measures, Measure(name="start", value=start_s, unit="s")),
    )


def cost(server: Server, case: str, seconds: float) -> Row:
    """Memory is that of before the load, which leaves its messages."""
    memory_mib, before_s = resident_mib(server.process_id), cpu_s(server.process_id)
    outcome = generate(Task(port=server.port, seconds=min(seconds, _MOST_S), connections=_CONNECTIONS, window=_WINDOW))
    used_s = cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        case=case,
        durable=server.durable or KEPT_BEFORE_PUBACK,
        measures=(
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
            Measure(name="CPU", value=used_s / outcome.messages * 1e6, unit="us/message"),
            Measure(name="memory", value=memory_mib, unit="MiB"),
        ),
    )
