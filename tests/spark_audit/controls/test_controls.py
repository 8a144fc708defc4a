"""Each control finds its planted fault, and leaves alone what is right and what only looks like the fault."""

from collections.abc import Callable

import pytest

from spark_audit.controls import conservation, delivery, passages, payload, qos1, qos2, reasons
from spark_audit.controls.control import Control

PUBLISH = {"packet_type": 3, "direction": "in", "client": "boiler", "session_epoch": 1}
COPY = {"conversion": "header_to_header"}
SUM, OTHER_SUM = "ab" * 32, "cd" * 32


def _accepted(trail, exchange: int, qos: int, **fields: object) -> int:
    return trail.add(
        "accepted", **PUBLISH | {"exchange": exchange, "qos": qos, "payload_sha256": SUM, "payload_bytes": 2} | fields
    )


def _put(trail, exchange: int, qos: int, **fields: object) -> int:
    standard = {
        "exchange": exchange,
        "qos": qos,
        "payload_sha256": SUM,
        "payload_bytes": 2,
        "message_id": f"{exchange:048x}",
    }
    return trail.add("put", **PUBLISH | standard | fields)


def _confirmed(trail, packet_type: int, *ranges: list[int], **fields: object) -> int:
    who = {"direction": "in", "client": "boiler", "session_epoch": 1}
    return trail.add("confirmed", **who | {"packet_type": packet_type, "exchanges": list(ranges)} | fields)


def _delivered(trail, exchange: int, qos: int, message: int, **fields: object) -> int:
    standard = {"exchange": exchange, "qos": qos, "message_id": f"{message:048x}", "topic": "a/b"}
    who = {"direction": "out", "client": "screen", "session_epoch": 2, "packet_type": 3}
    return trail.add("delivered", **who | standard | fields)


def _acknowledged(trail, exchange: int, **fields: object) -> int:
    who = {"direction": "out", "client": "screen", "session_epoch": 2, "packet_type": 4}
    return trail.add("acknowledged", **who | {"exchange": exchange} | fields)


def _copied(trail, publication: int, copy: int) -> int:
    return trail.add("put", message_id=f"{copy:048x}", source_message_id=f"{publication:048x}", queue="Q", **COPY)


def _forwarded(trail, message: int) -> int:
    return trail.add("forwarded", message_id=f"{message:048x}", queue="STOCK", queue_manager="QM1_2026")


def _received(trail, message: int, target_message_id: str, **fields: object) -> int:
    standard = {"queue": "SUBSCRIBER", "queue_manager": "QM1_2026", "target_message_id": target_message_id}
    return trail.add("received", message_id=f"{message:048x}", **standard | fields)


def _qos1(trail) -> set[int]:
    """Confirmed and put, put twice (at least once), refused, dead-lettered: right. Confirmed alone: the fault."""
    _accepted(trail, 1, 1), _put(trail, 1, 1), _put(trail, 1, 1)
    _accepted(trail, 2, 1), trail.add("refused", **PUBLISH | {"exchange": 2, "reason_code": 3072})
    _accepted(trail, 3, 1), trail.add("dead_lettered", **PUBLISH | {"exchange": 3, "reason_code": 2053})
    _confirmed(trail, 4, [1, 3])
    _accepted(trail, 9, 1)  # not confirmed
    _put(trail, 4, 1, session_epoch=7)  # of another session: a near miss
    fault = _confirmed(trail, 4, [4, 4])
    broken = _confirmed(trail, 4, [9, 8], [1, 10**15], [5])
    return {fault, broken}


def _qos2(trail) -> set[int]:
    """Completed after one put, and open after PUBREC: right. Completed without, put twice, PUBREC for none: faults."""
    _accepted(trail, 1, 2), _confirmed(trail, 5, [1, 1]), _put(trail, 1, 2), _confirmed(trail, 7, [1, 1])
    _accepted(trail, 2, 2), _confirmed(trail, 5, [2, 2])
    _accepted(trail, 3, 2), _put(trail, 3, 2)
    doubled = _put(trail, 3, 2)
    _accepted(trail, 4, 2)
    completed = _confirmed(trail, 7, [4, 4])
    for_nothing = _confirmed(trail, 5, [5, 5])
    _put(trail, 6, 1), _put(trail, 6, 1)  # QoS 1 may be put twice
    return {doubled, completed, for_nothing}


def _delivery(trail) -> set[int]:
    """Sent again in one exchange, two topics, two sessions, QoS 1 twice: right. QoS 2 in two exchanges: the fault."""
    _delivered(trail, 1, 2, 100), _delivered(trail, 1, 2, 100, duplicate=True), _acknowledged(trail, 1)
    _delivered(trail, 2, 2, 101), _delivered(trail, 3, 2, 101, topic="a/c")
    _delivered(trail, 1, 2, 101, session_epoch=3)
    _delivered(trail, 4, 1, 102), _delivered(trail, 5, 1, 102)
    _delivered(trail, 6, 2, 103)
    doubled = _delivered(trail, 7, 2, 103)
    undelivered = _acknowledged(trail, 8)
    return {doubled, undelivered}


def _payload(trail) -> set[int]:
    """Accepted, put and delivered alike, and a delivery of an application's message: right. Another sum: the faults."""
    _accepted(trail, 1, 1), _put(trail, 1, 1), _copied(trail, 1, 50)
    _delivered(trail, 1, 1, 50, payload_sha256=SUM, payload_bytes=2)
    _copied(trail, 999, 51), _delivered(trail, 2, 1, 51, payload_sha256=OTHER_SUM, payload_bytes=9)
    _accepted(trail, 2, 1)
    put_otherwise = _put(trail, 2, 1, payload_sha256=OTHER_SUM)
    _put(trail, 3, 1), _copied(trail, 3, 52)
    delivered_otherwise = _delivered(trail, 3, 1, 52, payload_sha256=OTHER_SUM, payload_bytes=2)
    delivered_longer = _delivered(trail, 4, 1, 50, payload_sha256=SUM, payload_bytes=3)
    return {put_otherwise, delivered_otherwise, delivered_longer}


