"""The threads that check passwords: beside the event loop, few, and behind everything else on the machine.

A check takes about 25 ms of a core and gives Python's lock free meanwhile. One core always stays with the event loop.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

_log = logging.getLogger(__name__)

#: More would only compete for memory: each check takes what its hash asks for, ours 19 MiB.
MAXIMUM_THREADS: Final = 4
#: Nice value of the threads (Linux has one for each thread): whoever logs in waits, and nobody who publishes.
_NICE: Final = 10


class HashingThreads:
    """Runs checks in threads, in the order of arrival; made and used on the event loop."""

    def __init__(self, *, maximum_waiting: int, threads: int | None = None) -> None:
        """`maximum_waiting`: checks under way and waiting."""
        cores = len(os.sched_getaffinity(0))
        self._executor = ThreadPoolExecutor(
            max_workers=threads or max(1, min(MAXIMUM_THREADS, cores - 1)),
            thread_name_prefix="login",
            initializer=_step_back,
        )
        self._maximum_waiting = maximum_waiting
        #: Checks that are under way or wait.
        self.unfinished = 0

    def submit(self, check: Callable[[], bool], done: Callable[[bool | None], None]) -> bool:
        """`done` follows on the event loop, with None where the check was not possible (no memory for it).

        False, and nothing follows, where too many wait already.
        """
        if self.unfinished >= self._maximum_waiting:
            return False
        self.unfinished += 1
        loop = asyncio.get_running_loop()

        def finished(future: "Future[bool]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                loop.call_soon_threadsafe(self._finish, future, done)

        self._executor.submit(check).add_done_callback(finished)
        return True

    def close(self) -> None:
        """Gives up what waits."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _finish(self, future: "Future[bool]", done: Callable[[bool | None], None]) -> None:
        self.unfinished -= 1
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            _log.error("password check failed error=%s", repr(error))
        done(None if error is not None else future.result())


def _step_back() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
