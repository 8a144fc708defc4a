"""The end of a store's journal, and the commits behind a damaged place: both are found before anybody writes there.

SQLite reads its WAL up to the first damaged frame, takes that for the end, and overwrites the rest. So one bit hides
every commit behind it. A commit is written only after the earlier ones are synced. If frames were written behind a
commit mark, that commit had been synced, and its loss is no torn end. Only the very last commit may be torn, by a loss
of power in the middle of it. Another kind of store can tell the same of its own journal (JournalEnd, `synced_commits`).

The WAL (sqlite.org, "WAL-mode File Format"; numbers are big-endian):

    header   32 bytes: magic (4; its lowest bit: words are big-endian in checksums), version (4), page size (4),
             check-point number (4), salts (8), checksum (8)
    frame    24 bytes and a page: page number (4), pages of the database behind a commit, else 0 (4), salts (8),
             checksum of all words so far (8)

A frame is valid if its salts are the header's and its checksum holds. Frames with other salts are older than the WAL's
last beginning. They end the WAL.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import mul
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

_HEADER: Final = Struct(">IIII8sII")
_FRAME: Final = Struct(">II4s4sII")
_MAGIC: Final = 0x377F0682
_BIG_ENDIAN_BIT: Final = 1
_CHECKED_HEADER_BYTES: Final = 24
_CHECKED_FRAME_BYTES: Final = 8
_LARGEST_PAGE: Final = 65_536
_SMALLEST_PAGE: Final = 512
_SALT_BYTES: Final = 4
_LOW_32_BITS: Final = 0xFFFF_FFFF

#: The byte order of words in checksums, for struct.
_ORDER: Final = {"big": ">", "little": "<"}

_Sums = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEnd:
    """`damaged_at` is the byte offset of the first damaged frame; -1 if there is none.

    That frame makes commits unreadable. `lost` ones had been synced. `torn` ones (0 or more) were under way when the
    power failed, and may not have been synced.
    """

    commits: int = 0
    damaged_at: int = -1
    lost: int = 0
    torn: int = 0

    @property
    def is_damaged(self) -> bool:
        return self.damaged_at >= 0


@dataclass(frozen=True, slots=True)
class _Wal:
    """The header of a WAL. `is_sound`: its checksum holds."""

    byte_order: str
    page_bytes: int
    salts: bytes
    sums: _Sums
    is_sound: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    offset: int
    is_commit: bool
    salts: bytes
    stored: _Sums
    checked: bytes


def synced_commits(marks: int, *, is_followed: bool) -> int:
    """How many of the last `marks` commits of a journal must have been synced.

    `is_followed`: something was written behind the last one. At one time one commit may be written and not yet synced.
    """
    return marks if is_followed else max(0, marks - 1)


def wal_path(database: Path) -> Path:
    """The WAL beside a database."""
    return database.with_name(database.name + "-wal")


def journal_end(database: Path) -> JournalEnd:
    """Finds the end of the WAL of a SQLite database, without a change. Raises OSError."""
    try:
        with wal_path(database).open("rb") as file:
            return _end_of(file)
    except FileNotFoundError:
        return JournalEnd()


def _end_of(file: BinaryIO) -> JournalEnd:
    wal = _header_of(file.read(_HEADER.size))
    if wal is None:
        return JournalEnd()
    frames = _frames(file, wal.page_bytes)
    if not wal.is_sound:
        return _behind(frames, None, wal, commits=0)
    sums, commits = wal.sums, 0
    for frame in frames:
        valid = _summed(frame.checked, sums, wal.byte_order) if frame.salts == wal.salts else None
        if valid != frame.stored:
            return _behind(frames, frame, wal, commits=commits)
        sums = frame.stored
        commits += frame.is_commit
    return JournalEnd(commits=commits)


def _behind(frames: Iterator[_Frame], bad: _Frame | None, wal: _Wal, *, commits: int) -> JournalEnd:
    """Examines the bytes behind `bad`, the first frame that is not valid, or behind the header."""
    salts = wal.salts
    marks, is_followed, damaged_at = 0, False, 0 if bad is None else -1
    if bad is not None and _is_of(bad, salts):
        damaged_at, marks, is_followed = bad.offset, int(bad.is_commit), not bad.is_commit
    for frame in frames:
        if bad is None:  # the header is damaged and cannot tell the present frames, but the first frame can
            salts, bad = frame.salts, frame
        if frame.salts != salts:
            continue
        damaged_at = bad.offset if damaged_at < 0 else damaged_at
        marks += frame.is_commit
        is_followed = not frame.is_commit
    lost = synced_commits(marks, is_followed=is_followed)
    if not damaged_at:
        lost = marks  # a header is synced before its first frame is written
    return JournalEnd(commits=commits, damaged_at=damaged_at, lost=lost, torn=marks - lost)


def _is_of(frame: _Frame, salts: bytes) -> bool:
    """Whether a damaged frame was written since the WAL began anew. One right salt of the two is enough to tell."""
    return frame.salts[:_SALT_BYTES] == salts[:_SALT_BYTES] or frame.salts[_SALT_BYTES:] == salts[_SALT_BYTES:]


def _header_of(data: bytes) -> _Wal | None:
    """The header of a WAL; None if nothing was written to it. A damaged page size is taken as 4,096."""
    if len(data) < _HEADER.size or not any(data):
        return None
    magic, _, page_bytes, _, salts, first, second = _HEADER.unpack(data)
    byte_order = "big" if magic & _BIG_ENDIAN_BIT else "little"
    is_sound = magic | _BIG_ENDIAN_BIT == _MAGIC | _BIG_ENDIAN_BIT and (
        _summed(data[:_CHECKED_HEADER_BYTES], (0, 0), byte_order) == (first, second)
    )
    is_size = _SMALLEST_PAGE <= page_bytes <= _LARGEST_PAGE and not page_bytes & (page_bytes - 1)
    return _Wal(byte_order, page_bytes if is_size else 4_096, salts, (first, second), is_sound and is_size)


def _frames(file: BinaryIO, page_bytes: int) -> Iterator[_Frame]:
    """The whole frames of a WAL, one after another."""
    offset = _HEADER.size
    while len(data := file.read(_FRAME.size + page_bytes)) == _FRAME.size + page_bytes:
        _, pages, first_salt, second_salt, first, second = _FRAME.unpack_from(data)
        checked = data[:_CHECKED_FRAME_BYTES] + data[_FRAME.size :]
        yield _Frame(offset, pages != 0, first_salt + second_salt, (first, second), checked)
        offset += len(data)


def _summed(data: bytes, before: _Sums, byte_order: str) -> _Sums:
    """The checksum of `data` (a multiple of 8 bytes) behind bytes with the checksum `before`.

    SQLite adds word by word: s0 += x + s1, s1 += y + s0. That is linear, so the place of a word says how often it
    counts.
    """
    count = len(data) // 4
    words = Struct(f"{_ORDER[byte_order]}{count}I").unpack(data)
    of_first, of_second = _weights(count)
    both = (*before, *words)
    return sum(map(mul, of_first, both)) & _LOW_32_BITS, sum(map(mul, of_second, both)) & _LOW_32_BITS


@cache
def _weights(words: int) -> tuple[Sequence[int], Sequence[int]]:
    """How often the two sums before and each word count in either sum behind them, modulo 2 to the 32."""
    return _weights_of(words, (1, 0)), _weights_of(words, (0, 1))


def _weights_of(words: int, last: _Sums) -> list[int]:
    """Goes backwards: sums that count p and q after a step count p + q and p + 2q before it; its words, p + q and q."""
    first, second = last
    weights: list[int] = []
    for _ in range(words // 2):
        weights += (second, (first + second) & _LOW_32_BITS)
        first, second = (first + second) & _LOW_32_BITS, (first + 2 * second) & _LOW_32_BITS
    return [first, second, *reversed(weights)]
