"""Closed segments measured for the manifest: bytes, lines and SHA-256 of their uncompressed contents."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_audit.facts.lines import parsed
from spark_audit.location import Location, Status
from spark_audit.record import Kind
from spark_audit.record.batch_line import is_of_batch, records_of
from spark_audit.trail.segment_forms import OPEN
from spark_audit.verify.source import SegmentFile, TrailFolder, each_segment


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSegment:
    """A segment's file and its measures. `gateway` is that of its first record, "" if it has no record.

    `begins_late` is the hash of that record if it says why a trail begins late, else "".
    """

    path: Location
    stem: str
    gateway: str
    sha256: str
    size_bytes: int
    lines: int
    begins_late: str = ""
    #: Rows that its lines become: one of each record, and of each line without any.
    rows: int = 0


class Measuring:
    """Measures closed segments. It does not read a segment again whose name, size and time of change are the same."""

    def __init__(self) -> None:
        self._measured: dict[Location, tuple[tuple[int, int], MeasuredSegment]] = {}

    def closed_segments(self, trail_dir: Location) -> Iterator[MeasuredSegment]:
        """The closed segments of a trail in order. Raises OSError, DamagedSegment, LineTooLong."""
        for segment in each_segment(TrailFolder(trail_dir)):
            if segment.ending != OPEN:
                yield self._known_or_measured(trail_dir, segment)

    def _known_or_measured(self, trail_dir: Location, segment: SegmentFile) -> MeasuredSegment:
        path = trail_dir / segment.name
        status = _status(path, segment)
        looks, measured = self._measured.get(path, ((0, 0), None))
        if measured is None or looks != (status.st_size, status.st_mtime_ns):
            measured = _measured(trail_dir, segment)
            self._measured[path] = (status.st_size, status.st_mtime_ns), measured
        return measured


def _status(path: Location, segment: SegmentFile) -> Status:
    """Size and time of the file. On this machine it is opened first: a compressed one may just replace it."""
    if not isinstance(path, Path):
        return path.stat()
    with segment.open_file() as file:
        return os.fstat(file.fileno())


def _measured(trail_dir: Location, segment: SegmentFile) -> MeasuredSegment:
    digest = hashlib.sha256()
    size_bytes = lines = rows = 0
    gateway = begins_late = ""
    for block in segment.blocks():
        digest.update(block)
        size_bytes += len(block)
        of_block = block.removesuffix(b"\n").split(b"\n")
        lines += len(of_block)
        rows += sum(len(parsed(line) or (None,)) if is_of_batch(line) else 1 for line in of_block)
        if not gateway:
            gateway, begins_late = _first_record(block)
    return MeasuredSegment(
        path=trail_dir / segment.name,
        stem=segment.stem,
        gateway=gateway,
        sha256=digest.hexdigest(),
        size_bytes=size_bytes,
        lines=lines,
        rows=rows,
        begins_late=begins_late,
    )


def _first_record(block: bytes) -> tuple[str, str]:
    """The gateway of the first record, and its hash if it says why a trail begins late."""
    for line in block.split(b"\n"):
        record, *_others = records_of(line) or [{}]
        if isinstance(gateway := record.get("gateway"), str) and gateway:
            is_late = record.get("kind") == Kind.RESTORED and record.get("event") == "trail_begun_late"
            return gateway, str(record.get("hash", "")) if is_late else ""
    return "", ""
