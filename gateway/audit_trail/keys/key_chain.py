"""The keys that sign one digest each. The next two are in files, and each is destroyed when it has signed.

    trail-chain/0.key   beside the trail: the key of the next digest with an even number; trail-chain/1.key: an odd one

A file has 48 bytes, mode 0600: the digest's number (8, big-endian), the private key (32, RFC 8032), and the first 8 of
the SHA-256 of both. Three steps make a digest, each of them on the disk before the next one begins:

    1. the key of the next digest is there: the digest before has made it, or the beginning of the chain
    2. this digest, which names that key, is signed and gets its file
    3. the key that signed is overwritten with the key of the digest after the next

A kill between two steps leaves a key too many, which the next start overwrites. A kill in the middle of step 3 leaves
half of a key that no digest names yet. If a signed digest loses its file, the digest in its place names the same next
key, so the lost one leads nowhere.

These files belong in no backup: a copy of a used key could sign another digest in the place of the first. On a disk
that copies on write, in a snapshot, and in flash memory, overwriting is best effort.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mq_adapters.embedded.store.files import make_folder, sync_folder
from spark_audit.trail.signature import public_key_of

CHAIN_FOLDER: Final = "trail-chain"
_NUMBER_BYTES: Final = 8
_SUM_BYTES: Final = 8
_FILE_BYTES: Final = 48


def chain_folder(trail: Path) -> Path:
    """Where the keys of a trail lie."""
    return trail.with_name(CHAIN_FOLDER)


def living_key(trail: Path, number: int) -> str:
    """The public key (hex) that is to sign the digest with that number; "" if there is none. Raises OSError."""
    key = _read(chain_folder(trail), number)
    return "" if key is None else public_key_of(key)


class KeyChain:
    """The keys of a trail, for its only writer. Raises OSError."""

    def __init__(self, folder: Path, number: int, due: str) -> None:
        """`number`: of the next digest. `due`: the public key (hex) that is to sign it; "" if a chain begins."""
        make_folder(folder)
        self._folder = folder
        self._number = number
        key = _read(folder, number)
        #: Whether the key that is to sign is missing: another key then begins a chain of its own.
        self.is_broken = bool(due) and (key is None or public_key_of(key) != due)
        if self.is_broken:
            key = None
        following = None if key is None else _read(folder, number + 1)
        self.key = key or self._make(number)
        self._following = following or self._make(number + 1)

    @property
    def following(self) -> str:
        """The public key (hex) of the digest after the next."""
        return public_key_of(self._following)

    def step(self) -> None:
        """The next digest is signed and on the disk: its key is destroyed, and a later key takes its place."""
        self._number += 1
        self.key, self._following = self._following, self._make(self._number + 1)

    def _make(self, number: int) -> Ed25519PrivateKey:
        """A new key, over the one that was two digests before."""
        key = Ed25519PrivateKey.generate()
        path = _path(self._folder, number)
        is_new = not path.exists()
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, _packed(number, key), 0)
            os.ftruncate(file, _FILE_BYTES)
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            sync_folder(self._folder)
        return key


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number % 2}.key"


def _packed(number: int, key: Ed25519PrivateKey) -> bytes:
    said = number.to_bytes(_NUMBER_BYTES, "big") + key.private_bytes_raw()
    return said + hashlib.sha256(said).digest()[:_SUM_BYTES]


def _read(folder: Path, number: int) -> Ed25519PrivateKey | None:
    """The key of a digest; None if its file holds the key of another digest, or only half a key after a kill."""
    try:
        data = _path(folder, number).read_bytes()
    except FileNotFoundError:
        return None
    said, checksum = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
    is_whole = len(data) == _FILE_BYTES and hashlib.sha256(said).digest()[:_SUM_BYTES] == checksum
    if not is_whole or int.from_bytes(said[:_NUMBER_BYTES], "big") != number:
        return None
    return Ed25519PrivateKey.from_private_bytes(said[_NUMBER_BYTES:])
