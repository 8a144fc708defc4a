"""Arithmetic and comparisons of values by their types."""

import pytest

from mq_adapters.selection.conditions import Literal, Reference, Value
from mq_adapters.selection.typed import Arithmetic, compared_as_typed


class Nothing:
    """A message without values."""

    def value(self, _reference: Reference) -> Value:
        return None


@pytest.mark.parametrize(
    ("first", "operator", "second", "result"),
    [
        (7, "+", 2, 9),
        (7, "-", 9, -2),
        (7, "*", 2, 14),
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (7, "/", -2, -3),
        (-7, "/", -2, 3),
        (7.0, "/", 2, 3.5),
        (7, "/", 0, None),
        (2**62, "*", 4, float(2**64)),
        (-(2**63), "-", 0, -(2**63)),
    ],
)
def test_numbers_are_reckoned_with_as_in_java(first, operator, second, result):
    found = Arithmetic(Literal(first), ((operator, Literal(second)),)).value_in(Nothing())
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize("value", ["7", True, b"7"])
def test_what_is_no_number_has_no_sum(value):
    assert Arithmetic(Literal(1), (("+", Literal(value)),)).value_in(Nothing()) is None
    assert Arithmetic(Literal(value), (("+", Literal(1)),)).value_in(Nothing()) is None


@pytest.mark.parametrize(
    ("operator", "left", "right", "truth"),
    [
        ("<", 1, 1.5, True),
        ("=", 1, True, False),
        ("<>", "a", 1, False),
        ("<", "a", "b", False),
        ("<>", b"a", b"b", True),
        ("=", None, 1, None),
        ("<>", 1, None, None),
    ],
)
def test_only_numbers_have_an_order_and_unlike_types_compare_falsely(operator, left, right, truth):
    assert compared_as_typed(operator, left, right) is truth
