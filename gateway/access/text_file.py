"""Reads a text file of the operator: the password file, the access list, certificates and keys."""

import os
import stat
from pathlib import Path
from typing import Final

from gateway.config.error import ConfigurationError

#: A larger file is somebody's mistake: 100,000 users take 13 MB.
MAXIMUM_FILE_BYTES: Final = 16_777_216


class UnreadableFile(ConfigurationError):
    """The system does not let us read the file. It may do so later, without a change of the file."""


def read_text_file(path: Path, *, made_by: str = "") -> str:
    """The text of a regular file. Raises UnreadableFile, or ConfigurationError for one that is too large or not UTF-8.

    `made_by`: the command that makes such a file, for the hint when it is missing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not hold us up
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigurationError(str(path), ("is not a regular file",), "name a file of text")
            data = file.read(MAXIMUM_FILE_BYTES + 1)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError) and made_by
        hint = f"{made_by} makes it" if is_missing else "see that it is there and that the gateway's user may read it"
        raise UnreadableFile(str(path), (f"cannot be read: {error.strerror}",), hint) from None
    if len(data) > MAXIMUM_FILE_BYTES:
        raise ConfigurationError(str(path), (f"has more than {MAXIMUM_FILE_BYTES} bytes",), "is it the right file?")
    try:
        return data.decode("utf-8-sig")  # editors of Windows put a mark in front
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 at byte {error.start}"
        raise ConfigurationError(str(path), (problem,), "write it in UTF-8, certificates and keys in PEM") from None
