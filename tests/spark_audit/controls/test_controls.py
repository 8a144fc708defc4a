"""Each control finds its planted fault, and leaves alone what is right and what only looks like the fault."""

from collections.abc import Callable

import pytest

from spark_audit.controls import (
    conservation,
    deliveries,
    incoming_exchanges,
    integrity,
    operations,
    passages,
    retained,
    timeliness,
)
from spark_audit.controls.control import Control
from spark_audit.report import figures

SUM, OTHER_SUM = "ab" * 32, "cd" * 32
SECOND = 1_000_000
AT = 1_795_158_000_000_000
PUBLISH = {"packet_type": 3, "direction": "in", "client": "boiler", "session_epoch": 1}
EMPTY = {"retain": True, "payload_bytes": 0, "topic": "a/b"}
DELETE = {"command": "DeletePub", "topic": "a/b", "payload_bytes": 0}
TARGET = {"queue": "STOCK", "destination": "CENTRAL"}


def _qos1(story) -> set[int]:
    """Confirmed and put, put twice (at least once), refused, dead-lettered: right. Confirmed alone: the fault."""
    story.published(1, 1), story.put(1, 1)
    story.accepted(2, 1), story.add("refused", **PUBLISH | {"exchange": 2, "reason_code": 3072})
    story.accepted(3, 1), story.add("dead_lettered", **PUBLISH | {"exchange": 3, "reason_code": 2053})
    story.confirmed(4, [1, 3])
    story.accepted(9, 1)  # not confirmed
    story.put(4, 1, session_epoch=7)  # of another session: a near miss
    fault = story.confirmed(4, [4, 4])
    broken = story.confirmed(4, [9, 8], [1, 10**15], [5])
    return {fault, broken}


def _qos2(story) -> set[int]:
    """Completed after one put, and open after PUBREC: right. Completed without, put twice, PUBREC for none: faults."""
    story.accepted(1, 2), story.confirmed(5, [1, 1]), story.put(1, 2), story.confirmed(7, [1, 1])
    story.accepted(2, 2), story.confirmed(5, [2, 2])
    story.published(3, 2)
    doubled = story.put(3, 2)
    story.accepted(4, 2)
    completed = story.confirmed(7, [4, 4])
    for_nothing = story.confirmed(5, [5, 5])
    story.put(6, 1), story.put(6, 1)  # QoS 1 may be put twice
    return {doubled, completed, for_nothing, *_repeated(story)}


def _repeated(story) -> set[int]:
    """Before PUBREL the same again, and another told as one: right. Of nothing, behind PUBREL, another: faults."""
    told = {"topic": "a/b", "retain": False}
    story.accepted(11, 2, **told), story.repeated(11, "repeat", **told), story.repeated(11, "identifier_reused")
    story.put(11, 2), story.confirmed(7, [11, 11])
    return {
        story.repeated(12, "repeat"),
        story.repeated(11, "repeat", **told),
        (story.accepted(13, 2, **told), story.repeated(13, "repeat", **told | {"payload_sha256": OTHER_SUM}))[1],
        (story.accepted(14, 2, **told), story.repeated(14, "repeat", **told | {"topic": "a/c"}))[1],
    }


def _identifiers(story) -> set[int]:
    """A repeat: right. Another message: told, whatever becomes of the first."""
    story.accepted(1, 2), story.repeated(1, "repeat")
    reused = story.repeated(1, "identifier_reused", payload_sha256=OTHER_SUM)
    story.put(1, 2), story.confirmed(7, [1, 1])
    return {reused}


def _committed(story) -> set[int]:
    """Put, stored or refused before, in the same batch too, and put again after: right. Confirmed first: the faults."""
    story.published(1, 1), story.confirmed(4, [1, 1]), story.put(1, 1)
    story.accepted(2, 2, batch=4), story.confirmed(5, [2, 2], batch=4), story.put(2, 2), story.confirmed(7, [2, 2])
    story.accepted(3, 1), story.add("refused", **PUBLISH | {"exchange": 3}), story.confirmed(4, [3, 3])
    story.confirmed(4, [9, 9])  # never put: another control's
    puback = story.confirmed(4, [4, 5])
    story.published(4, 1)
    pubrec = story.confirmed(5, [6, 6])
    story.accepted(6, 2)
    pubcomp = story.confirmed(7, [6, 6])  # stored, and not put yet
    story.put(6, 2)
    return {puback, pubrec, pubcomp}


