"""The trail's files: segments that only grow, are closed by a rename, and are continued after a crash.

    NNNNNNNNNNNN-YYYYMMDDTHH.open     being written: number of the segment, UTC hour of its first record
    NNNNNNNNNNNN-YYYYMMDDTHH.jsonl    closed: synced, renamed, the folder synced; never written again
    NNNNNNNNNNNN-YYYYMMDDTHH-N.torn   bytes from offset N that a crash left without a whole, valid line

A segment is closed at 64 MiB, after 15 minutes (SegmentLimits), or when the UTC hour ends, always between two batches.
What was cut off as torn had not been committed, so its batch is still on the audit queue and is written again.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

import orjson

from mq_adapters.reasons import StoreError
from spark_audit.record import ZERO_HASH, line_hashes

OPEN_SUFFIX: Final = ".open"
CLOSED_SUFFIX: Final = ".jsonl"
TORN_SUFFIX: Final = ".torn"
_HOUR: Final = "%Y%m%dT%H"
_SEGMENT_NAME: Final = re.compile(r"[0-9]{12}-[0-9]{8}T[0-9]{2}\.(open|jsonl)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLimits:
    """When a segment is closed, beside the end of the UTC hour. Spark reads files of this size at once."""

    size_bytes: int = 64 * 1024 * 1024
    age: timedelta = timedelta(minutes=15)


STANDARD_LIMITS: Final = SegmentLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEnd:
    """Where a gateway's records end: its last sequence, its last batch, and how many records that batch has there."""

    sequence: int = 0
    batch: int = 0
    records_of_batch: int = 0


