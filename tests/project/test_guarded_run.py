"""A run of pytest that ends in any way leaves no process behind: no gateway, exporter, Java or child of theirs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guarded_run import MARK, marked_processes

PATIENCE_S = 60.0
#: A module of tests whose one test starts a gateway, and a process in a session of its own that ignores SIGTERM.
STUBBORN = """
import signal, subprocess, sys, time
from pathlib import Path

def test_that_is_interrupted(tmp_path):
    place = Path({place!r})
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    one = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True, stdout=subprocess.PIPE)
    one.stdout.readline()
    command = [sys.executable, "-m", "gateway.cli", "run", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
    gateway = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in gateway.stderr:
        if "gateway started" in line:
            break
    (place / "ready").write_text("")
    time.sleep(600)
"""
#: The same as tests/conftest.py does, with a mark and a patience of the test's own.
PLUGIN = """
import os
from tests.guarded_run import MARK, start_guard

def pytest_configure(config):
    if MARK not in os.environ:
        start_guard({mark!r}, patience_s=4.0)
"""


def _wait(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(("ending", "workers"), [(signal.SIGINT, 0), (signal.SIGKILL, 1), (signal.SIGTERM, 1)])
def test_nothing_is_left_of_a_run_that_ends_by_a_signal(
    tmp_path: Path, root: Path, ending: signal.Signals, workers: int
) -> None:
    (tmp_path / "test_stubborn.py").write_text(STUBBORN.format(place=str(tmp_path)))
    mark = f"interrupted-{os.getpid()}-{tmp_path.name}"
    (tmp_path / "guarding.py").write_text(PLUGIN.format(mark=mark))
    variables = {name: value for name, value in os.environ.items() if name != MARK}
    variables |= {"PYTHONPATH": f"{root}{os.pathsep}{tmp_path}", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "guarding"]
    command += ["-p", "no:cacheprovider", "-n", str(workers), str(tmp_path / "test_stubborn.py")]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, start_new_session=True) as run:
        assert _wait((tmp_path / "ready").exists)
        # Gateway, exporter, the one that ignores SIGTERM, and workers. A process that begins a program has no mark yet.
        assert _wait(lambda: len(marked_processes(mark)) >= 3 + workers)
        if ending == signal.SIGINT:
            os.killpg(run.pid, ending)  # as a terminal does at Ctrl-C
        else:
            run.send_signal(ending)
        run.wait(PATIENCE_S)
    assert _wait(lambda: marked_processes(mark) == [])
