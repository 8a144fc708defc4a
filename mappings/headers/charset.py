"""CodedCharSetId and Encoding: which code page a text is in, and which byte order an integer is in.

A CodedCharSetId (CCSID) is IBM's number of a code page. Python brings most of them; the EBCDIC country pages that it
lacks are given here as differences from page 37, and the Euro pages are the same pages with the currency sign replaced.
Sources: IBM's code page charts; the Encoding rules of MQMD (only the low nibble, the integer part, matters here).
"""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from mappings.errors import HeaderError
from mappings.reasons import Reason

UTF_8 = 1208
INHERIT = -2  # MQCCSI_INHERIT: the same as the structure in front
UNDEFINED = 0  # MQCCSI_UNDEFINED in MQRFH, MQCCSI_DEFAULT and MQCCSI_Q_MGR elsewhere

ENCODING_NORMAL = 273  # 0x111, big-endian integers
ENCODING_REVERSED = 546  # 0x222, little-endian integers
_INTEGER_MASK = 0xF  # MQENC_INTEGER_MASK
_INTEGER_NORMAL = 1
_INTEGER_REVERSED = 2

TWO_BYTE_CODED_CHAR_SET_IDS = frozenset({1200, 13488, 17584})  # UTF-16, and UCS-2 without surrogates
_WITHOUT_SURROGATES = frozenset({13488, 17584})

_PYTHON_CODECS = {
    37: "cp037",
    367: "ascii",
    437: "cp437",
    819: "latin-1",
    850: "cp850",
    1140: "cp1140",
    1208: "utf-8",
    1252: "cp1252",
}

# Byte positions (hexadecimal) and characters where an EBCDIC page differs from page 37.
_DIFFERENCES_FROM_37 = {
    273: ("434A4F595A5F636A7CA1B0B5BABBC0CCD0DCE0ECFC", "{Ä!~Ü^[ö§ß¢@¬|ä¦ü}Ö\\]"),
    277: ("474A4F5A5B5F676A707B7C809C9E9FA1B0BABBC0D0DC", "}#!¤Å^$ø¦ÆØ@{[]ü¢¬|æå~"),
    278: ("43474A4F515A5B5F63676A71797B7C9FA1B0B5BABBC0CCD0DCE0EC", "{}§!`¤Å^#$ö\\éÄÖ]ü¢[¬|ä¦å~É@"),
    280: ("44484A4F5154585A5F6A797B7C90A1B0B1B5BABBC0CDD0DDE0", "{\\°!]}~é^òù£§[ì¢#@¬|à¦è`ç"),
    284: ("494A5A696A7BA1B0BABBBD", "¦[]#ñÑ¨¢^!~"),
    285: ("4A5BA1B0B1BABC", "$£¯¢[^~"),
    297: ("44484A4F51545A5F6A797B7C90A0A1B0B1B5BABBBDC0D0DDE0", "@\\°!{}§^ùµ£à[`¨¢#]¬|~éè¦ç"),
    500: ("4A4F5A5FB0BABB", "[!]^¢¬|"),
    871: ("4A4F5A5F797C8C8E9C9EA1ACAEB0BABBBEC0CCD0E0EC", "Þ!ÆÖðÐ`{}]ö@[¢¬|\\þ~æ´^"),
    1047: ("5FADB0BABBBD", "^[¬Ý¨]"),
}
_EURO_PAGES = {1141: 273, 1142: 277, 1143: 278, 1144: 280, 1145: 284, 1146: 285, 1147: 297, 1148: 500, 1149: 871}
_EBCDIC = frozenset({37, 1140, *_DIFFERENCES_FROM_37, *_EURO_PAGES})
_ASCII_BASED = {number: codec for number, codec in _PYTHON_CODECS.items() if number not in _EBCDIC}

CODED_CHAR_SET_IDS = frozenset({*_PYTHON_CODECS, *_EBCDIC, *TWO_BYTE_CODED_CHAR_SET_IDS})


def encode_text(text: str, coded_char_set_id: int, *, encoding: int = ENCODING_NORMAL) -> bytes:
    """The bytes of a text in a code page; `encoding` gives the byte order of the two-byte pages.

    Raises HeaderError: MQRC_TARGET_CCSID_ERROR for an unknown page, MQRC_NOT_CONVERTED for a character that it lacks.
    """
    codec = _codec(coded_char_set_id, encoding, Reason.MQRC_TARGET_CCSID_ERROR)
    try:
        return codec.encode(text)
    except UnicodeError as problem:
        character = text[problem.start] if isinstance(problem, UnicodeEncodeError) else text
        raise HeaderError(
            Reason.MQRC_NOT_CONVERTED,
            f"code page {coded_char_set_id} has no character {character!a}; use 1208 (UTF-8) or change the text",
            parameter=character,
        ) from None


