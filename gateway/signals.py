"""The signals that an operator sends to the daemon: SIGTERM and SIGINT stop it, SIGHUP has it read its files again.

None of them gets its default while the daemon runs or ends: each would end the process at once. A handler of the event
loop itself would give it back its default when the handler is removed, and when the loop closes. A process inherits
which signals are blocked from the program that starts it, and a blocked SIGTERM would never come.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def hear(*, stop: Callable[[], None], read_again: Callable[[], None]) -> None:
    """Calls back in the running event loop for each signal."""
    for number, call in zip(_SIGNALS, (stop, stop, read_again), strict=True):
        _hear(number, call)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _hear(number: signal.Signals, call: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(call))


def ignore_from_now_on() -> None:
    """The process is about to end."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
