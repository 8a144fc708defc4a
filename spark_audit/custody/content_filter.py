"""The language of content filters: a subscriber's condition on the contents of publications, read for the audit alone.

    condition   = or; or = and {OR and}; and = not {AND not}; not = {NOT} predicate
    predicate   = value [comparison value | [NOT] LIKE text [ESCAPE text] | [NOT] IN (value, ...)
                | [NOT] BETWEEN value AND value | IS [NOT] NULL]
    value       = 'text' | number | X'hex' | TRUE | FALSE | reference | (condition)

A condition is true, false, or neither, as in SQL: a missing value makes a comparison neither, and NOT leaves that as it
is. A value may also be unknown, because the trail does not tell it, such as that of a body. Then a condition may be any
of the three. So each condition is a set of its possible results. A copy is due if the set is {true}, and wrong if true
is not in the set. A filter that this reading does not understand may have any result.

Source: Message Broker V6, "ESQL functions: reference information", "Complex comparison operators"; IBM MQ,
"Content-based message selection"; SQL-92 for three-valued logic.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import product
from typing import Final, Protocol

from spark_audit.custody.commands import Command
from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.folder import OuterElement, read_outer_elements
from spark_audit.reperform.topics import characters_match

Value = str | int | float | bool | bytes | None
#: The possible results of a condition, of True, False and None (neither).
Possible = frozenset[bool | None]

#: The value of a reference that the trail does not tell.
UNTOLD: Final = object()
_TRUE, _FALSE, _NEITHER = frozenset({True}), frozenset({False}), frozenset({None})
_ANYTHING: Final[Possible] = frozenset({True, False, None})

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<hex>[xX]'[0-9a-fA-F]*')|(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
    |(?P<name>[^\W\d][\w$]*)|(?P<sign><>|<=|>=|!=|[=<>(),.+-]))""",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r" *[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})? *")
