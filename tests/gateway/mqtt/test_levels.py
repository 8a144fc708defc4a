"""The protocol levels differ by the attributes of their rows, and by nothing else."""

import re
from dataclasses import fields
from pathlib import Path

import gateway
from gateway.mqtt.levels import LEVELS, MQTT_3_1, MQTT_3_1_1, MQTT_5_0, Level

#: A comparison of a level with a number, `level >= 5` for example, which hides what differs.
COMPARISON = re.compile(r"\blevel\b *(?:[<>]=?|[=!]=) *(?:\d|_?[A-Z])")


def test_the_code_asks_a_level_for_its_attributes_and_compares_no_numbers() -> None:
    assert COMPARISON.search("if session.level >= 5:")
    assert COMPARISON.search("if level < _FIRST_LEVEL_WITH_REASONS:")
    root = Path(gateway.__file__).parent
    found = {
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if "audit_trail" not in path.parts  # its records keep the number
        for line in path.read_text().splitlines()
        if COMPARISON.search(line)
    }
    assert not found


def test_each_attribute_differs_between_two_levels() -> None:
    for field in fields(Level):
        assert len({getattr(level, field.name) for level in LEVELS.values()}) > 1, field.name


def test_level_5_alone_says_why_and_level_3_cannot_even_refuse_a_filter() -> None:
    assert [level.has_reason_codes for level in (MQTT_3_1, MQTT_3_1_1, MQTT_5_0)] == [False, False, True]
    assert [level.suback_can_refuse for level in (MQTT_3_1, MQTT_3_1_1, MQTT_5_0)] == [False, True, True]
    assert [level.has_session_present for level in (MQTT_3_1, MQTT_3_1_1, MQTT_5_0)] == [False, True, True]
    assert [level.version for level in LEVELS.values()] == ["3.1", "3.1.1", "5"]
