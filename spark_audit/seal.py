"""The seal of an audit's results: which trails they are of, what the files hold, and perhaps a signature.

`seal.json` beside them: one JSON object with the fields of Seal in alphabetical order, without blanks, in UTF-8, with a
line feed behind it. `trails` has, for each trail, the number of its last digest when the audit began (0: none), the
SHA-256 of that digest's bytes, and the hash of the last record. `files` has the SHA-256 of each file by its path.
`signature` is by `public_key` over the object without `signature` and without the line feed
(spark_audit/trail/signature.py); both are "" where nobody signed.

The digest's hash pins the trail up to there, so a trail that has grown is still that trail. A seal without a signature
shows that the files belong together, and everybody could have written it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Self

import orjson

from spark_audit.record import ZERO_HASH
from spark_audit.trail.digest import LARGEST_DIGEST_BYTES, digest_hash
from spark_audit.trail.segment_forms import DamagedSegment
from spark_audit.trail.signature import Signer, is_signature_of
from spark_audit.verify import Verification
from spark_audit.verify.source import LineTooLong, TrailFolder, each_segment

SEAL: Final = "seal.json"
SEAL_VERSION: Final = 1
_LARGEST_SEAL_BYTES: Final = 64 * 1024 * 1024


class MalformedSeal(ValueError):
    """The bytes are no seal as this module defines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTrail:
    """A trail as the audit found it."""

    digests: int
    digest_head: str
    head: str

    @classmethod
    def of(cls, verification: Verification) -> Self:
        return cls(digests=verification.digests, digest_head=verification.digest_head, head=verification.head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """One seal."""

    version: int = SEAL_VERSION
    trails: tuple[SealedTrail, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    public_key: str = ""
    signature: str = ""

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        return _canonical(asdict(self)) + b"\n"

    def signing_input(self) -> bytes:
        """What the signature is over."""
        values = asdict(self)
        del values["signature"]
        return _canonical(values)

    def signed(self, signer: Signer) -> Self:
        told = replace(self, public_key=signer.public_key, signature="")
        return replace(told, signature=signer.sign(told.signing_input()))

    def is_signed(self) -> bool:
        """Whether the signature is that of the key that it names."""
        return is_signature_of(self.public_key, self.signature, self.signing_input())


def seal_of(folder: Path, results: Iterable[Path], trails: Iterable[SealedTrail], signer: Signer | None) -> Seal:
    """The seal of files, and of all files of folders, that an audit wrote into a folder. Raises OSError."""
    files = {path.relative_to(folder).as_posix(): _sha256(path) for each in results for path in _files_in(each)}
    seal = Seal(trails=tuple(trails), files=files)
    return seal if signer is None else seal.signed(signer)


def write_seal(folder: Path, results: Iterable[Path], trails: Iterable[SealedTrail], signer: Signer | None) -> None:
    """Writes the seal of results beside them. Raises OSError."""
    unfinished = folder / f"{SEAL}.part"
    unfinished.write_bytes(seal_of(folder, results, trails, signer).to_bytes())
    unfinished.replace(folder / SEAL)


def parse_seal(data: bytes) -> Seal:
    """The seal in the bytes of a file, which have one form. Raises MalformedSeal; says nothing of the signature."""
    try:
        values: Any = orjson.loads(data)
        if values.pop("version") != SEAL_VERSION or set(values) != {each.name for each in fields(Seal)} - {"version"}:
            raise MalformedSeal(f"it is not of version {SEAL_VERSION}")
        trails = tuple(SealedTrail(**each) for each in values.pop("trails"))
        seal = Seal(trails=trails, **values)
        is_one_form = seal.to_bytes() == data
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise MalformedSeal(f"it is no seal: {error}") from None
    if not is_one_form:
        raise MalformedSeal("its bytes are not in the one form that a seal has")
    return seal


def read_seal(folder: Path) -> Seal:
    """The seal of a folder of results. Raises MalformedSeal, OSError."""
    with (folder / SEAL).open("rb") as file:
        return parse_seal(file.read(_LARGEST_SEAL_BYTES))


def why_not_of(results: Path, trail: Path) -> str:
    """Why the results in a folder do not belong to a trail; "" where they do. Raises OSError."""
    try:
        seal = read_seal(results)
    except FileNotFoundError:
        return f"there is no {SEAL} that says of which trail they are (rfhbridge audit run writes it)"
    except MalformedSeal as error:
        return f"{SEAL}: {error}"
    if seal.signature and not seal.is_signed():
        return f"the signature in {SEAL} is not that of {seal.public_key} over its bytes"
    if told := next(_unlike(results, seal.files), ""):
        return told
    source = TrailFolder(trail)
    if not any(_is_of(source, each) for each in seal.trails):
        return "they are of another trail, or of one that was changed or cut since (rfhbridge audit run once more)"
    return ""


def _unlike(results: Path, files: Mapping[str, str]) -> Iterator[str]:
    there = {path.relative_to(results).as_posix(): path for path in _files_in(results) if path.name != SEAL}
    for name in sorted(files.keys() | there.keys()):
        if name not in there:
            yield f"{name} is missing"
        elif name not in files:
            yield f"{name} is not a file of the audit"
        elif _sha256(there[name]) != files[name]:
            yield f"{name} was changed"


def _is_of(trail: TrailFolder, sealed: SealedTrail) -> bool:
    """By the last digest there was; without one by the last record."""
    if not sealed.digests:
        return sealed.head != ZERO_HASH and _has_record(trail, sealed.head)
    try:
        data = trail.digest(sealed.digests)
    except FileNotFoundError:
        return False
    return len(data) <= LARGEST_DIGEST_BYTES and digest_hash(data) == sealed.digest_head


def _has_record(trail: TrailFolder, head: str) -> bool:
    wanted = f',"hash":"{head}"}}'.encode()
    try:
        return any(wanted in block for segment in each_segment(trail) for block in segment.blocks())
    except (DamagedSegment, LineTooLong):
        return False


def _files_in(path: Path) -> list[Path]:
    """A plain file, or those below a folder, sorted. Links are no results."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [each for each in found if each.is_file() and not each.is_symlink()]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _canonical(values: dict[str, Any]) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
