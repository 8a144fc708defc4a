"""A period of a trail: its records, and the segments that are needed to judge them.

A segment is named after the hour (UTC) in which its first record was noted, and ends within it or soon after. The audit
also reads a day on both sides of a period. So it knows exchanges that began or ended there. Those further away are
pending.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

#: The time read before and after the period: a day, in microseconds.
AROUND_US: Final = 24 * 3_600 * 1_000_000
#: A segment may go on for so long after the beginning of its hour, microseconds. It rolls at the next hour, or later
#: when idle.
_SEGMENT_US: Final = 2 * 3_600 * 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: The position of the hour in a segment's name, from 0.
_HOUR_AT: Final = 13
_HOUR_CHARACTERS: Final = 11
_HOUR: Final = re.compile(r"[0-9]{12}-([0-9]{8}T[0-9]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `from_us` until before `until_us`, microseconds since 1970 UTC; 0 for no limit."""

    from_us: int = 0
    until_us: int = 0

    @property
    def is_everything(self) -> bool:
        return not self.from_us and not self.until_us

    def holds(self, at_us: int | None) -> bool:
        """Whether a record that was noted then lies within."""
        if self.is_everything:
            return True
        return at_us is not None and self.from_us <= at_us and (not self.until_us or at_us < self.until_us)

    def concerns_hour(self, hour_us: int) -> bool:
        """Whether segments of the hour that begins then must be read."""
        is_late_enough = not self.from_us or hour_us + _SEGMENT_US > self.from_us - AROUND_US
        return is_late_enough and (not self.until_us or hour_us < self.until_us + AROUND_US)

    def concerns(self, stem: str) -> bool:
        """Whether the hour in a segment's name must be read."""
        hour = stem[_HOUR_AT : _HOUR_AT + _HOUR_CHARACTERS]
        is_late_enough = not self.from_us or hour > _hour_text(self.from_us - AROUND_US - _SEGMENT_US)
        return is_late_enough and (not self.until_us or hour <= _hour_text(self.until_us + AROUND_US - 1))

    def to_read(self, names: list[str]) -> list[str]:
        """The names of segments to read: from the first to the last that the period concerns."""
        concerned = [place for place, name in enumerate(names) if self.concerns_hour(hour_of(name))]
        return names[concerned[0] : concerned[-1] + 1] if concerned else []


EVERYTHING: Final = Period()


def hour_of(segment: str) -> int:
    """The beginning of the hour in a segment's name, microseconds; 0 if the name has no hour that exists."""
    named = _HOUR.match(segment)
    try:
        hour = datetime.strptime(named[1] if named else "", "%Y%m%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return (hour - _EPOCH) // timedelta(microseconds=1)


def _hour_text(at_us: int) -> str:
    """The hour of a time, as in names."""
    return f"{_EPOCH + timedelta(microseconds=max(at_us, 0)):%Y%m%dT%H}"


def moment_of(text: str) -> int:
    """Microseconds of an ISO 8601 time with its zone, or of a date (midnight UTC). Raises ValueError."""
    told = datetime.fromisoformat(text)
    if told.tzinfo is None:
        if "T" in text or " " in text or ":" in text:
            raise ValueError(f"{text} has no zone: add Z for UTC, or +01:00")
        told = told.replace(tzinfo=UTC)
    microseconds = (told - _EPOCH) // timedelta(microseconds=1)
    if microseconds <= 0:
        raise ValueError(f"{text} is not after 1970")
    return microseconds


def moment_text(at_us: int) -> str:
    """The same time in ISO 8601, UTC."""
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat().replace("+00:00", "Z")


def second_text(at_us: int) -> str:
    """The time to the second, UTC, or the number where it is no time."""
    try:
        return f"{datetime.fromtimestamp(at_us // 1_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return str(at_us)
