"""The fork server of tests/processes under the library of points: a run with a control file counts its changes."""

import ctypes
import os

from tests.crash_matrix.points import VARIABLE
from tests.processes import fork_server


def _count_changes() -> None:
    if control := os.environ.get(VARIABLE):
        attached = ctypes.CDLL(None).crash_points_attach(control.encode())
        assert attached == 0, "the points cannot be counted"


if __name__ == "__main__":
    fork_server.main(_count_changes, has_nurseries=False)
