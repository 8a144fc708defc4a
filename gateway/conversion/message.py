"""One message converted whose MQMD may be unknown: for the command line and for HTTP."""

from dataclasses import dataclass

from mappings.conversion.convert import ConversionReport, Folders, Mode, convert
from mappings.headers.detection import announcement_of
from mappings.table import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionRequest:
    """To which format, how, and what is known of the message; what is not known is found in its bytes."""

    to: Dialect
    mode: Mode = Mode.STRICT
    folders: Folders = Folders.DROPPED
    format: bytes | None = None
    coded_char_set_id: int | None = None
    encoding: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedMessage:
    """The whole new message, the Format that its MQMD must say, and what became of every field."""

    data: bytes
    format: str
    report: ConversionReport


def converted_message(data: bytes, wanted: ConversionRequest) -> ConvertedMessage:
    """The message with its header in the wanted format. Raises MappingError."""
    announcement = announcement_of(
        data, format=wanted.format, coded_char_set_id=wanted.coded_char_set_id, encoding=wanted.encoding
    )
    conversion = convert(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
        to=wanted.to,
        mode=wanted.mode,
        folders=wanted.folders,
    )
    return ConvertedMessage(
        data=conversion.header + data[conversion.body_offset :],
        format=conversion.format.decode("ascii").rstrip(),
        report=conversion.report,
    )
