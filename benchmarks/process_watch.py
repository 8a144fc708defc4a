"""What a process and all that it started took: CPU time, and the most memory at one time by program, from /proc."""

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.servers import cpu_s

_PROC: Final = Path("/proc")
_INTERVAL_S: Final = 1.0
#: Of /proc/PID/stat, counted behind the name of the program.
_PARENT: Final = 1


class ProcessWatch:
    """Looks every second while it is entered. Pages that processes share count once (proportional set size)."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peaks: dict[str, float] = {}
        self._used_s: dict[int, float] = {}
        #: Memory of all processes together at its peak, MiB.
        self.peak_mib = 0.0

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all processes; what one used after the last look at it is not counted."""
        return sum(self._used_s.values())

    def peak_mib_of(self, program: str) -> float:
        """The peak of all processes whose program has a name that begins so, MiB."""
        return max((size for name, size in self._peaks.items() if name.startswith(program)), default=0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            now: dict[str, float] = {}
            for process_id in _family(self._process_id):
                with contextlib.suppress(OSError, StopIteration):
                    name = (_PROC / str(process_id) / "comm").read_text().strip()
                    self._used_s[process_id] = cpu_s(process_id)
                    now[name] = now.get(name, 0.0) + _share_mib(process_id)
            for name, size in now.items():
                self._peaks[name] = max(self._peaks.get(name, 0.0), size)
            self.peak_mib = max(self.peak_mib, sum(now.values()))
            if self._ended.wait(_INTERVAL_S):
                return


def _family(process_id: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[_PARENT]), []).append(int(folder.name))
    family = [process_id]
    for each in family:
        family += children.get(each, [])
    return family


def _share_mib(process_id: int) -> float:
    lines = (_PROC / str(process_id) / "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1_024
