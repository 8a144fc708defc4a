"""A gateway's queue manager in a thread of the test's process, with its socket for applications."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import uvloop

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.server import Server

T = TypeVar("T")

STEP_S: Final = 60.0  # no step of a test takes longer; a lock that never comes ends the test with an error


class GatewayThread:
    """An engine and its socket server in an event loop of their own, the daemon's kind."""

    def __init__(self, data_dir: Path, **options: Any) -> None:
        """`options` are those of the server."""
        self.data_dir = data_dir
        self._options = options
        self.engine: Engine
        self.server: Server
        self.loop: asyncio.AbstractEventLoop
        self.stopping: asyncio.Event
        self.complaints: list[dict[str, object]] = []
        self._is_up = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gateway")
        self._thread.start()
        assert self._is_up.wait(STEP_S), "the gateway did not start"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._is_up.set()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda _loop, context: self.complaints.append(context))
        self.stopping = asyncio.Event()
        self.engine = Engine.open(self.data_dir, call_soon=self.loop.call_soon)
        self.server = Server(self.engine, self.data_dir, **self._options)
        try:
            await self.server.start()
            await self._opened()
            self._is_up.set()
            await self.stopping.wait()
            await self._closing()
            await self.server.stop()
        finally:
            self.engine.close()

    async def _opened(self) -> None:
        """For what else a gateway opens."""

    async def _closing(self) -> None:
        """For what `_opened` has opened."""

    def call(self, function: Callable[[], T]) -> T:
        """Runs a function in the gateway's loop and waits for its value."""

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(STEP_S)

    def stop(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.stopping.set)
        self._thread.join(STEP_S)
        assert not self._thread.is_alive(), "the gateway did not stop"
        assert self.complaints == []
        if self._error is not None:
            raise self._error
