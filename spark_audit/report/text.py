"""Words of strangers made harmless: topics, client identifiers, reasons and file names may hold anything.

What would steer a terminal, turn the direction of a line, or hide, is spelled out (\\u202e); what is long is cut, and
says so. Escaping for HTML or XML is the business of who writes those.
"""

import unicodedata
from datetime import UTC, datetime
from typing import Final

#: Characters of a stranger's text that are shown in a table.
SHOWN: Final = 300
#: Marks on top of one letter that writing needs; more only paint over the lines around.
_MARKS: Final = 3
_DASH: Final = "–"


def visible(text: str, limit: int = SHOWN) -> str:
    """The text in one line of characters that can be seen; of a longer one the first and the last of its `limit`."""
    if len(text) <= limit:
        return _visible(text)
    end = limit // 4
    return f"{_visible(text[: limit - end])}… ({len(text):,} characters) …{_visible(text[-end:])}"


def _visible(text: str) -> str:
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        shown.append(character if character.isprintable() and marks <= _MARKS else _spelled(character))
    return "".join(shown)


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def moment(at_us: int) -> str:
    """A time for people, UTC; a dash for 0 or for a number that is no time."""
    try:
        return (
            datetime.fromtimestamp(at_us / 1_000_000, UTC).isoformat(sep=" ", timespec="milliseconds")
            if at_us
            else _DASH
        )
    except (OverflowError, ValueError, OSError):
        return _DASH


def duration(microseconds: int) -> str:
    """A duration in the unit that suits it, three digits: 850 µs, 1.23 ms, 4.5 s."""
    size = abs(microseconds)
    if size < 1_000:
        return f"{microseconds} µs"
    if size < 1_000_000:
        return f"{microseconds / 1_000:.3g} ms" if size < 999_500 else "1 s"
    if size < 600_000_000:
        return f"{microseconds / 1_000_000:.3g} s"
    return f"{microseconds / 60_000_000:,.0f} min"
