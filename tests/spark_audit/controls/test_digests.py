"""Digests against segments, copies and a key: each way to touch a trail is found by Spark, and by verify too."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.audit_input import input_of_trails
from spark_audit.controls import digests, integrity
from spark_audit.kept_frame import kept
from spark_audit.period import AROUND_US, Period
from spark_audit.read import trail_files
from spark_audit.verify import Verdict, verify
from tests.spark_audit.conftest import SignedTrail, TrailBuilder, signing_key

PER_SEGMENT = 3


def _filled(signed, other_key):
    """Three segments of three records, each with its digest; between them a new key (digest 2) and a quiet time (4)."""
    of_gateway = {"gateway": signed.gateway}
    signed.records(PER_SEGMENT, **of_gateway), signed.close(), signed.rotate(other_key)
    signed.records(PER_SEGMENT, **of_gateway), signed.close(), signed.digest("interval")
    signed.records(PER_SEGMENT, **of_gateway), signed.close()
    return signed


@pytest.fixture
def whole(signed, other_key):
    return _filled(signed, other_key)


def _segment(signed, number: int) -> Path:
    return signed.folder / f"{signed.segments[number - 1]}.jsonl"


def _digest(signed, number: int) -> Path:
    return signed.digests / f"{number:012d}.digest"


def _edited(signed) -> None:
    path = _segment(signed, 2)
    path.write_bytes(path.read_bytes().replace(b"boiler", b"cooler", 1))


def _cut_tail(signed) -> None:
    path = _segment(signed, 3)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _replaced(signed) -> None:
    """All lines anew, with a good chain and good numbers: only the digests remember."""
    builder = type(signed.trail)(signed.folder)
    for segment in signed.segments:
        builder.lines = []
        for _ in range(PER_SEGMENT):
            builder.add("accepted", gateway=signed.gateway, client="cooler")
        builder.write(f"{segment}.jsonl")


def _dropped(*segments: int, cut: tuple[int, ...] = ()) -> Callable[..., None]:
    def touch(signed) -> None:
        for number in segments:
            _segment(signed, number).unlink()
        for number in cut:
            _digest(signed, number).unlink()

    return touch


def _rewritten(number: int, old: bytes, new: bytes) -> Callable[..., None]:
    def touch(signed) -> None:
        data = _digest(signed, number).read_bytes()
        assert old in data
        _digest(signed, number).write_bytes(data.replace(old, new))

    return touch


def _by_a_strange_key(signed) -> None:
    """A digest more, well made, by the key that was handed over."""
    signed.key = Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)
    signed.digest("interval")


#: What is done to the trail, and words of what the control of digests then says; "" where it has nothing to say.
TOUCHES: dict[str, tuple[Callable[..., object], str]] = {
    "nothing": (lambda _signed: None, ""),
    "edit": (_edited, ""),
    "cut tail": (_cut_tail, "lines: its digest says 3, the segment 2"),
    "cut tail and its digest": (_dropped(3, cut=(5,)), ""),
    "a segment dropped": (_dropped(3), "it is missing: its digest is there"),
    "a segment in the middle dropped": (_dropped(2), "it is missing: its digest is there"),
    "all replaced": (_replaced, "head: its digest says"),
    "a digest dropped": (_dropped(cut=(2,)), "digest 2 was due"),
    "an old digest replayed": (
        lambda signed: shutil.copyfile(_digest(signed, 3), _digest(signed, 5)),
        "it holds digest 3",
    ),
    "a digest changed": (_rewritten(3, b'"0.1.0"', b'"0.2.0"'), "its signature is not that of its key"),
    "a strange key": (_by_a_strange_key, "a key that no rotation brought"),
    "no digest": (lambda signed: _digest(signed, 4).write_bytes(b'{"version":1}\n'), "its fields are not"),
    "a digest too long": (lambda signed: _digest(signed, 4).write_bytes(b" " * 5_000), "longer than 4096 bytes"),
    "digests in the middle dropped": (_dropped(cut=(3, 4)), "it has no digest, later ones have"),
}


def _frame(spark, signed, rows: DataFrame, **how: object) -> DataFrame:
    return digests.beside_segments(digests.read_digests(spark, str(signed.digests)), rows, **how)


def _details(frame: DataFrame, control=digests.CONTROL) -> list[str]:
    return [f"{row['subject']}: {row['detail']}" for row in control.find(frame).collect()]


def test_a_signed_trail_is_whole_with_a_rotation_and_a_quiet_time(spark, whole, read) -> None:
    own = digests.read_digests(spark, str(whole.digests))
    assert _details(_frame(spark, whole, read(whole.folder), copies=own, public_key=whole.public_key)) == []


@pytest.fixture(scope="module")
def touched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a trail for each touch, each of a gateway of its own."""
    folders: dict[str, Path] = {}
    for number, (touch, (change, _words)) in enumerate(TOUCHES.items(), start=1):
        folder = tmp_path_factory.mktemp("touched") / "trail"
        signed = _filled(SignedTrail(TrailBuilder(folder), signing_key(1), f"{number:024x}"), signing_key(2))
        change(signed)
        folders[touch] = folder
    return folders


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, touched: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[str], list[str]]]:
    """By touch: what the control of digests says of its trail, and those of hashes and links; all in one frame."""
    scratch = tmp_path_factory.mktemp("scratch")
    audit_input = input_of_trails(spark, [trail_files(folder, scratch) for folder in touched.values()])
    with kept(audit_input.lines) as rows, kept(digests.beside_segments(audit_input.digests, rows)) as frame:
        of_digests, records = _details(frame), rows.where("is_record")
        of_lines = _details(records, integrity.HASHES) + _details(records, integrity.CHAIN)
    for line in of_digests + of_lines:
        assert any(line.startswith(f"{folder}/") for folder in touched.values()), line
    return {
        touch: tuple([line for line in lines if line.startswith(f"{folder}/")] for lines in (of_digests, of_lines))
        for touch, folder in touched.items()
    }


