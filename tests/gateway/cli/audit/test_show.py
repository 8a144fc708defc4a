"""`rfhbridge audit show`: which records are printed, from which files, and how the command ends."""

import gzip
import hashlib
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from gateway.cli.audit import show
from spark_audit.personal import PersonalKey

FIRST_EDITION = Path(__file__).parents[3] / "gateway/audit_trail/keys/kept/first_digests"
SEVEN_US = 1_795_158_000_000_000
FIRST = "000000000001-20261120T07"
SECOND = "000000000002-20261120T08"
THIRD = "000000000003-20261120T09"
KEY = bytes(range(32))


def _line(sequence: int, **fields: object) -> bytes:
    record = {"version": 1, "sequence": sequence, "at_us": SEVEN_US + sequence * 60_000_000, **fields}
    text = json.dumps(record, separators=(",", ":")).encode()
    return text[:-1] + b',"hash":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'


LINES = [
    _line(1, kind="accepted", client="pump", topic="plant/heat"),
    _line(2, kind="put", client="pump", topic="plant/heat"),
    _line(3, kind="put", client="panel", topic="plant/#"),
    _line(4, kind="commanded", topics=["other", "plant/cold"]),
    _line(5, kind="started"),
    _line(6, kind="delivered", client="panel", topic="plant/heat"),
]


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    """Two lines in gzip, two in Zstandard, two and the beginning of a third in an open segment."""
    folder = tmp_path / "trail"
    folder.mkdir()
    (folder / f"{FIRST}.jsonl.gz").write_bytes(gzip.compress(b"".join(LINES[:2])))
    (folder / f"{SECOND}.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(b"".join(LINES[2:4])))
    (folder / f"{THIRD}.open").write_bytes(b"".join(LINES[4:]) + b'{"version"')
    return folder


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), (1, 2, 3, 4, 5, 6)),
        (("--segment", "2"), (3, 4)),
        (("--segment", SECOND), (3, 4)),
        (("--segment", f"{THIRD}.open", "--segment", "1"), (1, 2, 5, 6)),
        (("--sequence", "3"), (3,)),
        (("--sequence", "2-4"), (2, 3, 4)),
        (("--sequence", "5-"), (5, 6)),
        (("--client", "panel"), (3, 6)),
        (("--topic", "plant/+"), (1, 2, 3, 4, 6)),
        (("--topic", "plant/cold"), (4,)),
        (("--kind", "put"), (2, 3)),
        (("--kind", "put", "--kind", "started"), (2, 3, 5)),
        (("--since", "2026-11-20T07:04"), (4, 5, 6)),
        (("--since", "2026-11-20T07:02", "--until", "2026-11-20T07:05"), (2, 3, 4)),
        (("--client", "panel", "--kind", "put", "--segment", "2", "--sequence", "1-"), (3,)),
    ],
)
def test_lines_that_fit_are_printed_as_they_stand(rfhbridge, trail, options, shown) -> None:
    ended = rfhbridge("audit", "show", *options, "--trail", trail)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.splitlines(keepends=True) == [LINES[number - 1] for number in shown]


def test_the_first_edition_is_shown(rfhbridge) -> None:
    ended = rfhbridge("audit", "show", "--trail", FIRST_EDITION)
    assert ended.stdout == b"".join(path.read_bytes() for path in sorted(FIRST_EDITION.glob("0*")))


def test_several_trails_follow_each_other(rfhbridge, trail) -> None:
    ended = rfhbridge("audit", "show", "--trail", trail, "--trail", FIRST_EDITION, "--sequence", "1")
    assert ended.stdout.startswith(LINES[0])
    assert ended.stdout.count(b"\n") == 2


def test_a_segment_in_two_forms_is_shown_once(rfhbridge, trail) -> None:
    (trail / f"{FIRST}.jsonl").write_bytes(b"".join(LINES[:2]))
    assert rfhbridge("audit", "show", "--trail", trail).stdout == b"".join(LINES)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--sequence", "4-2"), "'4-2' is no sequence number and no range (write 7, 7-9 or 7-)"),
        (("--sequence", "x"), "'x' is no sequence number"),
        (("--segment", "../digests"), "'../digests' is no segment (write its number, or 000000000007-20261120T06)"),
        (("--kind", "sent"), "'sent' is not one of"),
        (("--topic", "a/#/b"), "--topic"),
        (("--since", "2026-11-20", "--until", "2026-11-20"), "--until must be later than --since"),
    ],
)
def test_wrong_words_are_told(rfhbridge, trail, options, told) -> None:
    ended = rfhbridge("audit", "show", *options, "--trail", trail)
    assert (ended.exit_code, ended.stdout) == (3, b"")
    assert told in ended.stderr


