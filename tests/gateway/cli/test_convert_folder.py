"""`rfhbridge convert IN --out DIR`: every file of a folder, the originals untouched, nothing outside of DIR."""

import json
import os
from pathlib import Path

import pytest

BODY = b"\x00\xff 21.5 \xe9"


@pytest.fixture
def archive(tmp_path, vectors) -> Path:
    """Messages in two folders: one of each format, one in EBCDIC, and a file that is none."""
    folder = tmp_path / "in"
    (folder / "2026" / "11").mkdir(parents=True)
    (folder / "one.bin").write_bytes(vectors.mqrfh + BODY)
    (folder / "2026" / "11" / "big.bin").write_bytes(vectors.mqrfh_big_endian + BODY)
    (folder / "2026" / "there.bin").write_bytes(vectors.mqrfh2 + BODY)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def report_of(path: Path) -> dict[str, dict[str, object]]:
    return {line["path"]: line for line in map(json.loads, path.read_text().splitlines())}


def test_every_file_is_converted_under_its_name_and_the_originals_stay(rfhbridge, archive, tmp_path, vectors):
    before, out = contents(archive), tmp_path / "out"
    ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", out)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.text == f"2 converted, 1 unchanged, 0 failed; report: {out / 'report.jsonl'}\n"
    made = contents(out)
    report = made.pop("report.jsonl")
    assert made == {
        "one.bin": vectors.mqrfh2 + BODY,
        "2026/11/big.bin": vectors.mqrfh2_of_big_endian + BODY,
        "2026/there.bin": vectors.mqrfh2 + BODY,
    }
    assert contents(archive) == before
    assert len(report.splitlines()) == 3


def test_report_has_a_line_for_each_file(rfhbridge, archive, tmp_path):
    (archive / "bad.bin").write_bytes(b"hello world")
    path = tmp_path / "told.jsonl"
    ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out", "--report", path)
    told = report_of(path)
    assert list(told) == ["2026/11/big.bin", "2026/there.bin", "bad.bin", "one.bin"]
    assert told["one.bin"]["format"] == "MQHRF2"
    assert [field["outcome"] for field in told["one.bin"]["report"]["fields"]] == ["renamed"] * 3
    assert told["2026/there.bin"]["report"]["fields"] == []
    error = told["bad.bin"]["error"]
    assert (error["reason_code"], error["reason_name"], error["offset"]) == (2334, "MQRC_RFH_ERROR", 0)
    assert ended.exit_code == 1
    assert ended.text.startswith("2 converted, 1 unchanged, 1 failed")
    assert ended.stderr == "rfhbridge: 1 of 4 files could not be converted; the report says why\n"
    assert not (tmp_path / "out" / "bad.bin").exists()


def test_empty_file_is_an_error(rfhbridge, archive, tmp_path):
    (archive / "empty.bin").write_bytes(b"")
    assert rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out").exit_code == 1
    assert "empty" in report_of(tmp_path / "out" / "report.jsonl")["empty.bin"]["error"]["hint"]


def test_what_the_operator_says_of_the_first_header_holds_for_every_file(rfhbridge, archive, tmp_path):
    ended = rfhbridge("convert", "--to", "mqrfh2", "--encoding", "273", archive, "--out", tmp_path / "out")
    assert ended.text.startswith("1 converted, 0 unchanged, 2 failed")


def test_folder_may_be_converted_again_into_the_same_place(rfhbridge, archive, tmp_path, vectors):
    for _ in range(2):
        assert rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "one.bin").read_bytes() == vectors.mqrfh2 + BODY


def test_new_folder_inside_the_old_one_is_not_converted_itself(rfhbridge, archive):
    for _ in range(2):
        ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", archive / "out")
        assert ended.text.startswith("2 converted, 1 unchanged, 0 failed")
    assert not (archive / "out" / "out").exists()


