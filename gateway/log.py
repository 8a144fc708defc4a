"""The log: events in the past tense with key=value, one a line, on standard error.

    events = event_log(__name__)
    events.info("connection_closed", client="pump-7", reason="keep-alive ran out")

Payloads, header bytes and passwords are never logged: a field of `bytes` shows its length alone, and the names in
WITHHELD never show their value. A value with blanks, quotes, `=` or control characters is quoted as JSON quotes it.
"""

import json
import logging
import sys
import time
import traceback
from typing import Final, Literal

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]
Value = str | int | float | bool | bytes | None

#: Fields whose values stay out of the log whatever they hold.
WITHHELD: Final = frozenset({"body", "password", "payload", "user_password", "will_message", "will_payload"})
#: Longer texts (a client identifier may have 65,535 bytes) are cut to this many characters.
MAXIMUM_VALUE_CHARACTERS: Final = 512

_ROOT: Final = "rfhbridge"
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FIELDS: Final = "event_fields"


class EventLog:
    """Where one module logs its events."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: Value) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Value) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Value) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Value) -> None:
        self._log(logging.ERROR, event, fields)

    def failure(self, event: str, error: BaseException, **fields: Value) -> None:
        """An error that nobody expected: the event, the error, and the traceback in one line."""
        self._logger.error(event, exc_info=error, extra={_FIELDS: {**fields, "error": repr(error)}})

    def _log(self, level: int, event: str, fields: dict[str, Value]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={_FIELDS: fields})


def event_log(name: str) -> EventLog:
    """The event log of a module; `name` is its `__name__`."""
    return EventLog(logging.getLogger(f"{_ROOT}.{name}"))


def configure(level: Level = "info", format: Format = "text") -> None:
    """Logs to standard error from now on, in place of what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if format == "json" else _TextLines())
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    root.propagate = False
    logging.raiseExceptions = False  # a log that cannot be written must not fill standard error with tracebacks


class _TextLines(logging.Formatter):
    """2026-11-20T06:50:48.123Z info gateway.listener connection_closed client=pump-7"""

    def format(self, record: logging.LogRecord) -> str:
        fields = [f"{name}={_text(value)}" for name, value in _fields_of(record).items()]
        return " ".join((_time_of(record), record.levelname.lower(), _module_of(record), record.getMessage(), *fields))


class _JsonLines(logging.Formatter):
    """{"at":"2026-11-20T06:50:48.123Z","level":"info","module":"gateway.listener","event":"connection_closed", ...}"""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Value] = {
            "at": _time_of(record),
            "level": record.levelname.lower(),
            "module": _module_of(record),
            "event": record.getMessage(),
        }
        return json.dumps(_fields_of(record) | line, ensure_ascii=False, separators=(",", ":"))


def _fields_of(record: logging.LogRecord) -> dict[str, Value]:
    fields = {name: _shown(name, value) for name, value in getattr(record, _FIELDS, {}).items()}
    if record.exc_info and record.exc_info[1] is not None:
        fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return fields


def _shown(name: str, value: Value) -> Value:
    if name in WITHHELD:
        return "(withheld)"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value)} bytes)"
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return text if len(text) <= MAXIMUM_VALUE_CHARACTERS else text[:MAXIMUM_VALUE_CHARACTERS] + "..."


def _text(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    plain = text.isprintable() and not any(character in ' "=' for character in text)
    return text if text and plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _time_of(record: logging.LogRecord) -> str:
    """The time of the record in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def _module_of(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{_ROOT}.")
