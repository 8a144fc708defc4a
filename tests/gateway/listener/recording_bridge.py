"""A bridge that writes down what links bring."""

import asyncio
import contextlib
from collections.abc import Callable

from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.admission import Admission
from gateway.limits.budgets import Budgets
from gateway.limits.refusals import Refusals
from gateway.listener.link import NetworkLink

PATIENCE_S = 60.0
#: How often a condition is looked at that changes without a word to the bridge, seconds.
_LOOK_S = 0.01


class RecordingBridge:
    """Takes what the listener brings; with `answers` it sends every link its bytes back.

    A link whose connection has a session is read as MQTT, and nothing is made of it.
    """

    def __init__(self, *, answers: bool = False, limits: MqttLimits | None = None) -> None:
        self._answers = answers
        limits = limits or MqttLimits()
        self.admission = Admission(limits, Refusals(), Budgets(limits))
        self.links: list[NetworkLink] = []
        self.received = bytearray()
        self.calls = 0
        self.lost_links: list[NetworkLink] = []
        self.resumed_links: list[NetworkLink] = []
        self.happened = asyncio.Event()

    def receive(self, link: NetworkLink, data: bytes) -> None:
        if link not in self.links:
            self.links.append(link)
        if link.connection.flows is not None:
            link.connection.receive_data(data)
        self.received += data
        self.calls += 1
        if self._answers:
            link.send(data)
        self.happened.set()

    def commit_now(self) -> None:
        """There is nothing to commit here."""

    def go_on(self, link: NetworkLink) -> None:
        """See Bridge. No link waits for its turn here, unless a test lets it."""

    def lost(self, link: NetworkLink) -> None:
        self.lost_links.append(link)
        self.happened.set()

    def resumed(self, link: NetworkLink) -> None:
        self.resumed_links.append(link)
        self.happened.set()

    async def until(self, is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_true():
                self.happened.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.happened.wait(), _LOOK_S)
