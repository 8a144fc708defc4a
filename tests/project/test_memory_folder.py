"""Stores of tests are in memory, unless the proof is in full or there is no room."""

from pathlib import Path

import pytest

from tests.memory_folder import place_for_commits


def test_stores_are_in_memory_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFHBRIDGE_PROOF", "short")
    assert place_for_commits(tmp_path) == tmp_path
    assert place_for_commits(tmp_path / "nowhere") is None
    monkeypatch.setattr("tests.memory_folder.NEEDED_BYTES", 1 << 60)
    assert place_for_commits(tmp_path) is None


def test_stores_of_full_proofs_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFHBRIDGE_PROOF", "full")
    assert place_for_commits(tmp_path) is None
