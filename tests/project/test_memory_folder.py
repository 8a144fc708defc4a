"""Files of tests are in memory, unless the proof is in full or there is no room."""

import os
from pathlib import Path

import pytest

from tests.memory_folder import keep_a_run_in_memory, place_for_commits

VARIABLES = ("PYTEST_DEBUG_TEMPROOT", "TMPDIR")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFHBRIDGE_PROOF", "short")
    for each in VARIABLES:
        monkeypatch.setenv(each, "")  # pytest puts back what was there, whatever the test does
        monkeypatch.delenv(each)


def _places() -> list[str | None]:
    return list(map(os.environ.get, VARIABLES))


def test_stores_are_in_memory_where_there_is_room(tmp_path: Path) -> None:
    assert place_for_commits(tmp_path) == tmp_path
    assert place_for_commits(tmp_path / "nowhere") is None
    assert place_for_commits(tmp_path, needed_bytes=1 << 60) is None


def test_stores_of_full_proofs_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFHBRIDGE_PROOF", "full")
    assert place_for_commits(tmp_path) is None
    keep_a_run_in_memory(tmp_path)
    assert _places() == [None, None]


def test_a_run_is_in_memory_where_there_is_room_for_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.memory_folder.NEEDED_BY_A_RUN_BYTES", 1 << 60)
    keep_a_run_in_memory(tmp_path)
    assert _places() == [None, None]
    monkeypatch.setattr("tests.memory_folder.NEEDED_BY_A_RUN_BYTES", 0)
    keep_a_run_in_memory(tmp_path)
    assert _places() == [str(tmp_path)] * 2


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_run_is_where_the_caller_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setattr("tests.memory_folder.NEEDED_BY_A_RUN_BYTES", 0)
    monkeypatch.setenv(variable, "/elsewhere")
    keep_a_run_in_memory(tmp_path)
    assert sorted(_places(), key=str) == ["/elsewhere", None]
