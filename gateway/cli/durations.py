"""Times as people type them: lengths (30d, 12h, 45m, 90s) and moments (ISO 8601)."""

from datetime import UTC, datetime
from typing import Final

import typer

#: Seconds of a unit, and digits of the longest number.
_UNITS_S: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LONGEST_NUMBER: Final = 5
_US: Final = 1_000_000


def seconds_of(text: str) -> int:
    """A time like 30d or 12h in seconds."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not (number.isascii() and number.isdigit()) or len(number) > _LONGEST_NUMBER:
        raise typer.BadParameter(f"{text!r} is not a time: write a number with d, h, m or s, for example 30d")
    return int(number) * _UNITS_S[unit]


def point_in_time(text: str) -> int:
    """A time of ISO 8601 in microseconds since 1970; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time (write 2026-11-20T06:00, for example)") from None
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * _US)
