"""The files of a trail, and the forms of a segment: open, closed, or compressed with Zstandard or gzip.

    NNNNNNNNNNNN-YYYYMMDDTHH.open         a segment that is being written, always the last one
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl        a closed segment: its text never changes again
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl.zst    the same, compressed with Zstandard (RFC 8878)
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl.gz     the same, compressed with gzip (RFC 1952) by earlier versions
    NNNNNNNNNNNN-YYYYMMDDTHH-B.torn       no lines: what a crash left behind the first B bytes of that segment
    NAME.part                             half-made, and no part of the trail
    digests/NNNNNNNNNNNN.digest           a signed digest
    time-stamps/WITNESS/NNNNNNNNNNNN.tsr  a time-stamp of that digest (RFC 3161)
    receipts/WITNESS.json                 what a Git repository or a bucket has of the digests

N are decimal digits, 12 of them: the number of the segment or digest, from 1 without gaps. Behind it stand the day and
hour (UTC) in which the segment was begun. In the order of their names, segments are in the order of their lines.

The text of a segment is lines in UTF-8, each ended by one line feed (0A), which is nowhere else. The last line of an
open segment may lack its end: it is still being written. A digest is over the text, so it stays true whatever the form.

A file in Zstandard is one frame with nothing behind it. Its header tells the length of the text, its last four bytes
are the checksum, and its window is at most 8 MiB. A file in gzip has one member or several. Where a crash left a
segment in two forms, both have the same text.
"""

import errno
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, Protocol

from spark_audit.location import Location

OPEN: Final = ".open"
CLOSED: Final = ".jsonl"
ZSTANDARD: Final = ".jsonl.zst"
GZIP: Final = ".jsonl.gz"
COMPRESSED: Final = (ZSTANDARD, GZIP)
#: Name without ending, number, ending.
SEGMENT_NAME: Final = re.compile(
    rf"(([0-9]{{12}})-[0-9]{{8}}T[0-9]{{2}})({'|'.join(map(re.escape, (OPEN, CLOSED, *COMPRESSED)))})"
)
#: What RFC 8878 (section 3.1.1.1.2) asks every reader to support; the gateway's frames need 2 MiB.
LARGEST_WINDOW_BYTES: Final = 8 * 1024 * 1024
#: Bytes that are decompressed together: four of them may become a block of 128 KiB, so these become at most 32 MiB.
_STEP_BYTES: Final = 1024


class DamagedSegment(Exception):
    """A compressed segment that cannot be decompressed to its end."""


class Readable(Protocol):
    """What text is read from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


class ZstandardText:
    """The uncompressed bytes of a file that is one frame. Raises DamagedSegment."""

    def __init__(self, file: BinaryIO) -> None:
        import zstandard  # here, because most commands read no trail

        self._file = file
        self._frame = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW_BYTES).decompressobj()
        self._error = zstandard.ZstdError
        self._text = bytearray()

    def read(self, size: int, /) -> bytes:
        """See Readable."""
        while len(self._text) < size and (data := self._file.read(_STEP_BYTES)):
            self._add(data)
        if not self._text and not self._frame.eof:
            raise DamagedSegment("it ends within its frame")
        read = bytes(memoryview(self._text)[:size])
        del self._text[:size]
        return read

    def _add(self, data: bytes) -> None:
        if self._frame.eof:
            raise DamagedSegment("bytes stand behind its frame")
        try:
            self._text += self._frame.decompress(data)
        except self._error as error:
            raise DamagedSegment(str(error)) from None
        if self._frame.unused_data:
            raise DamagedSegment("bytes stand behind its frame")


_READERS: Final[Mapping[str, Callable[[BinaryIO], Readable]]] = {
    ZSTANDARD: ZstandardText,
    GZIP: lambda file: gzip.GzipFile(fileobj=file),
}


def open_segment(path: Location) -> tuple[BinaryIO, str]:
    """A segment's file, opened, and its ending: another one where it was closed or compressed meanwhile.

    Raises OSError, FileNotFoundError where it is there in no form.
    """
    for form, ending in _forms(path):
        with suppress(FileNotFoundError):
            return form.open("rb"), ending
    raise _removed(path)


def stored_bytes(path: Location) -> tuple[int, bool]:
    """How many bytes a segment's file has, and whether it is compressed. Raises OSError."""
    for form, ending in _forms(path):
        with suppress(FileNotFoundError):
            return form.stat().st_size, ending in COMPRESSED
    raise _removed(path)


def _removed(path: Location) -> FileNotFoundError:
    """The error of a segment that was listed, and is there in no form."""
    return FileNotFoundError(errno.ENOENT, "it was removed while the trail was read (read it once more)", str(path))


def _forms(path: Location) -> Iterator[tuple[Location, str]]:
    """The file of a segment, and those in which it may be found later."""
    stem, _, ending = path.name.partition(".")
    yield path, f".{ending}"
    for other in (CLOSED, *COMPRESSED):
        yield path.with_name(stem + other), other


@contextmanager
def text_of(file: BinaryIO, ending: str) -> Iterator[Readable]:
    """The uncompressed bytes of a segment's open file, whose name has that ending. Raises DamagedSegment."""
    if ending not in COMPRESSED:
        yield file
        return
    try:
        yield _READERS[ending](file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DamagedSegment(str(error)) from None
