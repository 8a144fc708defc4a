"""Runs a command beside another process, in the time that it leaves, and ends it with that process.

usage: python deploy/setup/beside.py PID COMMAND...

The command has the lowest priority. While the other process is busy, it works in one second of four. Where memory runs
short, Linux ends the command first. All that the command has started rests and ends with it.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

_SECOND_MS: Final = 1_000
#: A process that uses more of a core than this in a second is busy.
_BUSY_SHARE: Final = 0.2
#: Beside a busy process the command works in one second of so many.
_SECONDS_OF_A_TURN: Final = 4
#: What Linux's out-of-memory killer takes first (proc(5), oom_score_adj).
_FIRST_TO_GO: Final = "1000"


def main() -> None:
    process_id, *command = sys.argv[1:] or [""]
    if not process_id.isdecimal() or not command:
        sys.exit("usage: beside.py PID COMMAND...")
    os.setsid()  # no signal of the terminal comes here
    _step_back()
    try:
        other = os.pidfd_open(int(process_id))
    except ProcessLookupError:
        return
    except (AttributeError, OSError) as error:
        sys.exit(f"nothing is built beside a gateway without pidfd_open of Linux 5.3: {error}")
    sys.exit(_run_beside(other, int(process_id), command))


def _step_back() -> None:
    os.nice(19)
    with contextlib.suppress(OSError):  # a sandbox may refuse it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def _run_beside(other: int, process_id: int, command: list[str]) -> int:
    """Returns the exit code of the command."""
    end = select.poll()
    end.register(other, select.POLLIN)
    second, used_s = 0, _used_s(process_id)
    with subprocess.Popen(command, process_group=0) as running:
        while running.poll() is None:
            if end.poll(_SECOND_MS):
                os.killpg(running.pid, signal.SIGKILL)
                break
            before_s, used_s, second = used_s, _used_s(process_id), second + 1
            rests = used_s - before_s > _BUSY_SHARE and second % _SECONDS_OF_A_TURN != 0
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.killpg(running.pid, signal.SIGSTOP if rests else signal.SIGCONT)
    return running.returncode


def _used_s(process_id: int) -> float:
    """CPU seconds that a process has used so far (proc(5), /proc/PID/stat: fields 14 and 15)."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
