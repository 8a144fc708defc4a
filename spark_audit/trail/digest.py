"""The signed digest, which vouches for a closed segment, a quiet time, a new key, or a removal.

`digests/NNNNNNNNNNNN.digest` in the trail, numbered from 1 without gaps: one JSON object with the fields of Digest in
alphabetical order, without blanks, in UTF-8, with a line feed behind it. `previous` is the SHA-256 of the bytes of the
digest before (64 zeros in the first), so the last one pins all of them.

    segment    the lines of a closed segment; written before the segment is renamed from `.open`
    interval   a time in which nothing was written
    rotation   `new_public_key` countersigns from the next digest on
    retention  this segment and all older ones are removed; written before the first of them is
    renewal    a new chain of keys begins, because the key for the next digest is lost
    countersignature
               the configured key has countersigned digest `countersigned_number` after it was written

Version 2: each digest has a key of its own. `signature` is Ed25519 (RFC 8032) by `public_key` over the object without
`signature` and without the line feed. `next_public_key` signs the next digest. Its private half is made before this
digest is signed, signs once, and is then destroyed. So nobody can sign a digest again, or another one in its place.

`countersigner` is the public key of the configured signing key. It signs the object without `signature` and
`countersignature`: the first digest of a chain of keys, every rotation (by the old key) and the first digest behind it
(by the new one), and each digest whose `until_us` is an hour or more later than that of the last digest with a
countersignature, or earlier. Elsewhere `countersignature` is "". Keys and signatures have the forms of
spark_audit/trail/signature.py.

Version 3: `key_place` says where the configured key lies. A key in a token or behind an agent may be away, and no
digest waits for it. A countersignature that is due then comes later, in a digest of kind countersignature. It is over
an object in the form of a digest, with `countersigned_number`, the number of a digest before, and `digest`, the SHA-256
of that file. It speaks for all digests up to that number. How late it may come: spark_audit/verify/countersigning.py.

`clock_state` and both errors are what the kernel said of its wall clock when the digest was signed, by the words of
adjtimex(2). ok, and ins, del, oop and wait (of a leap second), mean that a program such as an NTP client steers the
clock; error means that none does; unknown, with errors of 0, means that the kernel could not be asked.

Version 1: `public_key` is the configured signing key, and signs every digest up to its rotation. There is no
`next_public_key`, `countersigner`, `countersignature`, `keep_us` and `allowed_by`, no field of the clock, no renewal.
A trail may change from version 1 to a later one, and not back: the first digest behind it is countersigned by the key
that was to sign. A key of versions 1 and 2 lies in a file.
"""

import hashlib
import re
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spark_audit.location import Location
from spark_audit.trail.merkle import MerkleTree
from spark_audit.trail.signature import PUBLIC_KEY, SIGNATURE, Signer, is_signature_of, public_key_of

