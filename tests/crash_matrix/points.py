"""The points of a run: the control file that the preloaded library maps, and the journal that it keeps.

The library is library/crash_points.c; the layouts here are those of its `struct control` and `struct entry`.
"""

import mmap
import struct
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Final, Self

#: Where deploy/setup/crash-points.sh builds.
LIBRARY: Final = Path(sys.prefix) / "crash-points" / "crash_points.so"
FILES: Final = Path(__file__).with_name("files.toml")
#: Names the control file to a process that starts with the library.
VARIABLE: Final = "RFHBRIDGE_CRASH_POINTS"

_MAGIC: Final = 0x31505243
_PATH_BYTES: Final = 4096
_MOST_RULES: Final = 64
_MOST_PROCESSES: Final = 256
_NAME_BYTES: Final = 128
_NO_RULE: Final = 255
_HEADER: Final = struct.Struct("<2I2Q6I")
_COUNT, _KILL_AT, _MOMENT, _IS_DEAD, _PROCESSES, _RULES = 8, 16, 24, 28, 36, 40
_PROCESS: Final = _HEADER.size
_IGNORED: Final = _PROCESS + 4 * _MOST_PROCESSES
_DEAF: Final = _IGNORED + _MOST_RULES
_RULE: Final = _DEAF + _MOST_RULES
_FOLDER: Final = _RULE + _MOST_RULES * _NAME_BYTES
_JOURNAL: Final = _FOLDER + _PATH_BYTES
_BYTES: Final = _JOURNAL + _PATH_BYTES
_ENTRY: Final = struct.Struct("<2Qq4I2HI")


class Operation(IntEnum):
    """What was changed."""

    WRITE = 1
    SYNC = 2
    SYNC_FOLDER = 3
    TRUNCATE = 4
    CREATE = 5
    RENAME = 6
    LINK = 7
    UNLINK = 8
    MKDIR = 9
    RMDIR = 10


class Moment(IntEnum):
    """When the processes are killed: before the change, behind it, or when half of the bytes were written."""

    BEFORE = 0
    AFTER = 1
    HALF_DONE = 2


class Option(IntFlag):
    """What the library does beside counting."""

    KEEP_JOURNAL = 1
    SKIP_SYNCS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A row of files.toml."""

    name: str
    what: str
    ignored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of the journal. `offset`: of a write; of a truncation the new length. `file`: the row, None: no row."""

    number: int
    operation: Operation
    path: str
    target: str
    inode: int
    offset: int
    data: bytes
    file: FileRow | None


def file_rows() -> tuple[FileRow, ...]:
    """The table of names."""
    return tuple(FileRow(**row) for row in tomllib.loads(FILES.read_text())["file"])


class Points:
    """The control file of one run, shared with the processes of the gateway."""

    def __init__(self, path: Path, folder: Path, *, options: Option = Option.SKIP_SYNCS) -> None:
        """Makes `path` for a gateway whose files are below `folder`. The journal lies beside it."""
        self.path, self.folder, self.journal = path, folder, path.with_suffix(".journal")
        self._rows = file_rows()
        assert len(self._rows) <= _MOST_RULES
        self.journal.write_bytes(b"")
        path.write_bytes(bytes(_BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _BYTES)
        _HEADER.pack_into(self._memory, 0, _MAGIC, options, 0, 0, 0, 0, 0, 0, len(self._rows), 0)
        for place, row in enumerate(self._rows):
            self._memory[_IGNORED + place] = row.ignored
            self._set_text(_RULE + place * _NAME_BYTES, row.name, _NAME_BYTES)
        self._set_text(_FOLDER, str(folder.resolve()), _PATH_BYTES)
        self._set_text(_JOURNAL, str(self.journal.resolve()), _PATH_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._memory.close()

    def kill_at(self, number: int, moment: Moment) -> None:
        """From now on: the processes die at the point of that number."""
        struct.pack_into("<I", self._memory, _MOMENT, moment)
        struct.pack_into("<Q", self._memory, _KILL_AT, number)

    def forget_syncs(self, what: str) -> None:
        """Plants a fault: syncs of files of that kind are done for nothing."""
        chosen = [place for place, row in enumerate(self._rows) if row.what == what]
        assert chosen, what
        for place in chosen:
            self._memory[_DEAF + place] = 1

    @property
    def count(self) -> int:
        """How many changes have been begun."""
        number: int = struct.unpack_from("<Q", self._memory, _COUNT)[0]
        return number

    @property
    def is_dead(self) -> bool:
        """Whether the point has been reached."""
        return bool(struct.unpack_from("<I", self._memory, _IS_DEAD)[0])

    def processes(self) -> tuple[int, ...]:
        """Every process that has mapped the file, those that have ended among them."""
        count = min(int(struct.unpack_from("<I", self._memory, _PROCESSES)[0]), _MOST_PROCESSES)
        return struct.unpack_from(f"<{count}i", self._memory, _PROCESS)

    def changes(self) -> Iterator[Change]:
        """The journal, in the order of the disk. An entry that a kill cut off is left out."""
        data, position = self.journal.read_bytes(), 0
        while position + _ENTRY.size <= len(data):
            number, inode, offset, length, operation, rule, _, path_length, target_length, _ = _ENTRY.unpack_from(
                data, position
            )
            path = position + _ENTRY.size
            target, body = path + path_length, path + path_length + target_length
            position = body + length
            if position > len(data):
                return
            yield Change(
                number=number,
                operation=Operation(operation),
                path=data[path:target].decode(),
                target=data[target:body].decode(),
                inode=inode,
                offset=offset,
                data=data[body:position],
                file=None if rule == _NO_RULE else self._rows[rule],
            )

    def _set_text(self, place: int, text: str, most: int) -> None:
        encoded = text.encode()
        assert len(encoded) < most, text
        self._memory[place : place + len(encoded)] = encoded