def _delivery_qos1(story) -> set[int]:
    """Delivered, dropped, waiting behind none or few, of another lane, of QoS 0: right. Passed over: the fault."""
    lane = {"correlation_id": "52" * 24}
    for number in range(1, 9):
        story.published(number, 0 if number == 4 else 1)
    story.copied(1, 51, **lane), story.delivered(1, 1, 51)
    passed_over = story.copied(2, 52, **lane)
    story.copied(3, 53, **lane), story.add("dropped", message_id=_message(53), reason="expired")
    story.copied(4, 54, **lane)  # of QoS 0: it may have gone with a crash
    story.copied(5, 55, correlation_id="53" * 24)  # another session's, whose client is away
    story.copied(6, 56, **lane), story.delivered(2, 1, 56)
    story.copied(7, 57, **lane)  # one later message alone: a near miss
    story.copied(8, 58, **lane), story.delivered(3, 1, 58)
    return {passed_over, _delivery_in_a_group(story)}


def _delivery_in_a_group(story) -> int:
    """Two members: one that is larger waits, while smaller ones go on: right. One as large as these: the fault."""
    lane, member = {"correlation_id": "54" * 24}, {"client": "c2"}
    for exchange in range(10, 16):
        story.published(exchange, 1, payload_bytes=90 if exchange == 11 else 2)
    story.copied(10, 60, **lane), story.delivered(10, 1, 60)
    story.copied(11, 61, **lane)
    passed_over = story.copied(12, 62, **lane)
    for exchange in (13, 14, 15):
        story.copied(exchange, 50 + exchange, **lane), story.delivered(exchange, 1, 50 + exchange, **member)
    return passed_over


def _delivery_qos2(story) -> set[int]:
    """Before PUBREC, two topics, two sessions, QoS 1 twice: right. Two exchanges, after PUBREC: the faults."""
    story.delivered(1, 2, 100), story.delivered(1, 2, 100, duplicate=True), story.acknowledged(1, 5)
    story.acknowledged(1, 7)
    story.delivered(2, 2, 101), story.delivered(3, 2, 101, topic="a/c")
    story.delivered(1, 2, 101, session_epoch=3)
    story.delivered(4, 1, 102), story.delivered(5, 1, 102)
    story.delivered(6, 2, 103)
    doubled = story.delivered(7, 2, 103)
    repeated = story.delivered(1, 2, 100, duplicate=True)
    return {doubled, repeated}


def _acknowledged(story) -> set[int]:
    """Each packet with its QoS: right. For nothing, too early, of another QoS, in another session: the faults."""
    story.delivered(1, 1, 100), story.acknowledged(1, 4)
    story.delivered(2, 2, 101), story.acknowledged(2, 5), story.acknowledged(2, 7)
    story.delivered(3, 1, 102), story.delivered(4, 2, 103)
    early = story.acknowledged(6, 4)
    story.delivered(6, 1, 104)
    return {
        early,
        story.acknowledged(3, 5),
        story.acknowledged(4, 4),
        story.acknowledged(5, 4),
        story.acknowledged(1, 4, session_epoch=9),
    }


def _payload(story) -> set[int]:
    """Accepted, put and delivered alike, and a delivery of an application's message: right. Another sum: the faults."""
    story.published(1, 1), story.copied(1, 50)
    story.delivered(1, 1, 50, payload_sha256=SUM, payload_bytes=2)
    story.copied(999, 51), story.delivered(2, 1, 51, payload_sha256=OTHER_SUM, payload_bytes=9)
    story.accepted(2, 1)
    put_otherwise = story.put(2, 1, payload_sha256=OTHER_SUM)
    story.put(3, 1), story.copied(3, 52)
    delivered_otherwise = story.delivered(3, 1, 52, payload_sha256=OTHER_SUM, payload_bytes=2)
    delivered_longer = story.delivered(4, 1, 50, payload_sha256=SUM, payload_bytes=3)
    return {put_otherwise, delivered_otherwise, delivered_longer}


