"""The variable part of a header, as far as it can be read: pairs, folders, the options in them, and what is wrong.

Pure: bytes in, values out; a problem is a value like any other.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.cli.message.header_fields import Extent, Field, name_value_data
from mappings.commands.options import (
    DeleteOption,
    OptionClass,
    PublicationOption,
    RegistrationOption,
    option_number,
    option_rows,
)
from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_NORMAL, UTF_8, decode_text, encode_text
from mappings.headers.mqrfh2 import Element, Folder
from mappings.headers.name_value import name_positions, parse_name_value_string

_OPTION_FIELDS: Final[dict[str, OptionClass]] = {
    "MQPSRegOpts": RegistrationOption,
    "MQPSPubOpts": PublicationOption,
    "MQPSDelOpts": DeleteOption,
    "RegOpt": RegistrationOption,
    "PubOpt": PublicationOption,
    "DelOpt": DeleteOption,
}
_FOLDER_WITH_OPTIONS: Final = "psc"
_START_TAG: Final = re.compile(r"<(?!/)")
_ROOT: Final = re.compile(r"\s*<([^\s<>/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong: where (None: nowhere in particular), IBM's reason code, and what to do."""

    offset: int | None
    reason_code: int
    reason_name: str
    text: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at byte {self.offset}"
        return f"problem{where}: {self.reason_name} ({self.reason_code}): {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedElement:
    """A property or group of a folder, with the offset of its tag."""

    offset: int
    name: str
    text: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple["PlacedElement", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFolder:
    """A folder of an MQRFH2; `elements` is empty where it is malformed."""

    offset: int
    name: str
    text: str
    elements: tuple[PlacedElement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedOption:
    """An option that a field sets, with IBM's constant; `offset` is that of the field."""

    offset: int
    field: str
    token: str
    number: int
    constant: str


def problem_of(error: MappingError, *, offset: int | None = None) -> Problem:
    """A problem of an error; `offset` is where the structure stands, for errors that do not say."""
    return Problem(
        offset=offset if error.offset is None else error.offset,
        reason_code=error.reason_code,
        reason_name=error.reason_name,
        text=error.hint,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What stands behind the fixed fields of a header."""

    pairs: tuple[Field, ...] = ()
    folders: tuple[NamedFolder, ...] = ()
    options: tuple[NamedOption, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_name_value_string(extent: Extent, *, coded_char_set_id: int) -> Contents:
    """The pairs of an MQRFH; one that breaks the grammar is shown whole, with its problem."""
    try:
        text = decode_text(extent.data.partition(b"\0")[0], coded_char_set_id)
    except MappingError as error:
        return Contents(problems=(problem_of(error, offset=extent.offset),))
    try:
        pairs = tuple(_pairs(text, extent.offset, coded_char_set_id))
    except MappingError as error:
        whole = Field(offset=extent.offset, name="NameValueString", value=text)
        positions = [error.error_position or 0]
        offset = next(_byte_offsets(text, positions, extent.offset, coded_char_set_id, ENCODING_NORMAL))
        return Contents(pairs=(whole,), problems=(problem_of(error, offset=offset),))
    options, problems = _options_of(pairs)
    return Contents(pairs=pairs, options=options, problems=problems)


def read_folders(extent: Extent, *, name_value_ccsid: int, encoding: int) -> Contents:
    """The folders of an MQRFH2; one that is malformed is shown as its text, with its problem."""
    folders: list[NamedFolder] = []
    problems: list[Problem] = []
    for data in name_value_data(extent, encoding=encoding):
        try:
            folders.append(_folder(data, name_value_ccsid, encoding))
        except MappingError as error:
            text = data.data.decode("latin-1").rstrip(" \0")
            folders.append(NamedFolder(offset=data.offset, name=_root_of(text), text=text, elements=()))
            problems.append(problem_of(error, offset=data.offset))
    properties = tuple(
        Field(offset=element.offset, name=element.name, value=element.text)
        for folder in folders
        if folder.name == _FOLDER_WITH_OPTIONS
        for element in folder.elements
    )
    options, wrong = _options_of(properties)
    return Contents(folders=tuple(folders), options=options, problems=(*problems, *wrong))


def _folder(data: Extent, name_value_ccsid: int, encoding: int) -> NamedFolder:
    """A folder with its elements; MappingError where it is malformed. One of padding alone has no name."""
    text = decode_text(data.data, name_value_ccsid, encoding=encoding).rstrip(" \0")
    elements = Folder(name=_root_of(text), raw=text.encode(), coded_char_set_id=UTF_8).elements if text else ()
    tags = [found.start() for found in _START_TAG.finditer(text)][1:]
    offsets = _byte_offsets(text, tags, data.offset, name_value_ccsid, encoding)
    return NamedFolder(offset=data.offset, name=_root_of(text), text=text, elements=_placed(elements, offsets))


def _placed(elements: tuple[Element, ...], offsets: Iterator[int]) -> tuple[PlacedElement, ...]:
    """Elements in the order of the document, each with the offset of the next start tag."""
    return tuple(
        PlacedElement(
            offset=next(offsets),
            name=element.name,
            text=element.text,
            attributes=element.attributes,
            children=_placed(element.children, offsets),
        )
        for element in elements
    )


def _pairs(text: str, offset: int, coded_char_set_id: int) -> Iterator[Field]:
    """The pairs of a string with the byte offset of each name; MappingError where the string breaks its grammar."""
    pairs = parse_name_value_string(text)
    offsets = _byte_offsets(text, name_positions(text), offset, coded_char_set_id, ENCODING_NORMAL)
    for place, (name, value) in zip(offsets, pairs, strict=True):
        yield Field(offset=place, name=name, value=value)


def _byte_offsets(
    text: str, positions: Iterable[int], offset: int, coded_char_set_id: int, encoding: int
) -> Iterator[int]:
    """The byte offset of each position (ascending) of a text that begins at `offset`."""
    before = 0
    for position in positions:
        offset += len(encode_text(text[before:position], coded_char_set_id, encoding=encoding))
        before = position
        yield offset


def _options_of(fields: tuple[Field, ...]) -> tuple[tuple[NamedOption, ...], tuple[Problem, ...]]:
    """What the option fields set: tokens and decimal sums alike, one entry for each option."""
    options: list[NamedOption] = []
    problems: list[Problem] = []
    for field in fields:
        option_class = _OPTION_FIELDS.get(field.name)
        if option_class is None:
            continue
        try:
            number = option_number(option_class, str(field.value))
        except MappingError as error:
            problems.append(problem_of(error, offset=field.offset))
            continue
        options += (
            NamedOption(
                offset=field.offset, field=field.name, token=row.token, number=row.number, constant=row.constant
            )
            for row in option_rows(option_class(number))
        )
    return tuple(options), tuple(problems)


def _root_of(text: str) -> str:
    found = _ROOT.match(text)
    return found[1] if found else ""
