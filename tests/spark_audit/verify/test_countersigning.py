"""Countersignatures that come later: in time, too late, never, and taken out by a forger."""

import hashlib
from pathlib import Path

from spark_audit.verify import Anchor, AuditorsRule, Finding, Verdict, verify
from tests.spark_audit.conftest import ChainedTrail, TrailBuilder, signing_key

HOUR_US = 3_600_000_000
#: The end of the time that the first digest speaks of.
FIRST_US = 1_795_158_900_000_000
LATER_US = FIRST_US + HOUR_US
#: What follows the first digest of a trail whose countersignatures come later, and what verify finds.
LATE: dict[str, tuple[list[dict[str, object]], list[Finding]]] = {
    "nothing yet": ([], []),
    "in time": ([{"countersigned_number": 1}], []),
    "of a later digest": ([{}, {"countersigned_number": 2}], []),
    "the first an hour late": (
        [{"until_us": LATER_US}, {"countersigned_number": 1}],
        [Finding.MISSING_COUNTERSIGNATURE],
    ),
    "the first in the last moment": ([{"until_us": LATER_US - 1}, {"countersigned_number": 1}], []),
    "the first itself too late": (
        [{"countersigned_number": 1, "until_us": LATER_US}],
        [Finding.MISSING_COUNTERSIGNATURE],
    ),
    "the second a day late": (
        [
            {"countersigned_number": 1},
            {"until_us": LATER_US},
            {"until_us": FIRST_US + 24 * HOUR_US},
            {"countersigned_number": 3},
        ],
        [],
    ),
    "never": ([{"until_us": LATER_US}], [Finding.MISSING_COUNTERSIGNATURE]),
    "the second never": (
        [{"countersigned_number": 1}, {"until_us": LATER_US}, {"until_us": LATER_US + HOUR_US}],
        [Finding.MISSING_COUNTERSIGNATURE],
    ),
    "a clock that goes back behind the hour": (
        [{"until_us": LATER_US}, {"until_us": FIRST_US}],
        [Finding.MISSING_COUNTERSIGNATURE],
    ),
    "in the place, and then not": ([{"in_place": True}, {}], []),
    "of a key that is said to move": ([{"key_place": "file", "in_place": True}], [Finding.WRONG_SIGNATURE]),
    "by another key": ([{"countersigned_number": 1, "by": signing_key(9)}], [Finding.WRONG_SIGNATURE]),
    "of a digest to come": ([{"countersigned_number": 2}], [Finding.WRONG_SIGNATURE]),
    "of a digest that had one": (
        [{"countersigned_number": 1}, {}, {"countersigned_number": 1}],
        [Finding.WRONG_SIGNATURE],
    ),
}


def late_trail(folder: Path, fields: list[dict[str, object]]) -> ChainedTrail:
    """A trail whose configured key is a token's: its first digest has no countersignature in its place."""
    trail = ChainedTrail(TrailBuilder(folder), signing_key(1))
    trail.countersign, trail.version, trail.key_place = False, 3, "pkcs11"
    trail.records(2)
    trail.close()
    for each in fields:
        told = dict(each)
        is_late, own = "countersigned_number" in told, trail.key
        trail.key, is_in_place = told.pop("by", own), bool(told.pop("in_place", False))
        kind = "countersignature" if is_late else "interval"
        trail.digest(
            kind, countersign=is_late or is_in_place, countersigner=own.public_key().public_bytes_raw().hex(), **told
        )
        trail.key = own
    return trail


def _findings(folder: Path) -> list[Finding]:
    return [problem.finding for problem in verify(folder).problems]


def test_a_countersignature_may_come_later_and_not_too_late(tmp_path) -> None:
    for number, (case, (fields, found)) in enumerate(LATE.items()):
        trail = late_trail(tmp_path / str(number) / "trail", fields)
        assert _findings(trail.folder) == found, case


