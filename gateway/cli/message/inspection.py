"""Inspects a message: every header with its fields, folders and options, the body, and every problem.

Other readers refuse a wrong message. An inspection goes on as far as it can, and lists all problems. Pure: bytes in, a
value out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import read_command
from mappings.commands.options import (
    DeleteOption,
    OptionClass,
    PublicationOption,
    RegistrationOption,
    option_number,
    option_rows,
)
from mappings.commands.response import read_response
from mappings.errors import MappingError
from mappings.headers.chain import HeaderChain, HeaderPlace, walk_headers
from mappings.headers.detection import Announcement
from mappings.headers.partial import PartialHeader, PlacedField, read_partially

_OPTION_FIELDS: Final[dict[str, OptionClass]] = {
    "MQPSRegOpts": RegistrationOption,
    "MQPSPubOpts": PublicationOption,
    "MQPSDelOpts": DeleteOption,
    "RegOpt": RegistrationOption,
    "PubOpt": PublicationOption,
    "DelOpt": DeleteOption,
}
_RESPONSE_NAMES: Final = frozenset({"MQPSCompCode", "pscr"})
_COMMAND_NAMES: Final = frozenset({"MQPSCommand", "psc"})
_RESERVED: Final = "MQPS"
_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})
#: MQRC_RFH_ERROR and MQRC_RFH_DUPLICATE_PARM.
_NOT_ONE_COMMAND: Final = 2334
_STANDS_TWICE: Final = 2338


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionProblem:
    """A fault, with IBM's reason code and what to do. `offset` is None for the message as a whole."""

    offset: int | None
    reason_code: int
    reason_name: str
    text: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at byte {self.offset}"
        return f"problem{where}: {self.reason_name} ({self.reason_code}): {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOption:
    """An option that a field sets, with IBM's constant; `offset` is that of the field."""

    offset: int
    field: str
    token: str
    number: int
    constant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedHeader:
    """A header as far as it can be read, its options, and the problems of its contents."""

    header: PartialHeader
    options: tuple[NamedOption, ...]
    problems: tuple[InspectionProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The data behind the headers."""

    offset: int
    format: bytes
    coded_char_set_id: int
    encoding: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All of a message. `body` is None if a damaged header hides its beginning; `command` is the verb, if any."""

    headers: tuple[InspectedHeader, ...]
    body: Body | None
    command: str | None
    problems: tuple[InspectionProblem, ...]


def inspect_message(data: bytes, announcement: Announcement) -> Inspection:
    """Every header of a message, its body, and its problems."""
    chain, error = walk_headers(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
    )
    headers = tuple(_inspected(data, place) for place in chain.places)
    problems = [problem for inspected in headers for problem in inspected.problems]
    if error is not None:
        # The contents of the damaged header are shown, but not judged, because their problems follow from the damage.
        headers = (*headers, _inspected(data, chain.body_place))
        problems.append(_problem_of(error, offset=chain.body_offset))
    return Inspection(
        headers=headers,
        body=_body_of(data, chain) if error is None else None,
        command=None if problems else _command_of(chain, headers, problems),
        problems=tuple(problems),
    )


def unreadable_message(error: MappingError) -> Inspection:
    """The inspection of data that do not begin with a header: one problem."""
    return Inspection(headers=(), body=None, command=None, problems=(_problem_of(error),))


def _inspected(data: bytes, place: HeaderPlace) -> InspectedHeader:
    header = read_partially(data, place)
    options: list[NamedOption] = []
    problems = [_problem_of(error) for error in header.errors]
    for field in _option_fields_of(header):
        try:
            options += _options_of(field)
        except MappingError as error:
            problems.append(_problem_of(error, offset=field.offset))
    return InspectedHeader(header=header, options=tuple(options), problems=tuple(problems))


def _option_fields_of(header: PartialHeader) -> Iterator[PlacedField]:
    """The pairs of an MQRFH, or the properties of its psc folders, that hold options."""
    yield from (pair for pair in header.pairs if pair.name in _OPTION_FIELDS)
    for folder in header.folders:
        for element in folder.elements if folder.name == "psc" else ():
            if element.name in _OPTION_FIELDS:
                yield PlacedField(offset=element.offset, name=element.name, value=element.text)


def _options_of(field: PlacedField) -> Iterator[NamedOption]:
    """The options that a field sets, whether it holds a token or a decimal sum."""
    option_class = _OPTION_FIELDS[field.name]
    for row in option_rows(option_class(option_number(option_class, str(field.value)))):
        yield NamedOption(
            offset=field.offset, field=field.name, token=row.token, number=row.number, constant=row.constant
        )


def _body_of(data: bytes, chain: HeaderChain) -> Body:
    return Body(
        offset=chain.body_offset,
        format=chain.body_format,
        coded_char_set_id=chain.body_coded_char_set_id,
        encoding=chain.body_encoding,
        data=data[chain.body_offset :],
    )


def _problem_of(error: MappingError, *, offset: int | None = None) -> InspectionProblem:
    """An error as a problem. `offset` is for an error without an offset of its own."""
    return InspectionProblem(
        offset=offset if error.offset is None else error.offset,
        reason_code=error.reason_code,
        reason_name=error.reason_name,
        text=error.hint,
    )


def _command_of(
    chain: HeaderChain, headers: tuple[InspectedHeader, ...], problems: list[InspectionProblem]
) -> str | None:
    """The verb of the command, or of the command that a response answers; None if there is neither."""
    names = {name for inspected in headers for name in inspected.header.names}
    try:
        if names & _RESPONSE_NAMES:
            return f"response to {read_response(chain).verb or 'an unnamed command'}"
        if names & _COMMAND_NAMES or any(name.startswith(_RESERVED) for name in names):
            return read_command(chain).verb
    except MappingError as error:
        problems.append(_problem_of(error, offset=_offset_of(error, [inspected.header for inspected in headers])))
    return None


def _offset_of(error: MappingError, headers: list[PartialHeader]) -> int | None:
    """The offset of the name or value that an error is about, else of the command; of two commands, the second."""
    commands = [offset for header in headers for offset in _commands_of(header)]
    if error.reason_code == _NOT_ONE_COMMAND and len(commands) > 1:
        return commands[1]
    fields = [field for header in headers for field in _parameters_of(header)]
    wanted = error.parameter
    named = [field.offset for field in fields if field.name in (wanted, f"{_RESERVED}{wanted}")]
    if named:
        return named[1 if error.reason_code == _STANDS_TWICE and len(named) > 1 else 0]
    valued = [field.offset for field in fields if field.value == wanted]
    return next(iter(valued or commands), None)


def _commands_of(header: PartialHeader) -> tuple[int, ...]:
    """The offsets of commands and responses: an MQRFH is one itself, an MQRFH2 holds them in folders."""
    if header.name == "MQRFH":
        return (header.place.offset,)
    return tuple(folder.offset for folder in header.folders if folder.name in _COMMAND_FOLDERS)


def _parameters_of(header: PartialHeader) -> Iterator[PlacedField]:
    """The pairs of an MQRFH, or the properties of its command folders, each with its offset."""
    yield from header.pairs
    waiting = [
        element
        for folder in reversed(header.folders)
        if folder.name in _COMMAND_FOLDERS
        for element in reversed(folder.elements)
    ]
    while waiting:
        element = waiting.pop()
        yield PlacedField(offset=element.offset, name=element.name, value=element.text)
        waiting.extend(reversed(element.children))
