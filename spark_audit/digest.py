"""The signed digest: what the gateway swears to of a segment, of a quiet time, of a new key, of what it removed.

`digests/NNNNNNNNNNNN.digest` in the trail, numbered from 1 without gaps: one JSON object with the fields of Digest in
alphabetical order, without blanks, in UTF-8, with a line feed behind it. `previous` is the SHA-256 of the bytes of the
digest before (64 zeros in the first), so the last one pins all of them. `signature` is Ed25519 (RFC 8032) by
`public_key` over the same bytes without the key `signature` and without the line feed.

    segment    the lines of a closed segment; written before the segment is renamed from `.open`
    interval   a time in which nothing was written
    rotation   `new_public_key` signs from the next digest on; signed by the key before
    retention  this segment and all older ones are removed; written before the first of them is
"""

import hashlib
import re
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from spark_audit.merkle import MerkleTree

#: Raised when a field changes its meaning; readers refuse what they do not know.
DIGEST_VERSION: Final = 1
DIGEST_FOLDER: Final = "digests"
#: Longer is none: names and hashes only, and no field without a bound.
LARGEST_DIGEST_BYTES: Final = 4_096
_DIGEST_NAME: Final = re.compile(r"([0-9]{12})\.digest")
_SEGMENT: Final = re.compile(r"[0-9]{12}-[0-9]{8}T[0-9]{2}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_GATEWAY: Final = re.compile(r"[0-9a-f]{24}")
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
_LARGEST_NUMBER: Final = 2**63 - 1
_LONGEST_TEXT: Final = 128


class MalformedDigest(ValueError):
    """The bytes are no digest as this module defines it."""


class UnknownDigestVersion(MalformedDigest):
    """A digest of another version: its own program can read it."""


class UnusableKey(ValueError):
    """A text is no public key of 32 bytes in hex."""


class DigestKind(StrEnum):
    """What a digest speaks of."""

    SEGMENT = "segment"
    INTERVAL = "interval"
    ROTATION = "rotation"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One digest. Hashes and keys are lower-case hex; what does not apply to the kind is "" or 0."""

    version: int = DIGEST_VERSION
    #: From 1, without gaps.
    number: int
    kind: str
    #: Incarnation of the store that writes, 24 hex digits.
    gateway: str
    #: segment, retention: name of the file without its ending.
    segment: str = ""
    #: segment: of the records of `gateway` in it; 0 where it has none.
    first_sequence: int = 0
    last_sequence: int = 0
    #: segment: number of its lines, of all gateways.
    records: int = 0
    #: segment: length and SHA-256 of the file, uncompressed.
    size_bytes: int = 0
    sha256: str = ""
    #: segment: RFC 6962 over the lines without their line feeds.
    merkle_root: str = ""
    #: Hash of the last record of all segments that have a digest, this one's among them; 64 zeros before any.
    head: str
    #: SHA-256 of the bytes of the digest before; 64 zeros in the first.
    previous: str
    #: The time that it speaks of, microseconds since 1970 UTC.
    from_us: int
    until_us: int
    code_version: str
    table_version: str
    configuration_sha256: str
    #: The key that signs, 32 bytes.
    public_key: str = ""
    #: rotation: the key that signs from the next digest on.
    new_public_key: str = ""
    #: 64 bytes.
    signature: str = ""

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        return _canonical(asdict(self)) + b"\n"

    def signing_input(self) -> bytes:
        """What the signature is over."""
        values = asdict(self)
        del values["signature"]
        return _canonical(values)

    def signed(self, key: Ed25519PrivateKey) -> Self:
        """The same with the public key and the signature of a private key."""
        unsigned = replace(self, public_key=public_key_of(key), signature="")
        return replace(unsigned, signature=key.sign(unsigned.signing_input()).hex())

    def is_signed_by(self, public_key: str) -> bool:
        """Whether the signature is that of a public key (hex)."""
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
            key.verify(bytes.fromhex(self.signature), self.signing_input())
        except (InvalidSignature, ValueError):
            return False
        return True


class SegmentMeasure:
    """What a digest says of a segment's bytes, taken as its lines go by."""

    __slots__ = ("_sha256", "_tree", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._tree = MerkleTree()

    def add(self, lines: bytes) -> None:
        """Adds one whole line or many, each with its line feed."""
        self._sha256.update(lines)
        self.size_bytes += len(lines)
        for line in lines[:-1].split(b"\n"):
            self._tree.add(line)

    @property
    def records(self) -> int:
        """The number of lines."""
        return self._tree.size

    def sha256(self) -> str:
        """SHA-256 of the bytes so far, hex."""
        return self._sha256.hexdigest()

    def merkle_root(self) -> str:
        """Merkle root over the lines so far, hex."""
        return self._tree.root().hex()


def digest_name(number: int) -> str:
    """The file's name in the folder DIGEST_FOLDER of a trail."""
    return f"{number:012d}.digest"


def digest_number(name: str) -> int | None:
    """The number in a digest's file name; None for a name that is none."""
    found = _DIGEST_NAME.fullmatch(name)
    return int(found[1]) if found else None


def digest_numbers(folder: Path) -> list[int]:
    """The numbers of the digests in a folder, ascending; none where the folder is not there. Raises OSError."""
    if not folder.is_dir():
        return []
    return sorted(number for path in folder.iterdir() if (number := digest_number(path.name)))


def digest_hash(data: bytes) -> str:
    """What the next digest names as `previous`: SHA-256 of the bytes of a digest's file."""
    return hashlib.sha256(data).hexdigest()


def parse_digest(data: bytes) -> Digest:
    """The digest in the bytes of a file. Raises MalformedDigest, UnknownDigestVersion; says nothing of the signature.

    The bytes must be those that Digest.to_bytes gives: a file has one form.
    """
    if len(data) > LARGEST_DIGEST_BYTES:
        raise MalformedDigest(f"{len(data)} bytes are too many for a digest ({LARGEST_DIGEST_BYTES} at most)")
    try:
        values = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedDigest(f"it is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise MalformedDigest("it is not a JSON object")
    if values.get("version") != DIGEST_VERSION:
        raise UnknownDigestVersion(f"it has version {values.get('version')!r}; this program reads {DIGEST_VERSION}")
    _check_values(values)
    digest = Digest(**values)
    if digest.to_bytes() != data:
        raise MalformedDigest("its bytes are not in the one form that a digest has (sorted keys, no blanks, line feed)")
    return digest


def rotation_digest(
    last: Digest, last_bytes: bytes, *, old_key: Ed25519PrivateKey, new_key: Ed25519PrivateKey, now_us: int
) -> Digest:
    """The signed digest that follows `last` and hands over from one key to another; versions are those of `last`."""
    return Digest(
        number=last.number + 1,
        kind=DigestKind.ROTATION,
        gateway=last.gateway,
        head=last.head,
        previous=digest_hash(last_bytes),
        from_us=now_us,
        until_us=now_us,
        code_version=last.code_version,
        table_version=last.table_version,
        configuration_sha256=last.configuration_sha256,
        new_public_key=public_key_of(new_key),
    ).signed(old_key)


def public_key_of(key: Ed25519PrivateKey) -> str:
    """The public half of a key, hex."""
    return key.public_key().public_bytes_raw().hex()


def public_key_from_text(text: str) -> str:
    """The public key in a `.pub` file or an argument: 64 hex digits, blanks around them. Raises UnusableKey."""
    key = text.strip().lower()
    if _SHA256.fullmatch(key) is None:
        raise UnusableKey("a public key is one line of 64 hex digits, as `rfhbridge audit key show` prints it")
    return key


def _canonical(values: dict[str, Any]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)


_NUMBERS: Final = frozenset(
    ("version", "number", "first_sequence", "last_sequence", "records", "size_bytes", "from_us", "until_us")
)
_NAMES: Final = tuple(field.name for field in fields(Digest))
#: What a text field must look like; a text that may be empty is named in _MAY_BE_EMPTY.
_FORMS: Final = {
    "gateway": _GATEWAY,
    "segment": _SEGMENT,
    "sha256": _SHA256,
    "merkle_root": _SHA256,
    "head": _SHA256,
    "previous": _SHA256,
    "configuration_sha256": _SHA256,
    "public_key": _SHA256,
    "new_public_key": _SHA256,
    "signature": _SIGNATURE,
}
_MAY_BE_EMPTY: Final = {"segment", "sha256", "merkle_root", "configuration_sha256", "new_public_key"}
#: Text fields that a kind must have; it has no other of _OF_SOME_KINDS.
_OF_KIND: Final = {
    DigestKind.SEGMENT: {"segment", "sha256", "merkle_root"},
    DigestKind.INTERVAL: set[str](),
    DigestKind.ROTATION: {"new_public_key"},
    DigestKind.RETENTION: {"segment"},
}
_OF_SOME_KINDS: Final = ("segment", "sha256", "merkle_root", "new_public_key")


def _check_values(values: dict[str, Any]) -> None:
    """Raises MalformedDigest for a field that is missing, unknown, of the wrong type or form, or of another kind."""
    if wrong := sorted(set(values) ^ set(_NAMES)):
        raise MalformedDigest(
            f"its fields are not those of version {DIGEST_VERSION}: {', '.join(wrong)[:_LONGEST_TEXT]}"
        )
    for name, value in values.items():
        if not (_is_number(value) if name in _NUMBERS else _is_text(name, value)):
            raise MalformedDigest(f"{name} is not what it should be: {str(value)[:_LONGEST_TEXT]!r}")
    if values["kind"] not in set(DigestKind):
        raise MalformedDigest(f"kind {values['kind']!r} is not known")
    for name in _OF_SOME_KINDS:
        if bool(values[name]) != (name in _OF_KIND[DigestKind(values["kind"])]):
            raise MalformedDigest(f"{name} does not go with kind {values['kind']}")


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_NUMBER


def _is_text(name: str, value: object) -> bool:
    if not isinstance(value, str):
        return False
    form = _FORMS.get(name)
    if form is None:
        return len(value) <= _LONGEST_TEXT
    return form.fullmatch(value) is not None or (value == "" and name in _MAY_BE_EMPTY)
