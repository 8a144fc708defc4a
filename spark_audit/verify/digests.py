"""Digest after digest: its number, its link to the one before, its key and signature, and what it says of segments."""

from dataclasses import dataclass, field
from typing import Final

from spark_audit.digest import (
    DIGEST_FOLDER,
    Digest,
    DigestKind,
    MalformedDigest,
    UnknownDigestVersion,
    digest_hash,
    digest_name,
    parse_digest,
)
from spark_audit.record import ZERO_HASH
from spark_audit.verify.verdict import Finding, Findings

#: Keys that are told; a trail with more rotations has them in its digests.
_KEYS_TOLD: Final = 1_000


@dataclass(slots=True)
class DigestChain:
    """The chain of a trail's digests. Every digest must follow the one before, whatever that one was worth."""

    findings: Findings
    number: int = 0
    #: Hash of the bytes of the last digest.
    head: str = ZERO_HASH
    #: The key that has to sign the next one; "" before the first.
    key: str = ""
    #: Keys whose signature was seen, in order.
    keys: list[str] = field(default_factory=list)
    valid: int = 0
    unknown_versions: int = 0
    #: Number of the last segment that a digest speaks of, and the hash of its last record.
    segment: int = 0
    record_head: str = ZERO_HASH
    #: Number of the last segment that retention removed.
    removed_up_to: int = 0

    def check(self, number: int, data: bytes) -> Digest | None:
        """Checks the digest in the file of a number; None where the bytes are no digest of that number."""
        name = f"{DIGEST_FOLDER}/{digest_name(number)}"
        previous, self.head = self.head, digest_hash(data)
        self._check_number(name, number)
        self.number = number
        try:
            digest = parse_digest(data)
        except UnknownDigestVersion:
            self.unknown_versions += 1
            return None
        except MalformedDigest as error:
            self.findings.add(Finding.MALFORMED_DIGEST, name, str(error))
            return None
        if digest.number != number:
            what = f"it holds digest {digest.number}: another digest was put in the place of digest {number}"
            self.findings.add(Finding.REPLAYED_DIGEST, name, what)
            return None
        if digest.previous != previous:
            what = f"it follows a digest with hash {digest.previous}, the one before it has {previous}"
            self.findings.add(Finding.BROKEN_DIGEST_LINK, name, what)
        self._check_signature(name, digest)
        self._check_segment(name, digest)
        return digest

    def _check_number(self, name: str, number: int) -> None:
        due = self.number + 1
        if number < due:
            self.findings.add(Finding.REPLAYED_DIGEST, name, f"digest {number} comes again, {due} was due")
        elif number > due:
            missing = f"digest {due} is" if number == due + 1 else f"digests {due} to {number - 1} are"
            self.findings.add(Finding.MISSING_DIGEST, name, f"{missing} missing before it")

    def _check_signature(self, name: str, digest: Digest) -> None:
        """A key takes over by a rotation that the key before has signed, and in no other way."""
        if self.key and digest.public_key != self.key:
            what = f"it is signed by the key {digest.public_key}, which no rotation brought; {self.key} was due"
            self.findings.add(Finding.WRONG_KEY, name, what)
        if digest.is_signed_by(digest.public_key):
            self.valid += 1
            if digest.public_key not in self.keys[-1:] and len(self.keys) < _KEYS_TOLD:
                self.keys.append(digest.public_key)
        else:
            what = f"its signature is not that of its key {digest.public_key} over its bytes: it was changed"
            self.findings.add(Finding.WRONG_SIGNATURE, name, what)
        self.key = digest.new_public_key or digest.public_key

    def _check_segment(self, name: str, digest: Digest) -> None:
        number = segment_number(digest)
        if digest.kind == DigestKind.SEGMENT:
            if number != self.segment + 1:
                what = f"it is of segment {number}; that of segment {self.segment + 1} was due"
                self.findings.add(Finding.MISSING_DIGEST, name, what)
            self.segment, self.record_head = number, digest.head
        elif digest.head != self.record_head:
            what = f"head is {digest.head}; the last record that has a digest has hash {self.record_head}"
            self.findings.add(Finding.BROKEN_DIGEST_LINK, name, what)
        if digest.kind == DigestKind.RETENTION:
            if number > self.segment:
                what = f"it says that segment {number} was removed, which has no digest before it"
                self.findings.add(Finding.MISSING_DIGEST, name, what)
            self.removed_up_to = max(self.removed_up_to, number)


def segment_number(digest: Digest) -> int:
    """Number of the segment that a digest names; 0 where it names none."""
    return int(digest.segment[:12]) if digest.segment else 0
