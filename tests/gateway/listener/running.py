"""One listener of a configuration, running on the event loop that the gateway uses."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import uvloop

from gateway.bridge.bridge import Bridge
from gateway.config import Settings
from gateway.config.limits import Limit
from gateway.listener import Listeners
from gateway.listener.link import NetworkLink
from tests.gateway.listener.recording_bridge import RecordingBridge

Table = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A listener that is open, and what it brings."""

    listeners: Listeners
    bridge: RecordingBridge
    port: int

    async def only_link(self) -> NetworkLink:
        """The link of the only connection, when something has come by it."""
        await self.bridge.until(lambda: bool(self.bridge.links))
        (link,) = self.bridge.links
        return link

    def refused(self, limit: Limit) -> int:
        """How many were refused at a limit."""
        return sum(count for (at, _), count in self.bridge.admission.refusals.totals.items() if at is limit)


Scenario = Callable[[Running], Awaitable[None]]


def run(scenario: Scenario, listener: Table, *, answers: bool = True, **mqtt: object) -> None:
    """Plays a scenario against a listener on a free port, whose bridge sends back what comes unless told otherwise."""
    table = {"name": "tested", "listen": "127.0.0.1:0", **listener}

    async def main() -> None:
        settings = Settings.model_validate({"listener": [table], "mqtt": mqtt})
        bridge = RecordingBridge(answers=answers, limits=settings.mqtt)
        listeners = Listeners(cast(Bridge, bridge), settings)
        (opened,) = await listeners.start()
        watching = asyncio.create_task(listeners.watch())
        try:
            await scenario(Running(listeners=listeners, bridge=bridge, port=opened.address.port))
        finally:
            watching.cancel()
            await listeners.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
