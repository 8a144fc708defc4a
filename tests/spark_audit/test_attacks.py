"""Each way to falsify a trail is found by `verify` and by the controls of integrity on Spark, with the same anchor."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_audit.audit_input import input_of_trails
from spark_audit.controls.control import Scope
from spark_audit.controls.integrity import OF_INTEGRITY
from spark_audit.judgement import Judgement
from spark_audit.policy import Policy
from spark_audit.policy_scope import PolicyScope
from spark_audit.read import trail_files
from spark_audit.verify import Anchor, Verdict, verify
from tests.spark_audit.conftest import SignedTrail, TrailBuilder, signing_key

PER_SEGMENT: Final = 4
NOTHING: Final = Anchor()

Rows = list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the auditor kept elsewhere before the attack."""

    key: Anchor
    copies: Anchor


def _fill(signed: SignedTrail, client: str = "boiler") -> SignedTrail:
    """Three segments with their digests, and a quiet time (digest 3) before the last."""
    for number in (1, 2, 3):
        for _ in range(PER_SEGMENT):
            signed.trail.add("accepted", client=client, message_id=f"{signed.trail.sequence + 1:048x}")
        if number == 3:
            signed.digest("interval")
        signed.close()
    return signed


@pytest.fixture
def whole(signed: SignedTrail) -> SignedTrail:
    """A trail that nobody touched yet."""
    return _fill(signed)


@pytest.fixture
def kept(whole: SignedTrail, tmp_path: Path) -> Kept:
    """The public key and a copy of the digests."""
    copies = shutil.copytree(whole.digests, tmp_path / "kept")
    return Kept(key=Anchor(public_key=whole.public_key), copies=Anchor.read(digests=copies))


def _segment(signed: SignedTrail, number: int) -> Path:
    return signed.folder / f"{signed.segments[number - 1]}.jsonl"


def _lines(number: int, change: Callable[[Rows], Rows]) -> Callable[[SignedTrail], None]:
    """Changes the lines of a segment."""

    def touch(signed: SignedTrail) -> None:
        path = _segment(signed, number)
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return touch


def _dropped(segment: int, *digests: int) -> Callable[[SignedTrail], None]:
    def touch(signed: SignedTrail) -> None:
        _segment(signed, segment).unlink()
        for number in digests:
            (signed.digests / f"{number:012d}.digest").unlink()

    return touch


def _chain_anew(signed: SignedTrail) -> None:
    """Another history with a chain that holds, under the digests of the true one."""
    head = "0" * 64
    for number in (1, 2, 3):
        anew = b""
        for line in _segment(signed, number).read_bytes().replace(b"boiler", b"cooler").splitlines():
            record = json.loads(line)
            del record["hash"]
            text = json.dumps(record | {"prev": head}, separators=(",", ":")).encode()
            head = hashlib.sha256(text).hexdigest()
            anew += text[:-1] + b',"hash":"' + head.encode() + b'"}\n'
        _segment(signed, number).write_bytes(anew)


def _all_anew(key: int) -> Callable[[SignedTrail], None]:
    """Another history with all that belongs to it, signed with a key."""

    def touch(signed: SignedTrail) -> None:
        shutil.rmtree(signed.folder)
        _fill(SignedTrail(TrailBuilder(signed.folder), signing_key(key)), client="cooler")

    return touch


def _replayed(old: int, number: int) -> Callable[[SignedTrail], None]:
    def touch(signed: SignedTrail) -> None:
        shutil.copyfile(signed.digests / f"{old:012d}.digest", signed.digests / f"{number:012d}.digest")

    return touch


