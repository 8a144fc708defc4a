"""The moment in which the code under test sleeps, used as the moment in which something happens."""

import threading
import time
from collections.abc import Callable

import pytest


def when_this_thread_sleeps(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Calls `act` instead of each sleep of the calling thread. Other threads, such as Py4J's, go on sleeping."""
    this_thread, really_sleep = threading.current_thread(), time.sleep

    def sleep(seconds: float) -> None:
        if threading.current_thread() is this_thread:
            act()
        else:
            really_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
