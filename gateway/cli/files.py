"""The files and standard streams that commands read and write. A written file appears whole or not at all."""

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from mq_adapters.attributes import DEFAULT_MAXIMUM_MESSAGE_BYTES

#: As a file name: standard input, or standard output.
STANDARD_STREAM: Final = "-"


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for `-`.

    Raises OSError; EFBIG if they are longer than a message may be.
    """
    if name == STANDARD_STREAM:
        return _read_message(sys.stdin.buffer, "standard input")
    with Path(name).open("rb") as file:
        return _read_message(file, name)


def _read_message(file: BinaryIO, name: str) -> bytes:
    """The bytes of a file, up to a length that shows that it is too long."""
    data = file.read(DEFAULT_MAXIMUM_MESSAGE_BYTES + 1)
    if len(data) > DEFAULT_MAXIMUM_MESSAGE_BYTES:
        raise OSError(errno.EFBIG, f"larger than the largest message, {DEFAULT_MAXIMUM_MESSAGE_BYTES >> 20} MiB", name)
    return data


def write_output(data: bytes) -> None:
    """Writes bytes to standard output, and flushes. Raises OSError, which names it, or BrokenPipeError."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None


def write_whole(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Writes a file. A reader sees the old file or the new one, even after a crash. Raises OSError.

    `mode`: the permissions; None: as before, or as the umask says.

    A device or a pipe is not replaced but written to.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    try:
        replace_whole(path.resolve(), (data,), mode=mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def replace_whole(path: Path, pieces: Iterable[bytes], *, mode: int | None = None) -> None:
    """Replaces a file piece by piece. The new file appears when its last piece is on the disk.

    A file that root replaces keeps its owner.
    """
    before = path.stat() if path.exists() else None
    if mode is None:
        mode = stat.S_IMODE(before.st_mode) if before is not None else _default_mode()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if before is not None and os.geteuid() == 0:
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _synchronize_folder(path.parent)


def _default_mode() -> int:
    """The permissions of a new file: rw-rw-rw- without those that the umask removes."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _synchronize_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
