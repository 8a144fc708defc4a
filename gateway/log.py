"""The log: events in the past tense with key=value, one a line, on standard error.

Modules use the standard library's logging with a template of this form, and nothing else:

    _log = logging.getLogger(__name__)
    _log.info("connection closed client=%s reason=%s", client, reason)

The words in front are the event, the names are the fields; in the JSON format each is a key of its own. Payloads and
passwords are never logged: a field of bytes shows its length alone, and the names in WITHHELD never show their value.
Values come from clients: one with blanks, quotes, `=` or control characters is quoted as JSON quotes it.
"""

import json
import logging
import re
import sys
import time
import traceback
from typing import Final, Literal

_log = logging.getLogger(__name__)

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]
Value = str | int | float | bool | None

#: Fields whose values stay out of the log whatever they hold.
WITHHELD: Final = frozenset({"body", "password", "payload", "will_message", "will_payload"})
#: A longer text (a client identifier may have 65,535 bytes) is cut to this many characters.
MAXIMUM_VALUE_CHARACTERS: Final = 512

_ROOMS: Final = ("gateway", "mq_adapters", "mappings", "spark_audit", "asyncio")
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_TEMPLATE: Final = re.compile(r"([^=%]+?)((?: \w+=%\w)*)")
_FIELD: Final = re.compile(r" (\w+)=%\w")


def configure(level: Level = "info", format: Format = "text") -> None:
    """Logs to standard error from now on, in place of what was configured before."""
    if sys.unraisablehook is sys.__unraisablehook__:  # nobody else looks after them
        sys.unraisablehook = _tell_unraisable
    handler = _LineHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if format == "json" else _TextLines())
    for room in _ROOMS:
        logger = logging.getLogger(room)
        logger.handlers[:] = [handler]
        logger.setLevel(_LEVELS[level])


def is_json() -> bool:
    """Whether the log is JSON now."""
    return any(isinstance(handler.formatter, _JsonLines) for handler in logging.getLogger(_ROOMS[0]).handlers)


def _tell_unraisable(found: "sys.UnraisableHookArgs") -> None:
    """An error that Python can raise nowhere, because a C library called it, is a line too.

    A client may ask for a host whose name is not ASCII (SNI): Python finds that out before it asks our callback, whose
    object is the name then. Its handshake fails, and `listener.handshake` logs that, at its rate.
    """
    if isinstance(found.exc_value, UnicodeDecodeError) and isinstance(found.object, bytes):
        return
    _log.error("error ignored in=%s", type(found.object).__name__, exc_info=found.exc_value)


class _LineHandler(logging.StreamHandler):  # type: ignore[type-arg]  # generic in its stub alone
    """Standard error; a line that cannot be written is given up: there is nowhere left to say so."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name of the standard library
        return


class _TextLines(logging.Formatter):
    """2026-11-20T06:50:48.123Z info gateway.listener connection closed client=pump-7"""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record)
        shown = (f"{name}={_quoted(value)}" for name, value in fields.items())
        return " ".join((_time_of(record), record.levelname.lower(), record.name, event, *shown))


class _JsonLines(logging.Formatter):
    """{"at":"2026-11-20T06:50:48.123Z","level":"info","module":"gateway.listener","event":"connection closed", ...}"""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record)
        line: dict[str, Value] = {
            "at": _time_of(record),
            "level": record.levelname.lower(),
            "module": record.name,
            "event": event,
        }
        return json.dumps(line | fields | line, ensure_ascii=False, separators=(",", ":"))


def _event_of(record: logging.LogRecord) -> tuple[str, dict[str, Value]]:
    """The event and its fields; a message of another form (a library's) is the event as a whole."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    found = _TEMPLATE.fullmatch(str(record.msg))
    names = _FIELD.findall(found[2]) if found else []
    if found is not None and len(names) == len(arguments):
        event = found[1]
        fields = {name: _shown(name, value) for name, value in zip(names, arguments, strict=True)}
    else:
        event, fields = " ".join(record.getMessage().split()), {}
    if record.exc_info and record.exc_info[1] is not None:
        fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return event, fields


def _shown(name: str, value: object) -> Value:
    if name in WITHHELD:
        return "(withheld)"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value)} bytes)"
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    return text if len(text) <= MAXIMUM_VALUE_CHARACTERS else text[:MAXIMUM_VALUE_CHARACTERS] + "..."


def _quoted(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    is_plain = text.isprintable() and not any(character in ' "=' for character in text)
    return text if text and is_plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _time_of(record: logging.LogRecord) -> str:
    """The time of the record in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
