"""Lengths of time as people type them: 30d, 12h, 45m, 90s."""

from typing import Final

import typer

#: Seconds of a unit, and digits of the longest number.
_UNITS_S: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LONGEST_NUMBER: Final = 5


def seconds_of(text: str) -> int:
    """A time like 30d or 12h in seconds."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not (number.isascii() and number.isdigit()) or len(number) > _LONGEST_NUMBER:
        raise typer.BadParameter(f"{text!r} is not a time: write a number with d, h, m or s, for example 30d")
    return int(number) * _UNITS_S[unit]
