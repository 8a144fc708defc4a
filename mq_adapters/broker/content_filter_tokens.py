"""The tokens of a content filter: names, numbers, texts in quotes, and operators."""

import re
from typing import Final, NamedTuple

from mq_adapters.broker.content_filter import FilterError

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
    """A piece of the text, its kind (a group of the expression above), and its position."""

    kind: str
    text: str
    place: int


def read_tokens(text: str) -> list[Token]:
    """The tokens of a filter, with END behind them. FilterError for a character that belongs to no token."""
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise FilterError(f"{text[place : place + 20]!a} at character {place} is no part of a filter")
        if match.lastgroup != "blank":
            found.append(Token(match.lastgroup, match[0], place))
        place = match.end()
    found.append(Token(END, "", place))
    return found


def unquoted(text: str) -> str:
    """The text between the quotes; a doubled quote stands for one."""
    return text[1:-1].replace(text[0] * 2, text[0])


class TokenReader:
    """Goes through tokens one by one; parsers are subclasses. Words are compared without regard to case."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    @property
    def _following(self) -> Token:
        """The token behind this one, END at the end."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._token
        self._at += token.kind != END
        return token

    def _is_operator(self, *texts: str) -> bool:
        return self._token.kind == "operator" and self._token.text in texts

    def _is_word(self, *words: str) -> bool:
        return self._token.kind == "name" and self._token.text.upper() in words

    def _took_operator(self, text: str) -> bool:
        found = self._is_operator(text)
        self._at += found
        return found

    def _took_word(self, word: str) -> bool:
        found = self._is_word(word)
        self._at += found
        return found

    def _expect(self, text: str) -> None:
        if not self._took_operator(text):
            raise self._error(f"stands where {text} belongs")

    def _expect_word(self, word: str) -> None:
        if not self._took_word(word):
            raise self._error(f"stands where {word} belongs")

    def _error(self, problem: str) -> FilterError:
        token = self._token
        shown = "the end" if token.kind == END else repr(token.text[:50])
        return FilterError(f"{shown} at character {token.place} {problem}")
