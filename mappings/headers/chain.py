"""The headers in front of a body, read strictly: the Format of each names the next, and the last describes the body.

MQRFH, MQRFH2 and MQDLH are read. Other headers of IBM MQ are walked over (`opaque.py`). Any other Format means that
the body follows. An MQXQH is an envelope for another queue manager: who acts on a message sees a body there, and who
only looks at it (`walk_headers`) sees what the envelope holds. Layout of MQDLH (172 bytes), in the character set and
Encoding of the structure in front:

    offset  length  field                       offset  length  field
    0       4       StrucId "DLH "              112     4       CodedCharSetId
    4       4       Version 1                   116     8       Format
    8       4       Reason                      124     4       PutApplType
    12      48      DestQName                   128     28      PutApplName
    60      48      DestQMgrName                156     8       PutDate
    108     4       Encoding                    164     8       PutTime

Source: IBM MQ documentation, "MQDLH - Dead-letter header" and "MQRFH2".
"""

from collections.abc import Callable
from dataclasses import dataclass

from mappings.errors import HeaderError
from mappings.headers.charset import INHERIT, UNDEFINED, decode_text, encode_text, is_ebcdic
from mappings.headers.fixed_part import format_from, format_in
from mappings.headers.layout import MQDLH, MQXQH
from mappings.headers.mqrfh import Mqrfh, read_mqrfh
from mappings.headers.mqrfh2 import Mqrfh2, read_mqrfh2
from mappings.headers.opaque import OpaqueHeader, announces_opaque_header, read_opaque_header
from mappings.reasons import Reason

FORMAT_MQRFH = b"MQHRF   "  # MQFMT_RF_HEADER_1
FORMAT_MQRFH2 = b"MQHRF2  "  # MQFMT_RF_HEADER_2
FORMAT_NONE = b"        "  # MQFMT_NONE
FORMAT_STRING = b"MQSTR   "  # MQFMT_STRING
FORMAT_DEAD_LETTER = b"MQDEAD  "  # MQFMT_DEAD_LETTER_HEADER
FORMAT_TRANSMISSION = b"MQXMIT  "  # MQFMT_XMIT_Q_HEADER

DEAD_LETTER_HEADER_BYTES = MQDLH.length_bytes  # 172, MQDLH_LENGTH_1
DEAD_LETTER_FORMAT_OFFSET_BYTES = MQDLH.offsets["Format"]

