"""An audit over several gateways, over a period, and of compressed segments: what is judged, and what is pending."""

import shutil
from pathlib import Path

from spark_audit.audit_input import input_of_trails
from spark_audit.period import EVERYTHING, Period
from spark_audit.read import trail_files
from spark_audit.result import AuditResult, ControlStatus, Verdict
from spark_audit.verify import verify
from tests.spark_audit.conftest import GATEWAY, SignedTrail, TrailBuilder, audited, policy_of, signing_key

OTHER_GATEWAY = "ff" * 12
#: 2026-11-20 07:00 UTC.
SEVEN_US = 1_795_158_000_000_000
DAY_US = 86_400_000_000
IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}
INTEGRITY = ("integrity.lines", "integrity.hash", "integrity.chain", "integrity.sequence", "integrity.batch")


def _audited(scratch: Path, *folders: Path, controls: tuple[str, ...], period: Period = EVERYTHING) -> AuditResult:
    scratch.mkdir(exist_ok=True)
    audit_input = input_of_trails(
        [trail_files(folder, scratch, period=period) for folder in folders],
        period=period,
        verifications=tuple(verify(folder) for folder in folders),
    )
    return audited(audit_input, scratch, policy=policy_of(*controls))


def _violations(result: AuditResult) -> dict[str, list[tuple[str, int]]]:
    return {
        control.identifier: [(each.gateway, each.sequence) for each in control.sample]
        for control in result.controls
        if control.violations
    }


def test_segments_of_the_same_name_are_those_of_their_gateways(tmp_path: Path) -> None:
    """Two trails are whole, and the third lacks a segment that each of the others has."""
    folders: list[Path] = []
    for gateway in (GATEWAY, OTHER_GATEWAY, "fe" * 12):
        signed = SignedTrail(TrailBuilder(tmp_path / gateway / "trail"), signing_key(len(folders)), gateway)
        for _segment in range(2):
            signed.trail.add("accepted", gateway=gateway, exchange=signed.trail.sequence + 1, **IN)
            signed.trail.add("put", gateway=gateway, exchange=signed.trail.sequence, **IN)
            signed.close()
        folders.append(signed.folder)
    (folders[1] / "000000000001-20261120T07.jsonl").unlink()
    controls = (*INTEGRITY, "integrity.digests", "integrity.agreement", "conservation")
    found = _audited(tmp_path / "scratch", *folders, controls=controls)
    assert (found.scope.gateway_count, found.scope.segment_count) == (3, 5)
    violations = _violations(found)
    assert violations["integrity.sequence"] == [(OTHER_GATEWAY, 3)]
    assert {gateway for told in violations.values() for gateway, _sequence in told} == {OTHER_GATEWAY}
    assert "integrity.agreement" not in violations, "verify finds the missing segment too"


def test_a_trail_and_the_one_that_begins_late_behind_it_are_a_gap_and_no_doubles(tmp_path: Path) -> None:
    """The remedy for a lost key: the same gateway numbers its records from 1 again, in a new folder."""
    before, later = (TrailBuilder(tmp_path / name / "trail") for name in ("before", "later"))
    for batch in (1, 2):
        before.add("accepted", batch=batch, exchange=batch, **IN)
        before.add("put", batch=batch, exchange=batch, **IN)
    later.add("restored", batch=4, event="trail_begun_late", first_missing_batch=1, last_missing_batch=4)
    later.add("accepted", batch=5, exchange=3, **IN)
    later.add("put", batch=5, exchange=3, **IN)
    folders = [trail.write() for trail in (before, later)]
    controls = (*INTEGRITY, "integrity.restored", "integrity.agreement", "conservation")
    found = _audited(tmp_path / "scratch", *folders, controls=controls)
    assert _violations(found) == {"integrity.restored": [(GATEWAY, 1)]}
    shutil.copytree(folders[0], tmp_path / "copy" / "trail")
    doubled = _audited(tmp_path / "scratch", folders[0], tmp_path / "copy" / "trail", controls=("integrity.sequence",))
    assert _violations(doubled)["integrity.sequence"], "a trail and its copy are doubles"


def test_what_is_open_at_the_edges_of_a_period_is_pending(trail, tmp_path: Path) -> None:
    def segment(day: int) -> None:
        trail.write(f"{day:012d}-202611{19 + day}T07.jsonl")
        trail.lines.clear()

    for day in range(1, 8):
        at = {"at_us": SEVEN_US + (day - 1) * DAY_US}
        if day == 1:
            trail.add("accepted", exchange=1, **IN, **at)
            trail.add("put", exchange=1, **IN, **at)
        if day in (2, 4, 6):  # acknowledged, and never put: before, within and after the period
            trail.add("confirmed", exchanges=[[90 + day, 90 + day]], **(IN | {"packet_type": 4}), **at)
        if day == 4:
            trail.add("confirmed", exchanges=[[1, 1]], **(IN | {"packet_type": 4}), **at)
            trail.add("accepted", exchange=2, **IN, **at)
        if day == 7:
            trail.add("put", exchange=2, **IN, **at)
        trail.add("session", client="boiler", session_epoch=1, event="resumed", **at)
        segment(day)
    period = Period(from_us=SEVEN_US + 3 * DAY_US - 1, until_us=SEVEN_US + 3 * DAY_US + 1)
    controls = (*INTEGRITY, "integrity.agreement", "qos.1", "conservation")
    result = _audited(tmp_path / "scratch", trail.folder, controls=controls, period=period)
    numbers = {control: [sequence for _gateway, sequence in told] for control, told in _violations(result).items()}
    assert numbers == {"qos.1": [7], "conservation": [9]}
    assert (result.scope.segment_count, result.scope.from_us, result.scope.until_us) == (
        3,
        period.from_us,
        period.until_us,
    )
    (agreement,) = (each for each in result.controls if each.identifier == "integrity.agreement")
    assert agreement.status is ControlStatus.NOT_EVALUABLE
    nothing = Period(from_us=SEVEN_US + DAY_US // 2, until_us=SEVEN_US + DAY_US // 2 + 1)
    assert _audited(tmp_path / "scratch", trail.folder, controls=(), period=nothing).verdict.exit_code == 2


def test_compressed_segments_are_the_same_trail_and_those_that_retention_removed_no_gap(
    signed: SignedTrail, tmp_path: Path
) -> None:
    for _segment in range(4):
        signed.records(2)
        signed.close()
    signed.remove(1)
    signed.compress(2)
    signed.compress(3, ending=".jsonl.gz")
    controls = (*INTEGRITY, "integrity.digests", "integrity.agreement")
    result = _audited(tmp_path / "scratch", signed.folder, controls=controls)
    assert (_violations(result), result.verdict, result.scope.records) == ({}, Verdict.CLEAN, 6)
