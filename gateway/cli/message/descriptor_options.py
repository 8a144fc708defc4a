"""Command-line options for the fields of an MQMD."""

import re
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from mq_adapters.message import (
    IDENTIFIER_BYTES,
    MQEI_UNLIMITED,
    MQMT_DATAGRAM,
    MQMT_REPLY,
    MQMT_REPORT,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPER_PERSISTENT,
)

_FORMAT_CHARACTERS: Final = 8
_MQ_NAME: Final = re.compile(r"[A-Za-z0-9./_%]{1,48}")
#: MQMT_APPL_LAST: the highest message type that an application may use.
_APPLICATION_LAST: Final = 999_999_999
_MESSAGE_TYPES: Final = {
    "datagram": MQMT_DATAGRAM,
    "request": MQMT_REQUEST,
    "reply": MQMT_REPLY,
    "report": MQMT_REPORT,
}
_PERSISTENCES: Final = {
    "not-persistent": MQPER_NOT_PERSISTENT,
    "persistent": MQPER_PERSISTENT,
    "as-queue": MQPER_PERSISTENCE_AS_Q_DEF,
}


def format_name(text: str) -> bytes:
    """A Format as 8 bytes, blank padded; an empty text is MQFMT_NONE."""
    if len(text) > _FORMAT_CHARACTERS or not text.isascii() or not text.isprintable():
        raise typer.BadParameter(f"{text!r} is not a format name: up to 8 ASCII characters, for example MQHRF2")
    return text.encode("ascii").ljust(_FORMAT_CHARACTERS)


def identifier(text: str) -> bytes:
    """A MsgId or CorrelId: up to 48 hexadecimal digits, filled up with zeros on the right."""
    try:
        given = bytes.fromhex(text)
    except ValueError:
        given = b""
    if not 0 < len(given) <= IDENTIFIER_BYTES:
        raise typer.BadParameter(f"{text!r} is not an identifier: 2 to 48 hexadecimal digits, two for each byte")
    return given.ljust(IDENTIFIER_BYTES, b"\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTo:
    """The queue for the reply; an empty queue manager name is the local one."""

    queue: str
    queue_manager: str


def reply_to(text: str) -> ReplyTo:
    """QUEUE or QUEUE@QMGR."""
    queue, at, queue_manager = text.partition("@")
    if not all(_MQ_NAME.fullmatch(name) for name in ([queue, queue_manager] if at else [queue])):
        raise typer.BadParameter(
            f"{text!r} is not QUEUE or QUEUE@QMGR with names of 1 to 48 letters, digits and . / _ %"
        )
    return ReplyTo(queue=queue, queue_manager=queue_manager)


def message_type(text: str) -> int:
    """A message type by name, or as its number, up to MQMT_APPL_LAST."""
    return _named_number(text, _MESSAGE_TYPES, "a message type", range(1, _APPLICATION_LAST + 1))


def persistence(text: str) -> int:
    """A persistence by name, or as its number, 0 to 2."""
    return _named_number(text, _PERSISTENCES, "a persistence", range(3))


def expiry(text: str) -> int:
    """A lifetime in tenths of a second, or `unlimited`."""
    return _named_number(text, {"unlimited": MQEI_UNLIMITED, "-1": MQEI_UNLIMITED}, "an expiry", range(1, 1 << 31))


def coded_char_set_id_number(text: str | int) -> int:
    """A CodedCharSetId: an MQLONG; negative ones are MQCCSI constants."""
    return _long(text, "a CodedCharSetId")


def encoding_number(text: str | int) -> int:
    """An Encoding: an MQLONG."""
    return _long(text, "an Encoding")


def _long(text: str | int, what: str) -> int:
    """A number that fits into the four bytes of an MQLONG. The default of an option is one already."""
    if re.fullmatch(r"-?[0-9]{1,10}", str(text), re.ASCII) and int(text) in range(-(1 << 31), 1 << 31):
        return int(text)
    raise typer.BadParameter(f"{text!r} is not {what}: a number from {-(1 << 31)} to {(1 << 31) - 1}")


def _named_number(text: str, names: dict[str, int], what: str, allowed: range) -> int:
    if text in names:
        return names[text]
    if text.isascii() and text.isdecimal() and int(text) in allowed:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is not {what}: {', '.join(names)} or a number from {allowed[0]} to {allowed[-1]}"
    )


FormatOption = Annotated[
    bytes | None,
    typer.Option(
        "--format", parser=format_name, metavar="NAME", help="MQMD.Format: the kind of data at the beginning."
    ),
]
CodedCharSetIdOption = Annotated[
    int | None,
    typer.Option(
        "--ccsid",
        parser=coded_char_set_id_number,
        metavar="NUMBER",
        help="MQMD.CodedCharSetId: code page of the first header.",
    ),
]
EncodingOption = Annotated[
    int | None,
    typer.Option(
        "--encoding", parser=encoding_number, metavar="NUMBER", help="MQMD.Encoding: 273 big-endian, 546 little-endian."
    ),
]
MessageIdentifierOption = Annotated[
    bytes | None,
    typer.Option("--msg-id", parser=identifier, metavar="HEX", help="Only the message with this MsgId."),
]
CorrelationIdentifierOption = Annotated[
    bytes | None,
    typer.Option("--correl-id", parser=identifier, metavar="HEX", help="Only messages with this CorrelId."),
]
