"""What a disk may hold after a power loss, made from the journal of a run.

The promise of a disk is about syncs alone. What was written to a file and not synced may be there, or not, or in part,
sector by sector; a name that was made, changed or removed may be as it was until its folder has been synced. Names
become durable in the order of their changes, as every file system with a journal does it.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tests.crash_matrix.points import Change, FileRow, Operation, file_rows

#: What a disk writes at once, bytes.
SECTOR: Final = 512


class Loss(StrEnum):
    """What becomes of that which was not synced."""

    NOTHING = "nothing is lost"
    ALL = "all of it is lost"
    RANDOM = "a random part is lost"
    TORN = "writes are torn between sectors"
    NAMES = "names are lost, and contents are not"
    CONTENTS = "contents are lost, and names are not"


@dataclass(slots=True, kw_only=True)
class Contents:
    """A file: what is durable, and what was changed since."""

    durable: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.changes:
            _apply(self.durable, change)
        self.changes.clear()

    def after(self, loss: Loss, draw: random.Random) -> bytes:
        """What is read after the loss."""
        read = bytearray(self.durable)
        for change in self.changes:
            if loss in (Loss.NOTHING, Loss.NAMES) or (loss is Loss.RANDOM and draw.random() < 0.5):
                _apply(read, change)
            elif loss is Loss.TORN:
                _apply_sectors(read, change, draw)
        return bytes(read)


def _apply(data: bytearray, change: Change) -> None:
    if change.operation is Operation.TRUNCATE:
        del data[change.offset :]
        data.extend(bytes(change.offset - len(data)))
        return
    data.extend(bytes(max(0, change.offset - len(data))))
    data[change.offset : change.offset + len(change.data)] = change.data


def _apply_sectors(data: bytearray, change: Change, draw: random.Random) -> None:
    """Each sector that a write touches is there or is not; a truncation is one step."""
    if change.operation is Operation.TRUNCATE:
        if draw.random() < 0.5:
            _apply(data, change)
        return
    place, end = change.offset, change.offset + len(change.data)
    while place < end:
        until = min(end, (place // SECTOR + 1) * SECTOR)
        if draw.random() < 0.5:
            data.extend(bytes(max(0, place - len(data))))
            data[place:until] = change.data[place - change.offset : until - change.offset]
        place = until


#: Names below the folder: a file's contents, or None for a folder.
Names = dict[str, Contents | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChange:
    """A change of names that its folder does not hold for sure yet."""

    operation: Operation
    path: str
    target: str
    contents: Contents | None

    def apply(self, names: Names) -> None:
        if self.operation in (Operation.UNLINK, Operation.RMDIR, Operation.RENAME):
            names.pop(self.path, None)
        if self.operation in (Operation.CREATE, Operation.MKDIR):
            names[self.path] = self.contents
        elif self.operation in (Operation.RENAME, Operation.LINK):
            names[self.target] = self.contents

    def folders(self) -> set[str]:
        return {_folder(self.path)} | ({_folder(self.target)} if self.target else set())


class Disk:
    """The disk under the folder of a run: begun with what the run found there, and changed by its journal."""

    def __init__(self, found: Path) -> None:
        self._names: Names = {}
        for path in sorted(found.rglob("*")):
            name = str(path.relative_to(found))
            if path.is_dir():
                self._names[name] = None
            elif path.is_file() and not is_ignored(name):
                self._names[name] = Contents(durable=bytearray(path.read_bytes()))
        self._durable_names: Names = dict(self._names)
        self._name_changes: list[NameChange] = []
        self._files: dict[int, Contents] = {}

    def follow(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._follow(change)

    def _follow(self, change: Change) -> None:
        if change.operation in (Operation.WRITE, Operation.SYNC, Operation.TRUNCATE):
            contents = self._contents(change)
            if change.operation is Operation.SYNC:
                contents.sync()
            else:
                contents.changes.append(change)
        elif change.operation is Operation.SYNC_FOLDER:
            self._sync_folder(change.path)
        else:
            self._rename(change)

    def _contents(self, change: Change) -> Contents:
        """The file of an inode; one that was there before has its name yet."""
        if change.inode not in self._files:
            found = self._names[change.path]
            assert found is not None, change.path
            self._files[change.inode] = found
        return self._files[change.inode]

    def _rename(self, change: Change) -> None:
        contents = self._names.get(change.path)
        if change.operation is Operation.CREATE:
            contents = self._files[change.inode] = Contents()
        changed = NameChange(operation=change.operation, path=change.path, target=change.target, contents=contents)
        changed.apply(self._names)
        self._name_changes.append(changed)

    def _sync_folder(self, path: str) -> None:
        kept = []
        for change in self._name_changes:
            if path in change.folders():
                change.apply(self._durable_names)
            else:
                kept.append(change)
        self._name_changes = kept

    def after(self, loss: Loss, draw: random.Random) -> dict[str, bytes | None]:
        """The files and folders (None) that are found after the loss."""
        names = dict(self._durable_names)
        kept = {Loss.ALL: 0, Loss.NAMES: 0, Loss.RANDOM: draw.randint(0, len(self._name_changes))}
        for change in self._name_changes[: kept.get(loss)]:
            change.apply(names)
        return {
            name: None if contents is None else contents.after(loss, draw)
            for name, contents in names.items()
            if all(folder in names for folder in _folders_above(name))
        }


def write_image(image: dict[str, bytes | None], folder: Path) -> None:
    """Makes the files of an image; as the gateway makes them, they are its user's alone."""
    for name, data in sorted(image.items()):
        path = folder / name
        if data is None:
            path.mkdir(mode=0o700, exist_ok=True)
        else:
            path.write_bytes(data)
            path.chmod(0o600)


def is_ignored(name: str) -> bool:
    """Whether the table of names says that this file's contents count for nothing."""
    row = row_of(name)
    return row is not None and row.ignored


def row_of(name: str) -> FileRow | None:
    """The row of a file, as the library finds it."""
    return next((row for row in file_rows() if fnmatchcase(name, row.name)), None)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _folders_above(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