def _conservation(story) -> set[int]:
    """Open QoS 2, a will, dead letters put back, the cut last batch: right. What appears or vanishes: the faults."""
    story.published(1, 1)
    story.accepted(2, 2)
    story.add("put", **PUBLISH | {"packet_type": 1})
    story.copied(1, 50), story.delivered(1, 1, 50)
    story.received(60, "aa"), story.delivered(3, 1, 60)
    story.add("redriven", message_id=_message(70), dead_letter_id=_message(69))
    story.add("redriven", message_id=_message(71), dead_letter_id=_message(68)), story.delivered(4, 1, 71)
    unaccepted = story.put(3, 1)
    vanished = story.accepted(4, 1)
    uncopied = story.delivered(2, 1, 51)
    twice = story.accepted(1, 1)
    back_again = story.add("redriven", message_id=_message(72), dead_letter_id=_message(69))
    story.accepted(5, 1)  # in the last batch
    return {unaccepted, vanished, uncopied, twice, back_again}


def _retained(story) -> set[int]:
    """Deleted in the same commit, copied before, kept anew, refused, another stream: right. Else: the faults."""
    story.published(1, 1, retain=True, topic="a/b"), story.copied(1, 50, is_retained=True, topic="a/b")
    story.accepted(2, 1, batch=9), story.put(9, 1, batch=9, message_id=_message(20), **DELETE | {"retain": True})
    story.put(2, 1, batch=9, message_id=_message(21), **EMPTY)
    story.copied(30, 51, is_retained=True, topic="a/b")  # of an application's: its topic space is not known
    story.published(3, 1, retain=True, topic="a/b", message_id=_message(30))
    story.copied(30, 52, is_retained=True, topic="a/b")  # retained anew, after the deletion
    story.published(4, 1, retain=True, topic="a/c", message_id=_message(31))
    story.put(9, 1, message_id=_message(32), **DELETE | {"topic": "a/c"})
    story.add("refused", message_id=_message(32), reason_code=3081)
    story.copied(31, 53, is_retained=True, topic="a/c")
    story.published(5, 1, retain=True, topic="a/d", message_id=_message(33), queue="OTHER.STREAM")
    story.put(9, 1, message_id=_message(34), **DELETE | {"topic": "a/d"})
    story.copied(33, 54, is_retained=True, topic="a/d")
    story.copied(1, 55, is_retained=False, topic="a/b")  # not a retained copy
    story.published(8, 1, retain=True, topic="a/f", message_id=_message(45))
    story.put(9, 1, batch=80, message_id=_message(46), **DELETE | {"topic": "a/f"})
    story.copied(45, 57, batch=80, is_retained=True, topic="a/f")  # the broker made it before it came to the DeletePub
    copied_after = story.copied(1, 56, is_retained=True, topic="a/b")
    without = story.put(6, 1, message_id=_message(40), **EMPTY)
    of_another = story.put(7, 2, batch=100, message_id=_message(42), **EMPTY | {"topic": "a/e"})
    story.put(9, 1, batch=100, message_id=_message(43), **DELETE | {"topic": "a/e"})  # behind it
    return {copied_after, without, of_another}


def _passages(story) -> set[int]:
    """Another queue, queue manager or message: right, and so is a refusal after the put. The same again: the faults."""
    story.forwarded(1), story.forwarded(2)
    story.add("dead_lettered", message_id=_message(1), reason_code=3072)
    story.received(70, "aa"), story.received(71, "bb"), story.received(72, "aa", queue="OTHER")
    story.received(73, "aa", queue_manager="QM2_2026")
    return {story.forwarded(2), story.received(74, "bb")}


def _order(story) -> set[int]:
    """Of two clients, for two targets, with a dead letter between: any order is right. Of one client: the fault."""
    for number in (1, 2, 3, 4):
        story.put(number, 1, **TARGET)
    story.put(5, 1, **TARGET | {"client": "cooler"}), story.put(6, 1, **TARGET | {"destination": "WEST"})
    story.forwarded(6), story.forwarded(5)
    story.forwarded(1)
    overtakes = story.forwarded(4)
    story.add("dead_lettered", message_id=_message(2), reason_code=2030)
    story.forwarded(3)
    return {overtakes}


