"""Ctrl-C while Spark works: the process ends soon and silently.

PySpark's own handler calls Java from within another call, and py4j logs the errors of that. Here the interruption only
raises KeyboardInterrupt. The connection to Java is then in the middle of an answer, so Java is killed instead of asked
to stop. It loses only the scratch folder.
"""

import logging
import os
import signal
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

#: spark-class, which PySpark starts, becomes `.../bin/java`.
_JAVA: Final = b"java"


class Interruption:
    """Watches for SIGINT while it is entered; in the main thread only.

    An interruption during the start of Spark waits for its end, because an orphaned Java prints long errors.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._is_waiting = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        if not self.has_come:  # otherwise this process is ending, and a second interruption adds nothing
            signal.signal(signal.SIGINT, self._before)

    def listen(self) -> None:
        """Unblocks SIGINT, which the parent may have blocked during loading.

        Raises KeyboardInterrupt if one came meanwhile.
        """
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    @contextmanager
    def held(self) -> Iterator[None]:
        """For the start of Spark, which would set a handler of its own. Raises KeyboardInterrupt at its end.

        A blocked signal is not enough. It then goes to a thread of a library, and Python's handler runs anyway. An
        interruption in the middle of the start once left a Java that never ended.
        """
        install = signal.signal
        install(signal.SIGINT, self._note)
        signal.signal = _but_for_interruptions(install)  # type: ignore[assignment]  # of the same parameters
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.signal = install
            signal.signal(signal.SIGINT, self._on_signal)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            if self._is_waiting:
                self._on_signal(signal.SIGINT, None)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._is_waiting = True

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.has_come = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fall_silent()
        kill_java()
        raise KeyboardInterrupt


def _but_for_interruptions(install: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    """signal.signal without changes of SIGINT's handler.

    Ignoring SIGINT, as the process of Java does, stays possible.
    """

    def installed(number: int, handler: Any) -> Any:
        return None if number == signal.SIGINT and callable(handler) else install(number, handler)

    return installed


def _fall_silent() -> None:
    """Silences errors of calls that were interrupted, or that found Java gone, because this process is ending.

    PySpark listens to its workers' sums in a thread, and py4j lets go of Java's objects where no exception can leave.
    """
    logging.disable(logging.CRITICAL)
    socketserver.BaseServer.handle_error = _say_nothing  # type: ignore[method-assign]  # for all of them
    sys.unraisablehook = lambda _unheard: None
    threading.excepthook = lambda _unheard: None


def _say_nothing(self: socketserver.BaseServer, request: object, client_address: object) -> None:
    """A server's treatment of a request that failed: nothing."""


def kill_java() -> None:
    """Kills the Java that PySpark started in this process, if any. Its Python workers end with it."""
    for child in _children():
        if _JAVA in _program_of(child):
            os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    """The processes that this one started (Linux)."""
    threads = Path("/proc/self/task").glob("*/children")
    return [int(number) for children in threads for number in children.read_text().split()]


def _program_of(process: int) -> bytes:
    """The first argument of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return b""
