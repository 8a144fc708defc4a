"""One run of pytest: whatever ends it, its gateways, exporters, Java and mounts end with it.

pytest's first process marks its environment, which every process of the run inherits, and starts a guard in a session
of its own. Ctrl-C, SIGTERM and SIGKILL pass the guard by. Once pytest has ended, the guard ends each process that still
has the mark: first with SIGTERM, after a while with SIGKILL. Then it unmounts the file systems that bear the mark.
Source: proc(5), /proc/PID/environ; pidfd_open(2).
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

MARK: Final = "RFHBRIDGE_TEST_RUN"
#: Left alone, a gateway stops within this time after SIGTERM, seconds.
_PATIENCE_S: Final = 20.0
#: How often the guard looks whether the processes have ended, seconds.
_INTERVAL_S: Final = 0.2
#: The workers of pytest-xdist see for themselves that pytest has ended; they have this time for it, seconds.
_TIME_OF_WORKERS_S: Final = 2.0


def start_guard(mark: str, *, patience_s: float = _PATIENCE_S) -> None:
    """Marks all processes that this one will start. Its end is the end of the run."""
    os.environ[MARK] = mark
    command = [sys.executable, "-S", __file__, mark, str(os.getpid()), str(patience_s)]
    # The guard holds no pipe of pytest's: a reader of the output would wait for the guard's end too.
    nothing = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nothing, setsid=True)


def marked_processes(mark: str) -> list[int]:
    """The processes of a run, apart from its guards. A process of another user is not among them."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            is_guard = os.fsencode(__file__) in (folder / "cmdline").read_bytes().split(b"\0")
            if not is_guard and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def _marked_a_moment_later(mark: str) -> list[int]:
    time.sleep(_INTERVAL_S)
    return marked_processes(mark)


def _end_all(mark: str, patience_s: float) -> None:
    """Ends the processes of a run, and those that they start meanwhile."""
    started = time.monotonic()
    asked: set[int] = set()
    # For a moment between fork and the new program's start, a process shows no environment: one look is not enough.
    while left := marked_processes(mark) or _marked_a_moment_later(mark):
        passed_s = time.monotonic() - started
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                if passed_s > patience_s:
                    os.kill(process, signal.SIGKILL)
                elif passed_s > _TIME_OF_WORKERS_S and process not in asked:
                    os.kill(process, signal.SIGTERM)
                    asked.add(process)
        time.sleep(_INTERVAL_S)


def _unmount_all(mark: str) -> None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, place, *_ = line.split(" ")
        if source == mark:
            subprocess.run(["umount", "--lazy", place], check=False)


def _guard(mark: str, pytest_process: int, patience_s: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        ended = os.pidfd_open(pytest_process)
        select.select([ended], [], [])
    _end_all(mark, patience_s)
    _unmount_all(mark)


if __name__ == "__main__":
    _guard(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
