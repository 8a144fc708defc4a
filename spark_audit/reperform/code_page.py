"""CodedCharSetId to text and back, and Encoding to byte order, for the code pages of headers."""

from typing import Final, Literal

from spark_audit.reperform.comparison import Reason, UnreadableBytes

#: Single-byte and UTF-8 pages by their IBM number. Headers in others are not re-performable.
_CODECS: Final = {
    1208: "utf-8",
    367: "ascii",
    819: "latin-1",
    912: "iso8859-2",
    913: "iso8859-3",
    914: "iso8859-4",
    915: "iso8859-5",
    920: "iso8859-9",
    923: "iso8859-15",
    437: "cp437",
    850: "cp850",
    852: "cp852",
    858: "cp858",
    1250: "cp1250",
    1251: "cp1251",
    1252: "cp1252",
    5348: "cp1252",
    37: "cp037",
    273: "cp273",
    500: "cp500",
    1140: "cp1140",
}
_TWO_BYTE: Final = frozenset({1200, 13488, 17584})


class UnknownCodePage(Exception):
    """This reading does not know the CodedCharSetId, so it cannot judge the header."""

    def __init__(self, coded_char_set_id: int) -> None:
        super().__init__(coded_char_set_id)
        self.coded_char_set_id = coded_char_set_id

    def __str__(self) -> str:
        return f"CodedCharSetId {self.coded_char_set_id} is not known to the audit"


def byte_order(encoding: int) -> Literal["big", "little"]:
    """Byte order of integers: low nibble 1 is big-endian, 2 little-endian (MQENC_INTEGER_*)."""
    order = encoding & 0xF
    if order == 1:
        return "big"
    if order == 2:
        return "little"
    raise UnreadableBytes(f"Encoding {encoding} names no byte order", 0, Reason.MQRC_SOURCE_INTEGER_ENC_ERROR)


def codec_of(coded_char_set_id: int, order: Literal["big", "little"]) -> str:
    if coded_char_set_id in _TWO_BYTE:
        return "utf-16-be" if order == "big" else "utf-16-le"
    codec = _CODECS.get(coded_char_set_id)
    if codec is None:
        raise UnknownCodePage(coded_char_set_id)
    return codec


def decode(data: bytes, coded_char_set_id: int, order: Literal["big", "little"], offset: int = 0) -> str:
    """Text of `data`. UnreadableBytes at `offset` if it is not text of that code page."""
    try:
        return data.decode(codec_of(coded_char_set_id, order))
    except UnicodeDecodeError as error:
        raise UnreadableBytes(f"not text in CodedCharSetId {coded_char_set_id}", offset + error.start) from error


def encode(text: str, coded_char_set_id: int, order: Literal["big", "little"]) -> bytes:
    """Bytes of `text`. A character that the page lacks becomes a question mark, which then differs."""
    return text.encode(codec_of(coded_char_set_id, order), errors="replace")
