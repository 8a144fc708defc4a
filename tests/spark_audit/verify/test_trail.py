"""A trail with digests: whole ones are consistent, and every way to touch one is found and named."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_audit.verify import Anchor, Finding, Verdict, Verification, verify

FIRST, SECOND, THIRD = "000000000001-20261120T07", "000000000002-20261120T08", "000000000003-20261120T09"


@pytest.fixture
def whole(signed):
    """Three closed segments of four records, a quiet time after the second, and an open segment with two records."""
    for _ in range(2):
        signed.records(4)
        signed.close()
    signed.digest("interval")
    signed.records(4)
    signed.close()
    signed.records(2)
    signed.write(".open")
    return signed


@pytest.fixture
def copies(whole, tmp_path: Path) -> Path:
    """The digests as they were copied elsewhere."""
    return Path(shutil.copytree(whole.digests, tmp_path / "elsewhere"))


def _first(result: Verification) -> tuple[Finding, str, int]:
    return result.problems[0].finding, result.problems[0].segment, result.problems[0].line


def test_a_whole_trail_is_consistent_and_not_anchored(whole) -> None:
    result = verify(whole.folder)
    assert (result.verdict, result.verdict.value) == (Verdict.INTACT, "consistent, not anchored")
    assert (result.segments, result.records, result.digests, result.records_without_digest) == (4, 14, 4, 2)
    assert (result.head, result.digest_head, result.public_keys) == (
        whole.trail.head,
        whole.previous,
        (whole.public_key,),
    )
    assert result.notes == ("2 records at the end have no digest yet",)


def test_a_public_key_anchors_a_trail(whole) -> None:
    result = verify(whole.folder, Anchor(public_key=whole.public_key))
    assert (result.verdict, result.anchors) == (Verdict.ANCHORED, ("public key",))
    assert f"anchored by the public key {whole.public_key}" in result.reason


def test_copied_digests_anchor_a_trail(whole, copies) -> None:
    result = verify(whole.folder, Anchor.read(digests=copies))
    assert (result.verdict, result.anchors) == (Verdict.ANCHORED, ("digests",))
    assert "anchored by the copied digests up to 4" in result.reason


def test_copies_that_end_earlier_anchor_what_they_have(whole, copies) -> None:
    (copies / "000000000004.digest").unlink()
    result = verify(whole.folder, Anchor.read(digests=copies))
    assert result.verdict is Verdict.ANCHORED
    assert "the copied digests end with 3; those behind it stand on signatures" in result.notes


# -- touched ---------------------------------------------------------------------------------------------------------


def _rewrite(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def _chained_anew(lines: list[bytes], head: str) -> list[bytes]:
    """The lines with new links and hashes, as somebody makes them who knows the format."""
    anew = []
    for line in lines:
        record = json.loads(line)
        del record["hash"]
        record["prev"] = head
        text = json.dumps(record, separators=(",", ":")).encode()
        head = hashlib.sha256(text).hexdigest()
        anew.append(text[:-1] + b',"hash":"' + head.encode() + b'"}\n')
    return anew


TOUCHED_LINES = {
    "edit": (lambda rows: [rows[0], rows[1].replace(b"boiler", b"cooler"), *rows[2:]], Finding.CHANGED_LINE, 2),
    "delete": (lambda rows: rows[:1] + rows[2:], Finding.BROKEN_LINK, 2),
    "double": (lambda rows: [*rows[:2], rows[1], *rows[2:]], Finding.BROKEN_LINK, 3),
    "swap": (lambda rows: [rows[1], rows[0], *rows[2:]], Finding.BROKEN_LINK, 1),
    "cut the tail": (lambda rows: rows[:3], Finding.SEGMENT_UNLIKE_DIGEST, 0),
    "cut within a line": (lambda rows: [*rows[:3], rows[3][:50]], Finding.CUT_LINE, 4),
    "cut all": (lambda _rows: [], Finding.SEGMENT_UNLIKE_DIGEST, 0),
    "insert": (lambda rows: [*rows[:1], b"{}\n", *rows[1:]], Finding.FOREIGN_LINE, 2),
}


@pytest.mark.parametrize("touch", TOUCHED_LINES)
@pytest.mark.parametrize("segment", [FIRST, THIRD])
def test_a_touched_line_is_found_and_its_segment_is_not_as_its_digest_says(whole, touch: str, segment: str) -> None:
    change, finding, line = TOUCHED_LINES[touch]
    _rewrite(whole.folder / f"{segment}.jsonl", change)
    result = verify(whole.folder)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.VIOLATED, 1)
    assert _first(result) == (finding, f"{segment}.jsonl", line)
    assert Finding.SEGMENT_UNLIKE_DIGEST in {problem.finding for problem in result.problems}


def test_a_bad_line_is_named_with_its_byte_offset(whole) -> None:
    path = whole.folder / f"{SECOND}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    _rewrite(path, lambda rows: [*rows[:2], rows[2].replace(b"boiler", b"cooler"), rows[3]])
    assert verify(whole.folder).reason.startswith(f"{SECOND}.jsonl, line 3 (byte {len(lines[0] + lines[1])}): ")


def test_a_cut_tail_is_told_with_both_counts(whole) -> None:
    _rewrite(whole.folder / f"{THIRD}.jsonl", lambda rows: rows[:3])
    assert "it is not as digest 4 says: last_sequence is 11, not 12; " in verify(whole.folder).reason
    assert "records is 3, not 4" in verify(whole.folder).reason


@pytest.mark.parametrize(("segment", "digest"), [(FIRST, 1), (SECOND, 2), (THIRD, 4)])
def test_a_dropped_segment_is_missing_by_its_digest(whole, segment: str, digest: int) -> None:
    (whole.folder / f"{segment}.jsonl").unlink()
    result = verify(whole.folder)
    assert _first(result) == (Finding.MISSING_SEGMENT, segment, 0)
    assert result.problem_count == 1
    assert f"it is missing; digest {digest} is of it" in result.reason


def test_a_dropped_segment_with_its_digest_leaves_a_gap(whole) -> None:
    (whole.folder / f"{SECOND}.jsonl").unlink()
    (whole.digests / "000000000002.digest").unlink()
    findings = {problem.finding for problem in verify(whole.folder).problems}
    assert {Finding.MISSING_SEGMENT, Finding.MISSING_DIGEST, Finding.BROKEN_DIGEST_LINK} <= findings


def test_a_tail_dropped_with_its_digests_is_found_by_their_copies(whole, copies) -> None:
    for path in (*whole.folder.glob("000000000003-*"), *whole.folder.glob("000000000004-*")):
        path.unlink()
    for number in (3, 4):
        (whole.digests / f"{number:012d}.digest").unlink()
    assert verify(whole.folder).verdict is Verdict.INTACT, "without copies nothing can show it"
    assert verify(whole.folder, Anchor(public_key=whole.public_key)).verdict is Verdict.ANCHORED
    result = verify(whole.folder, Anchor.read(digests=copies))
    assert result.verdict is Verdict.VIOLATED
    assert _first(result) == (Finding.MISSING_SEGMENT, THIRD, 0)
    missing = [problem.segment for problem in result.problems if problem.finding is Finding.MISSING_DIGEST]
    assert missing == ["digests/000000000003.digest", "digests/000000000004.digest"]


def test_a_last_segment_written_anew_without_its_digest_is_found_by_the_copy(whole, copies) -> None:
    (whole.digests / "000000000004.digest").unlink()
    (whole.folder / "000000000004-20261120T10.open").unlink()
    _rewrite(whole.folder / f"{THIRD}.jsonl", lambda rows: _chained_anew(rows[:2], json.loads(rows[0])["prev"]))
    assert verify(whole.folder).verdict is Verdict.INTACT
    result = verify(whole.folder, Anchor.read(digests=copies))
    assert _first(result) == (Finding.SEGMENT_UNLIKE_DIGEST, f"{THIRD}.jsonl", 0)


def _write_all_anew(whole, key) -> None:
    """Another history: all records, links, hashes, digests and signatures made anew."""
    lines = [
        line
        for path in sorted(whole.folder.glob("*.jsonl"))
        for line in path.read_bytes().replace(b"boiler", b"cooler").splitlines(keepends=True)
    ]
    for path in (*whole.folder.glob("*.jsonl"), *whole.folder.glob("*.open"), *whole.digests.iterdir()):
        path.unlink()
    whole.key, whole.number, whole.previous, whole.segments = key, 0, "0" * 64, []
    anew = _chained_anew(lines, "0" * 64)
    for start in (0, 4, 8):
        whole.trail.lines = anew[start : start + 4]
        whole.trail.head = whole.trail.lines[-1].split(b'"')[-2].decode()
        whole.close()


def test_a_trail_written_anew_is_consistent_in_itself_and_found_by_either_anchor(whole, copies, other_key) -> None:
    key = whole.public_key
    _write_all_anew(whole, other_key)
    assert verify(whole.folder).verdict is Verdict.INTACT
    by_key = verify(whole.folder, Anchor(public_key=key))
    assert (by_key.verdict, _first(by_key)[:2]) == (Verdict.VIOLATED, (Finding.WRONG_KEY, "digests"))
    by_copies = verify(whole.folder, Anchor.read(digests=copies))
    assert (by_copies.verdict, _first(by_copies)[0]) == (Verdict.VIOLATED, Finding.UNLIKE_COPY)


def test_a_trail_written_anew_with_the_key_itself_is_found_by_the_copies(whole, copies) -> None:
    _write_all_anew(whole, whole.key)
    assert verify(whole.folder, Anchor(public_key=whole.public_key)).verdict is Verdict.ANCHORED
    assert verify(whole.folder, Anchor.read(digests=copies)).verdict is Verdict.VIOLATED


def test_a_chain_computed_anew_under_the_old_digests_is_found(whole) -> None:
    paths = sorted(whole.folder.glob("*.jsonl"))
    head = "0" * 64
    for path in paths:
        anew = _chained_anew(path.read_bytes().replace(b"boiler", b"cooler").splitlines(keepends=True), head)
        head = anew[-1].split(b'"')[-2].decode()
        path.write_bytes(b"".join(anew))
    result = verify(whole.folder)
    assert _first(result) == (Finding.SEGMENT_UNLIKE_DIGEST, paths[0].name, 0)
    assert "sha256 is " in result.reason


def test_an_old_digest_in_the_place_of_a_later_one_is_a_replay(whole) -> None:
    shutil.copy(whole.digests / "000000000001.digest", whole.digests / "000000000004.digest")
    result = verify(whole.folder)
    digests = {problem.segment: problem for problem in result.problems if problem.finding is Finding.REPLAYED_DIGEST}
    assert result.verdict is Verdict.VIOLATED
    assert "it holds digest 1" in digests["digests/000000000004.digest"].what


def test_a_digest_of_an_old_state_with_its_number_is_unlike_its_copy(whole, copies) -> None:
    path = whole.digest("interval", number=4, previous=hashlib.sha256(b"another").hexdigest())
    result = verify(whole.folder, Anchor.read(digests=copies))
    assert {Finding.UNLIKE_COPY, Finding.BROKEN_DIGEST_LINK} <= {problem.finding for problem in result.problems}
    assert path.name in result.problems[-1].segment


def test_a_changed_digest_has_a_wrong_signature(whole) -> None:
    path = whole.digests / "000000000004.digest"
    path.write_bytes(path.read_bytes().replace(b'"records":4', b'"records":5'))
    result = verify(whole.folder)
    assert [problem.finding for problem in result.problems] == [Finding.SEGMENT_UNLIKE_DIGEST, Finding.WRONG_SIGNATURE]


def test_a_digest_that_is_none_is_named(whole) -> None:
    (whole.digests / "000000000003.digest").write_bytes(b"")
    findings = [(problem.finding, problem.segment) for problem in verify(whole.folder).problems]
    assert findings == [
        (Finding.MALFORMED_DIGEST, "digests/000000000003.digest"),
        (Finding.BROKEN_DIGEST_LINK, "digests/000000000004.digest"),
    ]


def test_all_digests_removed_is_found_by_the_key(whole) -> None:
    shutil.rmtree(whole.digests)
    assert verify(whole.folder).verdict is Verdict.INTACT
    result = verify(whole.folder, Anchor(public_key=whole.public_key))
    assert (result.verdict, _first(result)[0]) == (Verdict.VIOLATED, Finding.MISSING_DIGEST)


def test_a_segment_without_a_digest_before_others_is_found(whole) -> None:
    (whole.digests / "000000000002.digest").unlink()
    findings = [(problem.finding, problem.segment) for problem in verify(whole.folder).problems]
    assert (Finding.MISSING_DIGEST, "digests/000000000003.digest") in findings
    assert (Finding.MISSING_DIGEST, "digests/000000000004.digest") in findings


def test_a_second_segment_with_a_number_is_found(whole) -> None:
    shutil.copy(whole.folder / f"{FIRST}.jsonl", whole.folder / "000000000001-20261120T23.jsonl")
    result = verify(whole.folder)
    assert _first(result) == (Finding.DOUBLED_SEGMENT, "000000000001-20261120T23.jsonl", 0)


def test_a_segment_under_another_hour_is_not_as_its_digest_says(whole) -> None:
    (whole.folder / f"{FIRST}.jsonl").rename(whole.folder / "000000000001-20261120T23.jsonl")
    result = verify(whole.folder)
    assert result.problems[0].finding is Finding.SEGMENT_UNLIKE_DIGEST
    assert "name is 000000000001-20261120T23" in result.reason


# -- near misses -----------------------------------------------------------------------------------------------------


def test_a_torn_tail_of_the_open_segment_is_no_violation(whole) -> None:
    with (whole.folder / "000000000004-20261120T10.open").open("ab") as file:
        file.write(b'{"version":1,"seq')
    (whole.folder / "000000000004-20261120T10-4711.torn").write_bytes(b'{"ver')
    result = verify(whole.folder)
    assert (result.verdict, result.records) == (Verdict.INTACT, 14)
    assert result.torn_files == ("000000000004-20261120T10-4711.torn",)


def test_compressed_segments_are_read(whole) -> None:
    for segment in (1, 2, 3):
        whole.compress(segment, ending=(".jsonl.zst", ".jsonl.gz")[segment % 2])
    result = verify(whole.folder, Anchor(public_key=whole.public_key))
    assert (result.verdict, result.records) == (Verdict.ANCHORED, 14)


def test_a_compressed_segment_beside_the_other_is_what_a_crash_leaves(whole) -> None:
    path = whole.folder / f"{FIRST}.jsonl"
    data = path.read_bytes()
    whole.compress(1)
    path.write_bytes(data)
    result = verify(whole.folder)
    assert result.verdict is Verdict.INTACT
    assert result.notes[0] == f"{FIRST}.jsonl.zst: there beside another form of the same segment"


def test_an_open_segment_that_has_its_digest_is_one_that_was_to_be_closed(signed) -> None:
    signed.records(3)
    signed.close(".open")
    result = verify(signed.folder)
    assert (result.verdict, result.records_without_digest) == (Verdict.INTACT, 0)


def test_removed_segments_are_said_to_be_removed(whole) -> None:
    whole.remove(2)
    result = verify(whole.folder, Anchor(public_key=whole.public_key))
    assert (result.verdict, result.segments, result.segments_removed) == (Verdict.ANCHORED, 2, 2)
    assert result.notes[0] == "segments up to 2 (2) were removed by retention; their digests are there"


def test_segments_that_retention_has_still_to_remove_may_be_there(whole) -> None:
    whole.digest("retention", segment=FIRST)
    assert verify(whole.folder).verdict is Verdict.INTACT


def test_more_removed_than_retention_says_is_missing(whole) -> None:
    whole.remove(1)
    (whole.folder / f"{SECOND}.jsonl").unlink()
    result = verify(whole.folder)
    assert _first(result) == (Finding.MISSING_SEGMENT, SECOND, 0)
    assert (result.problem_count, result.segments_removed) == (1, 1)


def test_a_touched_line_behind_removed_segments_is_found(whole) -> None:
    whole.remove(2)
    _rewrite(whole.folder / f"{THIRD}.jsonl", lambda rows: rows[1:])
    assert _first(verify(whole.folder)) == (Finding.BROKEN_LINK, f"{THIRD}.jsonl", 1)


def test_a_trail_whose_segments_are_all_removed_stands_on_its_digests(signed) -> None:
    signed.records(2)
    signed.close()
    signed.remove(1)
    result = verify(signed.folder)
    assert (result.verdict, result.records, result.segments_removed) == (Verdict.INTACT, 0, 1)
