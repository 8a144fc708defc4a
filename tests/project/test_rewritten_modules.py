"""Test modules are rewritten once before the workers start, where pytest then finds them, and only if they changed."""

import os
import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc

from tests.rewritten_modules import rewrite_stale_modules

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # this process may have threads


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two modules that pytest rewrites, and one that it does not."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("test_one.py", "conftest.py", "other.py"):
        (tmp_path / name).write_text("def test_it():\n    assert 1 == 1\n")
    return tmp_path


def found_by_pytest(module: Path) -> bool:
    return _read_pyc(module, module.parent / "__pycache__" / (module.stem + PYC_TAIL)) is not None


def test_pytest_finds_what_was_rewritten(place: Path, pytestconfig: pytest.Config) -> None:
    assert rewrite_stale_modules(pytestconfig, [str(place)]) == 2
    assert found_by_pytest(place / "test_one.py")
    assert found_by_pytest(place / "conftest.py")
    assert not found_by_pytest(place / "other.py")


def test_only_what_changed_is_rewritten_again(place: Path, pytestconfig: pytest.Config) -> None:
    rewrite_stale_modules(pytestconfig, [str(place)])
    assert rewrite_stale_modules(pytestconfig, [str(place)]) == 0
    (place / "test_one.py").write_text("def test_it():\n    assert 2 == 2, 'another text'\n")
    later = (place / "conftest.py").stat().st_mtime + 10
    os.utime(place / "test_one.py", (later, later))
    assert rewrite_stale_modules(pytestconfig, [f"{place}/test_one.py::test_it"]) == 1
    assert found_by_pytest(place / "test_one.py")


def test_a_module_that_cannot_be_read_is_left_to_the_worker(place: Path, pytestconfig: pytest.Config) -> None:
    (place / "test_one.py").write_text("def test_it(:\n")
    rewrite_stale_modules(pytestconfig, [str(place)])
    assert not found_by_pytest(place / "test_one.py")


def test_nothing_is_written_where_python_is_to_write_no_bytecode(
    place: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rewrite_stale_modules(pytestconfig, [str(place)]) == 0
    assert not (place / "__pycache__").exists()
