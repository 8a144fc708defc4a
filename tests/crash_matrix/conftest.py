"""The theatre of the matrix: one server that forks gateways, and flows that are recorded once for all tests."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash_matrix.gateway_with_points import server_with_library
from tests.crash_matrix.points import LIBRARY
from tests.crash_matrix.stage import Theatre
from tests.memory_folder import place_for_commits


def why_unavailable() -> str:
    """Why the library cannot be used here; empty where it can."""
    reason = LIBRARY.with_name("unavailable")
    if reason.exists():
        return reason.read_text().strip()
    return "" if LIBRARY.exists() else "the library is not built: deploy/setup/crash-points.sh"


@pytest.fixture(scope="session")
def theatre() -> Iterator[Theatre]:
    if reason := why_unavailable():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="rfh", dir=place_for_commits()))  # a Unix socket's path is short
    with closing(server_with_library()) as server:
        yield Theatre(server=server, folder=folder)
    shutil.rmtree(folder, ignore_errors=True)
