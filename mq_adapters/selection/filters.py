"""The language of content filters: a subscriber's conditions on the contents of publications.

A filter is a condition in a subset of the expressions of Message Broker (ESQL): comparisons (=, <>, !=, <, <=, >, >=),
LIKE with ESCAPE, IN, BETWEEN, IS NULL, AND, OR, NOT and brackets, on text, numbers, X'hex', TRUE and FALSE, and on

    Root.MQMD.Priority                            a field of the publication's MQMD
    usr.site, Root.MQRFH2.usr.site or site        a property in folder usr, or an MQRFH publisher's own pair
    Body.reading.value or Root.XMLNSC.reading...  the text of the first such element of an XML body

Text is read as tokens, then by a descent in the order of precedence (OR, AND, NOT, a predicate, a value). The parser
reads all constructs of the larger language to their end, except queries (EXISTS, SELECT, THE). So it can tell a
malformed filter from a well-formed filter outside the subset (functions, arithmetic, indexes, other folders).
Source: Message Broker V6, "ESQL functions: reference information", "Complex ESQL functions"; IBM MQ documentation,
"Content-based message selection" and reason codes 2551, 2554 and 3150.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from mq_adapters.mqmd import ATTRIBUTES
from mq_adapters.selection.conditions import (
    And,
    Comparison,
    Condition,
    FilterError,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Reference,
    ReferenceSource,
    UnavailableFilterError,
    like_expression,
    number_of,
)
from mq_adapters.selection.tokens import END, TokenReader, read_tokens, unquoted

#: The most brackets and NOTs inside each other. The broker does not evaluate deeper filters.
MAXIMUM_DEPTH: Final = 50
#: Conditions kept for the filters that are in use.
_KEPT_FILTERS: Final = 4_096
_MAXIMUM_DIGITS: Final = 40

#: Operators between conditions. The first one binds least.
_JOINTS: Final[tuple[tuple[str, type[Or] | type[And]], ...]] = (("OR", Or), ("AND", And))
_COMPARISONS: Final = ("=", "<>", "!=", "<", "<=", ">", ">=")
_ARITHMETIC: Final = ("+", "-", "*", "/", "||")
_RESERVED: Final = frozenset({"AND", "OR", "NOT", "LIKE", "ESCAPE", "IN", "BETWEEN", "IS"})
_NAMES: Final = ("name", "quoted")
#: Words that begin a query, which the parser does not read to its end. Words that begin a constant, before its quotes.
_QUERIES: Final = ("EXISTS", "SELECT", "THE")
_MOMENTS: Final = ("DATE", "GMTTIME", "GMTTIMESTAMP", "INTERVAL", "TIME", "TIMESTAMP")
#: Names of values that are written without brackets.
_REGISTERS: Final = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_GMTDATE", "CURRENT_GMTTIME"),
    *("CURRENT_GMTTIMESTAMP", "LOCAL_TIMEZONE"),
)
_STATES: Final = ("TRUE", "FALSE", "UNKNOWN", "INF", "INFINITY", "NAN", "NUM", "NUMBER")
#: Functions with words between their values: one of each group must follow, and then each single word may follow.
_WORDED_FUNCTIONS: Final[Mapping[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]]] = {
    "SUBSTRING": ((("FROM", "BEFORE", "AFTER"),), ("FOR",)),
    "POSITION": ((("IN",),), ("FROM", "REPEAT")),
    "OVERLAY": ((("PLACING",), ("FROM",)), ("FOR",)),
    "EXTRACT": ((("FROM",),), ()),
}
_CAST_OPTIONS: Final = ("CCSID", "ENCODING", "FORMAT", "DEFAULT")
_ROOTS: Final = frozenset({"Root", "InputRoot"})
_BODIES: Final = frozenset({"XMLNSC", "XMLNS", "XML"})
_PROPERTIES: Final = ("usr",)

#: What the parser finds before it knows whether a condition or a value belongs there.
_Found = Condition | Operand


@lru_cache(maxsize=_KEPT_FILTERS)
def parse_filter(text: str) -> Condition:
    """The condition that a filter states.

    Raises FilterError if it is malformed, UnavailableFilterError if it is well formed but outside the subset.
    """
    parser = _Parser(read_tokens(text))
    condition = parser.whole()
    if parser.unavailable:
        raise UnavailableFilterError(parser.unavailable)
    return condition


class _Parser(TokenReader):
    """Goes through the tokens once. `unavailable` is the first construct outside the subset, or empty."""

    _depth = 0
    unavailable = ""

    def whole(self) -> Condition:
        condition = _condition(self._expression())
        if self._token.kind != END:
            raise self._error("cannot stand here")
        return condition

    def _unevaluated(self, construct: str) -> Literal:
        """Notes a construct that is well formed but cannot be evaluated. Returns a value in its place."""
        self.unavailable = self.unavailable or f"{construct} is not evaluated here"
        return Literal(True)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise UnavailableFilterError(f"more than {MAXIMUM_DEPTH} brackets inside each other are not evaluated here")
        yield
        self._depth -= 1

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _expression(self, level: int = 0) -> _Found:
        if level == len(_JOINTS):
            return self._not()
        word, joint = _JOINTS[level]
        terms = [self._expression(level + 1)]
        while self._took(word):
            terms.append(self._expression(level + 1))
        return terms[0] if len(terms) == 1 else joint(tuple(map(_condition, terms)))

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
        left = self._value()
        if operator := self._took(*_COMPARISONS):
            return Comparison(operator.replace("!=", "<>"), self._operand(left), self._operand())
        if self._took("IS"):
            return self._is_state(left)
        is_negated = self._took("NOT")
        if word := self._took(*_PREDICATES):
            found = _PREDICATES[word](self, left)
            return Not(found) if is_negated else found
        if is_negated:
            raise self._error("stands where LIKE, IN or BETWEEN belongs")
        return left

    def _is_state(self, left: _Found) -> Condition:
        is_negated = self._took("NOT")
        if self._token.word in _STATES:
            self._unevaluated(f"IS {self._next().text}")
        else:
            self._expect("NULL")
        null = IsNull(self._operand(left))
        return Not(null) if is_negated else null

    def _like(self, left: _Found) -> Condition:
        operand, pattern = self._operand(left), self._operand()
        escape = self._text() if self._took("ESCAPE") else None
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            self._unevaluated("LIKE with a pattern that is not a text in the filter itself")
            return IsNull(operand)
        if escape is not None and len(escape) != 1:
            raise FilterError("ESCAPE takes one character")
        return Like(operand, like_expression(pattern.value, escape))

    def _in(self, left: _Found) -> Condition:
        self._expect("(")
        choices = self._list()
        return In(self._operand(left), choices)

    def _between(self, left: _Found) -> Condition:
        operand = self._operand(left)
        if self._token.word in ("SYMMETRIC", "ASYMMETRIC") and self._following.word != "AND":
            self._unevaluated(f"BETWEEN {self._next().text}")
        lowest = self._operand()
        self._expect("AND")
        return And((Comparison(">=", operand, lowest), Comparison("<=", operand, self._operand())))

    # -- values --------------------------------------------------------------------------------------------------------

    def _operand(self, found: _Found | None = None) -> Operand:
        """What was found, or else what is read now, as an operand."""
        found = self._value() if found is None else found
        return found if isinstance(found, Operand) else self._unevaluated("a condition as a value")

    def _list(self) -> tuple[Operand, ...]:
        """Operands up to the closing bracket."""
        choices = [self._operand()]
        while self._took(","):
            choices.append(self._operand())
        self._expect(")")
        return tuple(choices)

    def _value(self) -> _Found:
        """An operand, or a condition in brackets. Arithmetic is read, and not evaluated."""
        found = self._signed()
        while operator := self._took(*_ARITHMETIC):
            self._signed()
            found = self._unevaluated(f"the operator {operator}")
        return found

    def _signed(self) -> _Found:
        signs = ""
        while sign := self._took("-", "+"):
            signs += sign
        found = self._primary()
        if not signs:
            return found
        if isinstance(found, Literal) and isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return Literal(-found.value if signs.count("-") % 2 else found.value)
        return self._unevaluated("a sign before something that is not a number")

    def _primary(self) -> _Found:
        token = self._token
        if self._took("("):
            with self._deeper():
                found = self._expression()
                self._expect(")")
            return found
        if token.kind == "text":
            return Literal(self._text())
        if token.kind == "hex":
            return Literal(self._hex())
        if token.kind == "number":
            if len(self._next().text) > _MAXIMUM_DIGITS:
                return self._unevaluated(f"a number of more than {_MAXIMUM_DIGITS} characters")
            return Literal(number_of(token.text))
        if token.kind in _NAMES and token.word not in _RESERVED:
            return self._named()
        raise self._error("stands where a value belongs")

    def _text(self) -> str:
        if self._token.kind != "text":
            raise self._error("stands where a text in quotes belongs")
        return unquoted(self._next().text)

    def _hex(self) -> bytes:
        try:
            value = bytes.fromhex(self._token.text[2:-1])
        except ValueError:
            raise self._error("is not a whole number of bytes in hexadecimal") from None
        self._next()
        return value

    def _named(self) -> Operand:
        """A constant, a call of a function, or a reference."""
        token, following = self._token, self._following
        if word := self._took("TRUE", "FALSE"):
            return Literal(word == "TRUE")
        if self._took("NULL"):
            return self._unevaluated("NULL as a value")
        is_query = token.word in _QUERIES and following.word != "."
        if is_query or (token.word in _MOMENTS and following.kind == "text"):
            raise UnavailableFilterError(f"{token.text} is not evaluated here")
        if following.word == "(" and token.word in ("CAST", "TRIM", *_WORDED_FUNCTIONS):
            return self._function_with_words()
        if following.word not in (".", "(") and token.word == "CASE":
            return self._case()
        if following.word not in (".", "(") and token.word in _REGISTERS:
            return self._unevaluated(self._next().text)
        return self._call_or_reference()

    def _call_or_reference(self) -> Operand:
        begin = self._at
        self._path()
        tokens = self._tokens[begin : self._at]
        names = tuple(token.text if token.kind == "name" else unquoted(token.text) for token in tokens[::2])
        if len(tokens) == 1 and self._took("("):
            with self._deeper():
                if not self._took(")"):
                    self._list()
            return self._unevaluated(f"the function {names[0][:50]}")
        is_plain = all(token.kind in _NAMES or token.word == "." for token in tokens)
        reference = _reference(names) if is_plain else None
        text = "".join(token.text for token in tokens)
        return reference or self._unevaluated(f"the reference {text[:100]!a}")

    # -- constructs of their own grammar, read and not evaluated -------------------------------------------------------

    def _function_with_words(self) -> Operand:
        """CAST, TRIM, or a function of _WORDED_FUNCTIONS."""
        name = self._next().word
        with self._deeper():
            self._expect("(")
            if name == "CAST":
                self._cast()
            elif name == "TRIM":
                self._trim()
            else:
                self._value()
                needed, optional = _WORDED_FUNCTIONS[name]
                for words in needed:
                    self._expect(*words)
                    self._value()
                self._options(optional)
            self._expect(")")
        return self._unevaluated(f"the function {name}")

    def _options(self, words: tuple[str, ...]) -> None:
        """Each word may stand here, in this order, with a value behind it."""
        for word in words:
            if self._took(word):
                self._value()

    def _trim(self) -> None:
        """[[BOTH | LEADING | TRAILING] [what] FROM] text"""
        has_side = self._took("BOTH", "LEADING", "TRAILING")
        if not has_side or self._token.word != "FROM":
            self._value()
        if has_side:
            self._expect("FROM")
            self._value()
        else:
            self._options(("FROM",))

    def _cast(self) -> None:
        """value AS type [(length)] [CCSID value] [ENCODING value] [FORMAT value] [DEFAULT value]"""
        self._value()
        self._expect("AS")
        self._name()
        while self._token.kind == "name" and self._token.word not in _CAST_OPTIONS:
            self._next()  # the qualifiers of INTERVAL
        if self._took("("):
            self._list()
        self._options(_CAST_OPTIONS)

    def _case(self) -> Operand:
        """CASE [value] WHEN value THEN value ... [ELSE value] END"""
        self._next()
        with self._deeper():
            if self._token.word != "WHEN":
                self._expression()
            self._expect("WHEN")
            self._alternative()
            while self._took("WHEN"):
                self._alternative()
            if self._took("ELSE"):
                self._expression()
            self._expect("END")
        return self._unevaluated("CASE")

    def _alternative(self) -> None:
        self._expression()
        self._expect("THEN")
        self._expression()

    def _path(self) -> None:
        """The steps of a reference: names or `*` between dots, perhaps with a type, a name space or an index."""
        self._name()
        self._end_step()
        while self._took("."):
            if self._took("("):
                with self._deeper():
                    self._path()
                    self._expect(")")
            if not self._took("*"):
                self._name()
            self._end_step()

    def _end_step(self) -> None:
        """A name space (`:name`) and an index (`[5]`, `[<]`, `[<5]`), if they are there."""
        if self._took(":"):
            self._name()
        if self._took("["):
            self._took("<")
            if self._token.kind == "number":
                self._next()
            self._expect("]")

    def _name(self) -> None:
        if self._token.kind not in _NAMES:
            raise self._error("stands where a name belongs")
        self._next()


#: The predicates that NOT may stand before, by the word behind their left side.
_PREDICATES: Final[Mapping[str, Callable[[_Parser, _Found], Condition]]] = {
    "LIKE": _Parser._like,
    "IN": _Parser._in,
    "BETWEEN": _Parser._between,
}


def _condition(found: _Found) -> Condition:
    if isinstance(found, Literal) and not isinstance(found.value, bool):
        raise FilterError(f"{found.value!r:.50} is a value where a condition belongs")
    return IsTrue(found) if isinstance(found, Operand) else found


def _reference(path: tuple[str, ...]) -> Reference | None:
    """The reference of a path of names; None if it is outside the subset."""
    has_root = path[0] in _ROOTS
    names = path[1:] if has_root else path
    if len(names) < 2:
        return None if has_root else Reference(ReferenceSource.PROPERTY, names)
    if names[0] == "MQMD":
        field = ATTRIBUTES.get(names[1]) if len(names) == 2 else None
        return Reference(ReferenceSource.MQMD, (field,)) if field is not None else None
    if names[0] in _BODIES or (names[0] == "Body" and not has_root):
        return Reference(ReferenceSource.BODY, names[1:])
    names = names[1:] if names[0] == "MQRFH2" else names
    if names[:1] == _PROPERTIES and len(names) == 2:
        return Reference(ReferenceSource.PROPERTY, names[1:])
    return None
