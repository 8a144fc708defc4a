"""Bytes of a header as rows of hexadecimal and text, with the first byte that differs set apart."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spark_audit.result import Evidence

#: Bytes in a row: its 59 characters fit into 360 pixels.
ROW_BYTES: Final = 8
#: Rows shown before and after the first difference, or from the beginning. result.json has all bytes.
_ROWS_BEFORE: Final = 8
_ROWS_AFTER: Final = 24
_SHOWN_BYTES: Final = (_ROWS_BEFORE + _ROWS_AFTER) * ROW_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRow:
    """Some bytes: offset, and hexadecimal and text in three parts: before, at and after the byte that differs."""

    offset: str
    hexadecimal: tuple[str, str, str]
    text: tuple[str, str, str]

    @property
    def differs(self) -> bool:
        return bool(self.hexadecimal[1])

    @property
    def padding(self) -> str:
        """Blanks that align the text of a shorter last row with the others."""
        return "   " * (ROW_BYTES - sum(len(part) for part in self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The shown rows of one side, and the numbers of bytes before and after them."""

    rows: tuple[DumpRow, ...]
    bytes_before: int
    bytes_after: int
    is_readable: bool = True


def dump(evidence: Evidence, side: str) -> Dump:
    """The bytes of one side (`input`, `output` or `expected`). The input has no mark, because it was not compared."""
    encoded: str = getattr(evidence, side)
    try:
        data = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return Dump(rows=(), bytes_before=0, bytes_after=0, is_readable=False)
    marked = -1 if side == "input" else evidence.byte_offset
    first = _first_shown(evidence, marked)
    end = min(len(data), first + _SHOWN_BYTES)
    whole: int = getattr(evidence, f"{side}_bytes")
    return Dump(
        rows=tuple(_rows(data, first, end, marked)),
        bytes_before=min(first, len(data)),
        bytes_after=max(whole, len(data)) - max(end, first) if first < len(data) else 0,
    )


def _first_shown(evidence: Evidence, marked: int) -> int:
    """The offset of the first row. It is the same for the written and the expected bytes."""
    if max(evidence.output_bytes, evidence.expected_bytes) <= _SHOWN_BYTES:
        return 0
    return max(0, marked // ROW_BYTES - _ROWS_BEFORE) * ROW_BYTES


def _rows(data: bytes, first: int, end: int, marked: int) -> Iterator[DumpRow]:
    for offset in range(first, end, ROW_BYTES):
        row = data[offset : min(offset + ROW_BYTES, end)]
        place = marked - offset if offset <= marked < offset + len(row) else len(row)
        parts = (row[:place], row[place : place + 1], row[place + 1 :])
        yield DumpRow(
            offset=f"{offset:05x}",
            hexadecimal=(parts[0].hex(" "), parts[1].hex(), parts[2].hex(" ")),
            text=(_text(parts[0]), _text(parts[1]), _text(parts[2])),
        )


def _text(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
