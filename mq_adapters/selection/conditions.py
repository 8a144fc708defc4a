"""Conditions on messages, with the three truths of SQL, and what they ask of a message.

Content filters of the broker and message selectors of the MQI are two languages (filters.py, selectors.py) that state
such conditions. As in SQL, a condition on a missing value is neither true nor false, and so is its NOT.
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
    """The filter or selector is malformed (MQRCCF_FILTER_ERROR, MQRC_SELECTOR_SYNTAX_ERROR): its author's fault."""


class UnavailableFilterError(ValueError):
    """The filter or selector is well formed, but cannot be evaluated here (MQRC_SELECTION_NOT_AVAILABLE)."""


class ContentError(ValueError):
    """A message cannot be parsed, or not in the time that there is, for what a condition asks (MQRC_CONTENT_ERROR)."""


class ReferenceSource(Enum):
    """The place where the value of a reference stands."""

    MQMD = "MQMD"
    PROPERTY = "property"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a value in a message; `path` is one name, except in the body."""

    source: ReferenceSource
    path: tuple[str, ...]

    def value_in(self, content: "Content") -> Value:
        return content.value(self)


class Content(Protocol):
    """A message, as a condition sees it."""

    def value(self, reference: Reference) -> Value:
        """The value of a reference; None if it is missing. Raises ContentError if the message cannot be parsed."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in the filter itself."""

    value: str | int | float | bool | bytes

    def value_in(self, _content: Content) -> Value:
        return self.value


Operand = Literal | Reference


class Term(Protocol):
    """A side of a condition."""

    def value_in(self, content: Content) -> Value:
        """Its value for a message; None if it is missing."""
        ...


class Condition(Protocol):
    """What may be true of a message."""

    def truth(self, content: Content) -> Truth:
        """Whether it is true. Raises ContentError if the message cannot be parsed."""
        ...


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: str
    left: Term
    right: Term

    def truth(self, content: Content) -> Truth:
        return compared(self.operator, self.left.value_in(content), self.right.value_in(content))


@dataclass(frozen=True, slots=True)
class Like:
    """`maximum_characters`: a longer text is not compared."""

    operand: Term
    expression: re.Pattern[str]
    maximum_characters: int = MAXIMUM_LIKE_CHARACTERS

    def truth(self, content: Content) -> Truth:
        value = self.operand.value_in(content)
        if not isinstance(value, str):
            return None
        if len(value) > self.maximum_characters:
            raise ContentError(f"LIKE takes texts of up to {self.maximum_characters} characters, not {len(value)}")
        return self.expression.match(value) is not None


@dataclass(frozen=True, slots=True)
class In:
    operand: Term
    choices: tuple[Term, ...]

    def truth(self, content: Content) -> Truth:
        value = self.operand.value_in(content)
        return any_truth(lambda choice: compared("=", value, choice.value_in(content)), self.choices)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Term

    def truth(self, content: Content) -> Truth:
        return self.operand.value_in(content) is None


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A reference as a condition: it names a boolean property."""

    operand: Term

    def truth(self, content: Content) -> Truth:
        value = self.operand.value_in(content)
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition

    def truth(self, content: Content) -> Truth:
        truth = self.condition.truth(content)
        return None if truth is None else not truth


@dataclass(frozen=True, slots=True)
class And:
    conditions: tuple[Condition, ...]

    def truth(self, content: Content) -> Truth:
        unlike = any_truth(lambda condition: negated(condition.truth(content)), self.conditions)
        return negated(unlike)


@dataclass(frozen=True, slots=True)
class Or:
    conditions: tuple[Condition, ...]

    def truth(self, content: Content) -> Truth:
        return any_truth(lambda condition: condition.truth(content), self.conditions)


def accepts(condition: Condition, content: Content) -> bool:
    """Whether the condition is true for a message. ContentError if nobody can tell."""
    return condition.truth(content) is True


def compared(operator: str, left: Value, right: Value) -> Truth:
    """The result of a comparison. A text is compared with a number as a number. None if that is not possible."""
    if isinstance(left, str) and is_number(right):
        left = _number_of(left)
    elif isinstance(right, str) and is_number(left):
        right = _number_of(right)
    if left is None or right is None:
        return None
    if isinstance(left, bool) and isinstance(right, bool):
        return EQUALITIES[operator](left, right) if operator in EQUALITIES else None
    if (is_number(left) and is_number(right)) or (type(left) is type(right) and not isinstance(left, bool)):
        return ORDERS[operator](left, right)
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


def any_truth(truth_of: Callable[[_Item], Truth], items: tuple[_Item, ...]) -> Truth:
    """True if one item is true; else None if one is neither true nor false; else False. Stops at the first true one."""
    found: Truth = False
    for item in items:
        truth = truth_of(item)
        if truth:
            return True
        found = None if truth is None else found
    return found


def negated(truth: Truth) -> Truth:
    """NOT: what is neither true nor false stays so."""
    return None if truth is None else not truth


def is_number(value: Value) -> bool:
    """Whether a value is a number. TRUE is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_of(text: str) -> int | float | None:
    found = _NUMBER.fullmatch(text)
    return None if found is None else number_of(found[1])


def number_of(text: str) -> int | float:
    """The number whose digits these are."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


EQUALITIES: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
}
ORDERS: Final[dict[str, Callable[..., bool]]] = {
    **EQUALITIES,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
