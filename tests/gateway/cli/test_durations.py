"""Lengths of time as people type them."""

import pytest
import typer

from gateway.cli.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 2_592_000), ("12h", 43_200), ("45m", 2_700), ("90s", 90), ("0s", 0)]
)
def test_a_number_and_a_unit_are_a_length_of_time(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "30", "30w", "-1d", "1.5h", "100000d", "\u0663d", "1 d"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="for example 30d"):
        seconds_of(text)
