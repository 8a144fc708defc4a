"""The words of commands on stderr, and their ends."""

import sys
from datetime import UTC, datetime
from typing import Final, Protocol

import orjson

DONE: Final = 0
VIOLATIONS: Final = 1
NOT_EVALUABLE: Final = 2
USAGE: Final = 3
#: 128 + SIGINT, as shells count.
INTERRUPTED: Final = 130


class Tell(Protocol):
    """Writes a line to stderr: progress (`info`), or why the command ends (`error`)."""

    def __call__(self, line: str, level: str = "info") -> None: ...


def tell_of(command: str, log_format: str) -> Tell:
    """The form of a command's lines: words, or JSON for a program."""

    def words(line: str, level: str = "info") -> None:
        speaker = f"rfhbridge audit {command}" if level == "error" else "audit"
        print(f"{speaker}: {line}", file=sys.stderr, flush=True)

    return tell_json if log_format == "json" else words


def tell_json(line: str, level: str = "info") -> None:
    """Writes one JSON object a line, like the gateway's log."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"at": at, "level": level, "module": "spark_audit", "event": line}
    print(orjson.dumps(event).decode(), file=sys.stderr, flush=True)


def not_written(folder: object, error: OSError, tell: Tell, option: str = "--out") -> int:
    """Names the place that cannot be written; returns the exit code."""
    place = error.filename if isinstance(error.filename, str) else folder
    tell(f"{place} cannot be written: {error.strerror} (name another folder with {option})", "error")
    return NOT_EVALUABLE
