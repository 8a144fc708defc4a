"""The tokens of filters and selectors: names, numbers, texts in quotes, and operators."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from mq_adapters.selection.conditions import FilterError, UnavailableFilterError

#: The kind of the token that marks the end.
END: Final = "end"

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)
    |(?P<hex>[xX]'[^']*')
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w]))
    |(?P<name>[^\W\d][\w$]*)
    |(?P<operator><>|<=|>=|!=|\|\||[=<>(),.*/+\-\[\]{}:])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text, its kind (a group of the expression above), and its position.

    `word` is what the grammar compares: a name in upper case, or an operator; "" for any other token.
    """

    kind: str
    text: str
    place: int
    word: str = ""


def read_tokens(text: str, expression: re.Pattern[str] = _TOKEN, *, most: int | None = None) -> list[Token]:
    """The tokens of a text, with END behind them. FilterError for a character that belongs to no token.

    `expression` has a group for each kind of token. Without it the text is a content filter. UnavailableFilterError for
    more than `most` tokens.
    """
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = expression.match(text, place)
        if match is None or match.lastgroup is None:
            raise FilterError(f"{text[place : place + 20]!a} at character {place} cannot stand in it")
        kind, piece = match.lastgroup, match[0]
        if most is not None and len(found) >= most:
            raise UnavailableFilterError(f"it has more than {most} words and signs")
        if kind != "blank":
            found.append(Token(kind, piece, place, piece.upper() if kind in ("name", "operator") else ""))
        place = match.end()
    found.append(Token(END, "", place))
    return found


def unquoted(text: str) -> str:
    """The text between the quotes; a doubled quote stands for one."""
    return text[1:-1].replace(text[0] * 2, text[0])


class TokenReader:
    """Goes through tokens one by one; parsers are subclasses."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _pairs(self) -> Iterator[tuple[Token, Token]]:
        """Each token but the first, with the one before it."""
        return pairwise(self._tokens)

    @property
    def _following(self) -> Token:
        """The token behind this one, END at the end."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._token
        self._at += token.kind != END
        return token

    def _took(self, *words: str) -> str:
        """The word or operator of this token, which is read if it is one of these; else ""."""
        return self._next().word if self._token.word in words else ""

    def _expect(self, *words: str) -> None:
        if not self._took(*words):
            raise self._error(f"stands where {words[0]} belongs")

    def _error(self, problem: str) -> FilterError:
        token = self._token
        shown = "the end" if token.kind == END else repr(token.text[:50])
        return FilterError(f"{shown} at character {token.place} {problem}")
