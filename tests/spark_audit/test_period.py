"""Periods: what is within, and which segments must be read for it."""

import pytest

from spark_audit.period import EVERYTHING, Period, hour_of, moment_of, moment_text

#: 2026-11-20 07:00 UTC.
SEVEN_US = 1_795_158_000_000_000
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("2026-11-20T07:00:00Z", SEVEN_US),
        ("2026-11-20T08:00:00.000001+01:00", SEVEN_US + 1),
        ("2026-11-20", SEVEN_US - 7 * HOUR_US),
        ("20261120T070000Z", SEVEN_US),
    ],
)
def test_moments_are_iso_8601_with_a_zone_or_dates(text: str, at_us: int) -> None:
    assert moment_of(text) == at_us


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-20T07:00:00", "1970-01-01", "2026-13-01", "0001-01-01"])
def test_other_texts_are_no_moments(text: str) -> None:
    with pytest.raises(ValueError):
        moment_of(text)


def test_a_moment_is_written_so_that_it_can_be_read() -> None:
    assert moment_text(SEVEN_US + 1) == "2026-11-20T07:00:00.000001Z"
    assert moment_of(moment_text(SEVEN_US + 1)) == SEVEN_US + 1


@pytest.mark.parametrize(
    ("name", "hour_us"),
    [
        ("000000000001-20261120T07", SEVEN_US),
        ("000000000001-20261120T07.jsonl.gz", SEVEN_US),
        ("000000000001-20261320T07", 0),
        ("notes", 0),
    ],
)
def test_the_hour_of_a_segment_is_in_its_name(name: str, hour_us: int) -> None:
    assert hour_of(name) == hour_us


def test_a_day_around_a_period_is_read_and_nothing_between_is_left_out() -> None:
    names = [f"{number:012d}-202611{day}T07" for number, day in enumerate((18, 19, 25, 20, 21, 22, 23), start=1)]
    period = Period(from_us=SEVEN_US + HOUR_US, until_us=SEVEN_US + 2 * HOUR_US)
    assert period.to_read(names) == [names[1], names[2], names[3], names[4]]
    assert Period(from_us=SEVEN_US + 30 * 24 * HOUR_US).to_read(names) == []
    assert EVERYTHING.to_read(names) == names


def test_names_are_concerned_as_their_hours_are() -> None:
    names = [f"{number:012d}-202611{19 + number // 24:02d}T{number % 24:02d}" for number in range(24, 96)]
    for from_us, until_us in ((0, 0), (SEVEN_US, 0), (SEVEN_US + 1, SEVEN_US + 2), (0, SEVEN_US), (5, SEVEN_US - 1)):
        period = Period(from_us=from_us, until_us=until_us)
        concerned = [name for name in names if period.concerns(name)]
        assert concerned == [name for name in names if period.concerns_hour(hour_of(name))]
