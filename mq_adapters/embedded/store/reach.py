"""How far a store or a trail reaches, and the small marker beside it with the same numbers. It reveals an older file.

A marker is never ahead of its file. It is written after each commit, which costs no sync. It is synced when other data
are synced anyway (opening, new numbers, a WAL that begins anew, closing). So a file that is behind its marker went
back. A kill does not change a marker. A loss of power may take it back to its last sync.

The file has two places, at 0 and 4,096, so that a torn write of one leaves the other. Each has 60 bytes (big-endian):

    "RFHBMARK" (8)  version 1 (4)  incarnation (12)  commits (8)  batch (8)  numbers (8)  time, us (8)  CRC-32 (4)

The first place is written only to be synced, the second one behind each commit.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from struct import Struct
from typing import Final, Self
from zlib import crc32

from mq_adapters.embedded.store.files import sync_folder

_RECORD: Final = Struct(">8sI12sQQQQ")
_CHECKSUM: Final = Struct(">I")
_RECORD_BYTES: Final = _RECORD.size + _CHECKSUM.size
_TAG: Final = b"RFHBMARK"
_VERSION: Final = 1
_SYNCED_PLACE: Final = 0
_PLACE_BYTES: Final = 4_096
_LATEST_PLACE: Final = _PLACE_BYTES
_US: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a store or a trail reaches. Every number only rises while the incarnation stays.

    `incarnation` is the store's, 12 bytes. `commits` are the store's commits, or a trail's records. `batch` is the last
    batch of audit notes. Messages may have been given all sequence numbers below `numbers`, which is 0 for a trail.
    `at_us` is the time of this reach, microseconds since 1970 UTC.
    """

    incarnation: bytes
    commits: int = 0
    batch: int = 0
    numbers: int = 0
    at_us: int = 0

    def is_behind(self, marked: "Reach") -> bool:
        """Whether this went back, compared with a marker."""
        return (
            self.incarnation != marked.incarnation
            or self.commits < marked.commits
            or self.batch < marked.batch
            or self.numbers < marked.numbers
        )

    @property
    def at(self) -> str:
        """The time, for people."""
        return told_time(self.at_us)


class UnreadableMarker(Exception):
    """A marker that exists but cannot be read."""


def told_time(at_us: int) -> str:
    """UTC to the second; "an unknown time" for 0 and for an impossible time."""
    try:
        return f"{datetime.fromtimestamp(at_us // _US, UTC):%Y-%m-%dT%H:%M:%SZ}" if at_us else "an unknown time"
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def read_marker(path: Path) -> Reach | None:
    """The content of a marker; None if there is no marker. Raises UnreadableMarker, OSError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    found = [reach for place in (_SYNCED_PLACE, _LATEST_PLACE) if (reach := _unpacked(data[place:])) is not None]
    if not found:
        raise UnreadableMarker(f"{path.name} is damaged")
    return found[-1] if len(found) == 1 or not found[-1].is_behind(found[0]) else found[0]


class Marker:
    """A marker that one process keeps up to date. Raises OSError."""

    def __init__(self, path: Path, reach: Reach) -> None:
        """Writes the marker anew. It is whole under its name, and synced, when this returns."""
        packed = _packed(reach)
        part = path.with_name(f"{path.name}.part")
        self._file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(self._file, 2 * packed.ljust(_PLACE_BYTES, b"\0"), 0)
            os.fsync(self._file)
            part.rename(path)
            sync_folder(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def note(self, reach: Reach) -> None:
        """Writes how far the store is durable. The note survives the process, but perhaps not a loss of power."""
        os.pwrite(self._file, _packed(reach), _LATEST_PLACE)

    def sync(self, reach: Reach) -> None:
        """Writes how far the store is durable, and returns when the marker is durable too."""
        os.pwrite(self._file, _packed(reach), _SYNCED_PLACE)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _packed(reach: Reach) -> bytes:
    record = _RECORD.pack(_TAG, _VERSION, reach.incarnation, reach.commits, reach.batch, reach.numbers, reach.at_us)
    return record + _CHECKSUM.pack(crc32(record))


def _unpacked(data: bytes) -> Reach | None:
    if len(data) < _RECORD_BYTES or _CHECKSUM.unpack_from(data, _RECORD.size)[0] != crc32(data[: _RECORD.size]):
        return None
    tag, version, incarnation, commits, batch, numbers, at_us = _RECORD.unpack_from(data)
    if (tag, version) != (_TAG, _VERSION):
        return None
    return Reach(incarnation=incarnation, commits=commits, batch=batch, numbers=numbers, at_us=at_us)
