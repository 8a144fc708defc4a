"""The repository itself as fixtures."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tracked_files(root: Path) -> list[Path]:
    """Every file that git tracks and that stands in the work tree."""
    if not (root / ".git").exists():
        pytest.skip("not a git repository: an unpacked archive")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    files = [root / name for name in listing.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


@pytest.fixture(scope="session")
def pyproject(root: Path) -> dict[str, Any]:
    """pyproject.toml as read."""
    return tomllib.loads((root / "pyproject.toml").read_text())
