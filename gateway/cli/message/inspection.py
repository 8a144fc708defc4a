"""What the bytes of a message are: every header with its fields, folders and options, the body, and every problem.

Unlike the rooms of `mappings`, which refuse what is wrong, this goes on as far as it can: a problem is part of the
answer. Pure: bytes in, a value out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.cli.message.header_contents import Contents, Problem, problem_of, read_folders, read_name_value_string
from gateway.cli.message.header_fields import Field, name_value_extent, read_fields, structure_name
from mappings.commands.command import read_command
from mappings.commands.response import read_response
from mappings.errors import MappingError
from mappings.headers.chain import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    Header,
    HeaderChain,
    HeaderPlace,
    read_dead_letter_header,
)
from mappings.headers.charset import INHERIT, UNDEFINED, UTF_8
from mappings.headers.detection import Announcement
from mappings.headers.mqrfh import read_mqrfh
from mappings.headers.mqrfh2 import read_mqrfh2
from mappings.headers.opaque import OpaqueHeader, read_opaque_header

#: Formats of the headers that are read as a whole; others are walked over.
_READ_FORMATS: Final = frozenset({FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_DEAD_LETTER})
_RESPONSE_NAMES: Final = frozenset({"MQPSCompCode", "pscr"})
_COMMAND_NAMES: Final = frozenset({"MQPSCommand", "psc"})
_RESERVED: Final = "MQPS"
_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})
#: MQRC_RFH_ERROR and MQRC_RFH_DUPLICATE_PARM.
_NOT_ONE_COMMAND: Final = 2334
_STANDS_TWICE: Final = 2338


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A header as far as it can be read; `coded_char_set_id` and `encoding` are those that it is written in."""

    name: str
    offset: int
    coded_char_set_id: int
    encoding: int
    fields: tuple[Field, ...]
    contents: Contents

    @property
    def names(self) -> frozenset[str]:
        """What it speaks of: the names of its pairs and of its folders."""
        return frozenset(
            {pair.name for pair in self.contents.pairs} | {folder.name for folder in self.contents.folders}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What follows the headers."""

    offset: int
    format: bytes
    coded_char_set_id: int
    encoding: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All of a message. `body` is None where a damaged header hides its beginning; `command` is the verb, if any."""

    structures: tuple[Structure, ...]
    body: Body | None
    command: str | None
    problems: tuple[Problem, ...]


def inspect_message(data: bytes, announcement: Announcement) -> Inspection:
    """Every header of a message, its body, and what is wrong with it."""
    walk = _Walk(data, announcement)
    # What is wrong within a header that ends too soon, or is none, is a consequence of that.
    whole = walk.structures[:-1] if walk.is_damaged else walk.structures
    problems = [problem for structure in whole for problem in structure.contents.problems] + walk.problems
    command = None if problems else _command_of(walk, problems)
    return Inspection(
        structures=tuple(walk.structures),
        body=None if walk.is_damaged else walk.body(),
        command=command,
        problems=tuple(problems),
    )


def unreadable_message(error: MappingError) -> Inspection:
    """A message that does not begin with a header: all of it is one problem."""
    return Inspection(structures=(), body=None, command=None, problems=(problem_of(error),))


class _Walk:
    """From header to header, up to the body or to the first header that cannot be read as a whole."""

    def __init__(self, data: bytes, announcement: Announcement) -> None:
        self.structures: list[Structure] = []
        self.problems: list[Problem] = []
        self._data = data
        self._headers: list[Header] = []
        self._places: list[HeaderPlace] = []
        self._place = HeaderPlace(
            offset=0,
            format=announcement.format,
            coded_char_set_id=announcement.coded_char_set_id,
            encoding=announcement.encoding,
        )
        while not self.is_damaged and self._is_at_header():
            self._step()

    @property
    def is_damaged(self) -> bool:
        return bool(self.problems)

    def body(self) -> Body:
        place = self._place
        return Body(
            offset=place.offset,
            format=place.format,
            coded_char_set_id=place.coded_char_set_id,
            encoding=place.encoding,
            data=self._data[place.offset :],
        )

    def chain(self) -> HeaderChain:
        place = self._place
        return HeaderChain(
            headers=tuple(self._headers),
            places=tuple(self._places),
            body_offset=place.offset,
            body_format=place.format,
            body_coded_char_set_id=place.coded_char_set_id,
            body_encoding=place.encoding,
        )

    def _is_at_header(self) -> bool:
        """Whether a header follows: one to be walked over is part of the body where its beginning does not hold."""
        place = self._place
        if place.format in _READ_FORMATS:
            return True
        return structure_name(place.format) is not None and _read_opaque(self._data, place) is not None

    def _step(self) -> None:
        place = self._place
        self.structures.append(_structure_at(self._data, place))
        try:
            header = _read_header(self._data, place)
        except MappingError as error:
            self.problems.append(problem_of(error, offset=place.offset))
            return
        self._headers.append(header)
        self._places.append(place)
        inherits = header.coded_char_set_id in (INHERIT, UNDEFINED)
        self._place = HeaderPlace(
            offset=place.offset + header.struc_length,
            format=header.format,
            coded_char_set_id=place.coded_char_set_id if inherits else header.coded_char_set_id,
            encoding=header.encoding,
        )


def _read_header(data: bytes, place: HeaderPlace) -> Header:
    page, encoding = place.coded_char_set_id, place.encoding
    if place.format == FORMAT_MQRFH:
        return read_mqrfh(data, place.offset, coded_char_set_id=page, encoding=encoding)
    if place.format == FORMAT_MQRFH2:
        return read_mqrfh2(data, place.offset, coded_char_set_id=page, encoding=encoding)
    if place.format == FORMAT_DEAD_LETTER:
        return read_dead_letter_header(data, place.offset, coded_char_set_id=page, encoding=encoding)
    opaque = _read_opaque(data, place)
    assert opaque is not None  # else it was not taken for a header
    return opaque


def _read_opaque(data: bytes, place: HeaderPlace) -> OpaqueHeader | None:
    return read_opaque_header(data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding)


def _structure_at(data: bytes, place: HeaderPlace) -> Structure:
    fields = read_fields(
        data, place.offset, place.format, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding
    )
    return Structure(
        name=structure_name(place.format) or "",
        offset=place.offset,
        coded_char_set_id=place.coded_char_set_id,
        encoding=place.encoding,
        fields=fields,
        contents=_contents_at(data, place, fields),
    )


def _contents_at(data: bytes, place: HeaderPlace, fields: tuple[Field, ...]) -> Contents:
    extent = name_value_extent(data, place.offset, place.format, fields)
    if place.format == FORMAT_MQRFH:
        return read_name_value_string(extent, coded_char_set_id=place.coded_char_set_id)
    if place.format == FORMAT_MQRFH2:
        pages = [int(field.value) for field in fields if field.name == "NameValueCCSID"]
        return read_folders(extent, name_value_ccsid=pages[0] if pages else UTF_8, encoding=place.encoding)
    return Contents()


def _command_of(walk: _Walk, problems: list[Problem]) -> str | None:
    """The verb of the command or of the answered command; a header that is neither is no problem."""
    names = frozenset(name for structure in walk.structures for name in structure.names)
    try:
        if names & _RESPONSE_NAMES:
            return f"response to {read_response(walk.chain()).verb or 'an unnamed command'}"
        if names & _COMMAND_NAMES or any(name.startswith(_RESERVED) for name in names):
            return read_command(walk.chain()).verb
    except MappingError as error:
        problems.append(problem_of(error, offset=_place_of(error, walk.structures)))
    return None


def _place_of(error: MappingError, structures: list[Structure]) -> int | None:
    """Where the name or value that an error is about stands; else the command; of two commands, the second."""
    commands = [offset for structure in structures for offset in _commands_of(structure)]
    if error.reason_code == _NOT_ONE_COMMAND and len(commands) > 1:
        return commands[1]
    fields = [field for structure in structures for field in _parameters_of(structure)]
    wanted = error.parameter
    named = [field.offset for field in fields if field.name in (wanted, f"{_RESERVED}{wanted}")]
    if named:
        return named[1 if error.reason_code == _STANDS_TWICE and len(named) > 1 else 0]
    valued = [field.offset for field in fields if field.value == wanted]
    return next(iter(valued or commands), None)


def _commands_of(structure: Structure) -> tuple[int, ...]:
    """Where the commands and responses of a header stand: an MQRFH is one, an MQRFH2 has them in folders."""
    folders = structure.contents.folders
    is_command = structure.name == "MQRFH"
    return (structure.offset,) * is_command + tuple(each.offset for each in folders if each.name in _COMMAND_FOLDERS)


def _parameters_of(structure: Structure) -> Iterator[Field]:
    """The pairs of an MQRFH, or the properties of its command folders, each with its offset."""
    yield from structure.contents.pairs
    waiting = [
        element
        for folder in reversed(structure.contents.folders)
        if folder.name in _COMMAND_FOLDERS
        for element in reversed(folder.elements)
    ]
    while waiting:
        element = waiting.pop()
        yield Field(offset=element.offset, name=element.name, value=element.text)
        waiting.extend(reversed(element.children))
