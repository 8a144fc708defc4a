"""Digest after digest: its number, its link to the one before, its key and signature, and what it says of segments."""

from dataclasses import dataclass, field
from typing import Final

from spark_audit.record import ZERO_HASH
from spark_audit.result import counted
from spark_audit.trail.digest import (
    CLOCK_UNKNOWN,
    DIGEST_FOLDER,
    FIRST_VERSION,
    Digest,
    DigestKind,
    MalformedDigest,
    UnknownDigestVersion,
    digest_hash,
    digest_name,
    parse_digest,
)
from spark_audit.verify.countersigning import Countersigning
from spark_audit.verify.verdict import Finding, Findings

#: Keys that are told; a trail with more rotations has them in its digests.
_KEYS_TOLD: Final = 1_000


@dataclass(slots=True)
class ClockTold:
    """What digests say of the clock by which they were signed."""

    #: Digests that say something of it, those among them whose clock nothing steered, and the last one of these.
    told: int = 0
    unsteered: int = 0
    last_unsteered: int = 0
    #: The largest error of a clock that was steered, microseconds.
    largest_error_us: int = 0

    def add(self, digest: Digest) -> None:
        """The next digest."""
        if digest.clock_state == CLOCK_UNKNOWN:
            return
        self.told += 1
        if digest.is_clock_steered:
            error_us = max(digest.clock_maximum_error_us, digest.clock_estimated_error_us)
            self.largest_error_us = max(self.largest_error_us, error_us)
        else:
            self.unsteered, self.last_unsteered = self.unsteered + 1, digest.number

    def __str__(self) -> str:
        """In words; "" where no digest says anything."""
        parts = []
        if self.told > self.unsteered:
            at_most = f"at most {self.largest_error_us / 1_000:,.0f} ms off, as the kernel says"
            parts.append(f"the clock was synchronised at {counted(self.told - self.unsteered, 'digest')}, {at_most}")
        if self.unsteered:
            last = f"the last of them digest {self.last_unsteered}"
            parts.append(f"nothing synchronised the clock at {counted(self.unsteered, 'digest')}, {last}")
        return "; ".join(parts)


@dataclass(slots=True)
class DigestChain:
    """The chain of a trail's digests. Every digest must follow the one before, whatever that one was worth."""

    findings: Findings
    #: Hashes of digests of kind renewal that the auditor's policy names, among others.
    accepted: frozenset[str] = frozenset()
    #: The public key that the auditor has; "" where he has none.
    anchor: str = ""
    number: int = 0
    #: Hash of the bytes of the last digest.
    head: str = ZERO_HASH
    #: The configured key that is in force; "" before the first digest.
    key: str = ""
    #: Configured keys whose signature was seen, in order.
    keys: list[str] = field(default_factory=list)
    #: The key that has to sign the next digest; "" where the digest before does not say it, or is not there.
    due: str = ""
    #: The first key of each chain of keys, in order.
    chains: list[str] = field(default_factory=list)
    countersigning: Countersigning = field(default_factory=Countersigning)
    #: Number of the digest that the auditor's key has signed as its own; 0: none.
    anchored: int = 0
    valid: int = 0
    #: What digests tell of the clock.
    clock: ClockTold = field(default_factory=ClockTold)
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
        self.number, due, self.due = number, self.due, ""
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
        self._check_key(name, digest, due)
        self._check_signatures(name, digest)
        self._check_segment(name, digest)
        self.clock.add(digest)
        self.key, self.due = digest.key_after, digest.next_public_key
        return digest

    def _check_number(self, name: str, number: int) -> None:
        due = self.number + 1
        if number < due:
            self.findings.add(Finding.REPLAYED_DIGEST, name, f"digest {number} comes again, {due} was due")
        elif number > due:
            self.due = ""
            missing = f"digest {due} is" if number == due + 1 else f"digests {due} to {number - 1} are"
            self.findings.add(Finding.MISSING_DIGEST, name, f"{missing} missing before it")

    def _check_key(self, name: str, digest: Digest, due: str) -> None:
        """Whether the key that signs is the one that is due, and which configured key stands behind it."""
        first = digest.version == FIRST_VERSION
        if first and self.chains:
            what = "it is of version 1, and the digests before it have a chain of keys: that was left"
            self.findings.add(Finding.WRONG_KEY, name, what)
        elif due and digest.kind != DigestKind.RENEWAL and digest.public_key != due:
            what = f"it is signed by the key {digest.public_key}; the digest before it names {due}"
            self.findings.add(Finding.WRONG_KEY, name, what)
        configured = digest.public_key if first else digest.countersigner
        if self.key and configured != self.key:
            what = f"it is signed by the key {configured}, which no rotation brought; {self.key} was due"
            self.findings.add(Finding.WRONG_KEY, name, what)
        if digest.kind == DigestKind.RENEWAL and self.head not in self.accepted:
            what = (
                "it begins a new chain of keys, as if the key that was to sign were lost: what was signed behind the"
                f' digest before it, if anything, is cut off; until a policy names it: record = "{self.head}"'
            )
            self.findings.add(Finding.RENEWED_CHAIN, name, what)

    def _check_signatures(self, name: str, digest: Digest) -> None:
        is_signed = digest.is_signed_by(digest.public_key)
        if not is_signed:
            what = f"its signature is not that of its key {digest.public_key} over its bytes: it was changed"
            self.findings.add(Finding.WRONG_SIGNATURE, name, what)
        self.valid += is_signed
        if digest.version == FIRST_VERSION:
            self._note_key(digest.public_key, is_seen=is_signed)
            return
        if is_signed and digest.public_key == self.anchor:
            self.anchored = digest.number
        begins = not self.chains or digest.kind == DigestKind.RENEWAL
        if begins and len(self.chains) < _KEYS_TOLD:
            self.chains.append(digest.public_key)
        self._check_countersignature(name, digest)

    def _check_countersignature(self, name: str, digest: Digest) -> None:
        is_seen = bool(digest.countersignature)
        for flaw in self.countersigning.flaws(digest, self.head):
            is_seen &= flaw.is_missing
            if not flaw.record or flaw.record not in self.accepted:
                finding = Finding.MISSING_COUNTERSIGNATURE if flaw.is_missing else Finding.WRONG_SIGNATURE
                self.findings.add(finding, name, flaw.what)
        self._note_key(digest.countersigner, is_seen=is_seen)

    def finish(self) -> None:
        """There are no more digests."""
        if (flaw := self.countersigning.at_the_end()) is not None:
            name = f"{DIGEST_FOLDER}/{digest_name(self.countersigning.open_number)}"
            self.findings.add(Finding.MISSING_COUNTERSIGNATURE, name, flaw.what)

    def _note_key(self, key: str, *, is_seen: bool) -> None:
        if is_seen and key not in self.keys[-1:] and len(self.keys) < _KEYS_TOLD:
            self.keys.append(key)

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
