"""SIGTERM as an event that a thread can wait for."""

import os
import select
import signal
from typing import Protocol


class StopRequest(Protocol):
    """Says when the exporter is to end."""

    def wait(self, seconds: float) -> bool:
        """Waits up to `seconds`; True, at once, when the end was asked for."""
        ...


class TerminationSignal:
    """SIGTERM as an event. SIGINT is ignored: a terminal sends it to the gateway too, which stops us."""

    def __init__(self, *, asked: bool = False) -> None:
        self._asked = asked
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait(self, seconds: float) -> bool:
        if not self._asked:
            select.select([self._read], [], [], seconds)
        return self._asked

    def close(self) -> None:
        """Lets go of the pipe; signals do not wake `wait` any more."""
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._asked = True
