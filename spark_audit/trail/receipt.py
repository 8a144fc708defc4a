"""Receipts: what a Git repository or a bucket has of a trail's digests, for somebody who cannot ask it.

`receipts/WITNESS.json` in the trail: one JSON object about the last digest that the witness was given. Each digest
names the hash of the one before, so it speaks for all of them. Names, hashes and times are texts, bytes are base64.

    every receipt    version 1, kind, number of the digest, sha256 of its file
    git              ref; commit, and trees from the commit's down to the folder of the digest: the bytes of these
                     objects as Git has them
    s3               endpoint, bucket, key, version_id, locked_until (YYYY-MM-DDTHH:MM:SSZ)

The objects of Git prove that a commit with that name has the digest. Whether the repository has the commit, and the
bucket the version, only they can say. A receipt holds neither an address of a repository nor credentials.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson

RECEIPTS_FOLDER: Final = "receipts"
_SUFFIX: Final = ".json"
#: The names of their files.
RECEIPTS: Final = f"*{_SUFFIX}"
_VERSION: Final = 1
#: A folder of a thousand digests has 51,000 bytes, and one of ten years 350 folders.
LARGEST_RECEIPT_BYTES: Final = 1024 * 1024
#: The longest name, reference or key.
_LONGEST_TEXT: Final = 2_048
_SHA256_DIGITS: Final = 64
_LARGEST_NUMBER: Final = 10**12 - 1


class MalformedReceipt(ValueError):
    """A file is no receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitReceipt:
    """A commit with the digest. `trees` begins with the commit's own tree."""

    number: int
    sha256: str
    ref: str
    commit: bytes
    trees: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketReceipt:
    """A version of an object with the digest, and until when nobody can remove it."""

    number: int
    sha256: str
    endpoint: str
    bucket: str
    key: str
    version_id: str
    locked_until: str


Receipt = GitReceipt | BucketReceipt
_KINDS: Final[dict[str, type[Receipt]]] = {"git": GitReceipt, "s3": BucketReceipt}


def receipt_path(trail: Path, name: str) -> Path:
    """Where the receipt of a witness lies, for the trail in a folder."""
    return trail / RECEIPTS_FOLDER / f"{name}{_SUFFIX}"


def receipt_bytes(receipt: Receipt) -> bytes:
    """The bytes of the file."""
    (kind,) = (name for name, made in _KINDS.items() if isinstance(receipt, made))
    told = {field.name: _told(getattr(receipt, field.name)) for field in fields(receipt)}
    return orjson.dumps({"version": _VERSION, "kind": kind, **told}) + b"\n"


def _told(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return [_told(each) for each in value] if isinstance(value, tuple) else value


def parse_receipt(data: bytes) -> Receipt:
    """The receipt in a file's bytes. Raises MalformedReceipt."""
    if len(data) > LARGEST_RECEIPT_BYTES:
        raise MalformedReceipt(f"it is longer than {LARGEST_RECEIPT_BYTES} bytes")
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise MalformedReceipt("it is no JSON") from None
    if not isinstance(said, dict) or said.pop("version", None) != _VERSION:
        raise MalformedReceipt(f"it is no receipt of version {_VERSION}")
    made = _KINDS.get(str(said.pop("kind", "")))
    if made is None or said.keys() != {field.name for field in fields(made)}:
        raise MalformedReceipt("its fields are not those of a receipt")
    try:
        receipt = made(**{name: _read(name, value) for name, value in said.items()})
    except (TypeError, ValueError, binascii.Error):
        raise MalformedReceipt("a field has no possible value") from None
    return receipt


def _read(name: str, value: Any) -> Any:
    """Raises TypeError, ValueError, binascii.Error."""
    if name == "number":
        if type(value) is not int or not 0 < value <= _LARGEST_NUMBER:
            raise ValueError
        return value
    if name == "trees":
        if not isinstance(value, list):
            raise TypeError
        return tuple(_bytes(each) for each in value)
    if name == "commit":
        return _bytes(value)
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or not value.isprintable():
        raise ValueError
    if name == "sha256" and (len(value) != _SHA256_DIGITS or value.strip("0123456789abcdef")):
        raise ValueError
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError
    return base64.b64decode(value, validate=True)


def receipts_in(trail: Path) -> Iterator[tuple[str, bytes]]:
    """Witness and bytes of each receipt in a trail's folder, one more than it may have at most. Raises OSError."""
    for path in sorted((trail / RECEIPTS_FOLDER).glob(RECEIPTS)):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                yield path.name.removesuffix(_SUFFIX), file.read(LARGEST_RECEIPT_BYTES + 1)
