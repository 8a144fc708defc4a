"""The files of a trail, in the order in which they are checked: each digest, then the segments up to its own.

A source is a folder or lines in memory here, and a pack in packed_trail.py. Segments may be open, closed or compressed,
and are read in blocks of whole lines.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import BinaryIO, Final, Protocol

from spark_audit.location import Location
from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    LARGEST_DIGEST_BYTES,
    DigestKind,
    MalformedDigest,
    digest_name,
    digest_numbers,
    parse_digest,
)
from spark_audit.trail.segment_forms import CLOSED, SEGMENT_NAME, Readable, open_segment, text_of
from spark_audit.verify.digests import segment_number

TORN: Final = ".torn"
#: Bytes of a line that are held in memory; the headers of a message of 4 MiB, before and after, are 11 MiB in base64.
LONGEST_LINE_BYTES: Final = 64 * 1024 * 1024
BLOCK_BYTES: Final = 1024 * 1024


class LineTooLong(Exception):
    """A line that is longer than LONGEST_LINE_BYTES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestFile:
    """A digest's number, from its name, and its bytes (one more than a digest may have, at most)."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment's file. `open_file` opens its stored bytes; it must be read before the next entry is asked for."""

    name: str
    #: Name without its ending, as digests have it.
    stem: str
    number: int
    ending: str
    open_file: Callable[[], AbstractContextManager[BinaryIO]]

    def blocks(self) -> Iterator[bytes]:
        """Its bytes, uncompressed, in blocks of whole lines; the last may lack its line feed.

        Raises DamagedSegment, LineTooLong, OSError.
        """
        with self.open_file() as file, text_of(file, self.ending) as text:
            yield from _blocks(text)


Entry = DigestFile | SegmentFile


class TrailSource(Protocol):
    """A trail's files. `entries` is asked for once; `torn_files` is known when it has ended."""

    @property
    def torn_files(self) -> tuple[str, ...]:
        """Names of what a crash left, sorted."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Digests ascending, segments ascending, a segment's digest before it. Raises OSError."""
        ...


class TrailFolder:
    """A trail's folder, which a gateway may be writing meanwhile. Raises OSError where it cannot be read.

    `gone` are the segments that were removed before they could be read; known when `entries` has ended.
    """

    def __init__(self, folder: Location) -> None:
        self._folder = folder
        self.gone: list[str] = []
        self._digests = digest_numbers(folder / DIGEST_FOLDER)
        names = sorted(path.name for path in folder.iterdir())
        self._segments = [name for name in names if SEGMENT_NAME.fullmatch(name)]
        self.torn_files = tuple(name for name in names if name.endswith(TORN))

    def entries(self) -> Iterator[Entry]:
        """See TrailSource."""
        return in_checking_order(self._digest_files(), self._segment_files())

    def digest(self, number: int) -> bytes:
        """The bytes of the digest with a number. Raises OSError."""
        with (self._folder / DIGEST_FOLDER / digest_name(number)).open("rb") as file:
            return file.read(LARGEST_DIGEST_BYTES + 1)

    def _digest_files(self) -> Iterator[DigestFile]:
        for number in self._digests:
            yield DigestFile(number=number, data=self.digest(number))

    def _segment_files(self) -> Iterator[SegmentFile]:
        """The segments; under its next name where one was closed or compressed meanwhile, and not twice under that."""
        last = ""
        for name in self._segments:
            try:
                opened, ending = open_segment(self._folder / name)
            except FileNotFoundError:
                if name.partition(".")[0] != last.partition(".")[0]:
                    self.gone.append(name)
                continue
            with opened as file:
                found = name.partition(".")[0] + ending
                if found != last:
                    last = found
                    yield _segment_file(found, partial(_held, file))


class TrailLines:
    """Lines in memory as one segment: those of a proof, for a search that reads trails."""

    torn_files = ()

    def __init__(self, lines: Iterable[str]) -> None:
        self._text = "".join(f"{line}\n" for line in lines).encode(errors="replace")

    def entries(self) -> Iterator[Entry]:
        """See TrailSource."""
        yield SegmentFile(name="", stem="", number=0, ending=CLOSED, open_file=lambda: BytesIO(self._text))


def each_segment(source: TrailSource) -> Iterator[SegmentFile]:
    """Every segment of a source once: one that is being compressed is there in two forms."""
    last: str | None = None
    for entry in source.entries():
        if isinstance(entry, SegmentFile) and entry.stem != last:
            last = entry.stem
            yield entry


def in_checking_order(digests: Iterable[DigestFile], segments: Iterable[SegmentFile]) -> Iterator[Entry]:
    """Each digest, and behind it the segments up to that which it speaks of; both are ascending already."""
    waiting = iter(segments)
    segment = next(waiting, None)
    for digest in digests:
        yield digest
        up_to = _segment_of(digest.data)
        while segment is not None and segment.number <= up_to:
            yield segment
            segment = next(waiting, None)
    while segment is not None:
        yield segment
        segment = next(waiting, None)


def segment_file(name: str, open_file: Callable[[], AbstractContextManager[BinaryIO]]) -> SegmentFile | None:
    """The segment with a file name; None where it is no segment's."""
    return _segment_file(name, open_file) if SEGMENT_NAME.fullmatch(name) else None


def _segment_file(name: str, open_file: Callable[[], AbstractContextManager[BinaryIO]]) -> SegmentFile:
    stem = name.partition(".")[0]
    return SegmentFile(name=name, stem=stem, number=int(stem[:12]), ending=name.removeprefix(stem), open_file=open_file)


def _held(file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """A file that somebody else closes."""
    return nullcontext(file)


def _segment_of(data: bytes) -> int:
    """Number of the segment whose digest this is; 0 for every other digest, and for none."""
    try:
        digest = parse_digest(data)
    except MalformedDigest:
        return 0
    return segment_number(digest) if digest.kind == DigestKind.SEGMENT else 0


def _blocks(file: Readable) -> Iterator[bytes]:
    pieces: list[bytes] = []
    length = 0
    while data := file.read(BLOCK_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join((*pieces, data[:end]))
            pieces, length = [], 0
        pieces.append(data[end:])
        length += len(data) - end
        if length > LONGEST_LINE_BYTES:
            raise LineTooLong(f"longer than {LONGEST_LINE_BYTES} bytes")
    if length:
        yield b"".join(pieces)
