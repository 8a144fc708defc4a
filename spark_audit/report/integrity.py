"""The result of the check without Spark, as a part of the audit's result."""

from dataclasses import replace

from spark_audit.result import Integrity, IntegrityGap, IntegrityProblem, counted
from spark_audit.verify import Verdict, Verification

#: The worst first.
_ORDER = (Verdict.VIOLATED, Verdict.NOT_EVALUABLE, Verdict.RESTORED, Verdict.INTACT, Verdict.ANCHORED)


def integrity_of_all(trails: tuple[str, ...], verifications: tuple[Verification, ...]) -> Integrity:
    """Several trails as one: the worst verdict, the sums, and problems with the names of their trails."""
    if not verifications:
        return Integrity(reason="the check without Spark needs the trail itself")
    parts = [integrity_of(each) for each in verifications]
    if len(parts) == 1:
        return parts[0]
    worst = min(range(len(parts)), key=lambda place: _ORDER.index(verifications[place].verdict))
    named = list(zip(trails, parts, strict=True))
    return replace(
        parts[worst],
        reason=f"{trails[worst]}: {parts[worst].reason}",
        anchors=(),
        segments=sum(part.segments for part in parts),
        segments_removed=sum(part.segments_removed for part in parts),
        digests=sum(part.digests for part in parts),
        records=sum(part.records for part in parts),
        records_without_digest=sum(part.records_without_digest for part in parts),
        head="",
        digest_head="",
        last_digest_at_us=min(part.last_digest_at_us for part in parts),
        public_keys=tuple(key for part in parts for key in part.public_keys),
        notes=(counted(len(parts), "trail"), *(f"{name}: {note}" for name, part in named for note in part.notes)),
        problems=tuple(
            replace(problem, segment=f"{name}/{problem.segment}") for name, part in named for problem in part.problems
        ),
        problem_count=sum(part.problem_count for part in parts),
        gaps=tuple(replace(gap, what=f"{name}: {gap.what}") for name, part in named for gap in part.gaps),
        gap_count=sum(part.gap_count for part in parts),
    )


def integrity_of(verification: Verification) -> Integrity:
    """The same verdict, counts and problems, for result.json."""
    return Integrity(
        verdict=verification.verdict.value,
        reason=verification.reason,
        anchors=verification.anchors,
        segments=verification.segments,
        segments_removed=verification.segments_removed,
        digests=verification.digests,
        records=verification.records,
        records_without_digest=verification.records_without_digest,
        head=verification.head,
        digest_head=verification.digest_head,
        last_digest_at_us=verification.last_digest_at_us,
        public_keys=verification.public_keys,
        notes=verification.notes,
        problems=tuple(
            IntegrityProblem(
                finding=problem.finding.value,
                segment=problem.segment,
                line=problem.line,
                offset=problem.offset,
                what=problem.what,
            )
            for problem in verification.problems
        ),
        problem_count=verification.problem_count,
        gaps=tuple(
            IntegrityGap(record=gap.record, gateway=gap.gateway, what=str(gap), is_accepted=gap.is_accepted)
            for gap in verification.restorations
        ),
        gap_count=verification.restoration_count,
        limits=verification.limits,
    )