def _reasons(story) -> set[int]:
    """With names, reasons and codes: right. Without: the faults."""
    story.add("put", dropped_fields=[["usr", "no place in MQRFH"]])
    story.add("put", dropped_fields=[])
    story.add("refused", reason_code=3072)
    story.add("dropped", reason="expired")
    return {
        story.add("put", dropped_fields=[["usr", "no place"], ["mcd", " "]]),
        story.add("put", dropped_fields=[["usr"]]),
        story.add("refused"),
        story.add("dead_lettered", reason_code=0),
        story.add("dead_lettered", reason_code=9999),
        story.add("dropped", reason=""),
    }


def _timeliness(story) -> set[int]:
    """At the limit, after a reconnection, not yet too late: right. One second more: the faults."""
    after = {"at_us": AT + 61 * SECOND}
    in_time = {"at_us": AT + 60 * SECOND}
    for exchange in (1, 2):
        story.accepted(exchange, 1, at_us=AT)
    story.confirmed(4, [1, 1], **in_time)
    late_puback = story.confirmed(4, [2, 2], **after)
    story.session("opened", at_us=AT)
    for number in (50, 51, 52):
        story.copied(1, number, at_us=AT)
    story.delivered(1, 1, 50, **in_time)
    late_delivery = story.delivered(2, 1, 51, **after)
    story.session("resumed", at_us=AT + 3_000 * SECOND), story.delivered(3, 1, 52, at_us=AT + 3_060 * SECOND)
    for number in (61, 62, 63):
        story.put(number, 1, at_us=AT, **TARGET)
    waiting = story.put(64, 1, at_us=AT, **TARGET)
    story.put(65, 1, at_us=AT + SECOND, **TARGET)
    story.add("dead_lettered", message_id=_message(63), at_us=AT)
    story.forwarded(61, at_us=AT + 3_600 * SECOND)
    late_passage = story.forwarded(62, at_us=AT + 3_601 * SECOND)
    return {late_puback, late_delivery, waiting, late_passage}


def _clock(story) -> set[int]:
    """Forward, the same, a little back, back and told: right. Set back: the fault."""
    story.started(at_us=AT), story.started(at_us=AT), story.started(at_us=AT - 5 * SECOND)
    story.started(at_us=AT + 9 * SECOND)
    fault = story.started(at_us=AT)
    story.started(at_us=AT + 99 * SECOND), story.started(at_us=AT + 60 * SECOND)  # told: the clock has settled there
    story.add("clock_jumped", event="settled", jump_us=-39 * SECOND, at_us=AT + 61 * SECOND)
    return {fault}


def _acts(story) -> set[int]:
    """Whatever an operator did is told, and nothing else."""
    story.dropped_by_operator("Q", 1)
    return {story.operated("CLEAR QLOCAL", "Q", 1), story.operated("PURGE CHANNEL", "", 2)}


def _destroyed(story) -> set[int]:
    """As many told as counted, of several units too, a session's and what was only taken: right. Others: the faults."""
    story.operated("CLEAR QLOCAL", "Q", 2, at_us=AT), story.dropped_by_operator("Q", 2, at_us=AT)
    story.operated("queue clear", "Q", 1, at_us=AT + 1), story.dropped_by_operator("Q", 1, at_us=AT + 1)
    story.operated("PURGE CHANNEL", "", 2), story.operated("queue get", "Q", 1)
    story.operated("DELETE QLOCAL", "R", 0)
    story.add("dropped", message_id=_message(1), queue="Q", reason="the message expired")
    one_is_missing = story.operated("DELETE QLOCAL PURGE", "S", 2, at_us=AT)
    story.dropped_by_operator("S", 1, at_us=AT)
    without_an_act = story.dropped_by_operator("T", 1)
    return {one_is_missing, without_an_act}


def _changes(story) -> set[int]:
    """Started again with the same, and another gateway with others: right. Something else: told."""
    story.started(), story.started()
    table = story.started(table_version="2")
    configuration = story.started(table_version="2", configuration_sha256="0b" * 32)
    story.started(table_version="2", configuration_sha256="0b" * 32, gateway="f" * 24)
    return {table, configuration}