@pytest.mark.parametrize("touch", TOUCHES)
def test_each_touch_is_found_by_spark_and_by_verify(touched, told, touch: str) -> None:
    _change, words = TOUCHES[touch]
    of_digests, of_lines = told[touch]
    assert any(words in line for line in of_digests) == bool(words), of_digests
    is_found = bool(of_digests or of_lines)
    assert is_found == (verify(touched[touch]).verdict is Verdict.VIOLATED)
    assert is_found == (touch not in ("nothing", "cut tail and its digest"))


def test_several_trails_in_one_frame_are_told_apart(spark, whole, read) -> None:
    rows, own = read(whole.folder), digests.read_digests(spark, str(whole.digests))
    both_rows = rows.selectExpr("*", "'east' trail").unionByName(
        rows.where(~sf.col("segment").startswith("000000000002")).selectExpr("*", "'west' trail")
    )
    both = own.selectExpr("*", "'east' trail").unionByName(own.selectExpr("*", "'west' trail"))
    assert _details(digests.beside_segments(both, both_rows)) == [
        f"west/{whole.segments[1]}: it is missing: its digest is there"
    ]


def test_a_tail_that_was_cut_with_its_digest_is_shown_by_the_copies(spark, whole, read, tmp_path: Path) -> None:
    copies = shutil.copytree(whole.digests, tmp_path / "copies")
    _dropped(3, cut=(5,))(whole)
    frame = _frame(spark, whole, read(whole.folder), copies=digests.read_digests(spark, str(copies)))
    assert _details(frame) == ["digests/000000000005.digest: it is missing, though there is a copy of it"]


def test_a_trail_that_was_signed_by_another_is_shown_by_the_key(spark, whole, read) -> None:
    frame = _frame(spark, whole, read(whole.folder), public_key=hashlib.sha256(b"another").hexdigest())
    assert _details(frame) == ["digests: none is signed by the public key that was given"]


def test_what_retention_removed_is_not_missing_and_what_it_kept_is(spark, whole, read) -> None:
    whole.remove(2)
    rows = read(whole.folder)
    assert _details(_frame(spark, whole, rows)) == []
    assert verify(whole.folder).verdict is Verdict.INTACT
    (told,) = _details(_frame(spark, whole, rows.limit(0)))
    assert told == f"{whole.segments[2]}: it is missing: its digest is there"


def test_segments_outside_of_the_period_are_not_missing_and_those_within_are(spark, whole, read) -> None:
    whole.records(1), whole.close(), whole.records(1), whole.close()
    rows = read(whole.folder).where(sf.substring("segment", 12, 1).isin("2", "4"))
    missing = "it is missing: its digest is there"
    assert _details(_frame(spark, whole, rows, due=None)) == [f"{whole.segments[2]}: {missing}"]
    eleven_us = 1_795_158_000_000_000 + 4 * 3_600_000_000
    ends_before_the_last = Period(from_us=eleven_us + AROUND_US, until_us=eleven_us - AROUND_US)
    assert _details(_frame(spark, whole, rows, due=ends_before_the_last)) == [f"{whole.segments[2]}: {missing}"]
    with_the_last = Period(from_us=eleven_us + AROUND_US, until_us=eleven_us - AROUND_US + 1)
    assert sorted(_details(_frame(spark, whole, rows, due=with_the_last))) == [
        f"{whole.segments[2]}: {missing}",
        f"{whole.segments[4]}: {missing}",
    ]


def test_a_trail_without_digests_is_a_violation_only_where_the_policy_wants_them(spark, trail, read) -> None:
    trail.add("started")
    frame = digests.beside_segments(digests.no_digests(spark), read(trail.write()))
    assert _details(frame) == []
    assert len(_details(frame, digests.CONTROL.with_values({"required": True}))) == 1


def test_a_segment_behind_the_last_digest_waits_for_its_own(spark, whole, read) -> None:
    _dropped(cut=(5,))(whole)
    assert _details(_frame(spark, whole, read(whole.folder))) == []


def test_two_verdicts_that_differ_are_told_with_the_trails_name(spark) -> None:
    told = [("east", 0, 0, "whole"), ("west", 2, 7, "violated"), ("north", 1, 0, "whole"), ("south", 0, 3, "line 4")]
    found = integrity.AGREEMENT.find(integrity.verdicts(spark, told)).collect()
    assert {row["subject"] for row in found} == {"trail north", "trail south"}
    assert any("verify 3: line 4" in row["detail"] for row in found)


def test_the_verdict_of_spark_is_that_of_all_controls_of_integrity() -> None:
    assert {integrity.LINES.identifier, digests.CONTROL.identifier} < set(integrity.OF_INTEGRITY)
