"""Integrity of a trail, offline: no Spark, no gateway, no network, nothing but the files.

Checked are, for every line in the order in which it stands: its own hash, its link to the line before, its sequence and
batch number; and for the folder: segments numbered without gaps, closed ones ending in a whole line, torn bytes named.

A chain alone does not show that whole lines were cut off its end, nor that a whole trail was written anew; the result
says so in `limits`. Verdicts: intact, violated, not evaluable (nothing to read, unreadable, or of an unknown version).
"""

import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import orjson

from spark_audit.record import RECORD_VERSION, ZERO_HASH, line_hashes

#: Problems that are told one by one; the rest is counted.
PROBLEMS_TOLD: Final = 100
LIMITS: Final = (
    "A hash chain shows edits, deletions, insertions and swaps. It does not show whole lines cut off the end of the "
    "trail, nor a trail written anew from its first line: compare the head hash with one that was noted elsewhere."
)
_SEGMENT: Final = re.compile(r"([0-9]{12})-[0-9]{8}T[0-9]{2}\.(open|jsonl)")


class Verdict(StrEnum):
    """What the check found; `exit_code` is what a command ends with."""

    INTACT = "intact"
    VIOLATED = "violated"
    NOT_EVALUABLE = "not evaluable"

    @property
    def exit_code(self) -> int:
        return {Verdict.INTACT: 0, Verdict.VIOLATED: 1, Verdict.NOT_EVALUABLE: 2}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that does not hold. `line` counts from 1; 0 speaks of the whole file."""

    segment: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.segment}, line {self.line}: {self.what}" if self.line else f"{self.segment}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result. `problems` begins with the first bad line and is cut at PROBLEMS_TOLD; `problem_count` is not."""

    verdict: Verdict
    reason: str
    segments: int
    records: int
    gateways: tuple[str, ...]
    head: str
    problems: tuple[Problem, ...]
    problem_count: int
    torn_files: tuple[str, ...]
    limits: str = LIMITS

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True)
class _Position:
    """Where a gateway's records have come to."""

    sequence: int = 0
    batch: int = 0


@dataclass(slots=True)
class _Walk:
    """What is known while the lines go by."""

    head: str = ZERO_HASH
    records: int = 0
    segments: int = 0
    unknown_versions: int = 0
    positions: dict[str, _Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0

    def report(self, segment: str, line: int, what: str) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_TOLD:
            self.problems.append(Problem(segment=segment, line=line, what=what))


def verify(trail_dir: Path) -> Verification:
    """Checks the trail in a folder. Never raises for what the files hold; what cannot be read is not evaluable."""
    walk = _Walk()
    try:
        names = sorted(path.name for path in trail_dir.iterdir())
        segments = [name for name in names if _SEGMENT.fullmatch(name)]
        _check_names(walk, segments)
        for name in segments:
            _check_segment(walk, trail_dir / name)
    except OSError as error:
        reason = f"{error.filename or trail_dir} cannot be read: {error.strerror}"
        return _result(walk, Verdict.NOT_EVALUABLE, reason, [])
    verdict, reason = _verdict(walk)
    return _result(walk, verdict, reason, [name for name in names if name.endswith(".torn")])


def _result(walk: _Walk, verdict: Verdict, reason: str, torn: list[str]) -> Verification:
    return Verification(
        verdict=verdict,
        reason=reason,
        segments=walk.segments,
        records=walk.records,
        gateways=tuple(walk.positions),
        head=walk.head,
        problems=tuple(walk.problems),
        problem_count=walk.problem_count,
        torn_files=tuple(torn),
    )


def _verdict(walk: _Walk) -> tuple[Verdict, str]:
    if not walk.segments:
        return Verdict.NOT_EVALUABLE, "there is no segment: the trail is empty, or this is not a trail"
    if not walk.records:
        return Verdict.NOT_EVALUABLE, "no line is an audit record"
    if walk.unknown_versions:
        return (
            Verdict.NOT_EVALUABLE,
            f"{walk.unknown_versions} records have another version than {RECORD_VERSION}: use the program of theirs",
        )
    if walk.problem_count:
        return Verdict.VIOLATED, str(walk.problems[0])
    return Verdict.INTACT, f"{walk.records} records, every hash, link and number holds"


def _check_names(walk: _Walk, segments: list[str]) -> None:
    """Segments are numbered from 1 without gaps, and only the last may be open."""
    for expected, name in enumerate(segments, start=1):
        if int(name[:12]) != expected:
            walk.report(name, 0, f"segment {expected} was expected here: a segment is missing or was added")
            return
    for name in segments[:-1]:
        if name.endswith(".open"):
            walk.report(name, 0, "an open segment stands before later ones")


def _check_segment(walk: _Walk, path: Path) -> None:
    walk.segments += 1
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                if path.suffix != ".open":
                    walk.report(path.name, number, "the line has no end: the segment was cut")
                return  # the last bytes of an open segment are a line that is being written
            _check_line(walk, path.name, number, line[:-1])


def _check_line(walk: _Walk, segment: str, number: int, line: bytes) -> None:
    hashes = line_hashes(line)
    record = _record_of(line)
    if hashes is None or record is None:
        walk.report(segment, number, "the line is not an audit record with its hash at the end")
        return
    walk.records += 1
    if record.get("version") != RECORD_VERSION:
        walk.unknown_versions += 1
    borne, actual = hashes
    if borne != actual:
        walk.report(segment, number, f"the line's bytes have hash {actual}, it bears {borne}: it was changed")
    elif record.get("prev") != walk.head:
        walk.report(segment, number, f"prev is not the hash of the record before, {walk.head}")
    walk.head = borne
    _check_numbers(walk, segment, number, record)


def _record_of(line: bytes) -> dict[str, object] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _check_numbers(walk: _Walk, segment: str, number: int, record: dict[str, object]) -> None:
    gateway, sequence, batch = record.get("gateway"), record.get("sequence"), record.get("batch")
    if not isinstance(gateway, str) or not isinstance(sequence, int) or not isinstance(batch, int):
        walk.report(segment, number, "gateway, sequence or batch is missing")
        return
    position = walk.positions.setdefault(gateway, _Position())
    if sequence != position.sequence + 1:
        walk.report(segment, number, f"sequence {sequence} stands where {position.sequence + 1} was due")
    elif batch not in {max(position.batch, 1), position.batch + 1}:
        walk.report(segment, number, f"batch {batch} follows batch {position.batch}")
    position.sequence, position.batch = sequence, batch