def test_a_late_countersignature_anchors_the_configured_key(tmp_path) -> None:
    trail = late_trail(tmp_path / "trail", [{}, {"countersigned_number": 1}])
    assert verify(trail.folder, Anchor(public_key=trail.public_key)).verdict is Verdict.ANCHORED
    bare = late_trail(tmp_path / "bare" / "trail", [{}])
    assert verify(bare.folder, Anchor(public_key=bare.public_key)).verdict is Verdict.VIOLATED


def test_a_key_in_a_file_has_no_hour(tmp_path) -> None:
    trail = ChainedTrail(TrailBuilder(tmp_path / "trail"), signing_key(1))
    trail.version, trail.countersign = 3, False
    trail.records(2)
    trail.close()
    assert _findings(trail.folder) == [Finding.MISSING_COUNTERSIGNATURE]


def test_nothing_anchors_a_trail_before_the_first_countersignature_of_its_token(tmp_path) -> None:
    """A forger who could write before it has taken it out, and ended the trail within the hour."""
    trail = late_trail(tmp_path / "trail", [{"until_us": LATER_US - 1}])
    first_key, copies = trail.public_key_of(1), Anchor.read(digests=trail.digests)
    for anchor in (Anchor(public_key=first_key), copies):
        result = verify(trail.folder, anchor)
        assert result.verdict is Verdict.INTACT
        assert "anchored by nothing: not countersigned since 2026-11-20T07:15:00Z (digest 1)" in result.reason
    assert any("not countersigned since" in note for note in verify(trail.folder).notes)
    trail.digest("countersignature", countersigned_number=2, countersign=True)
    for anchor in (Anchor(public_key=first_key), Anchor.read(digests=trail.digests)):
        assert verify(trail.folder, anchor).verdict is Verdict.ANCHORED


def test_the_auditors_clock_ends_the_hour_of_a_trail_that_ended_before(tmp_path) -> None:
    trail = late_trail(tmp_path / "trail", [{}])

    def told(after_us: int) -> list[Finding]:
        rule = AuditorsRule(not_older_than_us=10 * HOUR_US, now_us=FIRST_US + after_us)
        return [problem.finding for problem in verify(trail.folder, rule=rule).problems]

    trail.digest("interval", countersign=False, until_us=LATER_US - 1)
    assert told(10 * HOUR_US) == []
    assert told(10 * HOUR_US + 1) == [Finding.STALE_TRAIL]
    trail.digest("countersignature", countersigned_number=2, countersign=True, until_us=LATER_US - 1)
    assert told(10 * HOUR_US + 1) == []


def test_a_first_countersignature_that_came_too_late_may_be_named_by_a_policy(tmp_path) -> None:
    trail = late_trail(tmp_path / "trail", [{"until_us": LATER_US + HOUR_US}, {"countersigned_number": 1}])
    named = hashlib.sha256((trail.digests / f"{3:012d}.digest").read_bytes()).hexdigest()
    reason = verify(trail.folder).reason
    assert "not countersigned since 2026-11-20T07:15:00Z" in reason
    assert "came 120 minutes after digest 1" in reason
    assert f'record = "{named}"' in reason
    result = verify(trail.folder, accepted=frozenset({named}))
    assert result.verdict is Verdict.INTACT
    assert any(
        "1 countersignature came more than an hour late, the latest 120 minutes" in note for note in result.notes
    )


def test_a_token_countersigns_within_an_hour_of_the_rotation_that_brought_it(tmp_path) -> None:
    for number, (after_us, found) in enumerate(((HOUR_US - 1, []), (HOUR_US, [Finding.MISSING_COUNTERSIGNATURE]))):
        trail = ChainedTrail(TrailBuilder(tmp_path / str(number) / "trail"), signing_key(1))
        trail.version = 3
        trail.records(2)
        trail.close()
        trail.rotate(signing_key(2))
        trail.key_place, trail.countersign = "pkcs11", False
        assert verify(trail.folder, Anchor(public_key=trail.public_key_of(1))).verdict is Verdict.ANCHORED
        trail.digest("countersignature", countersigned_number=2, countersign=True, until_us=FIRST_US + after_us)
        assert _findings(trail.folder) == found
