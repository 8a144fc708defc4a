"""Times of records, as the commands show them: UTC, to the millisecond."""

from datetime import UTC, datetime
from typing import cast


def moment(at_us: object) -> str:
    """Day and time of microseconds since 1970 UTC, which a record may have wrong."""
    at = _at(at_us)
    return "at an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}Z"


def clock(at_us: object) -> str:
    """The time alone."""
    at = _at(at_us)
    return "at an unknown time" if at is None else f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"


def _at(at_us: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(cast(int, at_us) / 1_000_000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
