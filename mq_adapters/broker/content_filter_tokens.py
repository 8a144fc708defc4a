"""The tokens of a content filter: names, numbers, texts in quotes, and operators."""

import re
from typing import Final, NamedTuple

from mq_adapters.broker.content_filter import FilterError

#: The kind of the token behind the last.
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
    """A piece of the text: its kind (a group of the expression above), and where it begins."""

    kind: str
    text: str
    place: int


def read_tokens(text: str) -> list[Token]:
    """The tokens of a filter, END behind them; FilterError for a character that no token has."""
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
    """What stands between the quotes, a doubled one for each inside."""
    return text[1:-1].replace(text[0] * 2, text[0])
