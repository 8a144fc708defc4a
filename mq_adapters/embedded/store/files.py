"""The open files of a store, and a check that their names still lead to them.

Somebody may remove the data folder, rename it or mount another one over it. Open files stay open then, and the store
would write on into files that nobody finds again. So each commit checks, before it is acknowledged, that the names of
database, WAL and marker still mean the open files: the same inode on the same device. That takes three stat calls, some
four microseconds. The lock and a folder beside the store, which no commit writes, are checked once a second.
"""

import fcntl
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from mq_adapters.embedded.store.rescue import Identity, OpenFiles, identity_of, save
from mq_adapters.reasons import StoreError

_log = logging.getLogger(__name__)

_HINT: Final = "find out who removed or moved it, or mount it again, and start again; nothing more was acknowledged"
_NO_RESCUE: Final = "; with rescue_folder in the configuration the open files would have been copied"


def make_folder(folder: Path) -> None:
    """Makes a missing folder, for its owner alone. Its name is on the disk when this returns. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """What was renamed, made or removed in the folder is on the disk when this returns. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class FilesGone(StoreError):
    """Names in the data folder no longer mean the open files."""


class StoreFiles:
    """The files of one data folder that this process has open.

    `written`: the names of files that each commit writes. `looked_at`: the names of others. All of them must exist now.
    With a `rescue_folder`, `look` keeps the other files of the folder open too, except the names of `without`, so that
    they can be copied.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        written: Sequence[str],
        looked_at: Sequence[str],
        without: Sequence[str],
        rescue_folder: Path | None,
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._rescue_folder = rescue_folder
        self._written = {str(self._data_dir / name): identity_of(self._data_dir / name) for name in written}
        self._looked_at = {str(self._data_dir / name): identity_of(self._data_dir / name) for name in looked_at}
        self._watched: list[Path] = []
        opened_elsewhere = (*written, *looked_at, *without)
        self._open_files: list[OpenFiles] = []
        if rescue_folder is not None:
            self._keep_open(OpenFiles(self._data_dir, without=opened_elsewhere))

    def watch(self, folder: Path, *, suffix: str) -> None:
        """Looks at a folder beside the store too, as soon as it exists. Its files with that suffix are rescued."""
        self._watched.append(folder.absolute())
        if self._rescue_folder is not None:
            self._keep_open(OpenFiles(folder.absolute(), suffix=suffix))
        self._find_watched()

    def check(self) -> None:
        """For each commit. Raises FilesGone."""
        for name, (device, inode) in self._written.items():
            try:
                status = os.stat(name)  # noqa: PTH116  # half the time of Path.stat
            except OSError as error:
                raise self._gone(f"{name}: {error.strerror}") from error
            if status.st_ino != inode or status.st_dev != device:
                raise self._gone(f"{name} is another file than the one that is open")

    def look(self) -> None:
        """About once a second. Raises FilesGone."""
        self.check()
        for name, identity in self._looked_at.items():
            try:
                if identity_of(Path(name)) != identity:
                    raise self._gone(f"{name} is another one than at the start")
            except OSError as error:
                raise self._gone(f"{name}: {error.strerror}") from error
        self._find_watched()
        for files in self._open_files:
            files.look()

    def are_gone(self) -> bool:
        """Whether `look` would raise."""
        try:
            self.look()
        except FilesGone:
            return True
        return False

    def rescue(self, error: StoreError) -> FilesGone:
        """Copies open files whose names no longer mean them. The error names the place, or says why it failed.

        Nobody may write the files meanwhile, or use them afterwards.
        """
        if self._rescue_folder is None:
            return FilesGone(error.operation, error.cause, _HINT + _NO_RESCUE)
        _log.error("rescue began reason=%s rescue_folder=%s", error.cause, self._rescue_folder)
        try:
            place = save(
                self._rescue_folder, self._lost_files(), [file for files in self._open_files for file in files.lost()]
            )
        except OSError as failure:
            return FilesGone(error.operation, error.cause, f"the open files could not be copied: {failure}; {_HINT}")
        if place is None:
            return FilesGone(error.operation, error.cause, _HINT)
        hint = f"the open files were copied to {place}, which is a data folder; {_HINT}"
        return FilesGone(error.operation, error.cause, hint)

    def close(self) -> None:
        for files in self._open_files:
            files.close()

    def _keep_open(self, files: OpenFiles) -> None:
        self._open_files.append(files)
        files.look()

    def _find_watched(self) -> None:
        for folder in tuple(self._watched):
            if folder.is_dir():
                self._watched.remove(folder)
                self._looked_at[str(folder)] = identity_of(folder)

    def _lost_files(self) -> list[tuple[str, Identity]]:
        """All files of the store, if the name of one no longer means it."""
        try:
            self.check()
        except FilesGone:
            return [(Path(name).name, identity) for name, identity in self._written.items()]
        return []

    def _gone(self, cause: str) -> FilesGone:
        return FilesGone(f"keep the store in {self._data_dir}", cause, _HINT)


def keep_private(path: Path) -> None:
    """Makes the file before SQLite does, so that the WAL, which has payloads too, takes over its private mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with suppress(FileNotFoundError):  # a process that checks the store removes both when it closes it
            name.chmod(0o600)


def lock_now(lock: int) -> bool:
    """Whether the lock file's descriptor holds the lock now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