def _table(story) -> set[int]:
    """By the table of the start before: right. By another, or by none that is named: the faults."""
    served = {"conversion": "service", "message_id": _message(1)}
    story.started(), story.add("put", **served, table_version="1")
    story.started(table_version="2"), story.add("put", **served, table_version="2")
    story.add("put", message_id=_message(2), conversion="packet_to_header")
    return {story.add("put", **served, table_version="1"), story.add("put", **served)}


def _message(number: int) -> str:
    return f"52464842{'0a' * 12}{number:016x}"


CASES: dict[str, tuple[Control, Callable[..., set[int]]]] = {
    "qos1": (incoming_exchanges.AT_LEAST_ONCE, _qos1),
    "qos2": (incoming_exchanges.EXACTLY_ONCE, _qos2),
    "identifiers used again": (incoming_exchanges.IDENTIFIERS, _identifiers),
    "committed": (incoming_exchanges.COMMITTED, _committed),
    "delivery, QoS 1": (deliveries.AT_LEAST_ONCE.with_values({"overtaken_by_messages": 2}), _delivery_qos1),
    "delivery, QoS 2": (deliveries.EXACTLY_ONCE, _delivery_qos2),
    "acknowledged": (deliveries.ACKNOWLEDGED, _acknowledged),
    "payload": (deliveries.PAYLOAD, _payload),
    "conservation": (conservation.CONTROL, _conservation),
    "retained": (retained.CONTROL, _retained),
    "passages": (passages.CONTROL, _passages),
    "order of passages": (passages.ORDER, _order),
    "reasons": (integrity.REASONS, _reasons),
    "timeliness": (timeliness.CONTROL, _timeliness),
    "clock": (timeliness.CLOCK, _clock),
    "changes": (operations.CHANGES, _changes),
    "operators' acts": (operations.ACTS, _acts),
    "destroyed by operators": (operations.DESTROYED, _destroyed),
    "table in force": (operations.OTHER_TABLE, _table),
}


@pytest.mark.parametrize("case", CASES)
def test_a_control_finds_its_planted_faults_and_nothing_else(story, read, case: str) -> None:
    control, plant = CASES[case]
    faults = plant(story)
    found = read(story.trail.write()).found(control)
    assert {row["sequence"] for row in found} == faults
    assert all(row["subject"] and row["detail"] for row in found)


def test_the_balances_count_every_exchange_and_every_copy_once(story, read) -> None:
    story.published(1, 1), story.put(1, 1)
    story.accepted(2, 1), story.add("refused", **PUBLISH | {"exchange": 2})
    story.accepted(3, 2)
    story.copied(1, 50), story.copied(1, 51), story.copied(1, 52)
    story.delivered(1, 1, 50), story.delivered(2, 1, 50)
    story.received(70, "aa"), story.received(71, "bb"), story.delivered(3, 1, 71)
    story.add("dropped", message_id=_message(51), reason="expired")
    story.add("put", message_id=_message(60), source_message_id=_message(50), queue="Q", conversion="service")
    balances = figures.balances(read(story.trail.write()).engine)
    exchanges = {(row.group, row.what): row.count for row in balances.exchanges}
    copies = {(row.group, row.what): row.count for row in balances.copies}
    assert exchanges == {("1", "put"): 1, ("1", "refused"): 1, ("2", "pending"): 1}
    assert copies == {
        ("Q", "delivered"): 1,
        ("Q", "dropped"): 1,
        ("Q", "pending"): 1,
        ("SUBSCRIBER", "delivered"): 1,
        ("SUBSCRIBER", "pending"): 1,
    }


def test_the_balance_of_passages_counts_what_was_put_for_a_target_once(story, read) -> None:
    for exchange in (1, 2, 3, 4):
        story.published(exchange, 1, **TARGET)
    story.published(5, 1)
    story.forwarded(1), story.forwarded(2)
    story.add("dead_lettered", message_id=_message(2), reason_code=3072)  # refused by the broker after the put
    story.add("dead_lettered", message_id=_message(3), reason_code=2030)
    rows = figures.balances(read(story.trail.write()).engine).passages
    ends = {row.what: row.count for row in rows if row.group == "CENTRAL"}
    assert ends == {"forwarded": 2, "dead_lettered": 1, "pending": 1}
    assert len(rows) == len(ends)
