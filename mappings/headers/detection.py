"""Finds Format, CodedCharSetId and Encoding of a message without its MQMD from the first bytes of its first header.

    bytes 0 to 3    StrucId: "RFH ", "DLH ", "XQH " or that of a header that is walked over (opaque.KNOWN_HEADERS),
                    in ASCII (52 46 48 20) or in EBCDIC (D9 C6 C8 40)
    bytes 4 to 7    Version, in the byte order of the header: 1 or 2

The letters of a StrucId are the same in all EBCDIC pages. An EBCDIC header is read in the page that its own
CodedCharSetId names for what follows, or in page 500 where that is not an EBCDIC page. Pure: bytes in, a value out.
"""

from dataclasses import dataclass
from typing import Final, Literal

from mappings.errors import HeaderError
from mappings.headers.chain import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_TRANSMISSION
from mappings.headers.charset import ENCODING_NORMAL, ENCODING_REVERSED, UTF_8, is_ebcdic
from mappings.headers.layout import COMMON, MQDLH, MQXQH
from mappings.headers.opaque import KNOWN_HEADERS
from mappings.reasons import Reason

#: The international EBCDIC page.
EBCDIC_INTERNATIONAL: Final = 500
#: StrucId and Version.
_DETECTABLE_BYTES: Final = 8
#: Where a header has the CodedCharSetId of what follows it.
_CODED_CHAR_SET_ID_OFFSETS: Final = {
    "DLH": MQDLH.offsets["CodedCharSetId"],
    "XQH": MQXQH.offsets["CodedCharSetId"],
}
#: The first four bytes of each header, in ASCII and in EBCDIC.
_STRUC_IDS: Final = {
    name.encode(codec): (name.rstrip(), codec == "cp500")
    for name in ("RFH ", "DLH ", "XQH ", *(struc_id for struc_id, _, _ in KNOWN_HEADERS))
    for codec in ("ascii", "cp500")
}
#: Headers that are walked over exist in versions 1 and 2.
_FORMATS: Final = {
    ("RFH", 1): FORMAT_MQRFH,
    ("RFH", 2): FORMAT_MQRFH2,
    ("DLH", 1): FORMAT_DEAD_LETTER,
    ("XQH", 1): FORMAT_TRANSMISSION,
    **{(struc_id.rstrip(), version): format for struc_id, _, format in KNOWN_HEADERS for version in (1, 2)},
}
_BYTE_ORDERS: Final[tuple[tuple[Literal["big", "little"], int], ...]] = (
    ("big", ENCODING_NORMAL),
    ("little", ENCODING_REVERSED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What an MQMD says of the first header: its Format (8 bytes), CodedCharSetId and Encoding."""

    format: bytes
    coded_char_set_id: int
    encoding: int


def announcement_of(
    data: bytes, *, format: bytes | None = None, coded_char_set_id: int | None = None, encoding: int | None = None
) -> Announcement:
    """What announces the first header of `data`; what the caller knows goes before what is found.

    Raises HeaderError (MQRC_RFH_ERROR) where nothing is found and the caller does not know all three.
    """
    if format is not None and coded_char_set_id is not None and encoding is not None:
        return Announcement(format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    found = _found_in(data)
    return Announcement(
        format=found.format if format is None else format,
        coded_char_set_id=found.coded_char_set_id if coded_char_set_id is None else coded_char_set_id,
        encoding=found.encoding if encoding is None else encoding,
    )


def _found_in(data: bytes) -> Announcement:
    structure, in_ebcdic = _STRUC_IDS.get(data[:4], ("", False))
    for order, encoding in _BYTE_ORDERS if len(data) >= _DETECTABLE_BYTES else ():
        format = _FORMATS.get((structure, int.from_bytes(data[4:8], order)))
        if format is not None:
            coded_char_set_id = _ebcdic_page(data, structure, order) if in_ebcdic else UTF_8
            return Announcement(format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    raise _not_found(data, structure)


def _ebcdic_page(data: bytes, structure: str, order: Literal["big", "little"]) -> int:
    offset = _CODED_CHAR_SET_ID_OFFSETS.get(structure, COMMON.offsets["CodedCharSetId"])
    following = int.from_bytes(data[offset : offset + 4], order, signed=True)
    return following if is_ebcdic(following) else EBCDIC_INTERNATIONAL


def _not_found(data: bytes, structure: str) -> HeaderError:
    if not data:
        problem = "the input is empty"
    elif not structure:
        problem = f"the input begins with {data[:4].hex(' ')}, which is the StrucId of no header of IBM MQ"
    elif len(data) < _DETECTABLE_BYTES:
        problem = f"the input ends after {len(data)} bytes, within StrucId and Version"
    else:
        problem = f"Version is {data[4:8].hex(' ')}, which is neither 1 nor 2 in either byte order"
    return HeaderError(Reason.MQRC_RFH_ERROR, f"{problem}; give the message data from its first header on", offset=0)
