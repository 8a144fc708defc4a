"""A record that says just what another one of its commit says is found; what only looks like it is not."""

import pytest

from spark_audit.custody.commit import told_twice
from spark_audit.custody.findings import Custody
from tests.spark_audit.custody.scenes import Record, Scene, record

_OWN = "52464842" + "0" * 40
_ACTS: dict[str, tuple[Record, Custody]] = {
    "started": ({}, Custody.SESSIONS),
    "session": ({"client": "desk", "session_epoch": 1, "event": "opened"}, Custody.SESSIONS),
    "delivered": ({"client": "desk", "exchange": 7, "message_id": _OWN, "topic": "a"}, Custody.DELIVERIES),
    "confirmed": ({"client": "desk", "packet_type": 5, "exchanges": [[1, 1]]}, Custody.CONFIRMATIONS),
    "answered": ({"client": "desk", "packet_identifier": 1, "topic_filters": ["a"]}, Custody.CODES),
    "commanded": ({"command": "RegSub", "message_id": _OWN, "topics": ["a"]}, Custody.COMMANDS),
    "refused": ({"command": "RegSub", "message_id": _OWN}, Custody.COMMANDS),
    "operated": ({"command": "queue define", "queue": "Q"}, Custody.QUEUES),
}


def _found(*records: Record) -> list[tuple[Custody, int]]:
    scene = Scene()
    scene.commit(*records)
    rows = list(scene.rows())
    return [(each.control, each.sequence) for each in told_twice(rows[2:])]


@pytest.mark.parametrize("kind", _ACTS)
def test_a_record_that_is_there_twice_is_found_wherever_it_stands(kind: str) -> None:
    said, control = _ACTS[kind]
    act, other = record(kind, at_us=5, **said), record("stock", at_us=5, event="queues")
    assert _found(act, other, act) == [(control, 5)]
    assert _found(act, act, act) == [(control, 4), (control, 5)]


@pytest.mark.parametrize("kind", _ACTS)
def test_a_record_of_another_moment_is_another_act(kind: str) -> None:
    said, _control = _ACTS[kind]
    assert _found(record(kind, at_us=5, **said), record(kind, at_us=6, **said)) == []
    assert _found(record(kind, **said), record(kind, **said)) == [], "a record without a time is no act"


def test_an_application_may_give_one_identifier_to_two_commands() -> None:
    command = record("commanded", at_us=5, command="RegSub", message_id="ab" * 24, topics=["a"])
    assert _found(command, command) == []


def test_a_command_that_is_refused_afterwards_has_two_records() -> None:
    said, _control = _ACTS["commanded"]
    records = [record("commanded", at_us=5, completion=each, **said) for each in ("ok", "error")]
    assert _found(*records) == []
