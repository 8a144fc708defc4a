"""Converts the header of a message to the other format by the table, and reports what became of every field.

Step 7a on the way of a PUBLISH, and the conversion service. `chain` converts any message field by field. `plain` is its
fast path, five to seven times as fast: it takes a single header whose fields get another name and nothing else, and
leaves any other to `chain`. Both give the same result. README.md says what survives a conversion there and back.
"""

from mappings.conversion.chain import Conversion, convert_chain
from mappings.conversion.plain import plain_to_mqrfh, plain_to_mqrfh2
from mappings.conversion.report import ConversionReport, FieldOutcome, Folders, Mode, Outcome
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2, announces_header
from mappings.headers.plain import read_plain_mqrfh, read_plain_mqrfh2
from mappings.table import Dialect

__all__ = ["Conversion", "ConversionReport", "FieldOutcome", "Folders", "Mode", "Outcome", "convert"]

_FORMAT_NAMES = {FORMAT_MQRFH: Dialect.MQRFH.value, FORMAT_MQRFH2: Dialect.MQRFH2.value}


def convert(
    data: bytes,
    *,
    format: bytes,
    coded_char_set_id: int,
    encoding: int,
    to: Dialect,
    mode: Mode = Mode.STRICT,
    folders: Folders = Folders.DROPPED,
) -> Conversion:
    """Convert the header of a message to the format `to`; the first three arguments describe it as its MQMD does.

    A header that is in that format already is returned unchanged, with an empty report. `folders` says what becomes of
    the folders beside psc on the way to MQRFH. Raises ConversionError for what the other format cannot say, and
    HeaderError, NameValueError or CommandError for a header that is wrong.
    """
    plain = _plain_conversion(data, format, coded_char_set_id, encoding, to, mode)
    if plain is not None:
        return plain
    return convert_chain(
        data,
        format=format,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
        to=to,
        mode=mode,
        folders=folders,
    )


def _plain_conversion(
    data: bytes, format: bytes, coded_char_set_id: int, encoding: int, to: Dialect, mode: Mode
) -> Conversion | None:
    """The conversion of a single plain header to the other format; None where it takes more than that."""
    if format == FORMAT_MQRFH and to is Dialect.MQRFH2:
        header = read_plain_mqrfh(data, coded_char_set_id, encoding)
        plain = None if header is None else plain_to_mqrfh2(header, encoding)
        new_format = FORMAT_MQRFH2
    elif format == FORMAT_MQRFH2 and to is Dialect.MQRFH:
        header = read_plain_mqrfh2(data, coded_char_set_id, encoding)
        plain = None if header is None else plain_to_mqrfh(header, coded_char_set_id, encoding)
        new_format = FORMAT_MQRFH
    else:
        return None
    if header is None or plain is None or announces_header(header.format):
        return None
    return Conversion(
        format=new_format,
        header=plain.header,
        body_offset=header.struc_length,
        report=ConversionReport(
            source_format=_FORMAT_NAMES[format],
            target_format=_FORMAT_NAMES[new_format],
            mode=mode,
            fields=plain.outcomes,
        ),
    )
