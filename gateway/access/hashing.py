"""Threads that check passwords: a few, beside the event loop, at a lower priority than all else on the machine.

A check takes about 25 ms of a core, without Python's lock. One core always stays with the event loop.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

_log = logging.getLogger(__name__)

#: More would only compete for memory: each check takes as much as its hash asks for, ours 19 MiB.
MAXIMUM_THREADS: Final = 4
#: Nice value of the threads (Linux has one for each thread): logins wait, and publishers do not.
_NICE: Final = 10


Check = Callable[[], bool]
Done = Callable[[bool | None], None]


class HashingThreads:
    """Runs checks in threads, those of one address in the order of arrival; made and used on the event loop.

    Addresses take turns, so somebody who tries many passwords delays nobody else.
    """

    def __init__(self, *, maximum_waiting: int, threads: int | None = None) -> None:
        """`maximum_waiting`: checks under way and waiting."""
        cores = len(os.sched_getaffinity(0))
        self._free = threads or max(1, min(MAXIMUM_THREADS, cores - 1))
        self._executor = ThreadPoolExecutor(max_workers=self._free, thread_name_prefix="login", initializer=_step_back)
        self._maximum_waiting = maximum_waiting
        #: Checks that are under way or wait.
        self.unfinished = 0
        #: Waiting checks by address; the next address stands first.
        self._lines: dict[bytes, deque[tuple[Check, Done]]] = {}

    def submit(self, check: Check, done: Done, *, origin: bytes = b"") -> bool:
        """`done` follows on the event loop, with None where the check was not possible (no memory or room for it).

        False, and nothing follows, where too many wait already, and none of an origin that has more of them.
        """
        if self.unfinished >= self._maximum_waiting and not self._make_room(origin):
            return False
        self.unfinished += 1
        self._lines.setdefault(origin, deque()).append((check, done))
        self._go_on()
        return True

    def close(self) -> None:
        """Gives up the waiting checks."""
        self._lines.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _make_room(self, origin: bytes) -> bool:
        """Drops the newest check of the address that has most, for an address that has fewer."""
        longest = max(self._lines.values(), key=len, default=None)
        if longest is None or len(longest) <= len(self._lines.get(origin, ())) + 1:
            return False
        _, done = longest.pop()
        self.unfinished -= 1
        done(None)
        return True

    def _go_on(self) -> None:
        """Gives waiting checks to free threads."""
        while self._free and self._lines:
            origin = next(iter(self._lines))
            line = self._lines.pop(origin)
            check, done = line.popleft()
            if line:
                self._lines[origin] = line
            self._free -= 1
            self._run(check, done)

    def _run(self, check: Check, done: Done) -> None:
        loop = asyncio.get_running_loop()

        def finished(future: "Future[bool]") -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                loop.call_soon_threadsafe(self._finish, future, done)

        try:
            future = self._executor.submit(check)
        except RuntimeError as error:  # the system has no thread to give; the next check asks it again
            future = Future()
            future.set_exception(error)
        future.add_done_callback(finished)

    def _finish(self, future: "Future[bool]", done: Done) -> None:
        self.unfinished -= 1
        self._free += 1
        if future.cancelled():
            return
        self._go_on()
        error = future.exception()
        if error is not None:
            _log.error("password check failed error=%s", repr(error))
        done(None if error is not None else future.result())


def _step_back() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
