"""The query of a request for conversion, read. Nothing of HTTP but the names."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from gateway.conversion.message import ConversionRequest
from mappings.conversion.convert import Mode
from mappings.table import Dialect

_FORMAT_CHARACTERS: Final = 8
_INT32_MAXIMUM: Final = 2**31 - 1
_KNOWN: Final = ("to", "mode", "format", "ccsid", "encoding")

_Choice = TypeVar("_Choice", bound=StrEnum)


class BadRequest(Exception):
    """A parameter of the query is missing, unknown or wrong: the client's fault."""

    def __init__(self, parameter: str, hint: str) -> None:
        super().__init__(parameter, hint)
        self.parameter = parameter
        self.hint = hint


def request_of_query(query: Mapping[str, str]) -> ConversionRequest:
    """The conversion that a query asks for; an empty value is none. Raises BadRequest."""
    for name in query:
        if name not in _KNOWN:
            raise BadRequest(name, f"{name!r} is not known; there are {', '.join(_KNOWN)}")
    to = _choice(Dialect, "to", query.get("to", ""))
    if to is None:
        raise BadRequest("to", f"say the wanted format: to={' or to='.join(Dialect)}")
    return ConversionRequest(
        to=to,
        mode=_choice(Mode, "mode", query.get("mode", "")) or Mode.STRICT,
        format=_format(query.get("format", "")),
        coded_char_set_id=_number("ccsid", query.get("ccsid", "")),
        encoding=_number("encoding", query.get("encoding", "")),
    )


def _choice(choices: type[_Choice], name: str, text: str) -> _Choice | None:
    if not text:
        return None
    try:
        return choices(text)
    except ValueError:
        raise BadRequest(name, f"{text[:40]!r} is not one of {', '.join(choices)}") from None


def _format(text: str) -> bytes | None:
    if len(text) > _FORMAT_CHARACTERS or not text.isascii() or not text.isprintable():
        raise BadRequest("format", "a format name has up to 8 ASCII characters, MQHRF2 for example")
    return text.encode("ascii").ljust(_FORMAT_CHARACTERS) if text else None


def _number(name: str, text: str) -> int | None:
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > len(str(_INT32_MAXIMUM)):
        raise BadRequest(name, f"{text[:40]!r} is not a whole number such as 1208 or 546")
    if int(digits) > _INT32_MAXIMUM:
        raise BadRequest(name, f"{text} does not fit into 32 bits")
    return int(text)
