"""Records that are looked at together: where one of them is wrong, they are looked at one by one."""

from typing import Any

import pytest

from spark_audit.facts.values import may_be_wrong, wrong_values

SOUND: dict[str, Any] = {
    "version": 1,
    "sequence": 7,
    "batch": 3,
    "gateway": "0a" * 12,
    "kind": "delivered",
    "at_us": 1_795_158_000_000_000,
    "direction": "out",
    "client": "boiler",
    "session_epoch": 1,
    "exchange": 2,
    "packet_type": 3,
    "qos": 1,
    "topic": "a/b",
    "message_id": "0a" * 24,
    "payload_bytes": 2,
    "payload_sha256": "0b" * 32,
}


def columns(*records: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    return dict(zip(records[0], zip(*(each.values() for each in records), strict=True), strict=True))


def test_sound_records_are_not_doubted() -> None:
    assert wrong_values(SOUND) == ""
    assert not may_be_wrong("delivered", columns(SOUND, SOUND, SOUND))


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sequence", 0),
        ("qos", 3),
        ("qos", -1),
        ("qos", None),
        ("direction", "up"),
        ("direction", None),
        ("message_id", "0a" * 23),
        ("message_id", "0a" * 25),
        ("message_id", "0A" * 24),
        ("message_id", "0a" * 23 + "g0"),
        ("message_id", "\N{LATIN SMALL LETTER E WITH ACUTE}" * 48),
        ("message_id", None),
        ("client", None),
    ],
)
def test_one_wrong_record_among_others_is_not_overlooked(name: str, value: object, place: int) -> None:
    records = [SOUND, SOUND]
    records.insert(place, SOUND | {name: value})
    assert wrong_values(records[place])
    assert may_be_wrong("delivered", columns(*records))


def test_records_without_a_field_that_they_must_have_are_doubted() -> None:
    without = {name: value for name, value in SOUND.items() if name != "client"}
    assert may_be_wrong("delivered", columns(without, without))


def test_two_wrong_lengths_do_not_make_a_right_one() -> None:
    records = [SOUND | {"message_id": "0a" * length} for length in (23, 25)]
    assert may_be_wrong("delivered", columns(*records))
