"""Times as people type them: lengths and moments."""

import pytest
import typer

from gateway.cli.durations import point_in_time, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 2_592_000), ("12h", 43_200), ("45m", 2_700), ("90s", 90), ("0s", 0)]
)
def test_a_number_and_a_unit_are_a_length_of_time(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "30", "30w", "-1d", "1.5h", "100000d", "\u0663d", "1 d"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="for example 30d"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("2026-11-20", 1_795_132_800_000_000),
        ("2026-11-20T07:00", 1_795_158_000_000_000),
        ("2026-11-20T08:00+01:00", 1_795_158_000_000_000),
    ],
)
def test_a_moment_without_a_zone_is_utc(text: str, at_us: int) -> None:
    assert point_in_time(text) == at_us


@pytest.mark.parametrize("text", ["", "10:00", "yesterday", "2026-13-01"])
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="2026-11-20T06:00, for example"):
        point_in_time(text)