#: Raised when a field changes its meaning; readers refuse what they do not know.
DIGEST_VERSION: Final = 3
#: The version that knows keys in files alone.
SECOND_VERSION: Final = 2
#: The version whose digests one key signs, until it is rotated.
FIRST_VERSION: Final = 1
DIGEST_FOLDER: Final = "digests"
#: Longer is none: names and hashes only, and no field without a bound.
LARGEST_DIGEST_BYTES: Final = 4_096
_DIGEST_NAME: Final = re.compile(r"([0-9]{12})\.digest")
#: Folder of the time-stamps of digests, with a folder for each witness (spark_audit/verify/time_stamp.py).
STAMPS_FOLDER: Final = "time-stamps"
_STAMP_NAME: Final = re.compile(r"([0-9]{12})\.tsr")
_SEGMENT: Final = re.compile(r"[0-9]{12}-[0-9]{8}T[0-9]{2}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_GATEWAY: Final = re.compile(r"[0-9a-f]{24}")
#: States of a clock that nothing steers, and of one that nobody could ask for.
CLOCK_ERROR: Final = "error"
CLOCK_UNKNOWN: Final = "unknown"
_CLOCK_STATE: Final = re.compile(f"ok|ins|del|oop|wait|{CLOCK_ERROR}|{CLOCK_UNKNOWN}")
#: A key that countersigns in the place; the others, named as the configuration names them, countersign later.
KEY_IN_A_FILE: Final = "file"
_KEY_PLACE: Final = re.compile(f"{KEY_IN_A_FILE}|pkcs11|ssh-agent")
#: How long a chain of keys may go on without a countersignature.
COUNTERSIGNED_EVERY_US: Final = 3_600_000_000
_LARGEST_NUMBER: Final = 2**63 - 1
_LONGEST_TEXT: Final = 128


class MalformedDigest(ValueError):
    """The bytes are no digest as this module defines it."""


class UnknownDigestVersion(MalformedDigest):
    """A digest of another version: its own program can read it."""


class DigestKind(StrEnum):
    """What a digest speaks of."""

    SEGMENT = "segment"
    INTERVAL = "interval"
    ROTATION = "rotation"
    RETENTION = "retention"
    RENEWAL = "renewal"
    COUNTERSIGNATURE = "countersignature"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One digest. Hashes and keys are lower-case hex; what does not apply to the kind is "" or 0."""

    #: 3; 2 before there were tokens, 1 in the first edition.
    version: int = DIGEST_VERSION
    #: From 1, without gaps.
    number: int
    #: One of the kinds above.
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
    #: The writer: version of the program, and of its field-mapping table, at most 128 characters each.
    code_version: str
    table_version: str
    #: SHA-256 of the settings; "" where they are not known.
    configuration_sha256: str
    #: retention: how long the configuration keeps segments, microseconds.
    keep_us: int = 0
    #: retention: the setting; rotation: the operator; at most 128 characters.
    allowed_by: str = ""
    #: The kernel's word on its clock: ok, ins, del, oop, wait, error or unknown.
    clock_state: str = CLOCK_UNKNOWN
    #: How far the clock may be off, and how far it probably is, microseconds.
    clock_maximum_error_us: int = 0
    clock_estimated_error_us: int = 0
    #: The key that signs, 32 bytes.
    public_key: str = ""
    #: The key that signs the next digest, 32 bytes.
    next_public_key: str = ""
    #: The configured signing key, 32 bytes, or 33 where it is of P-256.
    countersigner: str = ""
    #: Where its private half lies: file, pkcs11 or ssh-agent.
    key_place: str = KEY_IN_A_FILE
    #: 64 bytes, by `countersigner`; "" where none is due, or it comes later.
    countersignature: str = ""
    #: countersignature: the number of the digest that it is over.
    countersigned_number: int = 0
    #: rotation: the configured signing key from the next digest on, 32 or 33 bytes.
    new_public_key: str = ""
    #: 64 bytes, by `public_key`.
    signature: str = ""

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        return self._bytes_without() + b"\n"

    def signing_input(self) -> bytes:
        """What the signature is over."""
        return self._bytes_without("signature")

    def countersigning_input(self) -> bytes:
        """What the countersignature is over."""
        return self._bytes_without("signature", "countersignature")

    def countersigned(self, signer: Signer) -> Self:
        """The same with the countersignature of the configured key; `signed` comes behind it."""
        assert self.countersigner == signer.public_key, "the key in force countersigns"
        return replace(self, countersignature=signer.sign(self.countersigning_input()))

    def signed(self, key: Ed25519PrivateKey) -> Self:
        """The same with the signature of a private key, whose public half is or becomes `public_key`."""
        unsigned = replace(self, public_key=public_key_of(key), signature="")
        return replace(unsigned, signature=key.sign(unsigned.signing_input()).hex())

    def is_signed_by(self, public_key: str) -> bool:
        """Whether the signature is that of a public key (hex)."""
        return is_signature_of(public_key, self.signature, self.signing_input())

    def is_countersigned(self, earlier: str = "") -> bool:
        """Whether the countersignature is that of the key that it names.

        `earlier`: for kind countersignature the SHA-256 (hex) of the file of digest `countersigned_number`.
        """
        is_late = self.kind == DigestKind.COUNTERSIGNATURE
        over = late_input(self.countersigned_number, earlier) if is_late else self.countersigning_input()
        return is_signature_of(self.countersigner, self.countersignature, over)

    @property
    def countersigned_us(self) -> int | None:
        """When it was countersigned, for the digests behind it; None where a new configured key is to sign them."""
        return None if self.kind == DigestKind.ROTATION else self.until_us

    @property
    def is_clock_steered(self) -> bool:
        """Whether something like NTP steered the clock when it was signed; False too where nobody could say."""
        return self.clock_state not in (CLOCK_ERROR, CLOCK_UNKNOWN)

    @property
    def key_after(self) -> str:
        """The configured signing key that is in force behind this digest."""
        return self.new_public_key or self.countersigner or self.public_key

    def _bytes_without(self, *names: str) -> bytes:
        return _canonical(
            {
                name: value
                for name, value in asdict(self).items()
                if name not in names and SINCE.get(name, FIRST_VERSION) <= self.version
            }
        )


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


def digest_place(number: int) -> str:
    """Where a witness keeps the digest with a number: its file's name, in a folder for a thousand."""
    return f"{DIGEST_FOLDER}/{number // 1000:09d}/{digest_name(number)}"


def digest_number(name: str) -> int | None:
    """The number in a digest's file name; None for a name that is none."""
    found = _DIGEST_NAME.fullmatch(name)
    return int(found[1]) if found else None


def digest_numbers(folder: Location) -> list[int]:
    """The numbers of the digests in a folder, ascending; none where the folder is not there. Raises OSError."""
    if not folder.is_dir():
        return []
    return sorted(number for path in folder.iterdir() if (number := digest_number(path.name)))


def stamp_name(number: int) -> str:
    """The name of the file of the time-stamp of a digest."""
    return f"{number:012d}.tsr"


def stamp_numbers(folder: Location) -> list[int]:
    """The numbers of the digests that have a time-stamp in a folder, ascending. Raises OSError."""
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(int(found[1]) for name in names if (found := _STAMP_NAME.fullmatch(name)))


def late_input(number: int, sha256: str) -> bytes:
    """What a countersignature is over that comes later: number of a digest, and SHA-256 (hex) of its file."""
    return _canonical({"countersigned_number": number, "digest": sha256})


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
    if values.get("version") not in _VERSIONS:
        raise UnknownDigestVersion(
            f"it has version {values.get('version')!r}; this program reads 1 to {DIGEST_VERSION}"
        )
    _check_values(values)
    digest = Digest(**values)
    if digest.to_bytes() != data:
        raise MalformedDigest("its bytes are not in the one form that a digest has (sorted keys, no blanks, line feed)")
    return digest


def anchor_key_of(folder: Path) -> str:
    """The public key for an auditor, from the digests in a folder: the first one of the newest chain of keys.

    Where there is no chain yet, the configured key of the last digest; "" without any digest that can be read.
    """
    key = ""
    for number in reversed(digest_numbers(folder)):
        try:
            digest = parse_digest((folder / digest_name(number)).read_bytes())
        except MalformedDigest:
            continue
        if digest.version == FIRST_VERSION:
            return key or digest.key_after
        key = digest.public_key
        if digest.kind == DigestKind.RENEWAL:
            return key
    return key


def is_countersignature_due(kind: str, until_us: int, last_us: int | None) -> bool:
    """Whether a digest of version 2 or later needs a countersignature.

    `last_us`: `countersigned_us` of the last one that has it; None where a chain of keys begins.
    """
    if last_us is None or kind in (DigestKind.ROTATION, DigestKind.RENEWAL):
        return True
    return not last_us <= until_us < last_us + COUNTERSIGNED_EVERY_US


def _canonical(values: dict[str, Any]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)


_NUMBERS: Final = frozenset(each.name for each in fields(Digest) if each.type is int)
_OF_CLOCK: Final = ("clock_state", "clock_maximum_error_us", "clock_estimated_error_us")
#: The version that brought a field; the others were there from the first.
SINCE: Final = {
    **dict.fromkeys((*_OF_CLOCK, "next_public_key", "countersigner", "countersignature", "keep_us", "allowed_by"), 2),
    **dict.fromkeys(("key_place", "countersigned_number"), 3),
}
_VERSIONS: Final = (FIRST_VERSION, SECOND_VERSION, DIGEST_VERSION)
_NAMES: Final = {
    version: frozenset(each.name for each in fields(Digest) if SINCE.get(each.name, FIRST_VERSION) <= version)
    for version in _VERSIONS
}
#: What a text field must look like; a text that may be empty is named in _MAY_BE_EMPTY.
_FORMS: Final = {
    "gateway": _GATEWAY,
    "clock_state": _CLOCK_STATE,
    "segment": _SEGMENT,
    "sha256": _SHA256,
    "merkle_root": _SHA256,
    "head": _SHA256,
    "previous": _SHA256,
    "configuration_sha256": _SHA256,
    "public_key": _SHA256,
    "next_public_key": _SHA256,
    "countersigner": PUBLIC_KEY,
    "key_place": _KEY_PLACE,
    "new_public_key": PUBLIC_KEY,
    "countersignature": SIGNATURE,
    "signature": SIGNATURE,
}
_MAY_BE_EMPTY: Final = {
    *("segment", "sha256", "merkle_root", "configuration_sha256", "new_public_key", "countersignature")
}
#: Fields that a kind must have; it has no other of _OF_SOME_KINDS.
_OF_KIND: Final = {
    DigestKind.SEGMENT: {"segment", "sha256", "merkle_root"},
    DigestKind.INTERVAL: set[str](),
    DigestKind.ROTATION: {"new_public_key", "allowed_by"},
    DigestKind.RETENTION: {"segment", "keep_us", "allowed_by"},
    DigestKind.RENEWAL: set[str](),
    DigestKind.COUNTERSIGNATURE: {"countersigned_number"},
}
#: The version that brought a kind; the others were there from the first.
_KIND_SINCE: Final = {DigestKind.RENEWAL: SECOND_VERSION, DigestKind.COUNTERSIGNATURE: DIGEST_VERSION}
_OF_SOME_KINDS: Final = (
    *("segment", "sha256", "merkle_root", "new_public_key", "keep_us", "allowed_by", "countersigned_number"),
)


def _check_values(values: dict[str, Any]) -> None:
    """Raises MalformedDigest for a field that is missing, unknown, of the wrong type or form, or of another kind."""
    version, names = values["version"], _NAMES[values["version"]]
    if wrong := sorted(set(values) ^ names):
        raise MalformedDigest(f"its fields are not those of version {version}: {', '.join(wrong)[:_LONGEST_TEXT]}")
    for name, value in values.items():
        if not (_is_number(value) if name in _NUMBERS else _is_text(name, value)):
            raise MalformedDigest(f"{name} is not what it should be: {str(value)[:_LONGEST_TEXT]!r}")
    kind = values["kind"]
    if kind not in set(DigestKind) or version < _KIND_SINCE.get(DigestKind(kind), FIRST_VERSION):
        raise MalformedDigest(f"kind {kind!r} is not known")
    if kind == DigestKind.COUNTERSIGNATURE:
        for name, is_wrong in (
            ("countersignature", not values["countersignature"]),
            ("key_place", values["key_place"] == KEY_IN_A_FILE),
        ):
            if is_wrong:
                raise MalformedDigest(f"{name} does not go with kind {kind}")
    for name in _OF_SOME_KINDS:
        if name in names and bool(values[name]) != (name in _OF_KIND[DigestKind(kind)]):
            raise MalformedDigest(f"{name} does not go with kind {kind}")


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_NUMBER


def _is_text(name: str, value: object) -> bool:
    if not isinstance(value, str):
        return False
    form = _FORMS.get(name)
    if form is None:
        return len(value) <= _LONGEST_TEXT
    return form.fullmatch(value) is not None or (value == "" and name in _MAY_BE_EMPTY)
