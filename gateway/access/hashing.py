"""Threads that check passwords: a few, beside the event loop, at a lower priority than all else on the machine.

A check takes about 25 ms of a core, without Python's lock. One core always stays with the event loop. On a busy machine
a check may last minutes, so the end of the process waits for none: each has a thread of its own, which Python does not
join.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Final

from gateway.access.login_queue import LoginQueue, WaitingLogin
from gateway.config.limits import Limit
from gateway.limits.refusals import Refusals

_log = logging.getLogger(__name__)

#: More would only compete for memory: each check takes as much as its hash asks for, ours 19 MiB.
MAXIMUM_THREADS: Final = 4
#: Nice value of the threads (Linux has one for each thread): logins wait, and publishers do not.
_NICE: Final = 10


#: Whether the password is right; None: the check was not made, because nobody waits for its end.
Check = Callable[[], bool | None]
Done = Callable[[bool | None], None]
#: A waiting login is its check, and what follows.
Login = WaitingLogin[tuple[Check, Done]]


class HashingThreads:
    """Runs checks in threads, in the order of a LoginQueue; made and used on the event loop."""

    def __init__(
        self,
        *,
        maximum_waiting: int,
        threads: int | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        """`maximum_waiting`: checks under way and waiting. `refusals` counts those that give way."""
        cores = len(os.sched_getaffinity(0))
        self._free = threads or max(1, min(MAXIMUM_THREADS, cores - 1))
        self._refusals = refusals or Refusals()
        self._queue: LoginQueue[tuple[Check, Done]] = LoginQueue(maximum_waiting, now_s=time.monotonic, random=Random())

    @property
    def unfinished(self) -> int:
        """Checks that are under way or wait."""
        return self._queue.unfinished

    def submit(self, check: Check, done: Done, *, origin: bytes = b"", user: str = "", is_lately: bool = False) -> bool:
        """`done` follows on the event loop, with None where the check was not possible (no memory or room for it).

        False, and nothing follows, where the login itself must give way (LoginQueue.offer). `origin`: what the client's
        address is counted under. `is_lately`: the user logged in from there lately.
        """
        login = Login((check, done), network=origin, user=user, is_lately=is_lately)
        loser = self._queue.offer(login)
        if loser is not None:
            self._refusals.add(Limit.WAITING_LOGINS)
        if loser is login:
            return False
        if loser is not None:
            loser.asked[1](None)
        self._go_on()
        return True

    def close(self) -> None:
        """Gives up the waiting checks; those under way go on until the process ends."""
        self._queue.clear()

    def _go_on(self) -> None:
        """Gives waiting checks to free threads."""
        while self._free and (login := self._queue.take()) is not None:
            self._free -= 1
            self._run(login)

    def _run(self, login: Login) -> None:
        loop = asyncio.get_running_loop()
        check = login.asked[0]

        def run() -> None:
            _step_back()
            is_right, error = None, None
            try:
                is_right = check()
            except BaseException as raised:  # a panic of the library for hashes is none of Exception
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                loop.call_soon_threadsafe(self._finish, login, is_right, error)

        try:
            threading.Thread(target=run, name="login", daemon=True).start()
        except RuntimeError as error:  # the system has no thread to give; the next check asks it again
            loop.call_soon(self._finish, login, None, error)

    def _finish(self, login: Login, is_right: bool | None, error: BaseException | None) -> None:
        self._free += 1
        self._queue.finished(login, is_right)
        self._go_on()
        if error is not None:
            _log.error("password check failed error=%s", repr(error))
        login.asked[1](is_right)


def _step_back() -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
