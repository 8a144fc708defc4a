"""The grammar of NameValueString, case by case."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mappings.errors import NameValueError
from mappings.headers.name_value import (
    format_name_value_string,
    name_positions,
    parse_name_value_string,
    unambiguous_items,
)

VALID = [
    ("", ()),
    ("   ", ()),
    ("a b", (("a", "b"),)),
    ("  a   b  ", (("a", "b"),)),
    (" MQPSCommand  Publish  MQPSTopic  x ", (("MQPSCommand", "Publish"), ("MQPSTopic", "x"))),
    ('a "b c"', (("a", "b c"),)),
    ('a ""', (("a", ""),)),
    ('a "say ""hi"" now"', (("a", 'say "hi" now'),)),
    ('a """"', (("a", '"'),)),
    ('"a b" c', (("a b", "c"),)),
    ('"a" "b"', (("a", "b"),)),
    ("a b\0c", (("a", "b"),)),
    ('a b\0"c', (("a", "b"),)),
    ("a b \0 \0", (("a", "b"),)),
    ("a\tb c\nd", (("a\tb", "c\nd"),)),
    ("a 1 a 2 A 3", (("a", "1"), ("a", "2"), ("A", "3"))),
]

INVALID = [
    ("a", 1),
    ("a b c", 5),
    ("a b c  ", 7),
    ('a "b', 2),
    ('a b"c', 2),
    ('a "b"c', 2),
    ('a   "b', 4),
    ('a b c d"', 6),
    ('a "b""', 2),
    ('a "b\0"', 2),
]


@pytest.mark.parametrize(("text", "pairs"), VALID)
def test_a_valid_string_gives_its_pairs(text: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert parse_name_value_string(text) == pairs


@pytest.mark.parametrize(("text", "position"), INVALID)
def test_an_invalid_string_says_where(text: str, position: int) -> None:
    with pytest.raises(NameValueError) as caught:
        parse_name_value_string(text)
    assert (caught.value.reason_code, caught.value.error_position) == (2335, position)


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ((("a", "b"),), "a b"),
        ((("a", ""),), 'a ""'),
        ((("a", "b c"), ("d", 'e"f')), 'a "b c" d "e""f"'),
        ((("a", "#+/*"),), "a #+/*"),
        ((), ""),
    ],
)
def test_a_string_is_written_with_single_blanks_and_quotes_where_needed(
    pairs: tuple[tuple[str, str], ...], text: str
) -> None:
    assert format_name_value_string(pairs) == text


def test_nul_cannot_be_written() -> None:
    with pytest.raises(NameValueError) as caught:
        format_name_value_string((("a", "b\0c"),))
    assert caught.value.parameter == "b\0c"


def test_positions_of_names_are_zero_based_and_skip_blanks() -> None:
    assert name_positions('  first 1 "second name"   2 third "x y"') == (2, 10, 28)


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(WORDS, WORDS)).map(tuple))
def test_whatever_is_written_is_read_again(pairs: tuple[tuple[str, str], ...]) -> None:
    assert parse_name_value_string(format_name_value_string(pairs)) == pairs


@given(st.text(alphabet='ab" \0', max_size=40))
def test_any_string_of_quotes_and_blanks_ends_in_pairs_or_in_a_position(text: str) -> None:
    pairs, position = pairs_or_position(text)
    assert 0 <= position <= len(text)
    assert parse_name_value_string(format_name_value_string(pairs)) == pairs


def pairs_or_position(text: str) -> tuple[tuple[tuple[str, str], ...], int]:
    try:
        return parse_name_value_string(text), 0
    except NameValueError as problem:
        return (), -1 if problem.error_position is None else problem.error_position


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["a b " * 500_000, '"a" "b" ' * 250_000, 'a "' + '""' * 1_000_000, " " * 2_000_000])
def test_a_million_items_take_linear_time(text: str) -> None:
    try:
        count = len(parse_name_value_string(text))
    except NameValueError:
        count = 0
    assert count in (0, 250_000, 500_000)


@given(st.text(alphabet='ab "\0\t', max_size=16))
@example('a "b c" d "e"')
@example('a ""')
@example('a """"')
@example('"a" "b"')
@example('"a""b" c')
def test_items_found_by_cutting_are_those_of_the_grammar(text: str) -> None:
    items = unambiguous_items(text)
    if items is not None and len(items) % 2 == 0:
        assert parse_name_value_string(text) == tuple(zip(items[::2], items[1::2], strict=True))
        relaxed = text.replace(" ", "  ")
        expected = [item.replace(" ", "  ") for item in items]
        assert unambiguous_items(relaxed) == expected
