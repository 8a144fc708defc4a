"""Replaces a header in a chain, so that every header still describes the one behind it.

The structure in front gets the new Format; the new header copies what the old one said of its follower. Where a header
is left out, the one in front of it describes what follows now. A CodedCharSetId of -2
(inherit) or 0 becomes a number where the structure in front has changed. Sources: IBM MQ documentation, "MQRFH2" and
"MQDLH", the fields Encoding, CodedCharSetId and Format.
"""

import struct
from dataclasses import dataclass

from mappings.errors import ConversionError
from mappings.headers.chain import (
    DEAD_LETTER_FORMAT_OFFSET_BYTES,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    DeadLetterHeader,
    HeaderChain,
    HeaderPlace,
)
from mappings.headers.charset import INHERIT, UNDEFINED, is_big_endian
from mappings.headers.fixed_part import FORMAT_OFFSET_BYTES, format_in
from mappings.headers.mqrfh import write_mqrfh_string
from mappings.headers.mqrfh2 import Folder, Mqrfh2, write_mqrfh2
from mappings.reasons import Reason
from mappings.table import Dialect

_FORMATS = {Dialect.MQRFH: FORMAT_MQRFH, Dialect.MQRFH2: FORMAT_MQRFH2}
_BYTES_BEFORE_FORMAT = 8  # Encoding and CodedCharSetId stand in front of Format in all three headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The header at `index` is replaced by one of the format `to`, and only the headers in `kept` remain.

    `left_folders` of it follow a new MQRFH in an MQRFH2 of their own.
    """

    chain: HeaderChain
    index: int
    kept: tuple[int, ...]
    to: Dialect
    left_folders: tuple[Folder, ...] = ()

    @property
    def place(self) -> HeaderPlace:
        """The character set and encoding of the new header: those of the MQMD when it comes first."""
        return self.chain.places[self.index if self.kept[0] != self.index else 0]

    def first_format(self) -> bytes:
        """The Format of the MQMD; ConversionError when another header comes first and is in another code page."""
        if self.kept[0] == self.index:
            return _FORMATS[self.to]
        first, start = self.chain.places[self.kept[0]], self.chain.places[0]
        if (first.coded_char_set_id, first.encoding) != (start.coded_char_set_id, start.encoding):
            raise ConversionError(
                Reason.MQRC_NOT_CONVERTED,
                "a header in front is in another code page than the message; convert it first",
            )
        return first.format

    def headers(self, data: bytes, content: bytes) -> bytes:
        """All headers; `content` is what follows the fixed part of the new one."""
        followers = (*self.kept[1:], len(self.chain.headers))
        return b"".join(
            self._new_header(following, content) if each == self.index else self._kept_header(data, each, following)
            for each, following in zip(self.kept, followers, strict=True)
        )

    def _new_header(self, following: int, content: bytes) -> bytes:
        place, next_place = self.place, self._place_of(following)
        next_coded_char_set_id = self._next_coded_char_set_id(following)
        if self.to is Dialect.MQRFH2:
            return write_mqrfh2(
                (content,),
                format=next_place.format,
                next_coded_char_set_id=next_coded_char_set_id,
                next_encoding=next_place.encoding,
                coded_char_set_id=place.coded_char_set_id,
                encoding=place.encoding,
            )
        left = self._left_header(next_place, next_coded_char_set_id)
        string = write_mqrfh_string(
            content,
            format=FORMAT_MQRFH2 if left else next_place.format,
            next_coded_char_set_id=place.coded_char_set_id if left else next_coded_char_set_id,
            next_encoding=place.encoding if left else next_place.encoding,
            coded_char_set_id=place.coded_char_set_id,
            encoding=place.encoding,
        )
        return string + left

    def _left_header(self, next_place: HeaderPlace, next_coded_char_set_id: int) -> bytes:
        """The MQRFH2 of the folders that are left, in the page of the new header; nothing when there are none."""
        header = self.chain.headers[self.index]
        if not self.left_folders or not isinstance(header, Mqrfh2):
            return b""
        return write_mqrfh2(
            self.left_folders,
            format=next_place.format,
            next_coded_char_set_id=next_coded_char_set_id,
            next_encoding=next_place.encoding,
            coded_char_set_id=self.place.coded_char_set_id,
            encoding=self.place.encoding,
            flags=header.flags,
            name_value_ccsid=header.name_value_ccsid,
        )

    def _next_coded_char_set_id(self, following: int) -> int:
        """The number in the old header, unless it would now mean another page."""
        raw = self.chain.headers[self.index].coded_char_set_id
        moved = self.place.coded_char_set_id != self.chain.places[self.index].coded_char_set_id
        if following != self.index + 1 or (moved and raw in (INHERIT, UNDEFINED)):
            return self._place_of(following).coded_char_set_id
        return raw

    def _kept_header(self, data: bytes, each: int, following: int) -> bytes:
        """A header that stays, byte for byte except for its description of what follows."""
        place, next_place = self.chain.places[each], self._place_of(following)
        header = self.chain.headers[each]
        raw = data[place.offset : place.offset + header.struc_length]
        at = DEAD_LETTER_FORMAT_OFFSET_BYTES if isinstance(header, DeadLetterHeader) else FORMAT_OFFSET_BYTES
        format = _FORMATS[self.to] if following == self.index else next_place.format
        name = format_in(format, place.coded_char_set_id)
        description = raw[at - _BYTES_BEFORE_FORMAT : at]
        if following != each + 1:
            layout = ">ii" if is_big_endian(place.encoding) else "<ii"
            description = struct.pack(layout, next_place.encoding, next_place.coded_char_set_id)
        return raw[: at - _BYTES_BEFORE_FORMAT] + description + name + raw[at + len(name) :]

    def _place_of(self, index: int) -> HeaderPlace:
        """The place of the header with that index; behind the last one, that of the body."""
        chain = self.chain
        if index < len(chain.places):
            return chain.places[index]
        return chain.body_place
