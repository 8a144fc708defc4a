"""docs/reference/trail_reader.py, as a stranger could have written it: it reads and judges trails as verify does."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.trail.made import make_trail
from spark_audit.verify import Verdict, verify
from spark_audit.verify.source import SegmentFile, TrailFolder
from tests.spark_audit.conftest import ChainedTrail, SignedTrail, signing_key
from tests.trail_lines import trail_records

ROOT = Path(__file__).parents[3]
READER = ROOT / "docs/reference/trail_reader.py"
FIRST_EDITION = ROOT / "tests/gateway/audit_trail/keys/kept/first_digests"
FIRST = "000000000001-20261120T07"
SECOND = "000000000002-20261120T08"
LAST = "000000000004-20261120T10.open"
#: JSON escapes some letters of this topic, and no others.
TOPIC = 'plant/"é\\\u2028\x01'
MANY = 70


def _filled(trail: SignedTrail) -> Path:
    for count in (1, MANY, 3):  # trees of one leaf, of whole and of odd sizes
        trail.records(count, topic=TOPIC)
        trail.close()
    trail.records(2)
    trail.write(".open")
    return trail.folder


@pytest.fixture
def folder(chained: ChainedTrail) -> Path:
    """Three closed segments with digests, and an open one."""
    return _filled(chained)


def _run(folder: Path) -> tuple[int, list[bytes], str]:
    """Exit code, printed lines, standard error."""
    command = [sys.executable, "-I", READER, folder]
    ended = subprocess.run(command, cwd="/", capture_output=True, check=False, timeout=60)
    return ended.returncode, ended.stdout.splitlines(keepends=True), ended.stderr.decode()


def _lines(folder: Path) -> list[bytes]:
    """The whole lines of each segment, as our own reader reads them."""
    texts: dict[str, bytes] = {}
    for entry in TrailFolder(folder).entries():
        if isinstance(entry, SegmentFile) and entry.stem not in texts:
            texts[entry.stem] = b"".join(entry.blocks())
    return [line for text in texts.values() for line in text.splitlines(keepends=True) if line.endswith(b"\n")]


def test_it_needs_nothing_of_ours_and_is_short() -> None:
    text = READER.read_text()
    assert len(text.splitlines()) <= 120
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - sys.stdlib_module_names == {"cryptography", "ormsgpack", "zstandard"}


def test_the_first_edition_is_read() -> None:
    assert verify(FIRST_EDITION).verdict is Verdict.INTACT
    assert _run(FIRST_EDITION) == (0, _lines(FIRST_EDITION), "")


def test_the_notes_of_batches_are_printed_with_the_names_of_their_items(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    make_trail(trail, 1_500)
    assert verify(trail).verdict is Verdict.INTACT
    code, lines, told = _run(trail)
    assert (code, told) == (0, "")
    notes = [json.loads(line) for line in lines]
    records = trail_records(trail)
    assert [note["at_us"] for note in notes if note["note"] == "delivered"] == [
        record["at_us"] for record in records if record["kind"] == "delivered"
    ]
    published = [note for note in notes if note["note"] == "published"]
    put = [record for record in records if record["kind"] == "put" and record.get("conversion") == "packet_to_header"]
    released = [note for note in notes if note["note"] == "released"]
    assert len(published) + len(released) == len(put)
    first, record = published[0], next(each for each in put if each["qos"] < 2)
    assert (first["client"], first["translation"]["topic"]) == (record["client"], record["topic"])
    assert (first["header"], first["translation"]["header"]) == (record["input"], record["output"])


def test_a_changed_line_of_a_batch_is_told(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    make_trail(trail, 1_500)
    (path,) = trail.glob("*.jsonl")
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((first.replace(b'"until_us":1', b'"until_us":2'), *others)))
    code, _, told = _run(trail)
    assert code == 1
    assert told.startswith(f"{path.name}, line 1: its bytes do not have its hash")


def test_a_trail_that_changed_from_the_first_edition_is_read(signed: SignedTrail, chained: ChainedTrail) -> None:
    signed.records(3)
    signed.close()
    signed.rotate(signing_key(2))
    signed.records(3)
    signed.close()
    chained.key, chained.number, chained.previous = signed.key, signed.number, signed.previous
    chained.segments, chained.head, chained.trail = signed.segments, signed.head, signed.trail
    chained.records(3)
    chained.close()
    chained.rotate(signing_key(1))
    chained.digest("renewal", signer=chained.key_of(80), next_public_key=chained.public_key_of(81))
    chained.digest("interval", signer=chained.key_of(81))
    assert verify(signed.folder).verdict is Verdict.VIOLATED  # an auditor must name the renewal
    assert _run(signed.folder) == (0, _lines(signed.folder), "")


def _plain(_trail: SignedTrail) -> None:
    """As it is."""


def _both_forms(trail: SignedTrail) -> None:
    plain = (trail.folder / f"{FIRST}.jsonl").read_bytes()
    trail.compress(1)
    (trail.folder / f"{FIRST}.jsonl").write_bytes(plain)


def _line_being_written(trail: SignedTrail) -> None:
    with (trail.folder / LAST).open("ab") as file:
        file.write(b'{"version":1')


SOUND: dict[str, Callable[[SignedTrail], object]] = {
    "plain": _plain,
    "zstd": lambda trail: trail.compress(2),
    "gzip": lambda trail: trail.compress(2, ending=".jsonl.gz"),
    "all compressed": lambda trail: [trail.compress(number) for number in (1, 2, 3)],
    "both forms": _both_forms,
    "removed": lambda trail: trail.remove(2),
    "a line is being written": _line_being_written,
}


@pytest.mark.parametrize("form", SOUND)
def test_a_sound_trail_is_printed_line_by_line(chained: ChainedTrail, folder: Path, form: str) -> None:
    SOUND[form](chained)
    assert verify(folder).verdict is Verdict.INTACT
    code, lines, told = _run(folder)
    assert (code, told) == (0, "")
    assert lines == _lines(folder)
    assert b"\x01" not in lines[0]


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _rehashed(trail: SignedTrail) -> None:
    """The second segment, written anew with hashes that hold."""
    path = trail.folder / f"{SECOND}.jsonl"
    trail.trail.lines, trail.trail.head = [], (trail.folder / f"{FIRST}.jsonl").read_bytes()[-67:-3].decode()
    trail.trail.sequence = 1
    trail.records(MANY, topic="another")
    path.write_bytes(b"".join(trail.trail.lines))


def _without(path: Path, line: int) -> None:
    _change(
        path, lambda data: b"".join(data.splitlines(keepends=True)[:line] + data.splitlines(keepends=True)[line + 1 :])
    )


#: What was done, and the beginning of what is told first.
TAMPERED: dict[str, tuple[Callable[[SignedTrail], object], str]] = {
    "a changed line": (
        lambda trail: _change(trail.folder / f"{SECOND}.jsonl", lambda data: data.replace(b"boiler", b"cooler", 1)),
        f"{SECOND}.jsonl, line 1: its bytes do not have its hash",
    ),
    "a changed line of the open segment": (
        lambda trail: _change(trail.folder / LAST, lambda data: data.replace(b"boiler", b"cooler", 1)),
        f"{LAST}, line 1: its bytes do not have its hash",
    ),
    "lines written anew": (_rehashed, f"{SECOND}.jsonl: its digest says another head"),
    "a line taken out": (
        lambda trail: _without(trail.folder / f"{SECOND}.jsonl", 5),
        f"{SECOND}.jsonl, line 6: prev is not the hash of the record before",
    ),
    "the last line taken out": (
        lambda trail: _without(trail.folder / f"{SECOND}.jsonl", MANY - 1),
        f"{SECOND}.jsonl: its digest says another head",
    ),
    "a cut line": (
        lambda trail: _change(trail.folder / f"{SECOND}.jsonl", lambda data: data[:-9]),
        f"{SECOND}.jsonl: its last line has no end",
    ),
    "a segment taken out": (lambda trail: (trail.folder / f"{SECOND}.jsonl").unlink(), f"{SECOND}: it is missing"),
    "a digest taken out": (
        lambda trail: (trail.digests / "000000000002.digest").unlink(),
        "000000000003.digest: digest 2 was due",
    ),
    "a changed digest": (
        lambda trail: _change(trail.digests / "000000000002.digest", lambda data: data.replace(b"0.1.0", b"0.2.0")),
        "000000000002.digest: its signature is not by its key",
    ),
    "a digest by another key": (
        lambda trail: trail.digest("interval", signer=signing_key(9)),
        "000000000004.digest: another key was due",
    ),
    "a cut frame": (
        lambda trail: _change(trail.compress(2), lambda data: data[:-9]),
        f"{SECOND}.jsonl.zst: it is not one whole frame",
    ),
    "bytes behind a frame": (
        lambda trail: _change(trail.compress(2), lambda data: data + b"\n"),
        f"{SECOND}.jsonl.zst: it is not one whole frame",
    ),
    "a cut gzip": (lambda trail: _change(trail.compress(2, ending=".jsonl.gz"), lambda data: data[:-9]), "Traceback"),
    "a line that is no JSON": (
        lambda trail: _change(trail.folder / f"{SECOND}.jsonl", lambda data: b"nothing\n" + data),
        "Traceback",
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_trail_is_told(chained: ChainedTrail, folder: Path, case: str) -> None:
    tamper, said = TAMPERED[case]
    tamper(chained)
    assert verify(folder).verdict is Verdict.VIOLATED
    code, _printed, told = _run(folder)
    assert code == 1
    assert told.startswith(said), told


def test_a_trail_without_digests_is_read(chained: ChainedTrail, folder: Path) -> None:
    shutil.rmtree(chained.digests)
    assert _run(folder) == (0, _lines(folder), "")
