"""Findings in words: how many, of whom, on what, from when to when, the worst first."""

from dataclasses import replace

import pytest

from spark_audit.controls.catalogue import CONTROLS
from spark_audit.report import headlines as module
from spark_audit.report.headlines import Headline, headlines
from spark_audit.result import Violation
from tests.spark_audit.report.conftest import AT, control, violation

MINUTE_US = 60_000_000


def _found(client: str = "", topic: str = "", at_us: int = 0) -> Violation:
    return replace(violation(1, "subject", "detail"), client=client, topic=topic, at_us=at_us)


def _one(*found: Violation, **changes: object) -> Headline:
    (line,) = headlines((control("qos.1", *found, **changes),))
    return line


def test_findings_are_told_by_number_client_topic_and_time() -> None:
    line = _one(*(_found("panel", "plant/heat", AT + minute * MINUTE_US) for minute in (4, 2, 3)))
    assert line == Headline(
        control="qos.1",
        is_error=True,
        what="3 acknowledged messages were never put",
        clients=("panel",),
        other_clients=0,
        topics=("plant/heat",),
        other_topics=0,
        when="2026-11-20 07:02:00 to 07:04:00",
    )


@pytest.mark.parametrize(
    ("times", "when"),
    [
        ((), ""),
        ((0, 0), ""),
        ((AT, 0), "2026-11-20 07:00:00"),
        ((AT, AT + 1_440 * MINUTE_US), "2026-11-20 07:00:00 to 2026-11-21 07:00:00"),
    ],
)
def test_a_day_is_told_once_and_no_time_not_at_all(times: tuple[int, ...], when: str) -> None:
    assert _one(*(_found(at_us=at_us) for at_us in times), violations=2).when == when


def test_the_most_frequent_clients_are_named_and_the_rest_counted() -> None:
    line = _one(*(_found(client) for client in ("a", "b", "b", "c", "d", "e", "")))
    assert (line.clients, line.other_clients) == (("b", "a", "c"), 2)


def test_errors_come_first_then_what_was_found_most() -> None:
    found = (
        control("timeliness", _found(), violations=90, severity="warning"),
        control("qos.1", _found(), violations=1),
        control("conservation", _found(), violations=5),
        control("qos.2"),
    )
    told = [(line.control, line.what) for line in headlines(found)]
    assert told == [
        ("conservation", "5 findings on \u201cThe question of conservation\u201d"),
        ("qos.1", "1 acknowledged message was never put"),
        ("timeliness", "90 steps took too long"),
    ]


def test_each_phrase_is_of_a_control_that_exists() -> None:
    assert set(module._PHRASES) <= {each.identifier for each in CONTROLS}
