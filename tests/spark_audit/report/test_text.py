"""Words of strangers: what can be seen stays, what steers, turns or hides is spelled out, what is long is cut."""

import pytest

from spark_audit.report.text import duration, moment, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plant/7/temperature", "plant/7/temperature"),
        ("שלום/Köln/温度", "שלום/Köln/温度"),
        ("a\nb\tc\x00\x1b[2J\x7f", "a\\u000ab\\u0009c\\u0000\\u001b[2J\\u007f"),
        ("\u202egnp.exe\u2066\u200b", "\\u202egnp.exe\\u2066\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("e\u0301\u0302\u0303", "e\u0301\u0302\u0303"),
        ("e\u0301\u0302\u0303\u0304x", "e\u0301\u0302\u0303\\u0304x"),
    ],
    ids=[
        "a topic",
        "other scripts",
        "control characters",
        "direction and no width",
        "half a pair",
        "a tag",
        "marks of a letter",
        "marks that paint over the line",
    ],
)
def test_a_text_is_one_line_of_what_can_be_seen(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    assert visible("a" * 70 + "b" * 65_430, 100) == f"{'a' * 70}bbbbb… (65,500 characters) …{'b' * 25}"
    assert visible("a" * 100, 100) == "a" * 100


def test_times_are_shown_in_utc_and_a_number_that_is_none_as_a_dash() -> None:
    assert moment(1_795_158_000_123_000) == "2026-11-20 07:00:00.123+00:00"
    assert [moment(0), moment(2**62), moment(-(2**62))] == ["–"] * 3


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [
        (0, "0 µs"),
        (850, "850 µs"),
        (-1_230, "-1.23 ms"),
        (45_600, "45.6 ms"),
        (999_600, "1 s"),
        (1_200_000, "1.2 s"),
        (599_000_000, "599 s"),
        (2**40, "18,325 min"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(microseconds: int, words: str) -> None:
    assert duration(microseconds) == words