def test_links_in_the_archive_are_not_followed(rfhbridge, archive, tmp_path, vectors):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "message.bin").write_bytes(vectors.mqrfh)
    (archive / "link.bin").symlink_to(secret / "message.bin")
    (archive / "folder").symlink_to(secret)
    (archive / "round").symlink_to(archive)
    ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out")
    assert ended.exit_code == 1
    assert ended.text.startswith("2 converted, 1 unchanged, 3 failed")
    told = report_of(tmp_path / "out" / "report.jsonl")
    assert "symbolic links are not followed" in told["link.bin"]["error"]["hint"]
    assert not (tmp_path / "out" / "folder").exists()


def test_pipe_in_the_archive_does_not_make_the_command_wait(rfhbridge, archive, tmp_path):
    os.mkfifo(archive / "pipe")
    assert rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out").exit_code == 1
    assert "not a plain file" in report_of(tmp_path / "out" / "report.jsonl")["pipe"]["error"]["hint"]


def test_links_in_the_new_folder_lead_nothing_out_of_it(rfhbridge, archive, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (elsewhere / "precious").write_bytes(b"precious")
    (out / "one.bin").symlink_to(elsewhere / "precious")
    (out / "2026").symlink_to(elsewhere)
    (out / "report.jsonl").symlink_to(elsewhere / "precious")
    ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", out)
    assert ended.exit_code == 1
    assert contents(elsewhere) == {"precious": b"precious"}
    assert len(report_of(out / "report.jsonl")) == 3


def test_name_that_is_no_text_is_converted_and_reported(rfhbridge, tmp_path, vectors):
    folder = tmp_path / "in"
    folder.mkdir()
    name = os.fsdecode(b"caf\xe9.bin")
    try:
        (folder / name).write_bytes(vectors.mqrfh)
    except OSError:
        pytest.skip("this file system takes text names alone")
    assert rfhbridge("convert", "--to", "mqrfh2", folder, "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / name).read_bytes() == vectors.mqrfh2
    assert list(report_of(tmp_path / "out" / "report.jsonl")) == [name]


@pytest.mark.parametrize(
    "arguments",
    [
        ("IN",),
        ("IN", "--out", "IN"),
        ("IN", "--out", "."),
        ("IN", "--out", "IN/one.bin"),
        ("IN", "--out", "OUT", "-o", "x"),
        ("IN/one.bin", "--out", "OUT"),
        ("-", "--out", "OUT"),
        ("IN", "--out", "OUT", "--report", "-"),
        ("IN", "--out", "OUT", "--report", "IN/one.bin"),
        ("IN", "--out", "OUT", "--report", "OUT/one.bin"),
    ],
)
def test_folders_that_would_get_into_each_others_way_are_a_usage_error(rfhbridge, archive, tmp_path, arguments):
    before = contents(tmp_path)
    places = {"IN": archive, "OUT": tmp_path / "out", ".": tmp_path}
    named = [
        str(places[first]) + each.removeprefix(first) if (first := each.partition("/")[0]) in places else each
        for each in arguments
    ]
    ended = rfhbridge("convert", "--to", "mqrfh2", *named)
    assert ended.exit_code == 2, ended.stderr
    assert ended.stdout == b""
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["none", "in/one.bin"])
def test_what_is_no_folder_is_named(rfhbridge, archive, tmp_path, name):
    ended = rfhbridge("convert", "--to", "mqrfh2", tmp_path / name, "--out", tmp_path / "out")
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert f"it is for a folder of messages, and '{tmp_path / name}' is not a folder" in ended.stderr


def test_crash_in_the_middle_leaves_no_half_of_a_report(rfhbridge, archive, tmp_path, monkeypatch):
    calls = []

    def crash(*_):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        raise OSError("no")

    monkeypatch.setattr("gateway.cli.message.folder.converted_message", crash)
    ended = rfhbridge("convert", "--to", "mqrfh2", archive, "--out", tmp_path / "out")
    assert ended.exit_code == 130
    assert contents(tmp_path / "out") == {}