#: What is done, and what the auditor needs to have kept: nothing, the key, or the copies.
ATTACKS: dict[str, tuple[Callable[[SignedTrail], None], str]] = {
    "edit": (_lines(2, lambda rows: [*rows[:2], rows[2].replace(b"boiler", b"cooler"), rows[3]]), ""),
    "delete": (_lines(2, lambda rows: rows[:1] + rows[2:]), ""),
    "delete the first line of all": (_lines(1, lambda rows: rows[1:]), ""),
    "double": (_lines(2, lambda rows: [*rows[:2], *rows[1:]]), ""),
    "swap": (_lines(2, lambda rows: [rows[0], rows[2], rows[1], rows[3]]), ""),
    "cut the tail": (_lines(3, lambda rows: rows[:-1]), ""),
    "cut the tail within a line": (_lines(3, lambda rows: [*rows[:-1], rows[-1][:-20]]), ""),
    "drop the first segment": (_dropped(1), ""),
    "drop a segment in the middle": (_dropped(2), ""),
    "drop the last segment": (_dropped(3), ""),
    "drop a segment with its digest": (_dropped(2, 2), ""),
    "drop the last segment with its digest": (_dropped(3, 4), "copies"),
    "go back to an old state": (_dropped(3, 3, 4), "copies"),
    "replace all, with a chain anew": (_chain_anew, ""),
    "replace all, signed by another key, against the key": (_all_anew(2), "key"),
    "replace all, signed by another key, against the copies": (_all_anew(2), "copies"),
    "replace all, signed by the stolen key": (_all_anew(1), "copies"),
    "replay an old digest": (_replayed(1, 4), ""),
    "replay an old digest of a quiet time": (_replayed(3, 4), ""),
    "replay an old digest behind the last": (_replayed(4, 5), ""),
}


def _found_by_spark(spark: SparkSession, signed: SignedTrail, scratch: Path, anchor: Anchor) -> dict[str, int]:
    """Violations of each control of integrity that found any, the agreement with `verify` among them."""
    scratch.mkdir(exist_ok=True)
    checked = verify(signed.folder, anchor)
    audit_input = input_of_trails(spark, [trail_files(signed.folder, scratch)], anchor=anchor, verifications=(checked,))
    lines = audit_input.lines.persist()
    frames = {Scope.LINES: lines, Scope.RECORDS: lines.where("is_record")}
    judgement = Judgement(
        spark=spark, audit_input=audit_input, frames=frames, scope=PolicyScope(), progress=lambda _line: None
    )
    with closing(judgement):
        for control in Policy().controls():
            if control.identifier in (*OF_INTEGRITY, "integrity.agreement"):
                judgement.judge(control)
    lines.unpersist()
    return {result.identifier: result.violations for result, _ in judgement.found if result.violations}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_found_by_verify_and_by_spark(
    spark: SparkSession, whole: SignedTrail, kept: Kept, tmp_path: Path, attack: str
) -> None:
    touch, needed = ATTACKS[attack]
    anchor = {"": NOTHING, "key": kept.key, "copies": kept.copies}[needed]
    touch(whole)
    assert verify(whole.folder, anchor).verdict is Verdict.VIOLATED
    found = _found_by_spark(spark, whole, tmp_path / "scratch", anchor)
    assert found
    assert "integrity.agreement" not in found
    if needed:
        assert verify(whole.folder).verdict is Verdict.INTACT, "without an anchor nothing can show it"
        assert not _found_by_spark(spark, whole, tmp_path / "scratch", NOTHING), "and Spark says the same"


@pytest.mark.parametrize("anchor", ["nothing", "key", "copies"])
def test_a_trail_that_nobody_touched_is_whole_to_both(
    spark: SparkSession, whole: SignedTrail, kept: Kept, tmp_path: Path, anchor: str
) -> None:
    chosen = {"nothing": NOTHING, "key": kept.key, "copies": kept.copies}[anchor]
    assert verify(whole.folder, chosen).verdict is (Verdict.INTACT if anchor == "nothing" else Verdict.ANCHORED)
    assert _found_by_spark(spark, whole, tmp_path / "scratch", chosen) == {}


def test_what_only_looks_like_an_attack_is_none(spark: SparkSession, whole: SignedTrail, tmp_path: Path) -> None:
    """Compressed, removed by retention, a key handed over, torn bytes, and records behind the last digest."""
    whole.remove(1)
    whole.compress(2)
    whole.rotate(signing_key(2))
    whole.records(2), whole.close()
    whole.records(1), whole.write(".open")
    (whole.folder / "000000000005-20261120T11-40.torn").write_bytes(b'{"version":1')
    assert verify(whole.folder).verdict is Verdict.INTACT
    assert _found_by_spark(spark, whole, tmp_path / "scratch", NOTHING) == {}
