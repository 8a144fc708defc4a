"""Runs a command beside another process, when the machine has nothing else to do, and ends it with that process.

usage: python deploy/setup/beside.py PID COMMAND...

Where memory runs short, Linux ends the command first. All that it has started ends with it.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

#: What Linux's out-of-memory killer takes first (proc(5), oom_score_adj).
_FIRST_TO_GO: Final = "1000"


def main() -> None:
    process_id, *command = sys.argv[1:]
    os.setsid()  # a group of its own, which ends as a whole
    _wait_for_idle_time()
    try:
        process = os.pidfd_open(int(process_id))
    except ProcessLookupError:
        return
    threading.Thread(target=_end_with, args=[process], daemon=True).start()
    sys.exit(subprocess.run(command, check=False).returncode)


def _wait_for_idle_time() -> None:
    os.nice(19)
    with contextlib.suppress(OSError):  # a sandbox may refuse it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def _end_with(process: int) -> None:
    """Waits for the end of the process behind that descriptor, and then ends this group."""
    ended = select.poll()
    ended.register(process, select.POLLIN)
    ended.poll()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
