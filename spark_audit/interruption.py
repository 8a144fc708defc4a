"""Ctrl-C while Spark works: the process ends soon and without a word.

PySpark's own handler calls Java from within another call, and py4j logs what comes of that. Here the interruption
raises KeyboardInterrupt alone; the connection to Java is then in the middle of an answer, so Java is not asked to stop
but killed: all that it has is the scratch folder.
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

    While Spark starts, an interruption waits until it has: a Java that is alone says so at length.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._is_waiting = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        if not self.has_come:  # else this process ends, and a second interruption tells it nothing
            signal.signal(signal.SIGINT, self._before)

    def listen(self) -> None:
        """Whoever started this process may have held SIGINT back while it was loaded; raises KeyboardInterrupt then."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    @contextmanager
    def held(self) -> Iterator[None]:
        """Around the start of Spark, which would put a handler of its own there. Raises KeyboardInterrupt at its end.

        To block the signal is not enough: it then comes to a thread of a library, and Python's handler runs all the
        same. An interruption in the middle of the start left a Java behind that never ended.
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
    """signal.signal that leaves the handler of SIGINT; to ignore it, as the process of Java does, is no handler."""

    def installed(number: int, handler: Any) -> Any:
        return None if number == signal.SIGINT and callable(handler) else install(number, handler)

    return installed


def _fall_silent() -> None:
    """This process ends, and nobody need hear of a call that was interrupted, or that found Java gone.

    PySpark listens to its workers' sums in a thread, and py4j lets go of Java's objects where no exception can leave.
    """
    logging.disable(logging.CRITICAL)
    socketserver.BaseServer.handle_error = _say_nothing  # type: ignore[method-assign]  # for all of them
    sys.unraisablehook = lambda _unheard: None
    threading.excepthook = lambda _unheard: None


def _say_nothing(self: socketserver.BaseServer, request: object, client_address: object) -> None:
    """What a server does about a request that failed."""


def kill_java() -> None:
    """Kills the Java that PySpark started in this process, if it did; its Python workers end with it."""
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
    """The first argument of a process; nothing where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return b""