_STRUC_ID = "DLH "
_MOST_SKIPPED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterHeader:
    """An MQDLH: why a message is on the dead-letter queue, and where it was going; names without their padding."""

    reason: int
    dest_q_name: str
    dest_q_mgr_name: str
    encoding: int
    coded_char_set_id: int
    format: bytes
    put_appl_type: int
    put_appl_name: str
    put_date: str
    put_time: str

    @property
    def struc_length(self) -> int:
        """Always 172 bytes."""
        return DEAD_LETTER_HEADER_BYTES

    def to_bytes(self, *, coded_char_set_id: int, encoding: int) -> bytes:
        """The 172 bytes, in the character set and encoding of the structure in front; long names are an error."""

        def text(value: str, length: int) -> bytes:
            encoded = encode_text(value.ljust(length), coded_char_set_id)
            if len(encoded) != length:
                raise _dead_letter_error(f"{value!a} is longer than {length} bytes", None)
            return encoded

        return MQDLH.in_encoding(encoding).pack(
            text(_STRUC_ID, 4),
            1,
            self.reason,
            text(self.dest_q_name, 48),
            text(self.dest_q_mgr_name, 48),
            self.encoding,
            self.coded_char_set_id,
            format_in(self.format, coded_char_set_id),
            self.put_appl_type,
            text(self.put_appl_name, 28),
            text(self.put_date, 8),
            text(self.put_time, 8),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransmissionHeader:
    """An MQXQH with the MQMD in it, which says what follows."""

    format: bytes
    coded_char_set_id: int
    encoding: int

    @property
    def struc_length(self) -> int:
        """Always 428 bytes."""
        return MQXQH.length_bytes


Header = Mqrfh | Mqrfh2 | DeadLetterHeader | OpaqueHeader | TransmissionHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderPlace:
    """Where a header stands, and the character set and encoding that it is in (those of the structure in front)."""

    offset: int
    format: bytes
    coded_char_set_id: int
    encoding: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChain:
    """The headers of a message in order, and what is known of the body behind them.

    `body_coded_char_set_id` is resolved: -2 and 0 in a header mean the value of the structure in front.
    """

    headers: tuple[Header, ...]
    places: tuple[HeaderPlace, ...]
    body_offset: int
    body_format: bytes
    body_coded_char_set_id: int
    body_encoding: int

    @property
    def offsets(self) -> tuple[int, ...]:
        """The byte offset of each header."""
        return tuple(place.offset for place in self.places)

    @property
    def body_place(self) -> HeaderPlace:
        """Where the body stands, and what the last header says of it."""
        return HeaderPlace(
            offset=self.body_offset,
            format=self.body_format,
            coded_char_set_id=self.body_coded_char_set_id,
            encoding=self.body_encoding,
        )


def announces_header(format: bytes) -> bool:
    """Whether a Format says that a header follows, and not the body."""
    return format == FORMAT_DEAD_LETTER or announces_opaque_header(format)


def read_header_chain(data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int) -> HeaderChain:
    """The headers of a message; `format`, character set and encoding are those of its MQMD.

    Raises HeaderError, with the offset, for the first header that is not what the Format in front announces.
    """
    place = HeaderPlace(offset=0, format=format.ljust(8), coded_char_set_id=coded_char_set_id, encoding=encoding)
    chain, error = _walk(data, place, _read_header)
    if error is not None:
        raise error
    return chain


def skip_headers(data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int) -> HeaderPlace:
    """Where the body stands, by the lengths of the headers alone: what is in them is not read.

    A header whose first bytes are wrong counts as the body, and so does what follows a hundred headers.
    """
    place = HeaderPlace(offset=0, format=format.ljust(8), coded_char_set_id=coded_char_set_id, encoding=encoding)
    for _ in range(_MOST_SKIPPED):
        if not announces_header(place.format):
            break
        try:
            is_letter = place.format == FORMAT_DEAD_LETTER
            header = (read_dead_letter_header if is_letter else read_opaque_header)(
                data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding
            )
        except HeaderError:
            break
        if header is None:
            break
        place = _next_place(header, place)
    return place


def walk_headers(
    data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int
) -> tuple[HeaderChain, HeaderError | None]:
    """The headers of a message up to the first one that is wrong, and the error of that one, for who looks at it.

    Where there is an error, the wrong header is what the chain calls the body. Headers behind an MQXQH are there too.
    """
    place = HeaderPlace(offset=0, format=format.ljust(8), coded_char_set_id=coded_char_set_id, encoding=encoding)
    return _walk(data, place, _read_shown_header)


def _walk(
    data: bytes, place: HeaderPlace, read: Callable[[bytes, HeaderPlace], Header | None]
) -> tuple[HeaderChain, HeaderError | None]:
    error: HeaderError | None = None
    headers: list[Header] = []
    places: list[HeaderPlace] = []
    try:
        while (header := read(data, place)) is not None:
            headers.append(header)
            places.append(place)
            place = _next_place(header, place)
    except HeaderError as problem:
        error = problem
    chain = HeaderChain(
        headers=tuple(headers),
        places=tuple(places),
        body_offset=place.offset,
        body_format=place.format,
        body_coded_char_set_id=place.coded_char_set_id,
        body_encoding=place.encoding,
    )
    return chain, error


def read_dead_letter_header(data: bytes, offset: int = 0, *, coded_char_set_id: int, encoding: int) -> DeadLetterHeader:
    """Read the MQDLH at `offset`; HeaderError (MQRC_DLH_ERROR) when it is not one."""
    if len(data) - offset < DEAD_LETTER_HEADER_BYTES:
        raise _dead_letter_error("an MQDLH needs 172 bytes", offset)
    fields = MQDLH.in_encoding(encoding).unpack_from(data, offset)
    struc_id, version, reason, queue, queue_manager, next_encoding, next_ccsid, format, appl_type = fields[:9]
    texts = [_text(field, coded_char_set_id) for field in (struc_id, queue, queue_manager, format, *fields[9:])]
    if texts[0] != _STRUC_ID.rstrip() or version != 1:
        raise _dead_letter_error(f"StrucId is {struc_id!r} and Version {version}, not 'DLH ' and 1", offset)
    return DeadLetterHeader(
        reason=reason,
        dest_q_name=texts[1],
        dest_q_mgr_name=texts[2],
        encoding=next_encoding,
        coded_char_set_id=next_ccsid,
        format=_ascii_name(texts[3], offset) if is_ebcdic(coded_char_set_id) else format,
        put_appl_type=appl_type,
        put_appl_name=texts[4],
        put_date=texts[5],
        put_time=texts[6],
    )


def read_transmission_header(
    data: bytes, offset: int = 0, *, coded_char_set_id: int, encoding: int
) -> TransmissionHeader:
    """Read the MQXQH at `offset`; HeaderError (MQRC_XQH_ERROR) when it is not one."""
    if len(data) - offset < MQXQH.length_bytes:
        raise HeaderError(Reason.MQRC_XQH_ERROR, f"an MQXQH needs {MQXQH.length_bytes} bytes", offset=offset)
    fields = dict(zip(MQXQH.offsets, MQXQH.in_encoding(encoding).unpack_from(data, offset), strict=True))
    struc_ids = [_text(fields[name], coded_char_set_id) for name in ("StrucId", "MsgDesc.StrucId")]
    if struc_ids != ["XQH", "MD"] or fields["Version"] != 1:
        raise HeaderError(Reason.MQRC_XQH_ERROR, "StrucIds and Version are not those of an MQXQH", offset=offset)
    format = format_from(fields["Format"], coded_char_set_id)
    if format is None:
        raise HeaderError(Reason.MQRC_XQH_ERROR, "Format is not a format name", offset=offset)
    return TransmissionHeader(format=format, coded_char_set_id=fields["CodedCharSetId"], encoding=fields["Encoding"])


def _read_shown_header(data: bytes, place: HeaderPlace) -> Header | None:
    if place.format == FORMAT_TRANSMISSION:
        return read_transmission_header(
            data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding
        )
    return _read_header(data, place)


def _read_header(data: bytes, place: HeaderPlace) -> Header | None:
    if place.format == FORMAT_MQRFH2:
        return read_mqrfh2(data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding)
    if place.format == FORMAT_MQRFH:
        return read_mqrfh(data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding)
    if place.format == FORMAT_DEAD_LETTER:
        return read_dead_letter_header(
            data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding
        )
    if announces_opaque_header(place.format):
        return read_opaque_header(
            data, place.offset, coded_char_set_id=place.coded_char_set_id, encoding=place.encoding
        )
    return None


def _next_place(header: Header, place: HeaderPlace) -> HeaderPlace:
    inherited = header.coded_char_set_id in (INHERIT, UNDEFINED)
    return HeaderPlace(
        offset=place.offset + header.struc_length,
        format=header.format,
        coded_char_set_id=place.coded_char_set_id if inherited else header.coded_char_set_id,
        encoding=header.encoding,
    )


def _text(field: bytes, coded_char_set_id: int) -> str:
    return decode_text(field, coded_char_set_id).rstrip(" \0")


def _ascii_name(name: str, offset: int) -> bytes:
    if not name.isascii():
        raise _dead_letter_error(f"Format {name!a} is not a format name", offset + DEAD_LETTER_FORMAT_OFFSET_BYTES)
    return name.ljust(8).encode("ascii")


def _dead_letter_error(problem: str, offset: int | None) -> HeaderError:
    return HeaderError(
        Reason.MQRC_DLH_ERROR, f"{problem}; the program that put the message wrote a wrong MQDLH", offset=offset
    )
