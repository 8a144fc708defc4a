"""Files that are there whole or not at all: written beside their place, synced, renamed; then the folder is synced.

A crash leaves at most `NAME.part`, which nobody reads and the next writer of that name overwrites.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mq_adapters.embedded.store.files import sync_folder

PART_SUFFIX: Final = ".part"


def part_of(path: Path) -> Path:
    """Where a file is written before it is renamed to its place."""
    return path.with_name(path.name + PART_SUFFIX)


def write_synced(path: Path, pieces: Iterable[bytes]) -> None:
    """Writes and syncs a file that its owner alone can read, over an existing one. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(file, view) :]
        os.fsync(file)
    finally:
        os.close(file)


def put_in_place(path: Path, pieces: Iterable[bytes]) -> None:
    """The whole file is on the disk when this returns. Until then the old one is there, or none. Raises OSError."""
    part = part_of(path)
    write_synced(part, pieces)
    part.rename(path)
    sync_folder(path.parent)


def make_in_place(path: Path, data: bytes) -> None:
    """As put_in_place, but never over another file: FileExistsError."""
    part = part_of(path)
    write_synced(part, (data,))
    try:
        os.link(part, path)
    finally:
        part.unlink()
    sync_folder(path.parent)
