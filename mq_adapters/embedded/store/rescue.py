"""Copies of open files that have lost their names: they are all that is left when a data folder is gone.

The copy is a data folder again, `rescued-YYYYMMDDTHHMMSSZ` in the rescue folder. Database, WAL and marker are copied
through the descriptors of the store. Other files (keys, the plan of the trail, its open segment) are copied through
descriptors that are kept open for this purpose. The rescue opens and closes no descriptor of database, WAL or lock,
because closing one would drop the POSIX locks of SQLite.
"""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

#: Device and inode.
Identity = tuple[int, int]

RESCUED_PREFIX: Final = "rescued-"
_UNFINISHED: Final = ".unfinished"
_CHUNK_BYTES: Final = 1024 * 1024
#: A larger file is no key, marker or plan. A folder with more files than this is no data folder.
_MOST_BYTES: Final = 1024 * 1024
_MOST_FILES: Final = 100
#: Seconds for which a file without its name is kept open, because a folder is removed file by file.
_KEPT_S: Final = 600.0
#: A folder that changed so recently may change again without a new time of change.
_FRESH_NS: Final = 2_000_000_000
_DESCRIPTORS: Final = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")


def identity_of(path: Path) -> Identity:
    """The identity of the file that a name means now. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


class OpenFiles:
    """The files of a folder, kept open: all small ones except the names of `without`, or those with `suffix`."""

    def __init__(self, folder: Path, *, without: Sequence[str] = (), suffix: str = "") -> None:
        self._folder = folder
        self._without = frozenset(without)
        self._suffix = suffix
        self._files: dict[str, tuple[Identity, int]] = {}
        #: Names that no longer mean the open file, and since when.
        self._missing: dict[str, float] = {}
        self._changed_ns = -1

    def look(self) -> None:
        """Opens new files, and closes files that have been gone for long. Unreadable files are passed over."""
        with contextlib.suppress(OSError):
            changed_ns = self._folder.stat().st_mtime_ns
            if changed_ns == self._changed_ns and time.time_ns() - changed_ns > _FRESH_NS and not self._missing:
                return
            self._changed_ns = changed_ns
            self._take(dict(self._wanted()))

    def lost(self) -> Iterator[tuple[str, int]]:
        """Name and descriptor of each file whose name is gone, with its folder unless that is the data folder."""
        for name, (identity, descriptor) in self._files.items():
            with contextlib.suppress(OSError):
                if identity_of(self._folder / name) == identity:
                    continue
            yield (f"{self._folder.name}/{name}" if self._suffix else name), descriptor

    def close(self) -> None:
        for _, descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _wanted(self) -> Iterator[tuple[str, Identity]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name in self._without or not entry.name.endswith(self._suffix):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and (self._suffix or status.st_size <= _MOST_BYTES):
                        yield entry.name, (status.st_dev, status.st_ino)

    def _take(self, wanted: dict[str, Identity]) -> None:
        for name, identity in list(wanted.items())[:_MOST_FILES]:
            self._missing.pop(name, None)
            before = self._files.get(name)
            if before is None or before[0] != identity:
                self._open(name, identity)
        now_s = time.monotonic()
        for name in self._files.keys() - wanted.keys():
            if now_s - self._missing.setdefault(name, now_s) > _KEPT_S:
                os.close(self._files.pop(name)[1])
                del self._missing[name]

    def _open(self, name: str, identity: Identity) -> None:
        with contextlib.suppress(OSError):
            opened = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            before, self._files[name] = self._files.get(name), (identity, opened)
            if before is not None:
                os.close(before[1])


def save(rescue_folder: Path, files: Sequence[tuple[str, Identity]], opened: Sequence[tuple[str, int]]) -> Path | None:
    """Copies open files, by their identity or descriptor, into a new folder; None if there are none.

    The folder is readable by this user alone, synced, and named last. Raises OSError, even if a file is no longer open.
    """
    if not (files or opened):
        return None
    name = f"{RESCUED_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    place, unfinished = rescue_folder / name, rescue_folder / (name + _UNFINISHED)
    rescue_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished.mkdir(mode=0o700)
    for file, descriptor in (*((file, _open_descriptor(file, identity)) for file, identity in files), *opened):
        target = unfinished / file
        target.parent.mkdir(exist_ok=True, mode=0o700)
        _copy(descriptor, target)
    for folder in (*(each for each in unfinished.iterdir() if each.is_dir()), unfinished):
        _synchronize(folder)
    unfinished.rename(place)
    _synchronize(rescue_folder)
    return place


def rescued_in(rescue_folder: Path) -> list[Path]:
    """The rescued stores that are still in a folder, finished or not, oldest first."""
    try:
        return sorted(path for path in rescue_folder.iterdir() if path.name.startswith(RESCUED_PREFIX))
    except OSError:
        return []


def _open_descriptor(name: str, identity: Identity) -> int:
    """A readable descriptor of this process for that file. Raises OSError if there is none."""
    for number in os.listdir(_DESCRIPTORS):  # noqa: PTH208  # numbers, not paths
        descriptor = int(number)
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
            if (status.st_dev, status.st_ino) == identity and mode != os.O_WRONLY:
                return descriptor
    raise OSError(f"{name} is not open any more")


def _copy(descriptor: int, target: Path) -> None:
    copied = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        offset = 0
        while piece := os.pread(descriptor, _CHUNK_BYTES, offset):
            offset += len(piece)
            view = memoryview(piece)
            while view:
                view = view[os.write(copied, view) :]
        os.fsync(copied)
    finally:
        os.close(copied)


def _synchronize(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
