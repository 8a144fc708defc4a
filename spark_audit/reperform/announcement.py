"""What stands before the first header of a message that came without its MQMD, found from its first bytes.

    bytes 0 to 3    StrucId: "RFH " or "DLH ", in ASCII or in EBCDIC, whose pages agree in these letters
    bytes 4 to 7    Version, in the byte order of the header

In EBCDIC the header's own CodedCharSetId, which describes what follows, is taken for the header too where it names an
EBCDIC page, else 500. Source: IBM MQ, "MQRFH", "MQRFH2", "MQDLH".
"""

from typing import Final, Literal

from spark_audit.reperform.header import MQDLH, MQRFH, MQRFH2, Surroundings
from spark_audit.reperform.outcome import UnreadableBytes

_UTF_8: Final = 1208
_EBCDIC_PAGES: Final = frozenset({37, 273, 500, 1140})
_EBCDIC_INTERNATIONAL: Final = 500
_BYTE_ORDERS: Final[tuple[tuple[Literal["big", "little"], int], ...]] = (("big", 273), ("little", 546))
_FORMATS: Final = {("RFH ", 1): MQRFH, ("RFH ", 2): MQRFH2, ("DLH ", 1): MQDLH}
#: Where a structure names the page of what follows it.
_CODED_CHAR_SET_ID: Final = {"RFH ": 16, "DLH ": 112}
#: Headers that may stand in front and that this reading does not walk over.
_OTHERS: Final = ("CIH ", "IIH ", "DH  ", "MDE ", "RMH ", "WIH ")
_STRUC_IDS: Final = {
    name.encode(codec): (name, codec == "cp500")
    for name in (*_CODED_CHAR_SET_ID, *_OTHERS)
    for codec in ("ascii", "cp500")
}
_DETECTABLE_BYTES: Final = 8


class UnknownHeader(Exception):
    """A header that this reading does not walk over stands in front, so that it cannot judge the message."""


def announced(
    data: bytes, *, format: str | None = None, coded_char_set_id: int | None = None, encoding: int | None = None
) -> Surroundings:
    """What announces the first header; what is known goes before what is found.

    Raises UnreadableBytes where nothing is found and not everything is known, UnknownHeader where it is of no use.
    """
    check_known(format or "")
    if format is not None and coded_char_set_id is not None and encoding is not None:
        return Surroundings(format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    found = _found(data)
    return Surroundings(
        format=found.format if format is None else format,
        coded_char_set_id=found.coded_char_set_id if coded_char_set_id is None else coded_char_set_id,
        encoding=found.encoding if encoding is None else encoding,
    )


def check_known(format: str) -> None:
    """Raises UnknownHeader where a Format announces a header that this reading does not walk over."""
    if format in ("MQCICS", "MQIMS") or (format.startswith("MQH") and format not in (MQRFH, MQRFH2)):
        raise UnknownHeader(f"Format {format} announces a header that the audit does not walk over")


def _found(data: bytes) -> Surroundings:
    name, in_ebcdic = _STRUC_IDS.get(data[:4], ("", False))
    if name in _OTHERS:
        raise UnknownHeader(f"the message begins with StrucId {name!r}, a header that the audit does not walk over")
    for order, encoding in _BYTE_ORDERS if len(data) >= _DETECTABLE_BYTES else ():
        format = _FORMATS.get((name, int.from_bytes(data[4:8], order)))
        if format is not None:
            page = _ebcdic_page(data, name, order) if in_ebcdic else _UTF_8
            return Surroundings(format=format, coded_char_set_id=page, encoding=encoding)
    if not data:
        raise UnreadableBytes("the message is empty")
    if not name:
        raise UnreadableBytes(f"the message begins with {data[:4].hex(' ')}, which is the StrucId of no header")
    raise UnreadableBytes(f"StrucId {name!r} without a Version that there is", 4)


def _ebcdic_page(data: bytes, name: str, order: Literal["big", "little"]) -> int:
    offset = _CODED_CHAR_SET_ID[name]
    following = int.from_bytes(data[offset : offset + 4], order)
    return following if following in _EBCDIC_PAGES else _EBCDIC_INTERNATIONAL
