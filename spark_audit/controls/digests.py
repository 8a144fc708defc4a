"""Signed digests against each other, their copies, and the segments that they speak of.

A digest names the head of its segment, and the head is the last link of a chain that holds every byte of it: with
integrity.hash and integrity.chain it stands for file hash and Merkle root, which `rfhbridge audit verify` computes
anew. So a trail that is written anew with a good chain is found, and one whose end or middle was taken away.

Signatures are no matter for SQL: the step of this control reads what there is of each trail, a row a segment and a
digest, and makes the table of findings that its rule asks.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from spark_audit.controls.control import Control, Parameter, Scope, Severity, Tested, violations
from spark_audit.location import Location
from spark_audit.period import Period
from spark_audit.record import ZERO_HASH
from spark_audit.trail.digest import (
    FIRST_VERSION,
    LARGEST_DIGEST_BYTES,
    Digest,
    DigestKind,
    MalformedDigest,
    digest_hash,
    digest_name,
    digest_numbers,
    parse_digest,
)
from spark_audit.verify.countersigning import Countersigning, Flaw

if TYPE_CHECKING:
    from spark_audit.audit_input import AuditInput
    from spark_audit.engines.engine import Engine, Row

_NUMBER_DIGITS: Final = 12
_COLUMNS: Final = pa.schema(
    [
        ("gateway", pa.string()),
        ("sequence", pa.int64()),
        ("subject", pa.string()),
        ("detail", pa.string()),
        ("is_of_none", pa.bool_()),
        ("hash", pa.string()),
    ]
)
#: `clock_error_us`: the larger one of both errors.
_DIGESTS: Final = pa.schema(
    [
        ("trail", pa.string()),
        ("number", pa.int64()),
        ("gateway", pa.string()),
        ("sequence", pa.int64()),
        ("clock_state", pa.string()),
        ("clock_error_us", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestFile:
    """A file of a digest: its number, the hash of its bytes, and the digest, or what is wrong with its bytes."""

    number: int
    sha256: str = ""
    digest: Digest | None = None
    problem: str = ""
    is_signed: bool = False


def read_digests(folder: Location, last_number: int = sys.maxsize) -> tuple[DigestFile, ...]:
    """Every digest in a folder up to a number; none where it is not there. Nothing in a file makes this fail."""
    return tuple(_read(folder, number) for number in digest_numbers(folder) if number <= last_number)


def _read(folder: Location, number: int) -> DigestFile:
    with (folder / digest_name(number)).open("rb") as file:
        content = file.read(LARGEST_DIGEST_BYTES + 1)
    if len(content) > LARGEST_DIGEST_BYTES:
        return DigestFile(number=number, problem=f"longer than {LARGEST_DIGEST_BYTES} bytes")
    sha256 = digest_hash(content)
    try:
        digest = parse_digest(content)
    except MalformedDigest as error:
        return DigestFile(number=number, sha256=sha256, problem=str(error).encode(errors="replace").decode())
    return DigestFile(number=number, sha256=sha256, digest=digest, is_signed=digest.is_signed_by(digest.public_key))


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """What was read of a segment: lines, last hash, and of each gateway the first and the last sequence."""

    stem: str
    lines: int
    head: str | None
    is_closed: bool
    sequences: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailToJudge:
    """A trail's digests, their copies (None: nobody kept any), and what was read of its segments.

    `due`: a segment that has no line is missing where the lines of its hour are due, and always between two that have
    some. `unread` are there, and other audits have read them or will. `public_key` (hex) is the auditor's, "" where
    there is none.
    """

    name: str
    digests: Sequence[DigestFile]
    segments: Mapping[str, SegmentFacts]
    copies: Sequence[DigestFile] | None = None
    due: Period
    unread: frozenset[str] = frozenset()
    public_key: str = ""

    def findings(self) -> Iterator["Row"]:
        """What is wrong; `is_of_none` marks segments where nothing is signed at all, which a policy may forbid.

        `hash` is that of a digest of kind renewal, or of a first countersignature that came too late. A policy may name
        it.
        """
        digests = {file.number: file for file in self.digests}
        copies = {file.number: file.sha256 for file in self.copies or ()}
        state = _Due(self)
        for number in sorted(digests.keys() | copies.keys()):
            file = digests.get(number, DigestFile(number=number))
            subject = self._named(f"digests/{digest_name(number)}")
            for detail in state.faults_of(file, copies.get(number)):
                yield _finding(file.digest, subject, detail)
            for detail in self._faults_of_segment(file.digest, state.removed_up_to):
                assert file.digest is not None
                yield _finding(file.digest, self._named(file.digest.segment), detail)
            if file.digest is not None and file.digest.kind == DigestKind.RENEWAL:
                detail = f"it begins a new chain of keys; until a policy names it: record = {file.sha256}"
                yield _finding(file.digest, subject, detail) | {"hash": file.sha256}
            for flaw in state.flaws_of(file):
                yield _finding(file.digest, subject, flaw.what) | {"hash": flaw.record or None}
            state.step(file)
        if (at_the_end := state.countersigning.at_the_end()) is not None:
            subject = self._named(f"digests/{digest_name(state.countersigning.open_number)}")
            yield _finding(None, subject, at_the_end.what)
        yield from self._undigested(state)

    def _named(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name

    def _faults_of_segment(self, digest: Digest | None, removed_up_to: int) -> Iterator[str]:
        """What is wrong between a digest and its segment."""
        if digest is None or digest.kind != DigestKind.SEGMENT:
            return
        segment = self.segments.get(digest.segment)
        if segment is None:
            if (
                digest.segment not in self.unread
                and self._is_due(digest.segment)
                and _number_of(digest.segment) > removed_up_to
            ):
                yield "it is missing: its digest is there"
            return
        first, last = segment.sequences.get(digest.gateway, (0, 0))
        compared = (
            ("lines", digest.records, segment.lines),
            ("first_sequence", digest.first_sequence, first),
            ("last_sequence", digest.last_sequence, last),
            ("head", digest.head, segment.head),
        )
        for name, told, actual in compared:
            if told != actual:
                yield f"{name}: its digest says {told}, the segment {'nothing' if actual is None else actual}"

    def _is_due(self, stem: str) -> bool:
        is_between = bool(self.segments) and min(self.segments) <= stem <= max(self.segments)
        return is_between or self.due.concerns(stem)

    def _undigested(self, state: "_Due") -> Iterator["Row"]:
        """Segments that have no digest: behind the last one they wait for theirs."""
        told = [file.digest for file in self.digests if file.digest is not None]
        digested = {digest.segment for digest in told if digest.kind == DigestKind.SEGMENT}
        without = [each for each in self.segments.values() if each.is_closed and each.stem not in digested]
        for segment in without:
            if segment.stem < state.last_digested:
                yield _finding(None, self._named(segment.stem), "it has no digest, later ones have")
            if not state.keys:
                detail = "there is no digest at all: nothing is signed"
                yield _finding(None, self._named(segment.stem), detail) | {"is_of_none": True}
        if self.public_key and self.public_key not in state.keys:
            yield _finding(None, self._named("digests"), "none is signed by the public key that was given")


class _Due:
    """What the digests before make due of the next, and what is known of them all."""

    def __init__(self, trail: TrailToJudge) -> None:
        told = [file.digest for file in trail.digests if file.digest is not None]
        removed = [_number_of(digest.segment) for digest in told if digest.kind == DigestKind.RETENTION]
        self.removed_up_to = max(removed, default=0)
        self.last_digested = max((d.segment for d in told if d.kind == DigestKind.SEGMENT), default="")
        self.keys = {digest.public_key for digest in told}
        hashes = {file.number: file.sha256 for file in trail.digests}
        self.keys |= {
            each.countersigner for each in told if each.is_countersigned(hashes.get(each.countersigned_number, ""))
        }
        self._number = 1
        self._previous = ZERO_HASH
        self._key = ""
        self._following = ""
        self._is_chained = False
        self.countersigning = Countersigning()
        self._head = ZERO_HASH
        self._segment = 0

    def faults_of(self, file: DigestFile, copy: str | None) -> Iterator[str]:
        """What is wrong with a digest itself."""
        digest = file.digest
        if file.problem:
            yield file.problem
        if file.number != self._number:
            yield f"digest {self._number} was due: digests are missing"
        if digest is not None:
            yield from self._faults_of_fields(file, digest)
        if copy is not None and not file.sha256 and not file.problem:
            yield "it is missing, though there is a copy of it"
        if copy is not None and file.sha256 and file.sha256 != copy:
            yield "it is not the digest that was copied"

    def _faults_of_fields(self, file: DigestFile, digest: Digest) -> Iterator[str]:
        if digest.number != file.number:
            yield f"it holds digest {digest.number}"
        if digest.previous != self._previous:
            yield "it does not follow the digest before it"
        if not file.is_signed:
            yield "its signature is not that of its key over its bytes: it was changed"
        yield from self._faults_of_keys(file, digest)
        if digest.kind != DigestKind.SEGMENT:
            if digest.head != self._head:
                yield "its head is not that of the digest of the last segment"
        elif (number := _number_of(digest.segment)) != self._segment + 1:
            yield f"it is of segment {number}, which does not follow segment {self._segment}"

    def _faults_of_keys(self, file: DigestFile, digest: Digest) -> Iterator[str]:
        is_first = digest.version == FIRST_VERSION
        if self._key and (digest.public_key if is_first else digest.countersigner) != self._key:
            yield "it is signed by a key that no rotation brought"
        if is_first:
            if self._is_chained:
                yield "it leaves the chain of keys before it"
            return
        is_next = file.number == self._number and digest.kind != DigestKind.RENEWAL
        if is_next and self._following and digest.public_key != self._following:
            yield "the digest before it names another key"

    def flaws_of(self, file: DigestFile) -> Iterator[Flaw]:
        """What is wrong with the countersignature of a digest."""
        if file.digest is not None and file.digest.version != FIRST_VERSION:
            yield from self.countersigning.flaws(file.digest, file.sha256)

    def step(self, file: DigestFile) -> None:
        """Goes on behind a digest."""
        self._number = file.number + 1
        self._following = "" if file.digest is None else file.digest.next_public_key
        self._previous = file.sha256 or ZERO_HASH
        if (digest := file.digest) is None:
            return
        self._key = digest.key_after
        self._is_chained |= digest.version != FIRST_VERSION
        if digest.kind == DigestKind.SEGMENT:
            self._head, self._segment = digest.head, _number_of(digest.segment)


def _number_of(stem: str) -> int:
    return int(stem[:_NUMBER_DIGITS])


def _finding(digest: Digest | None, subject: str, detail: str) -> "Row":
    return {
        "gateway": digest.gateway if digest else "",
        "sequence": digest.last_sequence if digest else 0,
        "subject": subject,
        "detail": detail,
        "is_of_none": False,
        "hash": None,
    }


def segments_of(engine: "Engine") -> dict[str, dict[str, SegmentFacts]]:
    """What was read of the segments of each trail, by their stems."""
    told: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    query = """SELECT trail, segment, gateway, min(first_sequence) AS lowest, max(last_sequence) AS highest FROM runs
        WHERE is_record GROUP BY trail, segment, gateway"""
    for row in engine.rows(query):
        told.setdefault((row["trail"], row["segment"]), {})[row["gateway"]] = row["lowest"], row["highest"]
    segments: dict[str, dict[str, SegmentFacts]] = {}
    for row in engine.rows("SELECT trail, segment, lines, head FROM segments"):
        stem = row["segment"].partition(".")[0]
        segments.setdefault(row["trail"], {})[stem] = SegmentFacts(
            stem=stem,
            lines=row["lines"],
            head=row["head"],
            is_closed=not row["segment"].endswith(".open"),
            sequences=told.get((row["trail"], row["segment"]), {}),
        )
    return segments


def tell_digests(engine: "Engine", audit_input: "AuditInput") -> None:
    """The step of this control: makes the tables `digests`, a row a file, and `digest_findings`."""
    segments = segments_of(engine)
    trails = [
        TrailToJudge(
            name=name,
            digests=digests,
            segments=segments.get(name, {}),
            copies=(audit_input.copies or {}).get(name),
            due=audit_input.period,
            unread=audit_input.unread.get(name, frozenset()),
            public_key=audit_input.public_key,
        )
        for name, digests in (audit_input.digests or {}).items()
    ]
    found = [row for trail in trails for row in trail.findings()]
    engine.give("digest_findings", pa.Table.from_pylist(found, schema=_COLUMNS))
    rows = [_row(trail.name, file) for trail in trails for file in trail.digests]
    engine.give("digests", pa.Table.from_pylist(rows, schema=_DIGESTS))


def _row(trail: str, file: DigestFile) -> "Row":
    """A digest for rules; where its bytes are none, only its number."""
    row: Row = {"trail": trail, "number": file.number}
    if (digest := file.digest) is not None:
        error_us = max(digest.clock_maximum_error_us, digest.clock_estimated_error_us)
        row |= {"gateway": digest.gateway, "sequence": digest.last_sequence}
        row |= {"clock_state": digest.clock_state, "clock_error_us": error_us}
    return row


CONTROL = Control(
    identifier="integrity.digests",
    title="Signed digests and their segments agree",
    severity=Severity.ERROR,
    source="spark_audit/trail/digest.py; RFC 8032",
    scope=Scope.DIGESTS,
    tested=Tested(what="digests", table="digests"),
    rule=violations("digest_findings", "({required} OR NOT is_of_none)", subject="subject", detail="detail"),
    step=tell_digests,
    parameters=(
        Parameter(
            name="required",
            value=False,
            unit="yes or no",
            meaning="whether closed segments without any digest are a violation",
        ),
    ),
)
