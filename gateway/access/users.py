"""The password file: user names, each with the hash of a password.

    # a comment; empty lines are ignored
    pump-7:$argon2id$v=19$m=19456,t=2,p=1$<salt>$<digest>

One user a line, in UTF-8. A name has 1 to 256 printable characters without `:`, no `#` at its beginning, and no blank
at either end. The passwords themselves are not stored.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from gateway.access.password_hash import PasswordHash
from gateway.access.text_file import read_text_file
from gateway.config.error import ConfigurationError

Entry = TypeVar("Entry")


class WrittenEntry(Protocol):
    """What stands behind a name."""

    @property
    def text(self) -> str: ...


_LONGEST_NAME: Final = 256
_HINT: Final = "'rfhbridge user add NAME --file FILE' writes a right line"
#: The most wrong lines that one error names.
_NAMED_PROBLEMS: Final = 5


def check_user_name(name: str) -> None:
    """ValueError unless a name can stand in the file."""
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise ValueError(f"a user name has 1 to {_LONGEST_NAME} characters, not {len(name)}")
    if not name.isprintable() or ":" in name or name.startswith("#") or name != name.strip():
        raise ValueError(f"{name!r} is no user name: printable, without ':', no '#' first, no blank at an end")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is no user name: it is not UTF-8") from None


class Users:
    """The users of a password file, by name."""

    def __init__(self, hashes: Mapping[str, PasswordHash]) -> None:
        self.hashes = hashes
        self._decoys = tuple(hashes.values()) or (_NOBODYS,)

    @classmethod
    def parse(cls, text: str, source: str) -> Self:
        """The users of the file's text. Raises ConfigurationError, which repeats nothing that may be a secret."""
        return cls(entries_of(text, source, PasswordHash.parse, hint=_HINT))

    @classmethod
    def read(cls, path: Path) -> Self:
        """The users of a file. Raises ConfigurationError."""
        return cls.parse(read_text_file(path, made_by=f"'rfhbridge user add NAME --file {path}'"), str(path))

    def changed_since(self, before: "Users") -> frozenset[str]:
        """The users of an earlier state whose line has changed or gone."""
        return frozenset(name for name, entry in before.hashes.items() if self.hashes.get(name) != entry)

    def decoy(self, name: str) -> PasswordHash:
        """A hash for a name that is not in the file, so that its check takes as long: always the same for one name.

        It is one of the file's own, so that the time of an answer does not tell which names there are.
        """
        digest = hashlib.blake2b(name.encode(), key=_DECOY_KEY, digest_size=8).digest()
        return self._decoys[int.from_bytes(digest) % len(self._decoys)]


def entries_of(text: str, source: str, parse: Callable[[str], Entry], *, hint: str) -> dict[str, Entry]:
    """The entries of a file's text, each behind a name and `:`. Raises ConfigurationError, which repeats none."""
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, entry = line.rstrip("\r").partition(":")
        try:
            if not colon:
                raise ValueError("has no ':' between a name and a hash")
            check_user_name(name)
            if name in entries:
                raise ValueError(f"user {name!r} is there a second time")
            entries[name] = parse(entry)
        except ValueError as problem:
            problems.append(f"line {number}: {problem}")
    if len(problems) > _NAMED_PROBLEMS:
        problems[_NAMED_PROBLEMS:] = [f"and {len(problems) - _NAMED_PROBLEMS} more"]
    if problems:
        raise ConfigurationError(source, tuple(problems), hint)
    return entries


def with_user(text: str, name: str, entry: WrittenEntry) -> str:
    """The file's text with a user's line: in its old place, or as the last one. Raises ValueError for the name."""
    check_user_name(name)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    place = _place_of(name, lines)
    lines[place : place + 1] = [f"{name}:{entry.text}\n"]
    return "".join(lines)


def without_user(text: str, name: str) -> str:
    """The file's text without a user's line; the same text where there is none."""
    lines = text.splitlines(keepends=True)
    place = _place_of(name, lines)
    return "".join(lines[:place] + lines[place + 1 :])


def _place_of(name: str, lines: list[str]) -> int:
    """The index of a user's line; the number of lines where there is none."""
    return next((index for index, line in enumerate(lines) if line.startswith(f"{name}:")), len(lines))


#: Chooses the decoys of this process.
_DECOY_KEY: Final = os.urandom(32)
#: In place of the hashes of an empty file; nobody knows a password for it.
_NOBODYS: Final = PasswordHash.parse(f"$argon2id$v=19$m=19456,t=2,p=1${'A' * 22}${'A' * 43}")
