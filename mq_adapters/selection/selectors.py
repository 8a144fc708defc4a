"""The language of message selectors: the selection string of MQOPEN and MQSUB, and the selector of JMS.

    condition   = or; or = and {OR and}; and = not {AND not}; not = {NOT} predicate
    predicate   = TRUE | FALSE | name | value comparison value | value [NOT] BETWEEN value AND value
                | name [NOT] LIKE text [ESCAPE text] | name [NOT] IN (literal, ...) | name IS [NOT] NULL | (condition)
    value       = sums and products of literals, names and (value)

Literals are 'text', "0x41" (bytes), TRUE, FALSE, and numbers as Java writes them (7, 7L, 0x1F, 017, 7.5E2, 7F).
A name is that of a property, JMSPriority for example, or Root.MQMD.Priority; message_content.py tells its value.
Source: IBM MQ, "Message selector syntax"; Jakarta Messaging 3.1, section 3.8.1; reason codes 2459, 2519 and 2551.
"""

import re
from functools import lru_cache
from typing import Final

from mq_adapters.mqmd import ATTRIBUTES
from mq_adapters.selection.conditions import (
    EQUALITIES,
    ORDERS,
    And,
    Condition,
    FilterError,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Or,
    Reference,
    ReferenceSource,
    UnavailableFilterError,
    like_expression,
)
from mq_adapters.selection.filters import MAXIMUM_DEPTH, parse_filter
from mq_adapters.selection.message_content import IDENTIFIERS, MODES, is_known
from mq_adapters.selection.tokens import END, TokenReader, read_tokens, unquoted
from mq_adapters.selection.typed import Arithmetic, OneOf, TypedComparison

#: Stands before a selector where a content filter may stand as well (Filter of RegSub). No filter begins with it.
SELECTOR_MARK: Final = "?"
#: MQ_SELECTOR_LENGTH: the longest selection string, in bytes.
MAXIMUM_SELECTOR_BYTES: Final = 10_240
#: Reading a selector takes some 5 ms at most, with these words and signs, and these characters in patterns of LIKE.
MAXIMUM_TOKENS: Final = 1_000
MAXIMUM_PATTERN_CHARACTERS: Final = 1_000
#: A longer text is not read a second time, only to tell whether another language has its syntax.
_LONGEST_READ_AGAIN: Final = 2_000
#: Characters of all LIKE patterns, times those of the text: what one message may take (about 3 ms).
_MAXIMUM_LIKE_WORK: Final = 250_000
_MAXIMUM_LIKE_CHARACTERS: Final = 8_192
_KEPT_SELECTORS: Final = 1_024
_LONGEST_NUMBER: Final = 40
_HIGHEST_WHOLE: Final = 1 << 63

_START, _PART = r"(?:[^\W\d]|\$)", r"[\w$]*"
_TOKEN: Final = re.compile(
    rf"""(?P<blank>\s+)
    |(?P<text>'(?:[^']|'')*')
    |(?P<bytes>"0[xX][^"]*")
    |(?P<number>(?:0[xX][0-9a-fA-F]+[lL]?|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[lLfFdD]?)(?![\w.$]))
    |(?P<name>{_START}{_PART}(?:\.{_START}{_PART})*)
    |(?P<operator><>|<=|>=|[=<>(),+\-*/])""",
    re.VERBOSE,
)
_RESERVED: Final = frozenset({"AND", "OR", "NOT", "LIKE", "ESCAPE", "IN", "BETWEEN", "IS", "NULL"})
_IDENTIFIER: Final = re.compile(r"ID:[0-9A-Fa-f]*\Z")

_Value = Literal | Reference | Arithmetic
#: What the parser finds before it knows whether a condition or a value belongs there.
_Found = Condition | _Value


@lru_cache(maxsize=_KEPT_SELECTORS)
def parse_selector(text: str) -> Condition:
    """The condition that a selector states.

    Raises FilterError if it is malformed, UnavailableFilterError if it is well formed in the language of content
    filters alone, or names something that is not known here.
    """
    try:
        return _Parser(read_tokens(text, _TOKEN, most=MAXIMUM_TOKENS)).whole()
    except FilterError:
        if len(text) > _LONGEST_READ_AGAIN:
            raise
        parse_filter(text)  # which raises one of the two errors itself
        raise UnavailableFilterError("only a broker with another language can evaluate it") from None


