"""Where files of an audit are: a folder of this machine, or a place that a URI names.

`Location` has the few methods of pathlib.Path that reading a trail needs. So a folder of this machine stays a Path, and
the code that reads a trail does not know where it is. remote_location.py has the places of other machines.
"""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol, Self
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

#: Two letters or more: a scheme of one letter would be a drive of Windows.
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE: Final = "file"


class Status(Protocol):
    """Facts of a file that are known without reading it."""

    @property
    def st_size(self) -> int:
        """Bytes as they are stored."""
        ...

    @property
    def st_mtime_ns(self) -> int: ...


class Location(Protocol):
    """A file or folder, by the methods of pathlib.Path, with the same meaning and errors."""

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> Self: ...

    def __truediv__(self, key: str, /) -> Self: ...

    def with_name(self, name: str, /) -> Self: ...

    def iterdir(self) -> Iterator[Self]: ...

    def is_dir(self) -> bool: ...

    def exists(self) -> bool: ...

    def stat(self) -> Status: ...

    def open(self, mode: Literal["rb"], /) -> BinaryIO: ...

    def read_bytes(self) -> bytes: ...

    def write_bytes(self, data: bytes, /) -> int: ...

    def unlink(self) -> None: ...

    def resolve(self) -> Self: ...


class LocationFailed(OSError):
    """A place that cannot be used: `filename` names it, `strerror` says what failed and what to do."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(errno.EIO, why, place)
        self._values = place, why

    def __str__(self) -> str:
        return "{}: {}".format(*self._values)

    def __reduce__(self) -> tuple[type["LocationFailed"], tuple[str, str]]:
        return LocationFailed, self._values


class UnknownLocation(ValueError):
    """A text names no place. The message says why. It does not repeat the text, which may hold a password."""


def scheme_of(text: str) -> str:
    """The scheme of a URI in lower case; "" for the path of a folder on this machine."""
    found = _URI.match(text)
    return found[1].lower() if found else ""


def local_path(text: str) -> Path | None:
    """The folder of this machine that a path or a URI of scheme `file` names; None for other URIs.

    Raises UnknownLocation.
    """
    if not text:  # a shell gives it for a variable that is not set
        raise UnknownLocation("an empty text names no folder")
    scheme = scheme_of(text)
    if not scheme:
        return Path(text)
    if scheme != _FILE:
        return None
    parts = parts_of(text)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise UnknownLocation("this URI names no folder of this machine: write file:///folder")
    return Path(os.fsdecode(unquote_to_bytes(parts.path)))


def local_folder(text: str) -> Path:
    """A folder of this machine. pathlib would make one named `s3:` of a URI. Raises UnknownLocation."""
    found = local_path(text)
    if found is None:
        raise UnknownLocation("a folder of this machine is needed here, not a URI")
    return found


def parts_of(uri: str) -> SplitResult:
    """The parts of a URI. Raises UnknownLocation."""
    try:
        return urlsplit(uri)
    except ValueError:
        raise UnknownLocation("this URI is malformed: write its special characters as %XX") from None


def gone(place: object) -> FileNotFoundError:
    """The error of a place that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
