"""Converts the header of a message to the other format by the table, and reports what became of every field.

Step 7a on the way of a PUBLISH, and the conversion service. The new header takes the place of the old one in the
chain: the Format in front is rewritten, the description of what follows is copied, and the body is never touched. From
MQRFH to MQRFH2, headers behind are left as they are; from MQRFH2 to MQRFH, folders have no place and are dropped.
"""

from dataclasses import dataclass

from mappings.command_parameters import pairs_of_elements, verb_of_elements, verb_of_pairs
from mappings.conversion_report import ConversionReport, FieldOutcome, Mode, Outcome, empty_report
from mappings.convert_fields import FieldConversion
from mappings.convert_response import response_to_mqrfh, response_to_mqrfh2
from mappings.errors import ConversionError, HeaderError
from mappings.header_chain import (
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    DeadLetterHeader,
    HeaderChain,
    HeaderPlace,
    announces_header,
    read_header_chain,
)
from mappings.header_replacement import Replacement
from mappings.mqrfh import Mqrfh, encode_pairs
from mappings.mqrfh2 import Folder, Mqrfh2, psc_folder
from mappings.plain_conversion import plain_to_mqrfh, plain_to_mqrfh2
from mappings.plain_header import read_plain_mqrfh, read_plain_mqrfh2
from mappings.reasons import Reason
from mappings.table import FOLDER_EXPLANATIONS, OTHER_EXPLANATIONS, Dialect

__all__ = ["Conversion", "ConversionReport", "FieldOutcome", "Mode", "Outcome", "convert"]

