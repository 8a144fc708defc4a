"""The auditor's own rule: what was removed too early, and a trail that was cut at a digest, however well it agrees."""

import shutil
from pathlib import Path

import pytest

from spark_audit.verify import Anchor, AuditorsRule, Finding, Verdict, Verification, verify
from spark_audit.verify.auditors_rule import UnusableRule, rule_of
from tests.every_case import for_every

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
#: When the segments of these tests end, as conftest.py writes their digests.
ENDED_US = 1_795_158_900_000_000


def _judged(folder: Path, **asked: int) -> Verification:
    return verify(folder, rule=AuditorsRule(**({"now_us": ENDED_US + 1_000 * DAY_US} | asked)))


def _found(result: Verification) -> list[tuple[Finding, str]]:
    return [(each.finding, each.segment) for each in result.problems]


@pytest.fixture
def three(signed):
    """Three closed segments."""
    for _ in range(3):
        signed.records(2)
        signed.close()
    return signed


def _removed(trail, segment: int, after_us: int) -> None:
    """Removes the segments up to a number, and says that it did so at a time after their end."""
    at_us = ENDED_US + after_us
    trail.digest("retention", segment=trail.segments[segment - 1], from_us=at_us, until_us=at_us)
    for stem in trail.segments[:segment]:
        (trail.folder / f"{stem}.jsonl").unlink(missing_ok=True)


def test_segments_that_were_kept_long_enough_are_no_finding(three) -> None:
    _removed(three, 2, 365 * DAY_US)
    assert _judged(three.folder, keep_at_least_us=365 * DAY_US).verdict is Verdict.INTACT


def test_segments_that_were_removed_too_early_are_named_by_the_digest_that_says_so(three) -> None:
    _removed(three, 1, 365 * DAY_US)
    _removed(three, 3, 90 * DAY_US)
    result = _judged(three.folder, keep_at_least_us=365 * DAY_US)
    assert _found(result) == [(Finding.REMOVED_TOO_EARLY, "digests/000000000005.digest")]
    assert result.reason.endswith("90 days after the last record in them; the rule asks for 365 days")
    assert (result.verdict, verify(three.folder).verdict) == (Verdict.VIOLATED, Verdict.INTACT)


def test_a_removal_is_announced_too_early_although_the_files_are_still_there(three) -> None:
    three.digest("retention", segment=three.segments[0], from_us=ENDED_US, until_us=ENDED_US)
    assert _found(_judged(three.folder, keep_at_least_us=DAY_US))[0][0] is Finding.REMOVED_TOO_EARLY


def test_a_removal_in_a_time_to_come_counts_as_one_of_now(three) -> None:
    _removed(three, 2, 400 * DAY_US)
    result = _judged(three.folder, keep_at_least_us=365 * DAY_US, now_us=ENDED_US + 3 * DAY_US)
    assert _found(result) == [(Finding.REMOVED_TOO_EARLY, "digests/000000000004.digest")]
    assert "3 days after" in result.reason


def test_a_retention_that_removes_nothing_more_is_no_finding(three) -> None:
    _removed(three, 2, 365 * DAY_US)
    three.digest("retention", segment=three.segments[1], from_us=ENDED_US, until_us=ENDED_US)
    assert _judged(three.folder, keep_at_least_us=365 * DAY_US).verdict is Verdict.INTACT


def test_a_fresh_trail_is_no_finding_and_tells_its_time(three) -> None:
    result = _judged(three.folder, not_older_than_us=DAY_US, now_us=ENDED_US + DAY_US)
    assert (result.verdict, result.last_digest_at_us) == (Verdict.INTACT, ENDED_US)


def test_a_trail_that_was_cut_at_a_digest_is_stale(three) -> None:
    three.digest("interval", from_us=ENDED_US, until_us=ENDED_US + DAY_US)
    asked = {"not_older_than_us": DAY_US, "now_us": ENDED_US + DAY_US + SECOND_US}
    assert _judged(three.folder, **asked).verdict is Verdict.INTACT
    (three.digests / "000000000004.digest").unlink()
    result = _judged(three.folder, **asked)
    assert _found(result) == [(Finding.STALE_TRAIL, "digests/000000000003.digest")]
    assert "the last digest is of 2026-11-20T07:15:00Z, 24 hours ago, and 24 hours may be" in result.reason
    assert verify(three.folder, Anchor(public_key=three.public_key)).verdict is Verdict.ANCHORED
    strict = _judged(three.folder, not_older_than_us=SECOND_US, now_us=ENDED_US + 3 * SECOND_US)
    assert "3 seconds ago, and 1 second may be" in strict.reason


