"""Conditions on values of one type, and arithmetic, as message selectors have them.

Numbers are compared with numbers, texts with texts, and so on. A comparison of unlike types is false, and one with a
missing value is neither true nor false. Source: Jakarta Messaging 3.1, section 3.8.1.2; IBM MQ, "Message selector
syntax".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mq_adapters.selection.conditions import (
    EQUALITIES,
    ORDERS,
    Content,
    Literal,
    Term,
    Truth,
    Value,
    any_truth,
    is_number,
)

#: Whole numbers of Java and of MQ have 64 bits. What is beyond them becomes a number with a point.
_BEYOND_WHOLE: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class TypedComparison:
    operator: str
    left: Term
    right: Term

    def truth(self, content: Content) -> Truth:
        return compared_as_typed(self.operator, self.left.value_in(content), self.right.value_in(content))


@dataclass(frozen=True, slots=True)
class OneOf:
    """IN: the operand has one of these values."""

    operand: Term
    choices: tuple[Literal, ...]

    def truth(self, content: Content) -> Truth:
        value = self.operand.value_in(content)
        return any_truth(lambda choice: compared_as_typed("=", value, choice.value), self.choices)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum or a product: a first term, then operators with their terms. Missing where one of them is no number.

    It is a chain and no tree, because 10,000 characters may have 5,000 terms.
    """

    first: Term
    steps: tuple[tuple[str, Term], ...]

    def value_in(self, content: Content) -> Value:
        result = _number(self.first.value_in(content))
        for operator, term in self.steps:
            operand = _number(term.value_in(content))
            if result is None or operand is None:
                return None
            result = _bounded(_CALCULATIONS[operator](result, operand))
        return result


def compared_as_typed(operator: str, left: Value, right: Value) -> Truth:
    """The result of a comparison. Only numbers have an order."""
    if left is None or right is None:
        return None
    if is_number(left) and is_number(right):
        return ORDERS[operator](left, right)
    return type(left) is type(right) and operator in EQUALITIES and EQUALITIES[operator](left, right)


def _number(value: Value) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _bounded(number: int | float | None) -> int | float | None:
    """A number in bounded room: a product of a thousand whole numbers would have a thousand times their digits."""
    is_long = isinstance(number, int) and not -_BEYOND_WHOLE <= number < _BEYOND_WHOLE
    return float(number) if number is not None and is_long else number


def _quotient(left: int | float, right: int | float) -> int | float | None:
    """As in Java, whole numbers give a whole one. Nothing can be divided by 0."""
    if right == 0:
        return None
    if not isinstance(left, int) or not isinstance(right, int):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_CALCULATIONS: Final[dict[str, Callable[[int | float, int | float], int | float | None]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _quotient,
}
