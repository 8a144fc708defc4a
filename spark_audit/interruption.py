"""Ctrl-C while Spark works: the process ends soon and without a word.

PySpark's own handler calls Java from within another call, and py4j logs what comes of that. Here the interruption
raises KeyboardInterrupt alone; the connection to Java is then in the middle of an answer, so Java is not asked to stop
but killed: all that it has is the scratch folder.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


class Interruption:
    """Watches for SIGINT while it is entered; in the main thread only.

    While Spark starts, an interruption waits until it has: a Java that is alone says so at length.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        logging.disable(logging.NOTSET)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Around the start of Spark, which puts a handler of its own in place. Raises KeyboardInterrupt at its end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._on_signal)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.has_come = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        logging.disable(logging.CRITICAL)
        kill_java()
        raise KeyboardInterrupt


def kill_java() -> None:
    """Kills the Java that PySpark started in this process, if it did; its Python workers end with it."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
