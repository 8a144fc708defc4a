"""The library that counts, kills and records: each change that Python and SQLite make is seen, once, in its order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash_matrix.conftest import why_unavailable
from tests.crash_matrix.flows import FLOWS
from tests.crash_matrix.points import LIBRARY, VARIABLE, Moment, Operation, Option, Points
from tests.crash_matrix.stage import Flow, Theatre

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "-")

#: One change after another, to a folder of the table of names.
CHANGES = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("second")
folder = os.open("second", os.O_RDONLY)
file = os.open("a", os.O_RDWR | os.O_CREAT, dir_fd=folder)
os.write(file, b"abc")
os.pwrite(file, b"X", 1)
os.writev(file, [b"de", b"f"])
os.ftruncate(file, 5)
os.fsync(file)
os.fdatasync(file)
os.rename("second/a", "second/b")
os.link("second/b", "second/c")
os.fsync(folder)
os.unlink("second/c")
os.truncate("second/b", 2)
os.close(os.open("second/b", os.O_WRONLY | os.O_TRUNC))
os.close(os.open("elsewhere.socket", os.O_RDWR | os.O_CREAT))
os.remove("second/b")
os.rmdir("second")
"""
SEEN = [
    (Operation.MKDIR, "second", b""),
    (Operation.CREATE, "second/a", b""),
    (Operation.WRITE, "second/a", b"abc"),
    (Operation.WRITE, "second/a", b"X"),
    (Operation.WRITE, "second/a", b"def"),
    (Operation.TRUNCATE, "second/a", b""),
    (Operation.SYNC, "second/a", b""),
    (Operation.SYNC, "second/a", b""),
    (Operation.RENAME, "second/a", b""),
    (Operation.LINK, "second/b", b""),
    (Operation.SYNC_FOLDER, "second", b""),
    (Operation.UNLINK, "second/c", b""),
    (Operation.TRUNCATE, "second/b", b""),
    (Operation.TRUNCATE, "second/b", b""),
    (Operation.CREATE, "elsewhere.socket", b""),
    (Operation.UNLINK, "second/b", b""),
    (Operation.RMDIR, "second", b""),
]


FEW = [flow for flow in FLOWS if flow.name in ("first start", "second place")]


def _run(points: Points, folder: Path) -> int:
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY), VARIABLE: str(points.path)}
    return subprocess.run([sys.executable, "-c", CHANGES, str(folder)], env=environment, check=False).returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_each_change_is_recorded_in_its_order(tmp_path: Path, folder: Path) -> None:
    with Points(tmp_path / "points", folder, options=Option.KEEP_JOURNAL) as points:
        assert _run(points, folder) == 0
        changes = list(points.changes())
        assert [(each.operation, each.path, each.data) for each in changes] == SEEN
        assert [each.number for each in changes] == list(range(1, points.count + 1))
        assert [each.offset for each in changes if each.operation is Operation.WRITE] == [0, 1, 3]
        assert [each.target for each in changes if each.target] == ["second/b", "second/c"]


@pytest.mark.parametrize(
    ("number", "moment", "left"),
    [
        (3, Moment.BEFORE, b""),
        (3, Moment.HALF_DONE, b"a"),
        (3, Moment.AFTER, b"abc"),
        (5, Moment.BEFORE, b"aXc"),
        (5, Moment.AFTER, b"aXcdef"),
    ],
)
def test_a_kill_comes_at_its_point_and_nothing_behind_it(
    tmp_path: Path, folder: Path, number: int, moment: Moment, left: bytes
) -> None:
    with Points(tmp_path / "points", folder) as points:
        points.kill_at(number, moment)
        assert _run(points, folder) == -9
        assert points.is_dead
        assert points.count == number
        assert (folder / "second" / "a").read_bytes() == left
        assert _run(points, folder) == -9  # nobody changes anything any more
        assert (folder / "second" / "a").read_bytes() == left


@pytest.mark.parametrize("flow", FEW, ids=lambda flow: flow.name)
def test_every_file_that_the_gateway_changes_has_a_row_in_the_table_of_names(theatre: Theatre, flow: Flow) -> None:
    changes = theatre.recorded(flow).changes
    assert {each.path for each in changes if each.file is None} == set()
    assert {"store", "WAL", "trail", "digests"} <= {each.file.what for each in changes if each.file is not None}
