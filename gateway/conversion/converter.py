"""The converter of the conversion service: headers in the other format, each with its audit note.

Many messages have the same header: it is converted once and remembered.
"""

from dataclasses import dataclass
from typing import Final

from gateway.audit_trail.notes.notes import Service
from mappings.conversion.convert import Mode, convert
from mappings.errors import MappingError
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.headers.charset import is_big_endian
from mappings.table import TABLE_VERSION, Dialect
from mq_adapters.message import Message

#: Headers remembered by their bytes: at most this many, none longer than that; past it the memory is emptied.
REMEMBERED_HEADERS: Final = 4_096
REMEMBERED_HEADER_BYTES: Final = 4_096
#: StrucLength of MQRFH and MQRFH2: bytes 8 to 11.
_STRUC_LENGTH: Final = slice(8, 12)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Converted:
    """A converted header, where the body began in the old message, and what the audit notes of it."""

    format: bytes
    header: bytes
    body_offset: int
    service: Service

    @property
    def is_changed(self) -> bool:
        """Whether the header is another one than before."""
        return self.header != self.service.input_header or self.format != self.service.input_format


class Converter:
    """Converts the headers of one queue. Messages with the same header, which are many, are converted once."""

    def __init__(self, *, queue_name: str, to: Dialect, mode: Mode) -> None:
        self._queue_name = queue_name
        self._to = to
        self._mode = mode
        self._remembered: dict[tuple[bytes, bytes, int, int], Converted] = {}

    def converted(self, message: Message) -> Converted:
        """The new header of a message. Raises MappingError where the other format cannot say it, or nothing can."""
        descriptor = message.descriptor
        header = _only_header(message)
        key = (header, descriptor.format, descriptor.coded_char_set_id, descriptor.encoding)
        found = self._remembered.get(key) if header else None
        if found is not None:
            return found
        converted = self._convert(message)
        if header and converted.body_offset == len(header):
            if len(self._remembered) >= REMEMBERED_HEADERS:
                self._remembered.clear()
            self._remembered[key] = converted
        return converted

    def _convert(self, message: Message) -> Converted:
        descriptor = message.descriptor
        conversion = convert(
            message.body,
            format=descriptor.format,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
            to=self._to,
            mode=self._mode,
        )
        service = Service(
            queue=self._queue_name,
            target=self._to.value,
            mode=self._mode.value,
            table_version=TABLE_VERSION,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
            input_format=descriptor.format,
            input_header=message.body[: conversion.body_offset],
            output_format=conversion.format,
            output_header=conversion.header,
            dropped=tuple((field.name, field.reason) for field in conversion.report.dropped),
        )
        return Converted(
            format=conversion.format, header=conversion.header, body_offset=conversion.body_offset, service=service
        )


def _only_header(message: Message) -> bytes:
    """The first header as its StrucLength cuts it, where it is short enough to be remembered; else nothing.

    The header tells what follows it. Where no other header does, its bytes decide the conversion.
    """
    descriptor = message.descriptor
    if descriptor.format not in (FORMAT_MQRFH, FORMAT_MQRFH2):
        return b""
    try:
        is_big = is_big_endian(descriptor.encoding)
    except MappingError:
        return b""  # the conversion says what is wrong
    length = int.from_bytes(message.body[_STRUC_LENGTH], "big" if is_big else "little")
    return message.body[:length] if length <= min(REMEMBERED_HEADER_BYTES, len(message.body)) else b""
