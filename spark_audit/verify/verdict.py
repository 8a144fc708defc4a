"""What a verification says: the verdict, each problem by kind and place, and what the check cannot show."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from spark_audit.period import second_text

#: Records of kind restored that are told one by one.
RESTORATIONS_TOLD: Final = 100
_NOT_KNOWN: Final = "the trail does not know what the store lost"
#: Problems that are told one by one; the rest is counted.
PROBLEMS_TOLD: Final = 100
LIMITS: Final = (
    "What this shows depends on the anchor that was kept elsewhere. Without one the files only agree with each other: "
    "somebody may have written all of them anew, or cut off their end. The first key of the chain of keys shows a "
    "change of anything that was signed before a break-in. The configured key shows only a change by somebody without "
    "that key. No public key shows that digests were cut off the end. A copy of the digests shows it, up to its last "
    "digest, and so does --not-older-than."
)


class Verdict(StrEnum):
    """What the check found; `exit_code` is what a command ends with."""

    ANCHORED = "anchored"
    INTACT = "consistent, not anchored"
    #: Nothing was touched, and something is missing, as a record says that no policy names.
    RESTORED = "restored"
    VIOLATED = "violated"
    NOT_EVALUABLE = "not evaluable"

    @property
    def exit_code(self) -> int:
        return {Verdict.RESTORED: 1, Verdict.VIOLATED: 1, Verdict.NOT_EVALUABLE: 2}.get(self, 0)


class Finding(StrEnum):
    """Kinds of problems, for programs."""

    FOREIGN_LINE = "foreign line"
    CHANGED_LINE = "changed line"
    BROKEN_LINK = "broken link"
    WRONG_SEQUENCE = "wrong sequence"
    WRONG_BATCH = "wrong batch"
    CUT_LINE = "cut line"
    DAMAGED_FILE = "damaged file"
    MISPLACED_SEGMENT = "misplaced segment"
    MISSING_SEGMENT = "missing segment"
    DOUBLED_SEGMENT = "doubled segment"
    SEGMENT_WITHOUT_DIGEST = "segment without digest"
    SEGMENT_UNLIKE_DIGEST = "segment unlike digest"
    MALFORMED_DIGEST = "malformed digest"
    MISSING_DIGEST = "missing digest"
    REPLAYED_DIGEST = "replayed digest"
    BROKEN_DIGEST_LINK = "broken digest link"
    WRONG_KEY = "wrong key"
    WRONG_SIGNATURE = "wrong signature"
    MISSING_COUNTERSIGNATURE = "missing countersignature"
    RENEWED_CHAIN = "renewed chain"
    UNLIKE_COPY = "unlike copy"
    REMOVED_TOO_EARLY = "removed too early"
    STALE_TRAIL = "stale trail"
    WRONG_TIME_STAMP = "wrong time-stamp"
    WRONG_RECEIPT = "wrong receipt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that does not hold. `line` counts from 1, `offset` (bytes, uncompressed) from 0 at its line's begin.

    Line 0 speaks of the whole file.
    """

    finding: Finding
    #: Name of the segment's or digest's file; of the missing one where there is none.
    segment: str
    line: int = 0
    offset: int = 0
    what: str

    def __str__(self) -> str:
        place = f"{self.segment}, line {self.line} (byte {self.offset})" if self.line else self.segment
        return f"{place}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """A record of kind restored: what is missing before it. Numbers are 0 where nothing of theirs is known."""

    #: Its hash: an auditor's policy names it by this.
    record: str
    gateway: str
    event: str
    at_us: int = 0
    first_missing: int = 0
    last_missing: int = 0
    first_missing_batch: int = 0
    last_missing_batch: int = 0
    is_accepted: bool = False

    def __str__(self) -> str:
        return f"restored at {second_text(self.at_us)}, {self.missing}"

    @property
    def missing(self) -> str:
        """What is missing, in words."""
        parts = [
            f"{name} {first} to {last}"
            for name, first, last in (
                ("records", self.first_missing, self.last_missing),
                ("batches", self.first_missing_batch, self.last_missing_batch),
            )
            if last
        ]
        nothing = "with other lines before it than were written" if self.event == "trail_changed" else _NOT_KNOWN
        return f"{' and '.join(parts)} missing" if parts else nothing


class Findings:
    """Gathers problems: the first PROBLEMS_TOLD are kept, all are counted."""

    __slots__ = ("count", "told")

    def __init__(self) -> None:
        self.told: list[Problem] = []
        self.count = 0

    def add(self, finding: Finding, segment: str, what: str, *, line: int = 0, offset: int = 0) -> None:
        """Notes a problem."""
        self.count += 1
        if len(self.told) < PROBLEMS_TOLD:
            self.told.append(Problem(finding=finding, segment=segment, line=line, offset=offset, what=what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result. `problems` begins with the first bad line and is cut; `problem_count` is not."""

    verdict: Verdict
    reason: str
    segments: int
    records: int
    gateways: tuple[str, ...]
    #: Hash of the last record.
    head: str
    #: Number of digests, and the hash of the last one's bytes: it pins all before it.
    digests: int
    digest_head: str
    #: Configured keys, in the order in which each took over: they sign (version 1) or countersign.
    public_keys: tuple[str, ...]
    #: What the trail was held against: "public key", "digests".
    anchors: tuple[str, ...]
    #: Records behind the last segment that has a digest: hash-chained, not signed yet.
    records_without_digest: int
    #: Segments removed by retention, each known by its digest.
    segments_removed: int
    torn_files: tuple[str, ...]
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    problem_count: int
    #: The first RESTORATIONS_TOLD records of kind restored, and how many there are.
    restorations: tuple[Restoration, ...] = ()
    restoration_count: int = 0
    #: The first key of each chain of keys: more than one where a chain was renewed.
    chains: tuple[str, ...] = ()
    #: The time of the last digest, microseconds since 1970 UTC; 0: there is none.
    last_digest_at_us: int = 0
    #: The number of problems that only the auditor's rule finds.
    of_rule: int = 0
    limits: str = LIMITS

    @property
    def faults(self) -> int:
        """The number of problems of the trail itself, without those of the auditor's rule."""
        return self.problem_count - self.of_rule

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Lines and segments first, each file in its place; what digests say of each other behind them."""
    return tuple(sorted(problems, key=lambda problem: (problem.segment.endswith(".digest"), problem.segment)))
