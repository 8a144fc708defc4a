"""What is asked after each cut: the store, the trail and the balance by their commands; the clients by their ledger."""

from collections import Counter

from tests.crash_matrix.ledger import ACKNOWLEDGED, DELIVERED, SENT
from tests.crash_matrix.stage import Stage
from tests.trail_lines import trail_records

#: Commands that must find nothing wrong on the stopped gateway's folder.
COMMANDS = (("queue", "verify"), ("balance",), ("audit", "verify"))
#: The message behind which nothing more can come.
LAST = b"the last one"


def mend_and_ask(stage: Stage) -> None:
    """The gateway starts on what is left, its clients go on, and it stops; then each question."""
    stage.mend()
    ask(stage)


def ask(stage: Stage) -> None:
    """Each question, with the whole of what was said where the answer is wrong."""
    for command in COMMANDS:
        ended = stage.command(*command, "--data", str(stage.data))
        assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout}{ended.stderr}\n{stage.gateway.log}"
    _check_trail(stage)
    assert "Traceback" not in stage.gateway.log, stage.gateway.log


def _check_trail(stage: Stage) -> None:
    """The trail tells of each PUBLISH that was acknowledged; of flows that remove segments it tells the rest."""
    trail = stage.data / "trail"
    if not list(trail.glob("000000000001-*")):
        return
    accepted: Counter[str] = Counter()
    records = trail_records(trail)
    accepted.update(record["client"] for record in records if record["kind"] == "accepted" and record["qos"])
    clients = {entry.who for entry in stage.ledger.of("connected")}
    acknowledged = Counter(entry.who for entry in stage.ledger.of(ACKNOWLEDGED) if entry.who in clients)
    assert acknowledged <= accepted, f"acknowledged {acknowledged}, in the trail {accepted}"


def settle_messages(stage: Stage, subscribers: tuple[str, ...] = ("subscriber",), topic: str = "t/last") -> None:
    """Publishers go on with what they had begun; each subscriber takes all that waits for it. Then they count."""
    finish(stage)
    with stage.connected("the last", clean=True) as last:
        last.publish(topic, LAST, 1)
    for name in subscribers:
        with stage.connected(name) as subscriber:
            subscriber.receive_until(LAST)
            subscriber.disconnect()
        check_deliveries(stage, name)


def finish(stage: Stage) -> None:
    """Publishers go on with what they had begun, until it is acknowledged."""
    for name in sorted({entry.who for entry in stage.ledger.of(SENT)}):
        if stage.ledger.in_flight(name):
            with stage.connected(name) as publisher:
                publisher.disconnect()


def check_deliveries(stage: Stage, *subscriber: str, in_order: bool = True) -> None:
    """What was sent at QoS 1 has arrived, at QoS 2 once; nothing else has; and the order is that of sending."""
    counts = stage.ledger.delivered(*subscriber)
    acknowledged = {entry.payload for entry in stage.ledger.of(ACKNOWLEDGED)}
    del counts[LAST]
    sent = [entry for entry in stage.ledger.of(SENT) if entry.payload != LAST]
    for entry in sent:
        least = 1 if entry.qos else 0
        most = {0: 1, 1: 1_000, 2: 1}[entry.qos]
        found = counts.pop(entry.payload, 0)
        assert least <= found <= most, f"{entry} came {found} times (acknowledged: {sorted(acknowledged)})"
    assert not counts, f"nobody sent {counts}"
    if not in_order:
        return
    first = list(dict.fromkeys(entry.payload for entry in stage.ledger.of(DELIVERED) if entry.who in subscriber))
    of_sender = [entry.payload for entry in sent if entry.payload in first]
    assert [payload for payload in first if payload != LAST] == of_sender, "another order"