_FORMAT_NAMES = {FORMAT_MQRFH: Dialect.MQRFH.value, FORMAT_MQRFH2: Dialect.MQRFH2.value}
_COMMAND_FOLDERS = ("psc", "pscr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A converted message: `format` is its new MQMD.Format, `header` all that stands in front of the body.

    The new message is `header` and then the original data from `body_offset` on; nothing else of the MQMD changes.
    """

    format: bytes
    header: bytes
    body_offset: int
    report: ConversionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variable:
    """What follows the fixed part of the new header (a NameValueString, or a folder), and how it came about."""

    content: bytes
    outcomes: tuple[FieldOutcome, ...]


def convert(
    data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int, to: Dialect, mode: Mode = Mode.STRICT
) -> Conversion:
    """Convert the header of a message to the format `to`; the first three arguments describe it as its MQMD does.

    A header that is in that format already is returned unchanged, with an empty report. Raises ConversionError for what
    the other format cannot say, and HeaderError, NameValueError or CommandError for a header that is wrong.
    """
    plain = _plain_conversion(data, format, coded_char_set_id, encoding, to, mode)
    if plain is not None:
        return plain
    return convert_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding, to=to, mode=mode)


def convert_chain(
    data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int, to: Dialect, mode: Mode = Mode.STRICT
) -> Conversion:
    """What `convert` does with any chain of headers, field by field."""
    chain = read_header_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    if _carriers(chain, to):
        return Conversion(
            format=format,
            header=data[: chain.body_offset],
            body_offset=chain.body_offset,
            report=empty_report(to, mode),
        )
    source = Dialect.MQRFH2 if to is Dialect.MQRFH else Dialect.MQRFH
    index = _the_carrier(chain, source)
    kept = tuple(each for each, header in enumerate(chain.headers) if each == index or _stays(header, to))
    replacement = Replacement(chain=chain, index=index, kept=kept, to=to)
    variable = _converted(chain.headers[index], replacement.place, to, mode)
    outcomes = (
        *_other_outcomes(chain, range(index), kept),
        *variable.outcomes,
        *_other_outcomes(chain, range(index + 1, len(chain.headers)), kept),
    )
    return Conversion(
        format=replacement.first_format(),
        header=replacement.headers(data, variable.content),
        body_offset=chain.body_offset,
        report=ConversionReport(source_format=source.value, target_format=to.value, mode=mode, fields=outcomes),
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


def _carriers(chain: HeaderChain, dialect: Dialect) -> list[int]:
    """Indexes of the headers that carry a command or an answer in that format."""
    return [index for index, header in enumerate(chain.headers) if _carries(header, dialect)]


def _carries(header: Mqrfh | Mqrfh2 | DeadLetterHeader, dialect: Dialect) -> bool:
    if dialect is Dialect.MQRFH:
        return isinstance(header, Mqrfh)
    return isinstance(header, Mqrfh2) and any(folder.name in _COMMAND_FOLDERS for folder in header.folders)


def _the_carrier(chain: HeaderChain, dialect: Dialect) -> int:
    carriers = _carriers(chain, dialect)
    if len(carriers) == 1:
        return carriers[0]
    problem = "more than one header carries" if carriers else "no header carries"
    raise ConversionError(
        Reason.MQRC_RFH_ERROR, f"{problem} a publish/subscribe command (MQRFH, or MQRFH2 with psc or pscr)"
    )


def _stays(header: Mqrfh | Mqrfh2 | DeadLetterHeader, to: Dialect) -> bool:
    return to is Dialect.MQRFH2 or not isinstance(header, Mqrfh2)


def _converted(header: Mqrfh | Mqrfh2 | DeadLetterHeader, place: HeaderPlace, to: Dialect, mode: Mode) -> _Variable:
    if isinstance(header, Mqrfh):
        return _mqrfh_converted(header, to, mode)
    assert isinstance(header, Mqrfh2)  # only these two carry commands
    try:
        return _mqrfh2_converted(header, place, to, mode)
    except HeaderError as problem:
        if problem.reason_code != Reason.MQRC_NOT_CONVERTED:
            raise
        raise ConversionError(problem.reason_code, problem.hint, parameter=problem.parameter) from None


def _mqrfh_converted(header: Mqrfh, to: Dialect, mode: Mode) -> _Variable:
    pairs = header.pairs
    if pairs and pairs[0][0] == "MQPSCompCode":
        content, outcomes = response_to_mqrfh2(header)
        return _Variable(content=content, outcomes=outcomes)
    fields = FieldConversion(verb=verb_of_pairs(header, pairs), source=Dialect.MQRFH, target=to, mode=mode)
    fields.add_all(pairs)
    return _Variable(content=psc_folder(tuple(fields.fields)).encode(), outcomes=tuple(fields.outcomes))


def _mqrfh2_converted(header: Mqrfh2, place: HeaderPlace, to: Dialect, mode: Mode) -> _Variable:
    pscr, psc = header.folder("pscr"), header.folder("psc")
    if pscr is not None:
        content, outcomes = response_to_mqrfh(pscr, place.coded_char_set_id)
        return _Variable(content=content, outcomes=(*outcomes, *_dropped_folders(header, pscr)))
    assert psc is not None  # it carries one of the two
    elements = psc.elements
    fields = FieldConversion(verb=verb_of_elements(elements), source=Dialect.MQRFH2, target=to, mode=mode)
    fields.add_all(pairs_of_elements(elements))
    pairs = sorted(fields.fields, key=lambda pair: pair[0] != "MQPSCommand")  # first; otherwise the order stays
    return _Variable(
        content=encode_pairs(tuple(pairs), place.coded_char_set_id),
        outcomes=(*fields.outcomes, *_dropped_folders(header, psc)),
    )


def _other_outcomes(chain: HeaderChain, indexes: range, kept: tuple[int, ...]) -> list[FieldOutcome]:
    """The folders of MQRFH2 headers beside the converted one: left as they are, or dropped with their header."""
    found: list[FieldOutcome] = []
    for index in indexes:
        header = chain.headers[index]
        if isinstance(header, Mqrfh2):
            copied = [_copied_folder(folder) for folder in header.folders]
            found += copied if index in kept else _dropped_folders(header, None)
    return found


def _copied_folder(folder: Folder) -> FieldOutcome:
    return FieldOutcome(
        name=folder.name,
        value=f"{len(folder.raw)} bytes",
        outcome=Outcome.COPIED,
        target=folder.name,
        reason="the header stands beside the converted one and is left as it is",
        source="Message formats (aq19780_)",
    )


def _dropped_folders(header: Mqrfh2, converted: Folder | None) -> list[FieldOutcome]:
    """Every folder but the converted one; a second psc beside it is dropped too, and refused before."""
    dropped = [folder for folder in header.folders if folder is not converted]
    if any(folder.name == "psc" and converted is not None and converted.name == "psc" for folder in dropped):
        raise ConversionError(Reason.MQRC_RFH_ERROR, "the message carries more than one psc folder; send one for each")
    outcomes = []
    for folder in dropped:
        explanation = FOLDER_EXPLANATIONS.get(folder.name, OTHER_EXPLANATIONS["folder"])
        outcomes.append(
            FieldOutcome(
                name=folder.name,
                value=f"{len(folder.raw)} bytes",
                outcome=Outcome.DROPPED,
                target=None,
                reason=explanation.reason,
                source=explanation.source,
            )
        )
    return outcomes
