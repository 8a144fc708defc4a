"""The disk's own pauses while something else is measured: a page is synced again and again beside it, and timed."""

import os
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Final, Self

#: The probe waits so long after each sync: 50 syncs a second, where the gateway makes up to a thousand.
_INTERVAL_S: Final = 0.02
#: One page of SQLite's write-ahead log, about what a lone commit writes.
_PAGE_BYTES: Final = 4_096


class DiskPauses:
    """Syncs a page of a file of its own, in a thread, until the `with` statement ends.

    The page is always the same one, so that no sync waits for a change of the file's size, as a growing log does.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is on the disk in question."""
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._probe, daemon=True)
        #: The longest sync so far.
        self.longest_ms = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _probe(self) -> None:
        with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
            while True:
                os.pwrite(file.fileno(), bytes(_PAGE_BYTES), 0)
                began_s = perf_counter()
                os.fdatasync(file.fileno())
                self.longest_ms = max(self.longest_ms, 1_000 * (perf_counter() - began_s))
                if self._ended.wait(_INTERVAL_S):
                    return
