"""What the check without Spark says, as a part of the result."""

from spark_audit.result import Integrity, IntegrityProblem
from spark_audit.verify import Verification


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
        limits=verification.limits,
    )
