"""The files of a trail that an audit reads: closed segments, and the whole lines of the open one."""

import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final, Self

from spark_audit.location import Location
from spark_audit.period import EVERYTHING, Period
from spark_audit.trail.digest import DIGEST_FOLDER, digest_numbers
from spark_audit.trail.segment_forms import CLOSED, OPEN, SEGMENT_NAME, stored_bytes

#: A compressed segment holds about so many times its own bytes.
_RATIO: Final = 10
_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFiles:
    """The files of a trail that an audit reads: closed segments, and a copy of the whole lines of the open one.

    `is_cut`: the trail has older segments that are not read. `last_digest` is the number of the last digest before the
    search for segments, 0 for none. So digests that a gateway signs later do not count. `passed_over` are segments
    (stems) that an earlier audit has read, or a later one is to read.
    """

    folder: Location
    segments: tuple[Location, ...]
    torn: tuple[str, ...]
    is_cut: bool = False
    last_digest: int = 0
    passed_over: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the trail among others."""
        return str(self.folder)

    @property
    def size_bytes(self) -> int:
        """The bytes of the files as they are stored."""
        return sum(stored_bytes(path)[0] for path in self.segments)

    @property
    def text_bytes(self) -> int:
        """About the number of bytes of their lines."""
        return sum(map(_text_bytes, self.segments))

    def first(self, most_bytes: int) -> Self:
        """The first segments, of about so many bytes of text, or a single larger one. The others are passed over."""
        ends = accumulate(map(_text_bytes, self.segments))
        count = max(1, sum(1 for end in ends if end <= most_bytes))
        later = (path.name.partition(".")[0] for path in self.segments[count:])
        return replace(self, segments=self.segments[:count], passed_over=self.passed_over.union(later))


def trail_files(
    trail_dir: Location, scratch: Path | None, *, period: Period = EVERYTHING, behind: str = "", up_to: str = ""
) -> TrailFiles:
    """The files of a trail. Raises OSError if the folder cannot be read. A gateway may close a segment meanwhile.

    Segments up to `behind` (a stem) are passed over, and those behind `up_to`. `scratch` takes the copy of an open
    segment; None: only closed ones are read, as is needed where workers cannot see that folder.
    """
    last_digest = max(digest_numbers(trail_dir / DIGEST_FOLDER), default=0)
    found = {path.name: path for path in trail_dir.iterdir()}
    names = sorted(found)
    closed = {name.partition(".")[0]: name for name in reversed(names) if _is_closed(name)}
    every = {**{name.partition(".")[0]: name for name in names if scratch is not None and _is_open(name)}, **closed}
    stems = sorted(every)
    within = stems if period.is_everything else period.to_read(stems)
    to_read = [stem for stem in within if stem > behind and (not up_to or stem <= up_to)]
    segments = [found[every[stem]] for stem in to_read]
    if scratch is not None:
        folder = Path(tempfile.mkdtemp(dir=scratch))
        segments = [_whole_lines(path, folder) for path in segments]
    return TrailFiles(
        folder=trail_dir,
        segments=tuple(segments),
        torn=tuple(name for name in names if name.endswith(".torn")),
        is_cut=bool(to_read) and to_read[0] != stems[0],
        last_digest=last_digest,
        passed_over=frozenset(stem for stem in stems if stem <= behind or (up_to and stem > up_to)),
    )


def _text_bytes(path: Location) -> int:
    size, is_compressed = stored_bytes(path)
    return size * (_RATIO if is_compressed else 1)


def closed_segments(trail_dir: Location) -> list[Location]:
    """The files of closed segments in a folder, in any order; none if it cannot be read."""
    try:
        return [path for path in trail_dir.iterdir() if _is_closed(path.name)]
    except OSError:
        return []


def _whole_lines(path: Location, folder: Path) -> Location:
    """A closed segment, or a copy of an open one up to its last line feed.

    If it was closed just now, the closed one.
    """
    if not _is_open(path.name):
        return path
    copy = folder / path.name
    try:
        _copy(path, copy)
    except FileNotFoundError:
        return path.with_name(f"{copy.stem}{CLOSED}")
    with copy.open("r+b") as file:
        file.truncate(_end_of_last_line(file))
    return copy


def _copy(path: Location, copy: Path) -> None:
    if isinstance(path, Path):
        shutil.copyfile(path, copy)
        return
    with path.open("rb") as original, copy.open("wb") as file:
        shutil.copyfileobj(original, file, _BLOCK_BYTES)


def _end_of_last_line(file: BinaryIO) -> int:
    """The offset behind the last line feed, 0 if there is none. The search begins at the end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _is_open(name: str) -> bool:
    found = SEGMENT_NAME.fullmatch(name)
    return found is not None and found[3] == OPEN


def _is_closed(name: str) -> bool:
    return SEGMENT_NAME.fullmatch(name) is not None and not _is_open(name)
