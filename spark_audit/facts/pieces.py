"""Pieces: what one task reads of a trail. A segment is cut into pieces of some size; Parquet is read file by file.

A piece begins behind the first line feed at or after its first byte and ends with the line that its last byte is in, so
each line is in one piece. A compressed segment is one piece; one that is compressed after it was cut is read again in
that form. Memory holds a block and the longest line.
"""

import io
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow.parquet as pq

from spark_audit.facts.lines import Line, lines_of
from spark_audit.location import Location, LocationFailed
from spark_audit.record import FIELDS
from spark_audit.remote_location import RemoteLocation
from spark_audit.trail.segment_forms import DamagedSegment, Readable, open_segment, stored_bytes, text_of
from spark_audit.verify.source import BLOCK_BYTES, LONGEST_LINE_BYTES

#: Large enough to pay for a task, small enough to spread a segment of 64 MiB over two.
PIECE_BYTES: Final = 32 * 1024 * 1024
_ROWS: Final = 2_000
_FIELD_NAMES: Final = tuple(field.name for field in FIELDS)
_PLACED: Final = ("trail", "segment", "block", "place", "is_record", "actual_hash", "line")
#: Files of an earlier version have no numbers of lines: there each record was a line.
_LINE_NUMBER: Final = "line_number"


class Piece(Protocol):
    """What a task is given: it gives lines."""

    def lines(self) -> Iterator[Line]:
        """Every line, in the order in which it stands. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPiece:
    """Bytes `start` to `end` of a segment of text; of a compressed one all. `end` 0: to the end."""

    trail: str
    path: Location
    start: int = 0
    end: int = 0

    def lines(self) -> Iterator[Line]:
        """See Piece."""
        return lines_of(self._raw(), self.trail, self.path.name, self.start)

    def last_line(self) -> bytes:
        """The bytes of the last line, b"" if there is none. Raises OSError."""
        (last,) = deque(self._raw(), maxlen=1) or (b"",)
        return last

    def _raw(self) -> Iterator[bytes]:
        try:
            opened, ending = open_segment(self.path)
        except FileNotFoundError as error:  # Spark hands on only the text of an error
            raise LocationFailed(str(self.path), str(error.strerror)) from None
        with opened as file:
            try:
                with text_of(file, ending) as text:
                    yield from _lines_between(text, self.start, self.end)
            except DamagedSegment as error:
                yield f"the rest cannot be decompressed: {error}".encode()


def pieces_of(trail: str, paths: Iterable[Location], piece_bytes: int = PIECE_BYTES) -> list[SegmentPiece]:
    """The pieces of segments. Raises OSError."""
    pieces: list[SegmentPiece] = []
    for path in paths:
        size, is_compressed = stored_bytes(path)
        starts = [0] if is_compressed else list(range(0, max(size, 1), piece_bytes))
        ends = [*starts[1:], 0]
        pieces += [
            SegmentPiece(trail=trail, path=path, start=start, end=end) for start, end in zip(starts, ends, strict=True)
        ]
    return pieces


def _lines_between(text: Readable, start: int, end: int) -> Iterator[bytes]:
    """The lines that begin at `start` or later and before `end`, 0 for no end."""
    offset = max(0, start - 1)
    _pass_over(text, offset)
    for line, length in _lines_of(iter(lambda: text.read(BLOCK_BYTES), b"")):
        if offset >= start:
            yield line
        offset += length + 1
        if end and offset >= end:
            return


def _pass_over(text: Readable, size: int) -> None:
    """Goes on behind so many bytes. Those of a segment that was compressed after it was cut have to be read."""
    if isinstance(text, io.BufferedIOBase):
        text.seek(size)
        return
    while size and (data := text.read(min(size, BLOCK_BYTES))):
        size -= len(data)


def _lines_of(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    """Lines without their line feeds, and their length in bytes; of one that is too long to be held, its beginning."""
    held: list[bytes] = []
    length = 0
    for data in blocks:
        first, *others = data.split(b"\n")
        if length <= LONGEST_LINE_BYTES:
            held.append(first)
        length += len(first)
        if others:
            yield b"".join(held), length
            for line in others[:-1]:
                yield line, len(line)
            held, length = [others[-1]], len(others[-1])
    if length:
        yield b"".join(held), length


def parquet_file(location: Location) -> pq.ParquetFile:
    """Opens a file of Parquet. Raises OSError, ArrowInvalid."""
    if isinstance(location, RemoteLocation):
        return pq.ParquetFile(location.open("rb", buffering=0), pre_buffer=True)
    return pq.ParquetFile(location)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPiece:
    """A file of lines that `ingest` made, and of each trail the first and last segment (stems) that are read.

    `is_named`: several trails are read, and lines bear the name of theirs.
    """

    path: Location
    segments: Mapping[str, tuple[str, str]]
    is_named: bool

    def lines(self) -> Iterator[Line]:
        """See Piece."""
        with parquet_file(self.path) as file:
            there = set(file.schema_arrow.names)
            fields = [name for name in _FIELD_NAMES if name in there]
            shapes: dict[tuple[str, ...], tuple[str, ...]] = {}
            numbered = [_LINE_NUMBER] if _LINE_NUMBER in there else []
            for batch in file.iter_batches(batch_size=_ROWS, columns=[*fields, *_PLACED, *numbered]):
                size_bytes = batch.nbytes // max(1, batch.num_rows)
                for row in batch.to_pylist():
                    if (line := self._line(row, fields, size_bytes)) is not None:
                        line.names = shapes.setdefault(line.names, line.names)
                        yield line

    def _line(self, row: dict[str, object], fields: list[str], size_bytes: int) -> Line | None:
        trail, segment, block, place, is_record, actual_hash, text = (row[name] for name in _PLACED)
        ends = self.segments.get(str(trail))
        stem = str(segment).partition(".")[0]
        if ends is None or not ends[0] <= stem <= ends[1]:
            return None
        record = {name: row[name] for name in fields if row[name] is not None} if is_record else None
        name = str(trail) if self.is_named else ""
        number = row.get(_LINE_NUMBER)
        number = place if number is None else number
        return Line(name, segment, block, place, number, record, actual_hash, text, size_bytes)  # type: ignore[arg-type]
