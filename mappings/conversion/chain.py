"""Converts the header of a message field by field, in any chain of headers.

The new header takes the place of the old one: the Format in front is rewritten, and the description of what follows is
copied. The body is never touched. On the way to MQRFH2 the other headers stay. MQRFH has no folders: on the way to it
the folders beside the command are dropped, or follow in an MQRFH2 of their own.
"""

from dataclasses import dataclass

from mappings.commands.parameters import pairs_of_elements, verb_of_elements, verb_of_pairs
from mappings.conversion.fields import FieldConversion
from mappings.conversion.folder_outcomes import (
    outcomes_of_other_folders,
    outcomes_of_other_headers,
    outcomes_without_name,
)
from mappings.conversion.report import ConversionReport, FieldOutcome, Folders, Mode, empty_report
from mappings.conversion.response import response_to_mqrfh, response_to_mqrfh2
from mappings.errors import ConversionError, HeaderError
from mappings.headers.chain import Header, HeaderChain, HeaderPlace, read_header_chain
from mappings.headers.mqrfh import Mqrfh, encode_pairs
from mappings.headers.mqrfh2 import Folder, Mqrfh2, psc_folder
from mappings.headers.replacement import Replacement
from mappings.reasons import Reason
from mappings.table import Dialect

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


def convert_chain(
    data: bytes,
    *,
    format: bytes,
    coded_char_set_id: int,
    encoding: int,
    to: Dialect,
    mode: Mode = Mode.STRICT,
    folders: Folders = Folders.DROPPED,
) -> Conversion:
    """What `convert` does, field by field and with any chain of headers."""
    chain = read_header_chain(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    if _has_format(chain, to):
        return Conversion(
            format=format,
            header=data[: chain.body_offset],
            body_offset=chain.body_offset,
            report=empty_report(to, mode),
        )
    source = Dialect.MQRFH2 if to is Dialect.MQRFH else Dialect.MQRFH
    index = _the_carrier(chain, source)
    kept = tuple(each for each, header in enumerate(chain.headers) if each == index or _stays(header, to, folders))
    carrier = chain.headers[index]
    left = _left_folders(carrier, to, folders)
    replacement = Replacement(chain=chain, index=index, kept=kept, to=to, left_folders=left)
    variable = _converted(carrier, replacement.place, to, mode, left)
    outcomes = (
        *outcomes_of_other_headers(chain, range(index), kept),
        *variable.outcomes,
        *outcomes_without_name(data, chain, index),
        *outcomes_of_other_headers(chain, range(index + 1, len(chain.headers)), kept),
    )
    return Conversion(
        format=replacement.first_format(),
        header=replacement.headers(data, variable.content),
        body_offset=chain.body_offset,
        report=ConversionReport(source_format=source.value, target_format=to.value, mode=mode, fields=outcomes),
    )


def _has_format(chain: HeaderChain, dialect: Dialect) -> bool:
    """Whether there is nothing to convert: also an MQRFH2 without a command (usr or jms alone) is an MQRFH2."""
    if _carriers(chain, dialect):
        return True
    kinds = {type(header) for header in chain.headers}
    return dialect is Dialect.MQRFH2 and Mqrfh2 in kinds and Mqrfh not in kinds


def _carriers(chain: HeaderChain, dialect: Dialect) -> list[int]:
    """Indexes of the headers that carry a command or an answer in that format."""
    return [index for index, header in enumerate(chain.headers) if _carries(header, dialect)]


def _carries(header: Header, dialect: Dialect) -> bool:
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


def _stays(header: Header, to: Dialect, folders: Folders) -> bool:
    return to is Dialect.MQRFH2 or folders is Folders.KEPT or not isinstance(header, Mqrfh2)


def _left_folders(carrier: Header, to: Dialect, folders: Folders) -> tuple[Folder, ...]:
    """The folders beside the command that follow the new MQRFH in an MQRFH2 of their own."""
    if to is Dialect.MQRFH2 or folders is Folders.DROPPED or not isinstance(carrier, Mqrfh2):
        return ()
    return tuple(folder for folder in carrier.folders if folder.name not in _COMMAND_FOLDERS)


def _converted(header: Header, place: HeaderPlace, to: Dialect, mode: Mode, left: tuple[Folder, ...]) -> _Variable:
    if isinstance(header, Mqrfh):
        return _mqrfh_converted(header, to, mode)
    assert isinstance(header, Mqrfh2)  # only these two carry commands
    try:
        return _mqrfh2_converted(header, place, mode, left)
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


def _mqrfh2_converted(header: Mqrfh2, place: HeaderPlace, mode: Mode, left: tuple[Folder, ...]) -> _Variable:
    pscr, psc = header.folder("pscr"), header.folder("psc")
    if pscr is not None:
        content, outcomes = response_to_mqrfh(pscr, place.coded_char_set_id)
        return _Variable(content=content, outcomes=(*outcomes, *outcomes_of_other_folders(header, pscr, left)))
    assert psc is not None  # it carries one of the two
    elements = psc.elements
    fields = FieldConversion(verb=verb_of_elements(elements), source=Dialect.MQRFH2, target=Dialect.MQRFH, mode=mode)
    fields.add_all(pairs_of_elements(elements))
    pairs = sorted(fields.fields, key=lambda pair: pair[0] != "MQPSCommand")  # first; otherwise the order stays
    return _Variable(
        content=encode_pairs(tuple(pairs), place.coded_char_set_id),
        outcomes=(*fields.outcomes, *outcomes_of_other_folders(header, psc, left)),
    )