def _conservation(trail) -> set[int]:
    """Open QoS 2, a will, the cut last batch: pending. A put, an end and a delivery from nowhere: the faults."""
    _accepted(trail, 1, 1), _put(trail, 1, 1)
    _accepted(trail, 2, 2)
    trail.add("put", **PUBLISH | {"packet_type": 1})
    _copied(trail, 1, 50), _delivered(trail, 1, 1, 50)
    unaccepted = _put(trail, 3, 1)
    vanished = _accepted(trail, 4, 1)
    uncopied = _delivered(trail, 2, 1, 51)
    _accepted(trail, 5, 1)  # in the last batch
    return {unaccepted, vanished, uncopied}


def _passages(trail) -> set[int]:
    """Another queue, queue manager or message: right, and so is a refusal after the put. The same again: the faults."""
    _forwarded(trail, 1), _forwarded(trail, 2)
    trail.add("dead_lettered", message_id=f"{1:048x}", reason_code=3072)
    _received(trail, 70, "aa"), _received(trail, 71, "bb"), _received(trail, 72, "aa", queue="OTHER")
    _received(trail, 73, "aa", queue_manager="QM2_2026")
    return {_forwarded(trail, 2), _received(trail, 74, "bb")}


def _reasons(trail) -> set[int]:
    """With names, reasons and codes: right. Without: the faults."""
    trail.add("put", dropped_fields=[["usr", "no place in MQRFH"]])
    trail.add("put", dropped_fields=[])
    trail.add("refused", reason_code=3072)
    trail.add("dropped", reason="expired")
    return {
        trail.add("put", dropped_fields=[["usr", "no place"], ["mcd", " "]]),
        trail.add("put", dropped_fields=[["usr"]]),
        trail.add("refused"),
        trail.add("dead_lettered", reason_code=0),
        trail.add("dropped", reason=""),
    }


CASES: dict[str, tuple[Control, Callable[..., set[int]]]] = {
    "qos1": (qos1.CONTROL, _qos1),
    "qos2": (qos2.CONTROL, _qos2),
    "delivery": (delivery.CONTROL, _delivery),
    "payload": (payload.CONTROL, _payload),
    "conservation": (conservation.CONTROL, _conservation),
    "passages": (passages.CONTROL, _passages),
    "reasons": (reasons.CONTROL, _reasons),
}


@pytest.mark.parametrize("case", CASES)
def test_a_control_finds_its_planted_faults_and_nothing_else(trail, read, case: str) -> None:
    control, plant = CASES[case]
    faults = plant(trail)
    found = control.find(read(trail.write())).collect()
    assert {row["sequence"] for row in found} == faults
    assert all(row["subject"] and row["detail"] for row in found)


def test_the_balances_count_every_exchange_and_every_copy_once(trail, read) -> None:
    _accepted(trail, 1, 1), _put(trail, 1, 1), _put(trail, 1, 1)
    _accepted(trail, 2, 1), trail.add("refused", **PUBLISH | {"exchange": 2})
    _accepted(trail, 3, 2)
    _copied(trail, 1, 50), _copied(trail, 1, 51), _copied(trail, 1, 52)
    _delivered(trail, 1, 1, 50), _delivered(trail, 2, 1, 50)
    _received(trail, 70, "aa"), _received(trail, 71, "bb"), _delivered(trail, 3, 1, 71)
    trail.add("dropped", message_id=f"{51:048x}", reason="expired")
    trail.add("put", message_id=f"{60:048x}", source_message_id=f"{50:048x}", queue="Q", conversion="service")
    records = read(trail.write())
    exchanges = {(row["qos"], row["end"]): row["count"] for row in conservation.exchange_balance(records).collect()}
    copies = {(row["queue"], row["end"]): row["count"] for row in conservation.copy_balance(records).collect()}
    assert exchanges == {(1, "put"): 1, (1, "refused"): 1, (2, "pending"): 1}
    assert copies == {
        ("Q", "delivered"): 1,
        ("Q", "dropped"): 1,
        ("Q", "pending"): 1,
        ("SUBSCRIBER", "delivered"): 1,
        ("SUBSCRIBER", "pending"): 1,
    }


def test_the_balance_of_passages_counts_what_was_put_for_a_target_once(trail, read) -> None:
    for exchange in (1, 2, 3, 4):
        _accepted(trail, exchange, 1), _put(trail, exchange, 1, queue="STOCK", destination="CENTRAL")
    _accepted(trail, 5, 1), _put(trail, 5, 1, queue="SYSTEM.BROKER.DEFAULT.STREAM")
    _forwarded(trail, 1), _forwarded(trail, 2)
    trail.add("dead_lettered", message_id=f"{2:048x}", reason_code=3072)  # refused by the broker after the put
    trail.add("dead_lettered", message_id=f"{3:048x}", reason_code=2030)
    rows = passages.passage_balance(read(trail.write())).collect()
    ends = {row["end"]: row["count"] for row in rows if row["destination"] == "CENTRAL"}
    assert ends == {"forwarded": 2, "dead_lettered": 1, "pending": 1}
    assert len(rows) == len(ends)
