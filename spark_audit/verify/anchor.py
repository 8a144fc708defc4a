"""What an auditor holds a trail against: a public key and a copy of the digests, kept out of the writer's reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_audit.trail.digest import (
    DIGEST_FOLDER,
    LARGEST_DIGEST_BYTES,
    digest_number,
)
from spark_audit.trail.signature import UnusableKey, public_key_from_text

#: A `.pub` file is 65 bytes.
_LARGEST_KEY_FILE_BYTES = 1_024


class UnusableAnchor(ValueError):
    """The file or folder that was named as an anchor is none: nothing can be compared with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The outside anchor; with neither part there is none. Numbers and folder of the copied digests."""

    #: Hex; "" where none is given.
    public_key: str = ""
    folder: Path | None = None
    numbers: tuple[int, ...] = ()
    #: Where each copy lies: a clone of a Git repository has them in folders of a thousand.
    _paths: Mapping[int, Path] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, *, public_key_file: Path | None = None, digests: Path | None = None) -> "Anchor":
        """Reads a public key file, and lists a folder of digests or one that has it. UnusableAnchor, OSError."""
        key = "" if public_key_file is None else _key_in(public_key_file)
        if digests is None:
            return cls(public_key=key)
        inner = digests / DIGEST_FOLDER
        folder = inner if inner.is_dir() else digests
        paths = {number: path for path in _digests_in(folder) if (number := digest_number(path.name))}
        if not paths:
            raise UnusableAnchor(f"there is no digest in {digests} (name the folder of their copies)")
        return cls(public_key=key, folder=folder, numbers=tuple(sorted(paths)), _paths=paths)

    @property
    def names(self) -> tuple[str, ...]:
        """What there is of it."""
        return (("public key",) if self.public_key else ()) + (("digests",) if self.folder else ())

    def copy_of(self, number: int) -> bytes | None:
        """The bytes of the copied digest with a number; None where it has none. Raises OSError."""
        path = self._paths.get(number)
        if path is None:
            return None
        with path.open("rb") as file:
            return file.read(LARGEST_DIGEST_BYTES + 1)


def _digests_in(folder: Path) -> list[Path]:
    """Digests in a folder, and in those below it that a witness has for a thousand each."""
    return sorted((*folder.glob("*.digest"), *folder.glob(f"{'[0-9]' * 9}/*.digest")))


def _key_in(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_LARGEST_KEY_FILE_BYTES)
    try:
        return public_key_from_text(data.decode("latin-1"))
    except UnusableKey as error:
        raise UnusableAnchor(f"{path}: {error}") from None
