"""Reads the text of a content filter: tokens, then a descent by precedence (OR, AND, NOT, a predicate, an operand).

The parser reads all constructs of the larger language to their end, except queries (EXISTS, SELECT, THE). So it can
tell a malformed filter from a well-formed filter outside the subset of `content_filter`. Source: Message Broker V6,
"ESQL functions: reference information", "Complex ESQL functions".
"""

from functools import lru_cache
from typing import Final

from mq_adapters.broker.content_filter import (
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
from mq_adapters.broker.content_filter_tokens import END, Token, TokenReader, read_tokens, unquoted
from mq_adapters.mqmd import ATTRIBUTES

#: The most brackets and NOTs inside each other. The broker does not evaluate deeper filters.
MAXIMUM_DEPTH: Final = 50
#: Conditions kept for the filters that are in use.
_KEPT_FILTERS: Final = 4_096

_MAXIMUM_DIGITS: Final = 40
_COMPARISONS: Final = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "||"})
_RESERVED: Final = frozenset({"AND", "OR", "NOT", "LIKE", "ESCAPE", "IN", "BETWEEN", "IS"})
#: Words that begin a query, which the parser does not read to its end. Words that begin a constant, before its quotes.
_QUERIES: Final = ("EXISTS", "SELECT", "THE")
_MOMENTS: Final = ("DATE", "GMTTIME", "GMTTIMESTAMP", "INTERVAL", "TIME", "TIMESTAMP")
#: Names of values that are written without brackets.
_REGISTERS: Final = (
    *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_GMTDATE", "CURRENT_GMTTIME"),
    *("CURRENT_GMTTIMESTAMP", "LOCAL_TIMEZONE"),
)
_STATES: Final = ("TRUE", "FALSE", "UNKNOWN", "INF", "INFINITY", "NAN", "NUM", "NUMBER")
#: Functions with words between their values. One of the first words must follow; the second words are optional.
_WORDED_FUNCTIONS: Final = {
    "SUBSTRING": ((("FROM", "BEFORE", "AFTER"),), ("FOR",)),
    "POSITION": ((("IN",),), ("FROM", "REPEAT")),
    "OVERLAY": ((("PLACING",), ("FROM",)), ("FOR",)),
    "EXTRACT": ((("FROM",),), ()),
}
_CAST_OPTIONS: Final = ("CCSID", "ENCODING", "FORMAT", "DEFAULT")
_ROOTS: Final = frozenset({"Root", "InputRoot"})
_BODIES: Final = frozenset({"XMLNSC", "XMLNS", "XML"})
_PROPERTIES: Final = ("usr",)


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

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._depth = 0
        self.unavailable = ""

    def whole(self) -> Condition:
        condition = self._condition(self._or())
        if self._token.kind != END:
            raise self._error("cannot stand here")
        return condition

    def _set_aside(self, construct: str) -> Literal:
        """Notes a construct that is well formed but cannot be evaluated. Returns a value in its place."""
        self.unavailable = self.unavailable or f"{construct} is not evaluated here"
        return Literal(True)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _or(self) -> Condition | Operand:
        terms = [self._and()]
        while self._took_word("OR"):
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else Or(tuple(self._condition(term) for term in terms))

    def _and(self) -> Condition | Operand:
        terms = [self._not()]
        while self._took_word("AND"):
            terms.append(self._not())
        return terms[0] if len(terms) == 1 else And(tuple(self._condition(term) for term in terms))

    def _not(self) -> Condition | Operand:
        nots = 0
        while self._took_word("NOT"):
            nots += 1
        found = self._predicate()
        if not nots:
            return found
        condition = self._condition(found)
        return Not(condition) if nots % 2 else Not(Not(condition))

    def _condition(self, found: Condition | Operand) -> Condition:
        if isinstance(found, Literal) and not isinstance(found.value, bool):
            raise FilterError(f"{found.value!r:.50} is a value where a condition belongs")
        return IsTrue(found) if isinstance(found, Literal | Reference) else found

    def _predicate(self) -> Condition | Operand:
        left = self._value()
        if self._token.kind == "operator" and self._token.text in _COMPARISONS:
            operator = self._next().text.replace("!=", "<>")
            return Comparison(operator, self._operand(left), self._operand(self._value()))
        if self._took_word("IS"):
            is_negated = self._took_word("NOT")
            if self._is_word(*_STATES):
                self._set_aside(f"IS {self._next().text}")
            else:
                self._expect_word("NULL")
            null = IsNull(self._operand(left))
            return Not(null) if is_negated else null
        is_negated = self._took_word("NOT")
        found = self._range(left)
        if found is None and is_negated:
            raise self._error("stands where LIKE, IN or BETWEEN belongs")
        if found is None:
            return left
        return Not(found) if is_negated else found

    def _range(self, left: Condition | Operand) -> Condition | None:
        """LIKE, IN or BETWEEN behind its left side; None if none of the three follows."""
        if self._took_word("LIKE"):
            return self._like(self._operand(left))
        if self._took_word("IN"):
            self._expect("(")
            choices = self._list()
            return In(self._operand(left), choices)
        if self._took_word("BETWEEN"):
            operand = self._operand(left)
            if self._is_word("SYMMETRIC", "ASYMMETRIC") and self._following.text.upper() != "AND":
                self._set_aside(f"BETWEEN {self._next().text}")
            lowest = self._operand(self._value())
            self._expect_word("AND")
            highest = self._operand(self._value())
            return And((Comparison(">=", operand, lowest), Comparison("<=", operand, highest)))
        return None

    def _like(self, operand: Operand) -> Condition:
        pattern = self._operand(self._value())
        escape = self._text() if self._took_word("ESCAPE") else None
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            self._set_aside("LIKE with a pattern that is not a text in the filter itself")
            return IsNull(operand)
        if escape is not None and len(escape) != 1:
            raise FilterError("ESCAPE takes one character")
        return Like(operand, like_expression(pattern.value, escape))

    def _text(self) -> str:
        if self._token.kind != "text":
            raise self._error("stands where a text in quotes belongs")
        return unquoted(self._next().text)

    def _list(self) -> tuple[Operand, ...]:
        choices = [self._operand(self._value())]
        while self._took_operator(","):
            choices.append(self._operand(self._value()))
        self._expect(")")
        return tuple(choices)

    # -- values --------------------------------------------------------------------------------------------------------

    def _operand(self, found: Condition | Operand) -> Operand:
        if isinstance(found, Literal | Reference):
            return found
        return self._set_aside("a condition as a value")

    def _value(self) -> Condition | Operand:
        """An operand, or a condition in brackets; arithmetic is read through and set aside."""
        found = self._signed()
        while self._token.kind == "operator" and self._token.text in _ARITHMETIC:
            operator = self._next().text
            self._signed()
            found = self._set_aside(f"the operator {operator}")
        return found

    def _signed(self) -> Condition | Operand:
        sign, signs = 1, 0
        while self._is_operator("-", "+"):
            sign, signs = (-sign if self._next().text == "-" else sign), signs + 1
        found = self._primary()
        if not signs:
            return found
        if isinstance(found, Literal) and isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return Literal(sign * found.value)
        return self._set_aside("a sign before something that is not a number")

    def _primary(self) -> Condition | Operand:
        token = self._token
        if self._took_operator("("):
            return self._bracketed()
        if token.kind == "text":
            return Literal(self._text())
        if token.kind == "hex":
            return Literal(self._hex())
        if token.kind == "number":
            if len(self._next().text) > _MAXIMUM_DIGITS:
                return self._set_aside(f"a number of more than {_MAXIMUM_DIGITS} characters")
            return Literal(number_of(token.text))
        if token.kind in ("name", "quoted") and not self._is_word(*_RESERVED):
            return self._named()
        raise self._error("stands where a value belongs")

    def _bracketed(self) -> Condition | Operand:
        self._go_deeper()
        found = self._or()
        self._expect(")")
        self._depth -= 1
        return found

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise UnavailableFilterError(f"more than {MAXIMUM_DEPTH} brackets inside each other are not evaluated here")

    def _hex(self) -> bytes:
        token = self._token
        try:
            value = bytes.fromhex(token.text[2:-1])
        except ValueError:
            raise self._error("is not a whole number of bytes in hexadecimal") from None
        self._next()
        return value

    def _named(self) -> Operand:
        """A constant, a call of a function, or a reference."""
        token = self._token
        if token.kind == "name" and token.text.upper() in ("TRUE", "FALSE"):
            self._next()
            return Literal(token.text.upper() == "TRUE")
        if self._took_word("NULL"):
            return self._set_aside("NULL as a value")
        following = self._following
        if (self._is_word(*_QUERIES) and following.text != ".") or (
            self._is_word(*_MOMENTS) and following.kind == "text"
        ):
            raise UnavailableFilterError(f"{token.text} is not evaluated here")
        if self._is_word("CASE") and following.text not in (".", "("):
            return self._case()
        if self._is_word("CAST", "TRIM", *_WORDED_FUNCTIONS) and following.text == "(":
            return self._function_with_words()
        if self._is_word(*_REGISTERS) and following.text not in (".", "("):
            return self._set_aside(self._next().text)
        path, is_plain = self._path()
        if len(path) == 1 and is_plain and self._took_operator("("):
            return self._call(path[0])
        reference = _reference(path) if is_plain else None
        return reference or self._set_aside(f"the reference {'.'.join(path)[:100]!a}")

    def _call(self, name: str) -> Operand:
        self._go_deeper()
        if not self._took_operator(")"):
            self._list()
        self._depth -= 1
        return self._set_aside(f"the function {name[:50]}")

    # -- constructs of their own grammar, read through and set aside ---------------------------------------------------

    def _function_with_words(self) -> Operand:
        """CAST, TRIM, or a function of _WORDED_FUNCTIONS."""
        name = self._next().text.upper()
        self._go_deeper()
        self._expect("(")
        if name == "CAST":
            self._cast()
        elif name == "TRIM":
            self._trim()
        else:
            needed, optional = _WORDED_FUNCTIONS[name]
            self._value()
            for words in needed:
                self._expect_word(next((word for word in words if self._is_word(word)), words[0]))
                self._value()
            for word in optional:
                if self._took_word(word):
                    self._value()
        self._expect(")")
        self._depth -= 1
        return self._set_aside(f"the function {name}")

    def _trim(self) -> None:
        """[[BOTH | LEADING | TRAILING] [what] FROM] text"""
        if self._is_word("BOTH", "LEADING", "TRAILING"):
            self._next()
            if not self._is_word("FROM"):
                self._value()
            self._expect_word("FROM")
            self._value()
            return
        self._value()
        if self._took_word("FROM"):
            self._value()

    def _cast(self) -> None:
        """value AS type [(length)] [CCSID value] [ENCODING value] [FORMAT value] [DEFAULT value]"""
        self._value()
        self._expect_word("AS")
        self._path_name()
        while self._token.kind == "name" and not self._is_word(*_CAST_OPTIONS):
            self._next()  # the qualifiers of INTERVAL
        if self._took_operator("("):
            self._list()
        for word in _CAST_OPTIONS:
            if self._took_word(word):
                self._value()

    def _case(self) -> Operand:
        """CASE [value] WHEN value THEN value ... [ELSE value] END"""
        self._next()
        self._go_deeper()
        if not self._is_word("WHEN"):
            self._or()
        self._expect_word("WHEN")
        self._alternative()
        while self._took_word("WHEN"):
            self._alternative()
        if self._took_word("ELSE"):
            self._or()
        self._expect_word("END")
        self._depth -= 1
        return self._set_aside("CASE")

    def _alternative(self) -> None:
        self._or()
        self._expect_word("THEN")
        self._or()

    # -- references ----------------------------------------------------------------------------------------------------

    def _path(self) -> tuple[tuple[str, ...], bool]:
        """The names of a reference, and whether it has only names: no index, type, name space or `*`."""
        names = [self._path_name()]
        is_plain = self._is_simple_step()
        while self._took_operator("."):
            if self._took_operator("("):
                self._go_deeper()
                self._path()
                self._expect(")")
                self._depth -= 1
                is_plain = False
            if self._took_operator("*"):
                is_plain = False
                names.append("*")
            else:
                names.append(self._path_name())
            is_plain = self._is_simple_step() and is_plain
        return tuple(names), is_plain

    def _path_name(self) -> str:
        token = self._token
        if token.kind not in ("name", "quoted"):
            raise self._error("stands where a name belongs")
        self._next()
        return token.text if token.kind == "name" else unquoted(token.text)

    def _is_simple_step(self) -> bool:
        """Reads a name space and an index behind a name. Returns whether there was neither."""
        is_simple = True
        if self._took_operator(":"):
            self._path_name()
            is_simple = False
        if self._took_operator("["):
            self._took_operator("<")
            if self._token.kind == "number":
                self._next()
            self._expect("]")
            is_simple = False
        return is_simple


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
