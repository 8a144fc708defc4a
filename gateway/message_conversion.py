"""One message converted: for the command line, for HTTP, and for the service that moves queues.

`mappings.convert` wants a command or an answer in the header. Here an MQRFH2 without one (folders usr or jms alone)
passes unchanged where MQRFH2 is wanted: it has that format already.
"""

from dataclasses import dataclass

from mappings.conversion_report import empty_report
from mappings.convert import Conversion, ConversionReport, Mode, convert
from mappings.detection import announcement_of
from mappings.errors import ConversionError
from mappings.header_chain import read_header_chain
from mappings.mqrfh import Mqrfh
from mappings.mqrfh2 import Mqrfh2
from mappings.table import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """To which format, how, and what is known of the message; what is not known is found in its bytes."""

    to: Dialect
    mode: Mode = Mode.STRICT
    format: bytes | None = None
    coded_char_set_id: int | None = None
    encoding: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedMessage:
    """The whole new message, the Format that its MQMD must say, and what became of every field."""

    data: bytes
    format: str
    report: ConversionReport


def converted_message(data: bytes, wish: Wish) -> ConvertedMessage:
    """The message with its header in the wanted format. Raises MappingError."""
    announcement = announcement_of(
        data, format=wish.format, coded_char_set_id=wish.coded_char_set_id, encoding=wish.encoding
    )
    conversion = convert_or_pass(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
        to=wish.to,
        mode=wish.mode,
    )
    return ConvertedMessage(
        data=conversion.header + data[conversion.body_offset :],
        format=conversion.format.decode("ascii").rstrip(),
        report=conversion.report,
    )


def convert_or_pass(
    data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int, to: Dialect, mode: Mode
) -> Conversion:
    """`mappings.convert`, and an MQRFH2 that carries no command passes where MQRFH2 is wanted. Raises MappingError."""
    try:
        return convert(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding, to=to, mode=mode)
    except ConversionError:
        chain = read_header_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        kinds = {type(header) for header in chain.headers}
        if to is not Dialect.MQRFH2 or Mqrfh2 not in kinds or Mqrfh in kinds:
            raise
        header = data[: chain.body_offset]
        return Conversion(format=format, header=header, body_offset=chain.body_offset, report=empty_report(to, mode))
