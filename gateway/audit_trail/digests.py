"""The signed digests of one trail: each names the one before. The writer of the trail writes them too.

spark_audit/digest.py defines a digest. The last one is read when the trail is opened; `verify` reads the others.
Threads of one process may add digests; they get their numbers in the order of the calls.
"""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audit_trail.durable_file import PART_SUFFIX, put_in_place
from gateway.audit_trail.signing_key import next_key_path, read_key, ready_key, take_over
from gateway.config import ConfigurationError
from mq_adapters.embedded.store.files import make_folder
from mq_adapters.reasons import StoreError
from spark_audit.digest import (
    DIGEST_FOLDER,
    Digest,
    DigestKind,
    MalformedDigest,
    digest_hash,
    digest_name,
    digest_numbers,
    parse_digest,
    public_key_of,
    rotation_digest,
)
from spark_audit.record import ZERO_HASH

_SEGMENT_NUMBER: Final = slice(0, 12)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The writer: version of the program, version of the field-mapping table, SHA-256 of the configuration."""

    code_version: str = ""
    table_version: str = ""
    configuration_sha256: str = ""


NO_PROVENANCE: Final = Provenance()


def segment_number(stem: str) -> int:
    """The number of a segment, which its name begins with."""
    return int(stem[_SEGMENT_NUMBER])


def read_digest(folder: Path, number: int) -> tuple[Digest, bytes]:
    """A digest and the bytes of its file. Raises StoreError for what is none."""
    path = folder / digest_name(number)
    try:
        data = path.read_bytes()
        return parse_digest(data), data
    except (OSError, MalformedDigest) as error:
        hint = "put the copy of it from the second place there; `rfhbridge audit verify` says what else is wrong"
        raise StoreError(f"read digest {path}", str(error), hint) from error


def key_in_force(trail: Path) -> str | None:
    """The public key (hex) that signs a trail's next digest; None where it has no digest yet. Raises StoreError."""
    numbers = digest_numbers(trail / DIGEST_FOLDER)
    if not numbers:
        return None
    last, _ = read_digest(trail / DIGEST_FOLDER, numbers[-1])
    return last.new_public_key or last.public_key


class Digests:
    """The digests of the trail in a folder, to be added to. Raises StoreError, and ConfigurationError for the key."""

    def __init__(self, trail: Path, signing_key: Path, provenance: Provenance) -> None:
        self.folder = trail / DIGEST_FOLDER
        self._provenance = provenance
        self._key_path = signing_key
        self._lock = threading.Lock()
        self._last: Digest | None = None
        self._last_bytes = b""
        #: Why a next key was not taken, as the log has it.
        self._refusal = ""
        make_folder(self.folder)
        for left in self.folder.glob(f"*{PART_SUFFIX}"):
            left.unlink()
        self._numbers = digest_numbers(self.folder)
        if self._numbers:
            self._last, self._last_bytes = read_digest(self.folder, self._numbers[-1])
        self._key = ready_key(signing_key, key_in_force(trail))
        self.last_segment_number = next(
            (segment_number(each.segment) for each in self.backwards() if each.kind == DigestKind.SEGMENT), 0
        )

    @property
    def head(self) -> str:
        """Hash of the last record that a digest covers."""
        return ZERO_HASH if self._last is None else self._last.head

    @property
    def until_us(self) -> int:
        """Where the time ends that the last digest speaks of, microseconds since 1970; 0 before the first."""
        return 0 if self._last is None else self._last.until_us

    @property
    def last_number(self) -> int:
        """The number of the last digest; 0 before the first."""
        return 0 if self._last is None else self._last.number

    def backwards(self) -> Iterator[Digest]:
        """Every digest, the newest first. One that somebody damaged is passed over: `verify` finds it."""
        for number in reversed(self._numbers.copy()):
            try:
                yield read_digest(self.folder, number)[0]
            except StoreError:
                continue

    # -- adding --------------------------------------------------------------------------------------------------------

    def add_segment(self, facts: dict[str, Any]) -> None:
        """A segment is about to be closed; `facts` are the fields of its digest."""
        with self._lock:
            self._add(DigestKind.SEGMENT, facts)
            self.last_segment_number = segment_number(facts["segment"])

    def add_interval(self, gateway: str, *, from_us: int, until_us: int) -> None:
        """Nothing was written in that time."""
        facts = {"gateway": gateway, "from_us": from_us, "until_us": max(from_us, until_us), "head": self.head}
        with self._lock:
            self._add(DigestKind.INTERVAL, facts)

    def add_retention(self, segment: str, *, now_us: int) -> None:
        """That segment and the older ones are about to be removed."""
        with self._lock:
            assert self._last is not None, "what is removed has a digest"
            facts = {"gateway": self._last.gateway, "segment": segment, "from_us": now_us, "until_us": now_us}
            self._add(DigestKind.RETENTION, facts | {"head": self.head})

    def rotate_if_asked(self, now_us: int) -> bool:
        """Hands over to the key that lies beside the one in force; whether there was one that can take over."""
        following = self._following_key()
        if following is None:
            return False
        with self._lock:
            if self._last is not None and public_key_of(following) != public_key_of(self._key):
                self._write(
                    rotation_digest(self._last, self._last_bytes, old_key=self._key, new_key=following, now_us=now_us)
                )
            self._key = take_over(self._key_path)
        return True

    def _following_key(self) -> Ed25519PrivateKey | None:
        """The next key. One that cannot be used is told in the log once: the trail goes on with the key in force."""
        path = next_key_path(self._key_path)
        if not path.exists():
            return None
        try:
            following = read_key(path)
            problem = "" if os.access(path.parent, os.W_OK) else f"{path.parent} cannot be written"
        except ConfigurationError as error:
            problem = str(error)
        if problem and problem != self._refusal:
            _log.error("signing key not handed over reason=%s", problem)
        self._refusal = problem
        return None if problem else following

    def _add(self, kind: DigestKind, facts: dict[str, Any]) -> None:
        provenance = self._provenance
        digest = Digest(
            number=self.last_number + 1,
            kind=kind,
            previous=digest_hash(self._last_bytes) if self._last_bytes else ZERO_HASH,
            code_version=provenance.code_version,
            table_version=provenance.table_version,
            configuration_sha256=provenance.configuration_sha256,
            **facts,
        )
        self._write(digest.signed(self._key))

    def _write(self, digest: Digest) -> None:
        data = digest.to_bytes()
        try:
            put_in_place(self.folder / digest_name(digest.number), (data,))
        except OSError as error:
            hint = "make room or mend the disk; the trail goes on from there"
            raise StoreError(
                "write a digest of the trail", f"{error.strerror}: {error.filename or ''}", hint
            ) from error
        self._last, self._last_bytes = digest, data
        self._numbers.append(digest.number)