def test_a_digest_of_a_time_to_come_does_not_make_a_trail_fresh(three) -> None:
    asked = {"not_older_than_us": DAY_US}
    assert _judged(three.folder, **asked, now_us=ENDED_US - 299 * SECOND_US).verdict is Verdict.INTACT
    result = _judged(three.folder, **asked, now_us=ENDED_US - 301 * SECOND_US)
    assert (result.verdict, result.problems[0].finding) == (Verdict.VIOLATED, Finding.STALE_TRAIL)
    assert "which is still to come" in result.reason


def test_a_trail_without_a_digest_is_stale(signed) -> None:
    signed.records(2)
    signed.write(".open")
    assert _found(_judged(signed.folder, not_older_than_us=DAY_US)) == [(Finding.STALE_TRAIL, "digests")]


def test_a_removal_that_goes_further_than_its_own_setting_is_found_without_a_rule(chained) -> None:
    for _ in range(3):
        chained.records(2)
        chained.close()
    for removed, days in ((1, 90), (2, 89)):
        at_us = ENDED_US + days * DAY_US
        told = {"keep_us": 90 * DAY_US, "allowed_by": "audit.keep_days = 90", "countersign": True}
        chained.digest("retention", segment=chained.segments[removed - 1], from_us=at_us, until_us=at_us, **told)
        (chained.folder / f"{chained.segments[removed - 1]}.jsonl").unlink()
    result = verify(chained.folder)
    assert _found(result) == [(Finding.REMOVED_TOO_EARLY, "digests/000000000005.digest")]
    assert "by its own words (audit.keep_days = 90) it is 90 days" in result.reason
    assert (result.problem_count, result.of_rule, result.faults) == (1, 1, 0)


def test_a_segment_whose_removal_no_digest_announced_is_told_by_the_copies(three, tmp_path: Path) -> None:
    copies = shutil.copytree(three.digests, tmp_path / "copies")
    _removed(three, 1, 365 * DAY_US)
    announced = verify(three.folder, Anchor.read(digests=Path(copies)))
    assert announced.verdict is Verdict.ANCHORED
    for number in (1, 2, 3, 4):
        (three.digests / f"{number:012d}.digest").unlink()
    result = verify(three.folder, Anchor.read(digests=Path(copies)))
    (missing,) = (each for each in result.problems if each.finding is Finding.MISSING_SEGMENT)
    assert missing.what == "it is missing; digest 1 is of it, and no digest announced its removal"


def test_a_policy_holds_the_rule() -> None:
    rule = rule_of({"trail": {"keep_at_least_days": 365, "not_older_than_hours": 1.5}})
    assert (rule.keep_at_least_us, rule.not_older_than_us) == (365 * DAY_US, 5_400 * SECOND_US)
    assert rule_of({"trail": {"not_older_than_hours": 2}}).keep_at_least_us == 0
    assert rule_of({}) == AuditorsRule()


UNUSABLE: dict[str, tuple[object, str]] = {
    "no table": (3, r"write \[trail\]"),
    "an unknown key": ({"keep_days": 3}, "trail has no key keep_days: write keep_at_least_days and"),
    "a text": ({"keep_at_least_days": "3d"}, "trail.keep_at_least_days is '3d': write a number"),
    "a truth": ({"keep_at_least_days": True}, "write a number that is more than 0"),
    "nothing": ({"not_older_than_hours": 0}, "write a number that is more than 0"),
    "no number": ({"not_older_than_hours": float("nan")}, "write a number that is more than 0"),
    "too much": ({"not_older_than_hours": float("inf")}, "write a number that is more than 0"),
}


@for_every(UNUSABLE)
def test_a_rule_that_cannot_be_used_says_what_to_write(case: tuple[object, str]) -> None:
    table, words = case
    with pytest.raises(UnusableRule, match=words):
        rule_of({"trail": table})
