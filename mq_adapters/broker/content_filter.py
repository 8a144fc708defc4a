"""The language of content filters: a subscriber's conditions on the contents of publications.

A filter is a condition in a subset of the expressions of Message Broker (ESQL): comparisons (=, <>, !=, <, <=, >, >=),
LIKE with ESCAPE, IN, BETWEEN, IS NULL, AND, OR, NOT and brackets, on text, numbers, X'hex', TRUE and FALSE, and on

    Root.MQMD.Priority                            a field of the publication's MQMD
    usr.site, Root.MQRFH2.usr.site or site        a property in folder usr, or an MQRFH publisher's own pair
    Body.reading.value or Root.XMLNSC.reading...  the text of the first such element of an XML body

As in SQL, a condition on a missing value is neither true nor false, and so is its NOT. A filter may be well formed and
outside the subset (functions, arithmetic, indexes, other folders). It gets another error than a malformed filter.
Source: IBM MQ documentation, "Content-based message selection" and reason codes 2551, 2554 and 3150.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeVar

#: The values of literals and references; None is a missing value.
Value = str | int | float | bool | bytes | None
#: The truth of a condition; None is neither true nor false.
Truth = bool | None

_Item = TypeVar("_Item")

#: LIKE does not compare longer texts: the time depends on the lengths of text and pattern (10,240 characters).
MAXIMUM_LIKE_CHARACTERS: Final = 8_192
#: A number as text, short enough to be converted quickly.
_NUMBER: Final = re.compile(r" *([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?) *")


class FilterError(ValueError):
    """The filter is malformed: the fault of the application that sent it (MQRCCF_FILTER_ERROR)."""


class UnavailableFilterError(ValueError):
    """The filter is well formed, but this broker cannot evaluate it (MQRC_SELECTION_NOT_AVAILABLE)."""


class ContentError(ValueError):
    """A publication cannot be parsed for a filter that asks for its body (MQRC_CONTENT_ERROR)."""


class ReferenceSource(Enum):
    """The place where the value of a reference stands."""

    MQMD = "MQMD"
    PROPERTY = "property"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a value in a publication; `path` is one name, except in the body."""

    source: ReferenceSource
    path: tuple[str, ...]


class Content(Protocol):
    """A publication, as a filter sees it."""

    def value(self, reference: Reference) -> Value:
        """The value of a reference; None if it is missing. Raises ContentError if the body cannot be parsed."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in the filter itself."""

    value: str | int | float | bool | bytes


Operand = Literal | Reference


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Operand
    right: Operand

    def truth(self, content: Content) -> Truth:
        return compared(self.operator, value_of(self.left, content), value_of(self.right, content))


@dataclass(frozen=True, slots=True)
class Like:
    operand: Operand
    expression: re.Pattern[str]

    def truth(self, content: Content) -> Truth:
        value = value_of(self.operand, content)
        if not isinstance(value, str):
            return None
        if len(value) > MAXIMUM_LIKE_CHARACTERS:
            raise ContentError(f"LIKE takes texts of up to {MAXIMUM_LIKE_CHARACTERS} characters, not {len(value)}")
        return self.expression.match(value) is not None


@dataclass(frozen=True, slots=True)
class In:
    operand: Operand
    choices: tuple[Operand, ...]

    def truth(self, content: Content) -> Truth:
        value = value_of(self.operand, content)
        return _any(lambda choice: compared("=", value, value_of(choice, content)), self.choices)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Operand

    def truth(self, content: Content) -> Truth:
        return value_of(self.operand, content) is None


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A reference as a condition: it names a boolean property."""

    operand: Operand

    def truth(self, content: Content) -> Truth:
        value = value_of(self.operand, content)
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Not:
    condition: "Condition"

    def truth(self, content: Content) -> Truth:
        truth = self.condition.truth(content)
        return None if truth is None else not truth


@dataclass(frozen=True, slots=True)
class And:
    conditions: tuple["Condition", ...]

    def truth(self, content: Content) -> Truth:
        unlike = _any(lambda condition: _negated(condition.truth(content)), self.conditions)
        return _negated(unlike)


@dataclass(frozen=True, slots=True)
class Or:
    conditions: tuple["Condition", ...]

    def truth(self, content: Content) -> Truth:
        return _any(lambda condition: condition.truth(content), self.conditions)


Condition = Comparison | Like | In | IsNull | IsTrue | Not | And | Or


def accepts(condition: Condition, content: Content) -> bool:
    """Whether the condition is true for a publication. ContentError if the broker cannot tell."""
    return condition.truth(content) is True


def value_of(operand: Operand, content: Content) -> Value:
    return operand.value if isinstance(operand, Literal) else content.value(operand)


def compared(operator: str, left: Value, right: Value) -> Truth:
    """The result of a comparison. A text is compared with a number as a number. None if that is not possible."""
    if isinstance(left, str) and _is_number(right):
        left = _number_of(left)
    elif isinstance(right, str) and _is_number(left):
        right = _number_of(right)
    if left is None or right is None:
        return None
    if isinstance(left, bool) and isinstance(right, bool):
        return _EQUALITIES[operator](left, right) if operator in _EQUALITIES else None
    if (_is_number(left) and _is_number(right)) or (type(left) is type(right) and not isinstance(left, bool)):
        return _ORDERS[operator](left, right)
    return None


def like_expression(pattern: str, escape: str | None) -> re.Pattern[str]:
    """The regular expression of a LIKE pattern; it does not backtrack over earlier `%` (atomic groups).

    FilterError if the escape stands before any character other than `%`, `_` and itself.
    """
    pieces = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise FilterError(f"the ESCAPE character in {pattern[:100]!a} does not escape anything")
            pieces[-1] += re.escape(escaped)
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    first, *rest = pieces
    if not rest:
        return re.compile(rf"{first}\Z", re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(rf"{first}{middle}.*{rest[-1]}\Z", re.DOTALL)


def _any(truth_of: Callable[[_Item], Truth], items: tuple[_Item, ...]) -> Truth:
    """True if one item is true; else None if one is neither true nor false; else False. Stops at the first true one."""
    found: Truth = False
    for item in items:
        truth = truth_of(item)
        if truth:
            return True
        found = None if truth is None else found
    return found


def _negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_of(text: str) -> int | float | None:
    found = _NUMBER.fullmatch(text)
    return None if found is None else number_of(found[1])


def number_of(text: str) -> int | float:
    """The number whose digits these are."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


_EQUALITIES: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
}
_ORDERS: Final[dict[str, Callable[..., bool]]] = {
    **_EQUALITIES,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
