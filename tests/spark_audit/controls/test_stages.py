"""The stages of a message, as one control compares them: what differs between two records, or is told of nothing."""

from collections.abc import Callable

import pytest

from spark_audit.controls import stages
from spark_audit.controls.control import Control

SUM, OTHER_SUM = "ab" * 32, "cd" * 32
LANE = {"correlation_id": "52" * 24}


def _flow(story, number: int, qos: int = 1, **changes: dict[str, object]) -> dict[str, int]:
    """One message from its PUBLISH to the client's acknowledgement; `changes` are of one stage each."""
    topic = {"topic": "a/b"}
    copy = {"payload_sha256": SUM, "is_retained": False}
    sent = {"queue": "Q", "published_qos": qos, "payload_sha256": SUM, "packet_identifier": number}
    told = {
        "accepted": lambda **said: story.accepted(number, qos, **topic | said),
        "put": lambda **said: story.put(number, qos, **topic | said),
        "copied": lambda **said: story.copied(number, 50 + number, **topic | LANE | copy | said),
        "delivered": lambda **said: story.delivered(number, qos, 50 + number, **LANE | sent | said),
        "acknowledged": lambda **said: story.acknowledged(
            number, **{"message_id": _message(50 + number), "packet_identifier": number} | said
        ),
    }
    return {stage: add(**changes.get(stage, {})) for stage, add in told.items()}


def _otherwise(story) -> set[int]:
    """A message whose stages agree: right. A stage that says something else than the one before it: the faults."""
    _flow(story, 1)
    wrong = [
        ("put", _flow(story, 2, put={"topic": "a/c"}, copied={"topic": "a/c"}, delivered={"topic": "a/c"})),
        ("put", _flow(story, 3, put={"retain": True})),
        ("copied", _flow(story, 4, copied={"topic": "a/c"})),
        ("copied", _flow(story, 5, copied={"payload_sha256": OTHER_SUM})),
        ("delivered", _flow(story, 6, delivered={"topic": "a/c"})),
        ("delivered", _flow(story, 7, delivered={"queue": "R"})),
        ("delivered", _flow(story, 8, delivered={"correlation_id": "53" * 24})),
        ("delivered", _flow(story, 9, delivered={"published_qos": 2})),
        ("delivered", _flow(story, 10, delivered={"payload_sha256": None})),
        ("acknowledged", _flow(story, 11, acknowledged={"message_id": _message(1)})),
        ("acknowledged", _flow(story, 12, acknowledged={"packet_identifier": 99})),
    ]
    return {told[stage] for stage, told in wrong}


def _twice(story) -> set[int]:
    """What stands twice, in front of its cause, or without one: the faults."""
    topic = {"topic": "a/b"}
    story.add("put", command="RegSub", direction="in", client="screen", session_epoch=2, message_id=_message(1), **LANE)
    right = {"is_retained": False, **topic, **LANE}
    story.published(2, 1, **topic), story.copied(2, 52, **right)
    story.copied(2, 62, **right | {"is_retained": True})  # for another SUBSCRIBE
    second = story.copied(2, 53, **right)
    early = story.copied(3, 54, **right)
    story.published(3, 1, **topic)
    again = story.copied(4, 54, **topic)
    story.delivered(5, 2, 55), story.acknowledged(5, 5, message_id=_message(55))
    story.acknowledged(5, 7, message_id=_message(55))
    story.delivered(6, 2, 56)
    without = story.acknowledged(6, 7, message_id=_message(56))
    story.copied(9, 57, **topic)
    story.delivered(7, 1, 57, queue="Q"), story.acknowledged(7, 4, message_id=_message(57))
    twice = story.acknowledged(7, 4, message_id=_message(57))
    lost = {"direction": "out", "client": "screen", "session_epoch": 2, "queue": "Q", "reason": "ended"}
    story.copied(8, 58, **topic)
    story.add("dropped", message_id=_message(58), **lost), story.add("dropped", message_id=_message(91), queue="APP")
    letter = {"direction": "in", "client": "boiler", "session_epoch": 1, "exchange": 2, "reason_code": 2053}
    story.add("dead_lettered", message_id=_message(2), dead_letter_id=_message(95), queue="HELD", **letter)
    story.add("dead_lettered", message_id=_message(95), dead_letter_id=_message(96), queue="DEAD", **letter)
    nowhere = story.add("dropped", message_id=_message(90), **lost)
    unknown = story.forwarded(92)
    story.add("put", conversion="service", message_id=_message(70), source_message_id=_message(80), queue="OUT")
    served = story.add("put", conversion="service", message_id=_message(71), source_message_id=_message(80), queue="O")
    refused = {"direction": "in", "client": "screen", "session_epoch": 2, "reason_code": 3073}
    story.add("refused", command="RegSub", message_id=_message(1), **refused)
    other = story.add("refused", command="DeregSub", message_id=_message(1), **refused)
    ended = story.add("dropped", message_id=_message(57), **lost)
    return {second, early, again, without, twice, nowhere, unknown, served, other, ended}


def _missing(story) -> set[int]:
    """Numbers that begin anew with a run, and that of a will: right. A missing exchange, or a missing will: faults."""
    story.started()
    for exchange in (1, 2, 4):
        last = story.accepted(exchange, 1)
    story.add("refused", direction="in", client="boiler", session_epoch=1, exchange=2, reason_code=2033)  # at PUBREL
    story.add("dropped", direction="in", client="boiler", session_epoch=1, exchange=5, reason="full")
    story.started()
    story.accepted(1_000_000, 1), story.accepted(1_000_001, 1)
    _will(story, 50), story.accepted(1_000_003, 0)
    _will(story, 51), _will(story, 52), story.accepted(1_000_006, 0)
    _will(story, 53)
    without_will = story.accepted(1_000_009, 0)
    return {last, without_will}


def _will(story, number: int) -> None:
    """A will was put: it has the next number of its session, which no record tells."""
    said = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 1, "command": "Publish"}
    story.add("put", **said, queue="Q", conversion="packet_to_header", message_id=_message(number))


def _message(number: int) -> str:
    return f"52464842{'0a' * 12}{number:016x}"


CASES: dict[str, tuple[Control, Callable[..., set[int]]]] = {
    "another value": (stages.STAGES, _otherwise),
    "twice, too early, of nothing": (stages.STAGES, _twice),
    "missing exchanges": (stages.NUMBERS, _missing),
}


@pytest.mark.parametrize("case", CASES)
def test_stages_that_do_not_agree_are_found_and_nothing_else(story, read, case: str) -> None:
    control, plant = CASES[case]
    faults = plant(story)
    found = read(story.trail.write()).found(control)
    assert {row["sequence"] for row in found} == faults
    assert all(row["subject"] and row["detail"] for row in found)
