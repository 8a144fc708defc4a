"""The time of a channel, as an argument: tests set their own."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mq_adapters.plausible_clock import wall_us


def _wait(stop: threading.Event, seconds: float) -> None:
    stop.wait(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`now_us`: microseconds since 1970 (UTC). `monotonic_s`: seconds since any moment. `wait` ends early at a stop."""

    now_us: Callable[[], int] = wall_us
    monotonic_s: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Event, float], None] = _wait


SYSTEM_CLOCK: Final = Clock()
