"""MQRFH2 (rules and formatting header, version 2) to values and back; the only module that knows lxml.

Byte layout; the first 32 bytes as in `mqrfh` with Version 2, then

    offset  length  field
    32      4       NameValueCCSID      1208, 1200, 13488 or 17584
    36      4       NameValueLength 1   bytes, a multiple of 4
    40      L1      NameValueData 1     one folder, padded with blanks
    ...             more pairs, up to StrucLength

The fixed fields are in the character set and encoding of the structure in front, the folders in NameValueCCSID.
Folders look like XML but are less: no declaration, no document type, no comments, no CDATA. Anything that begins with
`<!` or `<?` is refused, so there are no entities to expand. Folders that nobody asks about are kept byte for byte.
Source: IBM MQ documentation, "MQRFH2 - Rules and formatting header 2", "NameValueData (MQCHARn)".
"""

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from lxml import etree

from mappings.errors import ConversionError, HeaderError
from mappings.headers.charset import (
    ENCODING_NORMAL,
    ENCODING_REVERSED,
    TWO_BYTE_CODED_CHAR_SET_IDS,
    UTF_8,
    byte_offsets,
    decode_text,
    encode_text,
    is_big_endian,
)
from mappings.headers.fixed_part import FixedFields, read_fixed_part, structure_error, write_fixed_part
from mappings.headers.layout import MQRFH2, NAME_VALUE_LENGTH
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason

VERSION = 2
FIXED_LENGTH_BYTES = MQRFH2.length_bytes  # 36, MQRFH_STRUC_LENGTH_FIXED_2
NAME_VALUE_CODED_CHAR_SET_IDS = frozenset({UTF_8, *TWO_BYTE_CODED_CHAR_SET_IDS})
MAXIMUM_FOLDER_BYTES = 4_194_304  # the default MAXMSGL of a queue manager; a folder beyond it is not parsed
MAXIMUM_DEPTH = 64  # groups within groups; psc has 1 level, pscr 2