class TrailInUse(StoreError):
    """Another process writes the trail."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Trail:
    """The trail of one data folder, open for appending by this process alone. Raises StoreError when the disk fails."""

    def __init__(self, folder: Path, lock: int, limits: SegmentLimits, now: Callable[[], datetime]) -> None:
        self.folder = folder
        self.limits = limits
        #: Hash of the last record, of whichever gateway.
        self.head = ZERO_HASH
        self._lock = lock
        self._now = now
        self._number = 0
        self._path: Path | None = None
        self._file = -1
        self._size = 0
        self._began = now()
        self._recover()

    @classmethod
    def open(
        cls, folder: Path, *, limits: SegmentLimits = STANDARD_LIMITS, now: Callable[[], datetime] = _utc_now
    ) -> Self:
        """Opens or makes the folder, continues an open segment, sets torn bytes aside. Raises TrailInUse."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return cls(folder, lock, limits, now)
            except BaseException:
                os.close(lock)
                raise
        except BlockingIOError as error:
            raise TrailInUse(
                f"open the trail in {folder}", "another process writes it", "stop it, or let it finish"
            ) from error
        except OSError as error:
            raise _failure("open the trail", error) from error

    # -- reading back --------------------------------------------------------------------------------------------------

    def end_of(self, gateway: str) -> TrailEnd:
        """Where this gateway's records end; all zero where the trail has none of it.

        A closed segment that somebody damaged is left as it is, for `verify` to find: its damaged lines are passed
        over, and the trail goes on behind what can be read.
        """
        wanted = f'"gateway":"{gateway}"'.encode()
        last: dict[str, int] = {}
        count = 0
        for line in self._lines_backwards():
            if wanted not in line:
                continue
            try:
                record = orjson.loads(line)
                batch, sequence, of_gateway = int(record["batch"]), int(record["sequence"]), record["gateway"]
            except (ValueError, KeyError, TypeError):
                continue
            if of_gateway != gateway:
                continue
            if last and batch != last["batch"]:
                break
            last = last or {"batch": batch, "sequence": sequence}
            count += 1
        if not last:
            return TrailEnd()
        return TrailEnd(sequence=last["sequence"], batch=last["batch"], records_of_batch=count)

    def _lines_backwards(self) -> Iterator[bytes]:
        """Every line, the newest first. A segment is at most 64 MiB and one batch, and is read whole."""
        for path in reversed(_segments(self.folder)):
            yield from reversed(path.read_bytes().splitlines())

    # -- writing -------------------------------------------------------------------------------------------------------

    def append(self, lines: bytes, head: str) -> None:
        """Adds the lines of one batch; `head` is the hash of the last. Safe only after `sync`."""
        try:
            self._roll_before(len(lines))
            if self._path is None:
                self._begin_segment()
            view = memoryview(lines)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            raise _failure("write the trail", error) from error
        self._size += len(lines)
        self.head = head

    def sync(self) -> None:
        """Returns when everything appended is on the disk."""
        if self._file >= 0:
            try:
                os.fdatasync(self._file)
            except OSError as error:
                raise _failure("sync the trail", error) from error

    def roll_if_due(self) -> None:
        """Closes the segment whose time is over; to be called between batches and when idle."""
        if self._path is not None and self._is_over():
            self.close_segment()

    def close_segment(self) -> None:
        """Syncs, renames to `.jsonl`, syncs the folder. Nothing to do where no segment is open."""
        if self._path is None:
            return
        try:
            os.fsync(self._file)
            self._path.rename(self._path.with_suffix(CLOSED_SUFFIX))
            os.fsync(self._lock)
            os.close(self._file)
        except OSError as error:
            raise _failure("close a segment of the trail", error) from error
        self._path, self._file, self._size = None, -1, 0

    def close(self) -> None:
        """Lets go of the files; an open segment stays open and is continued next time."""
        if self._file >= 0:
            os.close(self._file)
            self._path, self._file = None, -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _roll_before(self, length: int) -> None:
        if self._path is not None and self._size and (self._size + length > self.limits.size_bytes or self._is_over()):
            self.close_segment()

    def _is_over(self) -> bool:
        now = self._now()
        return now - self._began >= self.limits.age or now.strftime(_HOUR) != self._began.strftime(_HOUR)

    def _begin_segment(self) -> None:
        self._number += 1
        self._began = self._now()
        self._path = self.folder / f"{self._number:012d}-{self._began.strftime(_HOUR)}{OPEN_SUFFIX}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        os.fsync(self._lock)

    def _recover(self) -> None:
        for path in _segments(self.folder):
            self._number = max(self._number, int(path.name[:12]))
            if path.suffix == CLOSED_SUFFIX:
                continue
            self.close_segment()
            self.head = self._head_before(path)
            self._continue(path)
        if self._path is None:
            self.head = self._head_before(None)

    def _head_before(self, path: Path | None) -> str:
        """Hash of the last line in the segments before `path`, or in all."""
        names = [segment for segment in _segments(self.folder) if path is None or segment.name < path.name]
        for segment in reversed(names):
            lines = segment.read_bytes().splitlines()
            if lines and (hashes := line_hashes(lines[-1])) is not None:
                return hashes[0]
        return ZERO_HASH

    def _continue(self, path: Path) -> None:
        """Keeps the whole, linked lines of an open segment; what follows them goes to a `.torn` file."""
        data = path.read_bytes()
        kept, self.head = _linked_lines(data, self.head)
        if kept < len(data):
            _write_whole(path.with_name(f"{path.stem}-{kept}{TORN_SUFFIX}"), data[kept:])
            os.truncate(path, kept)
        os.fsync(self._lock)
        if not kept:
            path.unlink()
            self._number -= 1  # the last segment there is: without a line it never was, and its number is free
            return
        self._path, self._size = path, kept
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.fsync(self._file)
        first = orjson.loads(data[: data.index(b"\n")])
        self._began = datetime.fromtimestamp(first["at_us"] / 1_000_000, UTC)
        self.roll_if_due()


def _segments(folder: Path) -> list[Path]:
    """Closed and open segments in the order of their numbers."""
    return sorted(path for path in folder.iterdir() if _SEGMENT_NAME.fullmatch(path.name))


def _linked_lines(data: bytes, head: str) -> tuple[int, str]:
    """Length of the whole lines at the start whose hashes hold and follow `head`, and the hash of the last of them."""
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        line = data[offset:end]
        hashes = line_hashes(line)
        if hashes is None or hashes[0] != hashes[1] or f'"prev":"{head}"'.encode() not in line[-160:]:
            break
        head, offset = hashes[0], end + 1
    return offset, head


def _write_whole(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
    finally:
        os.close(file)


def _failure(operation: str, error: OSError) -> StoreError:
    return StoreError(
        operation,
        f"{error.strerror}: {error.filename or ''}",
        "make room or mend the disk; the trail goes on from there",
    )
