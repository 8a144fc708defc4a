"""The build of these sources, for tests and fuzzers that need one."""

import importlib.metadata
import sys
from typing import Final

import pytest

from gateway import compiled

_UNAVAILABLE: Final = compiled.builds() / "unavailable"


def can_build() -> bool:
    """Whether nobody has tried to build here in vain."""
    return not _UNAVAILABLE.exists()


def why_no_build() -> str:
    """Why there is no build of these sources; "" where there is one."""
    if compiled.build().is_dir():
        return ""
    return "make compile has not built these sources" if can_build() else _UNAVAILABLE.read_text().strip()


def require_build() -> None:
    """The test is skipped where nothing can be built, and fails where the project promises its Python."""
    reason = why_no_build()
    if not reason:
        return
    promised = importlib.metadata.metadata("rfhbridge").get_all("Classifier", [])
    is_promised = f"Programming Language :: Python :: {sys.version_info.major}.{sys.version_info.minor}" in promised
    (pytest.fail if is_promised and reason.startswith("mypyc") else pytest.skip)(reason)