_COMPARISONS: Final[dict[str, Callable[..., bool]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
#: LIKE does not compare longer texts.
_LONGEST_LIKE: Final = 8_192
_EQUALITIES: Final = ("=", "<>", "!=")
_NUMBER_TYPES: Final = frozenset({"i1", "i2", "i4", "i8", "int", "r4", "r8"})
_BOOLEANS: Final = {"1": True, "0": False, "TRUE": True, "FALSE": False}


class Truth(Enum):
    """Whether a publication passes a filter, as far as the trail tells."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


class Told(Protocol):
    """What is told of a publication."""

    def value(self, path: tuple[str, ...]) -> Value | object:
        """The value of a reference; None where it is missing, UNTOLD where nothing tells it."""
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """What the trail tells of a publication's contents: MsgId (hex) and header."""

    message_id: str
    command: Command

    def value(self, path: tuple[str, ...]) -> Value | object:
        """See Told."""
        names = path[1:] if path[0] in ("Root", "InputRoot") else path
        if names == ("MQMD", "MsgId"):
            return bytes.fromhex(self.message_id)
        names = names[1:] if names[0:1] == ("MQRFH2",) and len(names) > 1 else names
        names = names[1:] if names[0:1] == ("usr",) and len(names) > 1 else names
        return _properties(self.command).get(names[0]) if len(names) == 1 else UNTOLD


def accepts(text: str, content: Told) -> Truth:
    """Whether a filter lets a publication pass."""
    try:
        possible = _condition_of(text)(content)
    except (UnreadableBytes, RecursionError):
        return Truth.MAYBE
    if possible == _TRUE:
        return Truth.YES
    return Truth.MAYBE if True in possible else Truth.NO


_Condition = Callable[[Told], Possible]
_Operand = Callable[[Told], "Value | object"]


class _Unknown(Exception):
    """This reading does not understand the filter."""


@lru_cache(maxsize=4_096)
def _condition_of(text: str) -> _Condition:
    try:
        reader = _Reader(_tokens(text))
        condition = reader.condition()
        reader.expect("end")
        return condition
    except (_Unknown, RecursionError):
        return lambda _content: _ANYTHING


def _tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of each token; a word and a sign are their own kind."""
    found, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _Unknown
        kind, piece = match.lastgroup, match[match.lastgroup]
        found.append((piece.upper() if kind == "sign" else kind, piece))
        at = match.end()
    return [*found, ("end", "")]


class _Reader:
    """Reads the tokens of a filter from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def condition(self) -> _Condition:
        """One condition, up to the first token that cannot be a part of it."""
        return _as_condition(self._either())

    def expect(self, kind: str) -> str:
        """Reads a token of a kind, or a word. _Unknown if another one is there."""
        found = self._took(kind)
        if found is None:
            raise _Unknown
        return found

    def _took(self, *kinds: str) -> str | None:
        kind, text = self._tokens[self._at]
        if kind in kinds or (kind == "name" and text.upper() in kinds):
            self._at += kind != "end"
            return text
        return None

    def _either(self) -> "_Condition | _Term":
        terms = [self._both()]
        while self._took("OR"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else _joined(any_of, terms)

    def _both(self) -> "_Condition | _Term":
        terms = [self._negated()]
        while self._took("AND"):
            terms.append(self._negated())
        return terms[0] if len(terms) == 1 else _joined(all_of, terms)

    def _negated(self) -> "_Condition | _Term":
        if self._took("NOT"):
            return _negation(_as_condition(self._negated()))
        return self._predicate()

    def _predicate(self) -> "_Condition | _Term":
        left = self._value()
        if sign := self._took(*_COMPARISONS):
            return _comparison(sign, _as_operand(left), _as_operand(self._value()))
        if self._took("IS"):
            return self._null(_as_operand(left))
        is_negated = self._took("NOT") is not None
        for word, read in (("LIKE", self._like), ("IN", self._among), ("BETWEEN", self._between)):
            if self._took(word):
                return _negation(read(_as_operand(left))) if is_negated else read(_as_operand(left))
        if is_negated:
            raise _Unknown
        return left

    def _null(self, operand: _Operand) -> _Condition:
        is_negated = self._took("NOT") is not None
        self.expect("NULL")

        def truth(content: Told) -> Possible:
            value = operand(content)
            if value is UNTOLD:
                return frozenset({True, False})
            return _TRUE if (value is None) != is_negated else _FALSE

        return truth

    def _like(self, operand: _Operand) -> _Condition:
        pattern = self.expect("text")
        escape = _unquoted(self.expect("text")) if self._took("ESCAPE") else None
        characters = _characters(_unquoted(pattern), escape)

        def truth(content: Told) -> Possible:
            value = operand(content)
            if not isinstance(value, str):
                return _ANYTHING if value is UNTOLD else _NEITHER
            return frozenset({characters_match(characters, value)}) if len(value) <= _LONGEST_LIKE else _ANYTHING

        return truth

    def _among(self, operand: _Operand) -> _Condition:
        self.expect("(")
        choices = [_comparison("=", operand, _as_operand(self._value()))]
        while self._took(","):
            choices.append(_comparison("=", operand, _as_operand(self._value())))
        self.expect(")")
        return _joined(any_of, choices)

    def _between(self, operand: _Operand) -> _Condition:
        lowest = _comparison(">=", operand, _as_operand(self._value()))
        self.expect("AND")
        return _joined(all_of, [lowest, _comparison("<=", operand, _as_operand(self._value()))])

    def _value(self) -> "_Condition | _Term":
        if self._took("("):
            found = self._either()
            self.expect(")")
            return found
        sign = -1 if self._took("-") else 1
        if (text := self._took("number")) is not None:
            return _Term(_constant(sign * _number(text)))
        if sign < 0:
            raise _Unknown
        if (text := self._took("text")) is not None:
            return _Term(_constant(_unquoted(text)))
        if (text := self._took("hex")) is not None:
            return _Term(_constant(_bytes(text)))
        if (text := self._took("TRUE", "FALSE")) is not None:
            return _Term(_constant(text.upper() == "TRUE"))
        return self._reference()

    def _reference(self) -> "_Term":
        path = [self._name()]
        while self._took("."):
            path.append(self._name())
        if self._tokens[self._at][0] == "(":
            raise _Unknown
        names = tuple(path)
        return _Term(lambda content: content.value(names))

    def _name(self) -> str:
        text = self.expect("quoted") if self._tokens[self._at][0] == "quoted" else self.expect("name")
        return _unquoted(text) if text[0] == '"' else text


@dataclass(frozen=True, slots=True)
class _Term:
    """A value where a condition may stand too."""

    of: _Operand


def _as_condition(found: "_Condition | _Term") -> _Condition:
    """A condition; of a value, that it is TRUE."""
    if not isinstance(found, _Term):
        return found
    operand = found.of

    def truth(content: Told) -> Possible:
        value = operand(content)
        if value is UNTOLD:
            return _ANYTHING
        return frozenset({value if isinstance(value, bool) else None})

    return truth


def _as_operand(found: "_Condition | _Term") -> _Operand:
    if not isinstance(found, _Term):
        raise _Unknown
    return found.of


def _comparison(sign: str, left: _Operand, right: _Operand) -> _Condition:
    def truth(content: Told) -> Possible:
        one, other = left(content), right(content)
        if one is UNTOLD or other is UNTOLD:
            return _NEITHER if one is None or other is None else _ANYTHING
        return frozenset({compared(sign, one, other)})

    return truth


def compared(sign: str, left: object, right: object) -> bool | None:
    """The truth of a comparison of values: numbers and texts that are numbers by their size, others of one type."""
    if isinstance(left, str) and _is_number(right):
        left = _number_in(left)
    if isinstance(right, str) and _is_number(left):
        right = _number_in(right)
    if left is None or right is None:
        return None
    if isinstance(left, bool) or isinstance(right, bool):
        is_fit = isinstance(left, bool) and isinstance(right, bool) and sign in _EQUALITIES
        return _COMPARISONS[sign](left, right) if is_fit else None
    if (_is_number(left) and _is_number(right)) or type(left) is type(right):
        return _COMPARISONS[sign](left, right)
    return None


def any_of(truths: Iterable[bool | None]) -> bool | None:
    """OR: true if one is; else neither if one is; else false."""
    found = set(truths)
    return True if True in found else None if None in found else False


def all_of(truths: Iterable[bool | None]) -> bool | None:
    """AND: false if one is; else neither if one is; else true."""
    found = set(truths)
    return False if False in found else None if None in found else True


def negated(possible: Possible) -> Possible:
    """NOT: neither stays neither."""
    return frozenset(None if truth is None else not truth for truth in possible)


def _joined(joint: Callable[[Iterable[bool | None]], bool | None], terms: "Iterable[_Condition | _Term]") -> _Condition:
    conditions = [_as_condition(each) for each in terms]

    def truth(content: Told) -> Possible:
        possible: Possible | None = None
        for condition in conditions:
            after = condition(content)
            possible = after if possible is None else frozenset(joint(pair) for pair in product(possible, after))
        assert possible is not None
        return possible

    return truth


def _negation(condition: _Condition) -> _Condition:
    return lambda content: negated(condition(content))


def _constant(value: Value) -> _Operand:
    return lambda _content: value


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text[2:-1])
    except ValueError:
        raise _Unknown from None


def _characters(pattern: str, escape: str | None) -> list[str]:
    """A LIKE pattern as a pattern of the character scheme."""
    read, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            read.append("%" + next(characters, "%"))
        else:
            read.append({"%": "*", "_": "?"}.get(character, "%" + character))
    return read


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_in(text: str) -> int | float | None:
    return _number(text.strip()) if _NUMBER.fullmatch(text) else None


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


@lru_cache(maxsize=1_024)
def _properties(command: Command) -> dict[str, Value]:
    """Properties by name: the pairs of an MQRFH publisher, and the elements of the folders usr."""
    found: dict[str, Value] = {}
    if command.is_mqrfh:
        found |= {name: text for name, text in command.others if not name.startswith("MQ")}
    for folder in command.meaning.folders:
        if folder.name == "usr":
            found |= {each.name: _property(each) for each in read_outer_elements(folder) if not each.is_group}
    return found


def _property(element: OuterElement) -> Value:
    """A property by its type; None for null, and for text that does not fit the type."""
    if element.is_null:
        return None
    text = element.text
    if element.type in _NUMBER_TYPES:
        return _number_in(text)
    if element.type == "boolean":
        return _BOOLEANS.get(text.strip().upper())
    if element.type == "bin.hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            return None
    return text