_TWO_BYTE_PADDING = frozenset({b"\0 ", b" \0", b"  ", b"\0\0", b"\xfe\xff", b"\xff\xfe"})
_BYTE_ORDER_MARKS = {b"\xfe\xff": ENCODING_NORMAL, b"\xff\xfe": ENCODING_REVERSED}
_NAME = r"[A-Za-z_$][A-Za-z0-9_.$\-]*+"
_FOLDER_START = re.compile(r"[ \t\r\n]*+<((?!\d)\w[\w.:\-]*+)[ \t\r\n/>]")  # a prefixed name is kept as it is
_FLAT_ELEMENT = re.compile(rf"<({_NAME})>([^<>&\x00-\x1f\ufffe\uffff]*+)</\1>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Written as hexadecimal references: a folder has no characters beyond the Basic Multilingual Plane, and readers of XML
#: take CR for LF. IBM's client reads these references, but no decimal ones.
_REFERENCED = re.compile("[\r\U00010000-\U0010ffff]")
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_WRAPPER_START = f'<folder xmlns:xsi="{_XSI}">'.encode()
_WRAPPER_END = b"</folder>"
_BLANK = " \t\r\n"
#: IBM's client writes property names of Java, which may have a dollar sign. XML has no such names: the parser gets this
#: letter of XML in its place.
_DOLLAR = "\ufdf1"
_TAG_WITH_DOLLAR = re.compile(r"</?[^\s<>/$]*+\$[^\s<>/]*+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One property or group of a folder; `text` is empty when there are children."""

    name: str
    text: str
    attributes: NameValues = ()
    children: tuple["Element", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """One NameValueData: its root name, and its bytes exactly as read, without the padding behind it.

    `offset` is where its bytes begin in the data that was read.
    """

    name: str
    raw: bytes
    coded_char_set_id: int = UTF_8
    encoding: int = ENCODING_REVERSED
    offset: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """The folder as characters; HeaderError (MQRC_RFH_FORMAT_ERROR) when they are not in NameValueCCSID."""
        return _decode_folder(self.raw, self.coded_char_set_id, self.encoding)

    def byte_offsets(self, positions: Iterable[int]) -> Iterator[int]:
        """Where the characters at these positions of `text` (ascending) stand in the data that was read."""
        offset, encoding = self.offset, self.encoding
        if self.coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
            unmarked, encoding = _without_mark(self.raw, encoding)
            offset += len(self.raw) - len(unmarked)
        return byte_offsets(self.text, positions, offset, self.coded_char_set_id, encoding=encoding)

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements inside the root; HeaderError (MQRC_RFH_FORMAT_ERROR) when the folder is malformed."""
        return _elements_of(self.text, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqrfh2:
    """One MQRFH2 as read; `format`, `coded_char_set_id` and `encoding` describe what follows it."""

    format: bytes
    coded_char_set_id: int
    encoding: int
    flags: int = 0
    name_value_ccsid: int = UTF_8
    folders: tuple[Folder, ...]
    struc_length: int

    def folder(self, name: str) -> Folder | None:
        """The first folder of that name."""
        return next((folder for folder in self.folders if folder.name == name), None)


def read_mqrfh2(data: bytes, offset: int = 0, *, coded_char_set_id: int, encoding: int) -> Mqrfh2:
    """Read the MQRFH2 at `offset`; the character set and encoding are those of the structure in front.

    Raises HeaderError (MQRC_RFH_ERROR) when lengths are wrong. Folders are named here, and parsed when asked for.
    """
    fixed = read_fixed_part(data, offset, version=VERSION, coded_char_set_id=coded_char_set_id, encoding=encoding)
    length_layout = NAME_VALUE_LENGTH.in_encoding(encoding)
    name_value_ccsid: int = length_layout.unpack_from(data, offset + MQRFH2.offsets["NameValueCCSID"])[0]
    if name_value_ccsid not in NAME_VALUE_CODED_CHAR_SET_IDS:
        raise HeaderError(
            Reason.MQRC_SOURCE_CCSID_ERROR,
            f"NameValueCCSID is {name_value_ccsid}; it must be 1208, 1200, 13488 or 17584",
            offset=offset + MQRFH2.offsets["NameValueCCSID"],
        )
    folders: list[Folder] = []
    position, end = offset + FIXED_LENGTH_BYTES, offset + fixed.struc_length
    for start, length in name_value_data(data, position, end, length_layout):
        if length % 4 or not 0 <= length <= end - start:
            raise structure_error(f"NameValueLength {length} is not a multiple of 4 within StrucLength", start - 4)
        position = start + length
        folder = read_folder(data[start:position], start, name_value_ccsid, encoding)
        if folder is not None:
            folders.append(folder)
    if position != end:
        raise structure_error("StrucLength ends inside a NameValueLength", position)
    return Mqrfh2(
        format=fixed.format,
        coded_char_set_id=fixed.coded_char_set_id,
        encoding=fixed.encoding,
        flags=fixed.flags,
        name_value_ccsid=name_value_ccsid,
        folders=tuple(folders),
        struc_length=fixed.struc_length,
    )


def write_mqrfh2(
    folders: tuple[bytes | Folder, ...],
    *,
    format: bytes,
    next_coded_char_set_id: int,
    next_encoding: int,
    coded_char_set_id: int,
    encoding: int,
    flags: int = 0,
    name_value_ccsid: int = UTF_8,
) -> bytes:
    """Write an MQRFH2 of folders, each padded with blanks to a multiple of 4 bytes.

    `format` (8 bytes, blank padded) and the two `next_...` describe what follows the header, `coded_char_set_id` and
    `encoding` the structure in front of it. Folders given as bytes are in `name_value_ccsid` already, and in the byte
    order of `encoding`.
    Raises HeaderError for a character that a code page lacks, and for a folder whose bytes are not in its own.
    Source: IBM MQ documentation, "MQRFH2 - Rules and formatting header 2".
    """
    length_layout = NAME_VALUE_LENGTH.in_encoding(encoding)
    blank = encode_text(" ", name_value_ccsid, encoding=encoding)
    parts = [length_layout.pack(name_value_ccsid)]
    for folder in folders:
        raw = folder if isinstance(folder, bytes) else _recoded(folder, name_value_ccsid, encoding)
        padded = raw + blank * (-len(raw) % 4 // len(blank))
        parts += [length_layout.pack(len(padded)), padded]
    variable = b"".join(parts)
    fixed = FixedFields(
        struc_length=FIXED_LENGTH_BYTES - length_layout.size + len(variable),
        encoding=next_encoding,
        coded_char_set_id=next_coded_char_set_id,
        format=format,
        flags=flags,
    )
    return write_fixed_part(fixed, version=VERSION, coded_char_set_id=coded_char_set_id, encoding=encoding) + variable


def psc_folder(fields: NameValues) -> str:
    """A psc folder on one line: `<psc><Command>Publish</Command>...</psc>`."""
    return flat_folder("psc", fields)


def flat_folder(name: str, fields: NameValues) -> str:
    """A folder of properties without groups; ConversionError for a character that none can hold."""
    return f"<{name}>{elements_text(fields)}</{name}>"


def elements_text(fields: NameValues) -> str:
    """Properties as elements, text escaped; nothing is put between the tags, where blanks would be significant.

    CR and characters beyond the Basic Multilingual Plane are hexadecimal references.
    """
    return "".join(f"<{name}>{_escape(name, value)}</{name}>" for name, value in fields)


def unsuitable_character(text: str) -> str:
    """The first character of a text that no folder can hold (XML 1.0, production Char); "" where there is none."""
    found = None if text.isprintable() else _NOT_XML.search(text)
    return "" if found is None else found[0]


def _escape(name: str, value: str) -> str:
    if unsuitable := unsuitable_character(value):
        topic = name == "Topic"
        raise ConversionError(
            Reason.MQRCCF_TOPIC_ERROR if topic else Reason.MQRC_RFH_PARM_ERROR,
            f"{name} holds {unsuitable!a}, which a folder of an MQRFH2 cannot hold; send it without that character",
            parameter=value if topic else name,
        )
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    is_plain = value.isascii() and "\r" not in value
    return escaped if is_plain else _REFERENCED.sub(lambda found: f"&#x{ord(found[0]):x};", escaped)


def name_value_data(data: bytes, position: int, end: int, layout: struct.Struct) -> Iterator[tuple[int, int]]:
    """Offset and length of each NameValueData up to `end`; nothing is said of whether a length is right."""
    while end - position >= layout.size:
        length = layout.unpack_from(data, position)[0]
        start = position + layout.size
        yield start, length
        if length < 0:
            return
        position = start + length


def read_folder(padded: bytes, offset: int, coded_char_set_id: int, encoding: int) -> Folder | None:
    """The folder of the NameValueData at `offset`, not yet parsed; None when it is all padding.

    Raises HeaderError (MQRC_RFH_FORMAT_ERROR) when it does not begin with a tag.
    """
    two_bytes = coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS
    raw = _without_two_byte_padding(padded) if two_bytes else padded.rstrip(b" \0")
    if not raw:
        return None
    start = _FOLDER_START.match(_beginning_of(raw[:512], coded_char_set_id, encoding))
    if start is None:
        raise HeaderError(
            Reason.MQRC_RFH_FORMAT_ERROR, "NameValueData does not begin with the tag of a folder", offset=offset
        )
    return Folder(name=start[1], raw=raw, coded_char_set_id=coded_char_set_id, encoding=encoding, offset=offset)


def _beginning_of(data: bytes, coded_char_set_id: int, encoding: int) -> str:
    """The beginning of a folder for the sake of its name; wrong bytes behind the name are found when it is parsed."""
    if coded_char_set_id not in TWO_BYTE_CODED_CHAR_SET_IDS:
        return data.decode("utf-8", "replace")
    characters, order = _without_mark(data, encoding)
    return characters.decode("utf-16-be" if is_big_endian(order) else "utf-16-le", "replace")


def _without_mark(data: bytes, encoding: int) -> tuple[bytes, int]:
    """Text of a two-byte page without its byte order mark, and its order; IBM's Java class always writes big-endian."""
    marked = _BYTE_ORDER_MARKS.get(data[:2])
    return (data, encoding) if marked is None else (data[2:], marked)


def _without_two_byte_padding(padded: bytes) -> bytes:
    """Without blanks, NULs and byte order marks at the end: IBM's Java class pads with blanks that it marks."""
    length = len(padded)
    while length and padded[length - 2 : length] in _TWO_BYTE_PADDING:
        length -= 2
    return padded[:length]


def _recoded(folder: Folder, coded_char_set_id: int, encoding: int) -> bytes:
    same_order = coded_char_set_id == UTF_8 or folder.encoding == encoding
    if folder.coded_char_set_id == coded_char_set_id and same_order:
        return folder.raw
    return encode_text(folder.text, coded_char_set_id, encoding=encoding)


def _decode_folder(raw: bytes, coded_char_set_id: int, encoding: int) -> str:
    if coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
        raw, encoding = _without_mark(raw, encoding)
    try:
        return decode_text(raw, coded_char_set_id, encoding=encoding)
    except HeaderError as problem:
        raise _format_error(problem.hint.partition(";")[0]) from None


def _elements_of(text: str, name: str) -> tuple[Element, ...]:
    flat = _flat_elements(text, name)
    return _parsed_elements(text) if flat is None else flat


def _flat_elements(text: str, name: str) -> tuple[Element, ...] | None:
    """The elements of a folder without attributes, groups or escapes; None unless every character is accounted for."""
    start, end = f"<{name}>", f"</{name}>"
    if not (text.startswith(start) and text.endswith(end)):
        return None
    inner_end = len(text) - len(end)
    pairs = _FLAT_ELEMENT.findall(text, len(start), inner_end)
    accounted = sum(2 * len(element) + len(value) + len("<></>") for element, value in pairs)
    if accounted != inner_end - len(start):
        return None
    return tuple(Element(name=element, text=value) for element, value in pairs)


def _parsed_elements(text: str) -> tuple[Element, ...]:
    if "<!" in text or "<?" in text:
        raise _format_error("a folder holds no declarations, comments or processing instructions")
    has_dollar = "$" in text and _DOLLAR not in text
    if has_dollar:
        text = _TAG_WITH_DOLLAR.sub(lambda tag: tag[0].replace("$", _DOLLAR), text)
    encoded = text.encode().replace(b"\r", b"&#13;")  # a parser would turn CR into LF
    if len(encoded) > MAXIMUM_FOLDER_BYTES:
        raise _format_error(f"a folder of {len(encoded)} bytes is beyond the limit of {MAXIMUM_FOLDER_BYTES} bytes")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        wrapper = etree.fromstring(_WRAPPER_START + encoded + _WRAPPER_END, parser)
    except (etree.XMLSyntaxError, ValueError) as problem:
        raise _format_error(_what_is_malformed(problem)) from None
    if len(wrapper) != 1 or not _is_blank(wrapper.text) or not _is_blank(wrapper[0].tail):
        raise _format_error("NameValueData holds something beside its one folder")
    elements = _children(wrapper[0], depth=1)
    return _with_dollar(elements) if has_dollar else elements


def _with_dollar(elements: tuple[Element, ...]) -> tuple[Element, ...]:
    return tuple(
        replace(each, name=each.name.replace(_DOLLAR, "$"), children=_with_dollar(each.children)) for each in elements
    )


def _what_is_malformed(problem: Exception) -> str:
    """What the parser says, with the column in the folder itself and not in the wrapper around it."""
    if not isinstance(problem, etree.XMLSyntaxError):
        return str(problem)
    line, column = problem.position
    said = str(problem.msg).partition(", line ")[0]
    return f"{said}, line {line}, column {column - len(_WRAPPER_START) if line == 1 else column}"


def _children(parent: etree._Element, *, depth: int) -> tuple[Element, ...]:
    if depth > MAXIMUM_DEPTH:
        raise _format_error(f"groups are nested deeper than {MAXIMUM_DEPTH}")
    if not all(_is_blank(text) for text in (parent.text, *(child.tail for child in parent))):
        raise _format_error(f"text stands between the elements of {_plain_name(parent.tag)}")
    return tuple(_element(child, depth=depth) for child in parent)


def _element(source: etree._Element, *, depth: int) -> Element:
    children = _children(source, depth=depth + 1) if len(source) else ()
    return Element(
        name=_plain_name(source.tag),
        text="" if children else source.text or "",
        attributes=tuple((_plain_name(name), str(value)) for name, value in source.attrib.items()),
        children=children,
    )


def _plain_name(name: object) -> str:
    return str(name).replace(f"{{{_XSI}}}", "xsi:")


def _is_blank(text: str | None) -> bool:
    return not (text or "").strip(_BLANK)


def _format_error(problem: str) -> HeaderError:
    return HeaderError(Reason.MQRC_RFH_FORMAT_ERROR, f"malformed folder: {problem}; correct the program that wrote it")
