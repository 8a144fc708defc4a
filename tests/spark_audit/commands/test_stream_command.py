"""The command that runs a stream: its turns, its words, and its exit codes. The batches are in test_stream.py."""

import contextlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spark_audit.__main__ import main
from spark_audit.commands.engines import duck_engine
from spark_audit.engines.engine import Engine
from spark_audit.location import LocationFailed
from tests.sleeping import when_this_thread_sleeps
from tests.spark_audit.conftest import TrailBuilder, policy_text_of, signing_key

SEGMENT = "000000000001-20261120T07.jsonl"


def _command(tmp_path: Path) -> list[str]:
    """The command with everything that it needs, but for its trails."""
    (tmp_path / "policy.toml").write_text(policy_text_of("integrity.hash", "integrity.lines"))
    folders = ("--out", tmp_path / "to", "--checkpoint", tmp_path / "checkpoint", "--policy", tmp_path / "policy.toml")
    return ["stream", "--once", "--engine", "duckdb", *map(str, folders)]


def test_stream_judges_the_other_trails_before_it_ends_for_one_that_was_rewritten(tmp_path: Path, capsys) -> None:
    first, second = TrailBuilder(tmp_path / "first"), TrailBuilder(tmp_path / "second")
    command = [*_command(tmp_path), "--json"]
    for builder in (first, second):
        builder.add("accepted")
        command += ["--trail", str(builder.write())]
    assert main(command) == 0
    (first.folder / SEGMENT).unlink()
    second.lines.clear()
    second.add("accepted")
    second.write(f"{2:012d}-20261120T08.jsonl")
    capsys.readouterr()
    assert main(command) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["batch"] == 3
    assert told.err.count("\n") == 1
    assert f"{first.folder}: segment {SEGMENT.partition('.')[0]}, with which the state ended, is not there" in told.err


def test_a_trail_may_come_later_and_nothing_new_starts_no_engine(tmp_path: Path, trail, monkeypatch) -> None:
    command = [*_command(tmp_path), "--data", str(tmp_path / "data")]
    (tmp_path / "data").mkdir()
    assert main(command) == 2, "there is no trail yet"
    trail.add("accepted")
    trail.write()
    assert main(command) == 0

    def refuse(*_values: object) -> None:
        raise AssertionError("an engine was started")

    monkeypatch.setattr("spark_audit.commands.stream.duck_engine", refuse)
    assert main(command) == 0


class _EndOfTheTest(BaseException):
    """Nobody ends a stream without --once."""


def test_stream_says_a_problem_once_and_waits_for_it_to_end(tmp_path: Path, trail, monkeypatch, capsys) -> None:
    command = [word for word in _command(tmp_path) if word != "--once"]
    command += ["--trail", str(trail.folder), "--json"]
    trail.folder.mkdir(parents=True)
    engines: list[int] = []

    def foreign() -> None:
        trail.lines.append(b"temperature;21\n")
        trail.write()

    def record() -> None:
        trail.lines.clear()
        trail.add("accepted")
        trail.write(f"{2:012d}-20261120T08.jsonl")

    def nothing() -> None:
        pass

    comes = iter([nothing, foreign, nothing, record, nothing, nothing])

    def engine(scratch: Path, memory: str, text_bytes: int) -> contextlib.AbstractContextManager[Engine]:
        engines.append(len(list(trail.folder.iterdir())))
        if engines == [1, 2]:
            raise LocationFailed("segment 2", "it was removed while the trail was read (read it once more)")
        return duck_engine(scratch, memory, text_bytes)

    monkeypatch.setattr("spark_audit.commands.stream.duck_engine", engine)
    when_this_thread_sleeps(monkeypatch, lambda: next(comes, _the_end)())
    with pytest.raises(_EndOfTheTest):
        main(command)
    told = capsys.readouterr()
    assert engines == [1, 2, 2], "once for the first segment, and twice with the second, which was removed meanwhile"
    assert [line.removeprefix(f"rfhbridge audit stream: {trail.folder} ") for line in told.err.splitlines()] == [
        "cannot be judged: no closed segment holds a line",
        "cannot be judged from 000000000001-20261120T07 on: no line of the trail is an audit record",
        "cannot be judged: segment 2: it was removed while the trail was read (read it once more)",
    ]
    assert json.loads(told.out)["reason"] == "1 violation of integrity.lines"


def _the_end() -> None:
    raise _EndOfTheTest


def test_stream_needs_its_key_and_a_checkpoint_of_its_own(tmp_path: Path, trail, capsys) -> None:
    trail.add("accepted")
    command = [*_command(tmp_path), "--trail", str(trail.write())]
    assert main(command) == 0
    key = tmp_path / "auditor.pem"
    key.write_bytes(signing_key(9).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    capsys.readouterr()
    assert main([*command, "--sign", str(key)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "this audit's key has not signed it: name the one that has with --sign, or begin a new checkpoint" in told
    checkpoint = ["--checkpoint", str(tmp_path / "other")]
    assert main([*command, *checkpoint, "--sign", str(key)]) == 0
    assert not (tmp_path / "other" / "key.pem").exists()
    assert main([*command, *checkpoint, "--sign", str(key)]) == 0
    assert main([*command, *checkpoint]) == 2
    assert "are signed by a key that is not in it: name that key with --sign" in capsys.readouterr().err
