"""What a request for conversion asks for, read from its query, and the answer. Nothing of HTTP but the names."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, TypeVar

from mappings.convert import ConversionReport, Mode, convert
from mappings.detection import announcement_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRequest:
    """To which format, how, and what the client knows of the message; what it does not know is found in the bytes."""

    to: Dialect
    mode: Mode
    format: bytes | None
    coded_char_set_id: int | None
    encoding: int | None

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> Self:
        """The request of a query; an empty value is none. Raises BadRequest."""
        for name in query:
            if name not in _KNOWN:
                raise BadRequest(name, f"{name!r} is not known; there are {', '.join(_KNOWN)}")
        to = _choice(Dialect, "to", query.get("to", ""))
        if to is None:
            raise BadRequest("to", f"say the wanted format: to={' or to='.join(Dialect)}")
        return cls(
            to=to,
            mode=_choice(Mode, "mode", query.get("mode", "")) or Mode.STRICT,
            format=_format(query.get("format", "")),
            coded_char_set_id=_number("ccsid", query.get("ccsid", "")),
            encoding=_number("encoding", query.get("encoding", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The whole new message, the Format that its MQMD must say, and what became of every field."""

    message: bytes
    format: str
    report: ConversionReport


def converted(data: bytes, request: ConvertRequest) -> Answer:
    """The message with its header in the wanted format. Raises MappingError."""
    announcement = announcement_of(
        data, format=request.format, coded_char_set_id=request.coded_char_set_id, encoding=request.encoding
    )
    conversion = convert(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
        to=request.to,
        mode=request.mode,
    )
    return Answer(
        message=conversion.header + data[conversion.body_offset :],
        format=conversion.format.decode("ascii").rstrip(),
        report=conversion.report,
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
