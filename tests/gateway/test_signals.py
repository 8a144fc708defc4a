"""The daemon's signals, in the event loop that it runs on and in Python's own."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
import uvloop

from gateway import signals

ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE_S = 15.0

pytestmark = pytest.mark.usefixtures("interpreter_as_it_was")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_each_signal_wakes_a_loop_that_has_nothing_to_do(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    called: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        came = asyncio.Event()

        def note(name: str) -> None:
            called.append(name)
            came.set()

        signal.pthread_sigmask(signal.SIG_BLOCK, ALL)  # as a program may that starts a gateway
        signals.hear(stop=lambda: note("stop"), read_again=lambda: note("read again"))
        for number in ALL:
            came.clear()
            loop.call_later(0.001, os.kill, os.getpid(), number)
            await asyncio.wait_for(came.wait(), PATIENCE_S)
        signals.ignore_from_now_on()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
    assert called == ["stop", "stop", "read again"]
    for number in ALL:
        os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_IGN