def decode_text(data: bytes, coded_char_set_id: int, *, encoding: int = ENCODING_NORMAL) -> str:
    """The text of bytes in a code page; `encoding` gives the byte order of the two-byte pages.

    Raises HeaderError: MQRC_SOURCE_CCSID_ERROR for an unknown page, MQRC_RFH_ERROR for bytes that are not in it.
    """
    codec = _codec(coded_char_set_id, encoding, Reason.MQRC_SOURCE_CCSID_ERROR)
    try:
        return codec.decode(data)
    except UnicodeError as problem:
        position = problem.start if isinstance(problem, UnicodeDecodeError) else 0
        raise HeaderError(
            Reason.MQRC_RFH_ERROR,
            f"byte {position} of the text is not valid in code page {coded_char_set_id}; correct the CodedCharSetId",
            parameter=str(coded_char_set_id),
        ) from None


def byte_offsets(
    text: str, positions: Iterable[int], offset: int, coded_char_set_id: int, *, encoding: int = ENCODING_NORMAL
) -> Iterator[int]:
    """The byte offset of each position (ascending) of a text whose bytes begin at `offset`."""
    before = 0
    for position in positions:
        offset += len(encode_text(text[before:position], coded_char_set_id, encoding=encoding))
        before = position
        yield offset


def is_big_endian(encoding: int) -> bool:
    """Whether integers are most significant byte first: the low nibble of an Encoding is 1 (normal) or 2 (reversed)."""
    integer = encoding & _INTEGER_MASK
    if integer == _INTEGER_REVERSED:
        return False
    if integer == _INTEGER_NORMAL:
        return True
    raise HeaderError(
        Reason.MQRC_SOURCE_INTEGER_ENC_ERROR,
        f"Encoding {encoding} names no integer byte order; use 273 (big-endian) or 546 (little-endian)",
        parameter=str(encoding),
    )


def ascii_based_codec(coded_char_set_id: int) -> str | None:
    """Python's name of a page in which the first 128 characters are those of ASCII; None for any other page."""
    return _ASCII_BASED.get(coded_char_set_id)


def is_ebcdic(coded_char_set_id: int) -> bool:
    """Whether the page is one of the EBCDIC family, in which `RFH ` is D9 C6 C8 40."""
    return coded_char_set_id in _EBCDIC


@dataclass(frozen=True, slots=True, kw_only=True)
class _PythonCodec:
    """A page that Python knows by name."""

    name: str

    def encode(self, text: str) -> bytes:
        return text.encode(self.name)

    def decode(self, data: bytes) -> str:
        return data.decode(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoByteCodec:
    """UTF-16, and its subset without surrogates, in one byte order."""

    name: str
    surrogates: bool

    def encode(self, text: str) -> bytes:
        self._check(text)
        return text.encode(self.name)

    def decode(self, data: bytes) -> str:
        text = data.decode(self.name)
        self._check(text)
        return text

    def _check(self, text: str) -> None:
        if not self.surrogates and any(character > "\uffff" for character in text):
            raise UnicodeError("a character beyond the Basic Multilingual Plane")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableCodec:
    """A single-byte page given as its 256 characters."""

    characters: str

    def encode(self, text: str) -> bytes:
        return codecs.charmap_encode(text, "strict", codecs.charmap_build(self.characters))[0]

    def decode(self, data: bytes) -> str:
        return codecs.charmap_decode(data, "strict", self.characters)[0]


_Codec = _PythonCodec | _TwoByteCodec | _TableCodec


def _codec(coded_char_set_id: int, encoding: int, reason: Reason) -> _Codec:
    if coded_char_set_id in TWO_BYTE_CODED_CHAR_SET_IDS:
        name = "utf-16-be" if is_big_endian(encoding) else "utf-16-le"
        return _TwoByteCodec(name=name, surrogates=coded_char_set_id not in _WITHOUT_SURROGATES)
    if coded_char_set_id not in CODED_CHAR_SET_IDS:
        raise HeaderError(
            reason,
            f"CodedCharSetId {coded_char_set_id} is not a code page known here; 1208 is UTF-8, 819 is ISO 8859-1",
            parameter=str(coded_char_set_id),
        )
    return _single_byte_codec(coded_char_set_id)


@cache
def _single_byte_codec(coded_char_set_id: int) -> _Codec:
    if coded_char_set_id in _PYTHON_CODECS:
        return _PythonCodec(name=_PYTHON_CODECS[coded_char_set_id])
    if coded_char_set_id in _EURO_PAGES:
        return _TableCodec(characters=_country_page(_EURO_PAGES[coded_char_set_id]).replace("¤", "€"))
    return _TableCodec(characters=_country_page(coded_char_set_id))


def _country_page(coded_char_set_id: int) -> str:
    positions, replacements = _DIFFERENCES_FROM_37[coded_char_set_id]
    characters = list(bytes(range(256)).decode("cp037"))
    for position, character in zip(bytes.fromhex(positions), replacements, strict=True):
        characters[position] = character
    return "".join(characters)