def test_nothing_that_fits_is_not_evaluable(rfhbridge, trail) -> None:
    ended = rfhbridge("audit", "show", "--client", "wall", "--trail", trail)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert ended.stderr == "rfhbridge: no record fits (6 lines in 3 segments)\n"
    ended = rfhbridge("audit", "show", "--segment", "9", "--trail", trail)
    assert ended.stderr == "rfhbridge: no record fits (0 lines in 0 segments)\n"


def test_what_was_changed_or_is_no_record_is_told(rfhbridge, trail) -> None:
    (trail / f"{FIRST}.jsonl.gz").unlink()
    changed = LINES[0].replace(b"pump", b"pond")
    (trail / f"{FIRST}.jsonl").write_bytes(changed + b"no record\n" + LINES[1] + b"[]")
    ended = rfhbridge("audit", "show", "--segment", "1", "--trail", trail)
    assert (ended.exit_code, ended.stdout) == (1, changed + LINES[1])
    assert ended.stderr.splitlines() == [
        "rfhbridge: CHANGED: 1 record with another hash than that of the bytes",
        "rfhbridge: 2 lines without a record ('rfhbridge audit verify' tells where)",
    ]


def test_a_damaged_segment_is_shown_as_far_as_it_goes(rfhbridge, trail) -> None:
    many = b"".join(_line(number, client=hashlib.sha256(b"%d" % number).hexdigest()) for number in range(20_000))
    (trail / f"{SECOND}.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(many)[:-100])
    ended = rfhbridge("audit", "show", "--trail", trail)
    assert ended.exit_code == 2
    assert ended.stdout.startswith(b"".join(LINES[:2]) + many[:100_000])
    assert f"{SECOND}.jsonl.zst cannot be read to its end: it ends within its frame" in ended.stderr


def test_names_under_a_key_need_the_key(rfhbridge, trail, tmp_path) -> None:
    key = PersonalKey(KEY)
    (tmp_path / "personal.key").write_bytes(KEY)
    line = _line(7, kind="refused", client=key.name("pump"), topic=key.name("plant"), reason=key.sealed(b"no room"))
    with (trail / f"{FIRST}.jsonl.gz").open("ab") as file:
        file.write(gzip.compress(line))
    asked = ("audit", "show", "--trail", trail, "--segment", "1", "--kind", "refused", "--client", "pump")
    ended = rfhbridge(*asked)
    assert ended.exit_code == 2
    assert "the trail has clients as keyed hashes: give the key with --personal-key" in ended.stderr
    ended = rfhbridge(*asked, "--topic", "plant", "--personal-key", tmp_path / "personal.key")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {**json.loads(line), "reason": "no room"}
    (tmp_path / "personal.key").write_bytes(bytes(32))
    ended = rfhbridge("audit", "show", "--trail", trail, "--personal-key", tmp_path / "personal.key")
    assert (ended.exit_code, ended.stderr) == (
        2,
        "rfhbridge: record 7: it was written with another key, or has been changed\n",
    )


def test_a_reader_that_has_enough_ends_it_cleanly(trail) -> None:
    many = b"".join(_line(number, client="pump") for number in range(20_000))
    (trail / f"{FIRST}.jsonl.gz").write_bytes(gzip.compress(many))
    command = [sys.executable, "-m", "rfhbridge", "audit", "show", "--trail", trail]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == many.split(b"\n")[0] + b"\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_large_segment_takes_bounded_memory(rfhbridge, trail, monkeypatch: pytest.MonkeyPatch) -> None:
    line = _line(9, client="a" * 100_000)
    with zstandard.open(trail / f"{SECOND}.jsonl.zst", "wb") as file:
        for _ in range(2_000):
            file.write(line)
    written: list[int] = []
    monkeypatch.setattr(show, "write_output", lambda data: written.append(len(data)))
    tracemalloc.start()
    rfhbridge("audit", "show", "--segment", "2", "--trail", trail)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(written) == 2_000 * len(line)
    assert peak < 64 * 1024 * 1024