class _Parser(TokenReader):
    """Goes through the tokens once."""

    _depth = 0
    #: The characters of all patterns of LIKE, which share the work that one message may take.
    _pattern_characters = 0

    def whole(self) -> Condition:
        patterns = [len(token.text) for before, token in self._pairs() if before.word == "LIKE"]
        self._pattern_characters = sum(patterns)
        if self._pattern_characters > MAXIMUM_PATTERN_CHARACTERS:
            raise UnavailableFilterError(f"patterns of LIKE have more than {MAXIMUM_PATTERN_CHARACTERS} characters")
        condition = _condition(self._expression())
        if self._token.kind != END:
            raise self._error("cannot stand here")
        return condition

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _expression(self) -> _Found:
        terms = [self._conjunction()]
        while self._took("OR"):
            terms.append(self._conjunction())
        return terms[0] if len(terms) == 1 else Or(tuple(map(_condition, terms)))

    def _conjunction(self) -> _Found:
        terms = [self._not()]
        while self._took("AND"):
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else And(tuple(map(_condition, terms)))

    def _not(self) -> _Found:
        nots = 0
        while self._took("NOT"):
            nots += 1
        found = self._predicate()
        if not nots:
            return found
        condition = Not(_condition(found))
        return condition if nots % 2 else Not(condition)

    def _predicate(self) -> _Found:
        left = self._sum()
        if operator := self._took(*ORDERS):
            return _comparison(operator, _term(left), _term(self._sum()))
        if self._took("IS"):
            is_negated = self._took("NOT")
            self._expect("NULL")
            null = IsNull(_name(left))
            return Not(null) if is_negated else null
        is_negated = self._took("NOT")
        if word := self._took("LIKE", "IN", "BETWEEN"):
            found = {"LIKE": self._like, "IN": self._in, "BETWEEN": self._between}[word](left)
            return Not(found) if is_negated else found
        if is_negated:
            raise self._error("stands where LIKE, IN or BETWEEN belongs")
        return left

    def _like(self, left: _Found) -> Condition:
        pattern = self._text()
        escape = self._text() if self._took("ESCAPE") else None
        if escape is not None and len(escape) != 1:
            raise FilterError("ESCAPE takes one character")
        longest = min(_MAXIMUM_LIKE_CHARACTERS, _MAXIMUM_LIKE_WORK // self._pattern_characters)
        return Like(_name(left), like_expression(pattern, escape), longest)

    def _in(self, left: _Found) -> Condition:
        operand = _name(left)
        self._expect("(")
        choices = [self._literal(operand)]
        while self._took(","):
            choices.append(self._literal(operand))
        self._expect(")")
        return OneOf(operand, tuple(choices))

    def _between(self, left: _Found) -> Condition:
        operand, lowest = _term(left), _term(self._sum())
        self._expect("AND")
        highest = _term(self._sum())
        return And((_comparison(">=", operand, lowest), _comparison("<=", operand, highest)))

    # -- values --------------------------------------------------------------------------------------------------------

    def _sum(self) -> _Found:
        first = self._product()
        steps: list[tuple[str, _Value]] = []
        while operator := self._took("+", "-"):
            steps.append((operator, _numeric(self._product())))
        return Arithmetic(_numeric(first), tuple(steps)) if steps else first

    def _product(self) -> _Found:
        first = self._signed()
        steps: list[tuple[str, _Value]] = []
        while operator := self._took("*", "/"):
            steps.append((operator, _numeric(self._signed())))
        return Arithmetic(_numeric(first), tuple(steps)) if steps else first

    def _signed(self) -> _Found:
        signs = ""
        while sign := self._took("-", "+"):
            signs += sign
        found = self._primary()
        if not signs:
            return found
        number, is_negative = _numeric(found), signs.count("-") % 2 == 1
        if isinstance(number, Literal) and isinstance(number.value, int | float):
            return Literal(-number.value if is_negative else number.value)
        return Arithmetic(Literal(0), (("-" if is_negative else "+", number),))

    def _primary(self) -> _Found:
        if self._took("("):
            self._depth += 1
            if self._depth > MAXIMUM_DEPTH:
                raise UnavailableFilterError(f"more than {MAXIMUM_DEPTH} brackets inside each other")
            found = self._expression()
            self._expect(")")
            self._depth -= 1
            return found
        if self._token.kind == "name" and self._token.word not in (*_RESERVED, "TRUE", "FALSE"):
            return _reference(self._next().text)
        return self._constant()

    def _constant(self) -> Literal:
        kind = self._token.kind
        if word := self._took("TRUE", "FALSE"):
            return Literal(word == "TRUE")
        if kind == "text":
            return Literal(self._text())
        if kind == "bytes":
            return Literal(self._bytes())
        if kind == "number":
            return Literal(self._number())
        raise self._error("stands where a value belongs")

    def _literal(self, operand: Reference) -> Literal:
        """A literal in the list of IN, perhaps with a sign."""
        sign = self._took("-", "+")
        literal = self._constant()
        if sign and not isinstance(literal.value, int | float):
            raise self._error("follows a sign that does not belong to a number")
        if sign == "-" and isinstance(literal.value, int | float):
            literal = Literal(-literal.value)
        return _fitting(operand, literal)

    def _text(self) -> str:
        if self._token.kind != "text":
            raise self._error("stands where a text in quotes belongs")
        return unquoted(self._next().text)

    def _bytes(self) -> bytes:
        try:
            value = bytes.fromhex(self._token.text[3:-1])
        except ValueError:
            raise self._error("is not a whole number of bytes in hexadecimal") from None
        self._next()
        return value

    def _number(self) -> int | float:
        text = self._token.text.lower()
        if len(text) > _LONGEST_NUMBER:
            raise self._error("has too many digits")
        try:
            number = _whole(text) if text.startswith("0x") or text.rstrip("l").isdigit() else float(text.rstrip("fd"))
        except ValueError:
            raise self._error("is no number") from None
        self._next()
        return number


def _whole(text: str) -> int:
    """A whole number as Java writes it: 31, 31L, 0x1F, 037."""
    digits = text.rstrip("l")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    number = int(digits, 16 if digits.startswith("0x") else 8 if is_octal else 10)
    if number > _HIGHEST_WHOLE:
        raise ValueError("it has more than 64 bits")
    return number


def _condition(found: _Found) -> Condition:
    is_value = isinstance(found, Literal) and not isinstance(found.value, bool)
    if isinstance(found, Arithmetic) or is_value:
        raise FilterError("a value stands where a condition belongs")
    return IsTrue(found) if isinstance(found, Literal | Reference) else found


def _term(found: _Found) -> _Value:
    if not isinstance(found, _Value):
        raise FilterError("a condition stands where a value belongs")
    return found


def _name(found: _Found) -> Reference:
    if not isinstance(found, Reference):
        raise FilterError("LIKE, IN and IS NULL take the name of a property")
    return found


def _numeric(found: _Found) -> _Value:
    if isinstance(found, Literal) and not _is_number(found):
        raise FilterError("arithmetic takes numbers")
    return _term(found)


def _is_number(literal: Literal) -> bool:
    return isinstance(literal.value, int | float) and not isinstance(literal.value, bool)


def _comparison(operator: str, left: _Value, right: _Value) -> TypedComparison:
    for side in (left, right):
        if operator not in EQUALITIES and isinstance(side, Literal) and not _is_number(side):
            raise FilterError(f"{operator} compares numbers")
    if isinstance(left, Reference) and isinstance(right, Literal):
        right = _fitting(left, right)
    elif isinstance(left, Literal) and isinstance(right, Reference):
        left = _fitting(right, left)
    return TypedComparison(operator, left, right)


def _fitting(reference: Reference, literal: Literal) -> Literal:
    """The literal as the value of that name is written: identifiers in small letters, delivery modes as words."""
    name, value = reference.path[0], literal.value
    if name in IDENTIFIERS and isinstance(value, bytes):
        return Literal("ID:" + value.hex())
    if name in IDENTIFIERS and isinstance(value, str) and _IDENTIFIER.match(value):
        return Literal("ID:" + value[3:].lower())
    if name == "JMSDeliveryMode" and isinstance(value, int):
        return Literal(MODES.get(value, ""))
    return literal


def _reference(name: str) -> Reference:
    """The value that a name stands for. UnavailableFilterError for one that nothing here knows."""
    root, _, rest = name.partition(".")
    if root in ("Root", "InputRoot"):
        place, _, field = rest.partition(".")
        if place == "MQMD" and field in ATTRIBUTES:
            return Reference(ReferenceSource.MQMD, (ATTRIBUTES[field],))
        raise UnavailableFilterError(f"the reference {name[:100]!a} is not evaluated here")
    if not is_known(name):
        raise UnavailableFilterError(f"the name {name[:100]!a} is not evaluated here")
    return Reference(ReferenceSource.PROPERTY, (name,))
