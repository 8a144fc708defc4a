"""The names of a trail's segments, and their lines, whether a file is open, closed or compressed."""

import errno
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from spark_audit.record import line_hashes
from spark_audit.trail.segment_forms import CLOSED, COMPRESSED, OPEN, SEGMENT_NAME, DamagedSegment, text_of

TORN_SUFFIX: Final = ".torn"
#: A segment that is closed while it is looked for has its new name behind the look for the old one.
_LOOKED_FOR: Final = (CLOSED, *COMPRESSED, OPEN, CLOSED, *COMPRESSED)
_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A file of the trail: `stem` is the segment's name, which it keeps; `suffix` says what became of it."""

    path: Path
    stem: str
    number: int
    suffix: str

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """None for a file that is no segment."""
        found = SEGMENT_NAME.fullmatch(path.name)
        return cls(path=path, stem=found[1], number=int(found[2]), suffix=found[3]) if found else None

    @property
    def is_open(self) -> bool:
        return self.suffix == OPEN

    def read(self) -> bytes:
        """Its lines; a segment is at most 64 MiB and one batch. Raises OSError, also for a damaged compressed file."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Its lines piece by piece. Raises OSError, also for a damaged compressed file."""
        try:
            with self.path.open("rb") as stored, text_of(stored, self.suffix) as text:
                while chunk := text.read(_CHUNK_BYTES):
                    yield chunk
        except DamagedSegment as error:
            raise OSError(errno.EIO, f"the compressed file is damaged: {error}", str(self.path)) from error

    def holds(self, size_bytes: int, sha256: str) -> bool:
        """Whether its lines are those of a digest. Raises OSError."""
        digest, size = hashlib.sha256(), 0
        for chunk in self.chunks():
            digest.update(chunk)
            size += len(chunk)
        return size == size_bytes and digest.hexdigest() == sha256


def segment_files(folder: Path) -> list[SegmentFile]:
    """Every segment in the order of their numbers. One that is being compressed is there once, not compressed."""
    files = (SegmentFile.of(path) for path in folder.iterdir())
    found: dict[str, SegmentFile] = {}
    for file in sorted((file for file in files if file is not None), key=lambda file: file.path.name):
        found.setdefault(file.stem, file)
    return list(found.values())


def segment_file(folder: Path, stem: str) -> SegmentFile | None:
    """The file of a segment, whatever becomes of it meanwhile; None where it is removed."""
    for suffix in _LOOKED_FOR:
        path = folder / (stem + suffix)
        if path.exists():
            return SegmentFile.of(path)
    return None


def linked_lines(data: bytes, head: str) -> tuple[int, str]:
    """Length of the whole lines at the start whose hashes hold and follow `head`, and the hash of the last of them."""
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        line = data[offset:end]
        hashes = line_hashes(line)
        if hashes is None or hashes[0] != hashes[1] or f'"prev":"{head}"'.encode() not in line[-160:]:
            break
        head, offset = hashes[0], end + 1
    return offset, head


def read_segment(folder: Path, stem: str) -> bytes:
    """The lines of a segment; none where it is removed or damaged. It may be compressed while it is looked for."""
    for _ in range(2):
        file = segment_file(folder, stem)
        try:
            return b"" if file is None else file.read()
        except FileNotFoundError:
            continue
        except OSError:
            break
    return b""
