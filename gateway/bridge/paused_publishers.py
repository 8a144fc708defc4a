"""Publishers that are held back: their target has as much waiting for it as it may. So are those of `shares`.

A link whose next PUBLISH of QoS 1 or 2 has no room is not read any more, and what it had sent already waits here, from
that PUBLISH on: at most one read of the socket, or one packet. When the target has room, each link goes on where it
was. Nothing of it was acknowledged, so a client whose connection ends meanwhile sends it again.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.bridge.filter_pacing import Asked, LongRequest
from gateway.bridge.links import MqttLink
from gateway.bridge.sessions import ClientSession, Link
from gateway.mqtt.events import (
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DeliveryRefused,
    DisconnectReceived,
    PublishReceived,
    ReleaseReceived,
)

#: What is carried out of a link that ended while it was held back: it changes flows that the session still has.
_STILL_COUNTS: Final = (DeliveryAcknowledged, DeliveryReceived, DeliveryCompleted, DeliveryRefused, ReleaseReceived)

CarryOut = Callable[[MqttLink, ClientSession, list[Asked]], None]


class HeldBack:
    """Links that wait for room at a target, and what they had sent. A closed one stays until `end`."""

    def __init__(self, carry_out: CarryOut, gave_up: Callable[[int], None]) -> None:
        """`gave_up` is told how many PUBLISHes of a link that ended nobody answers."""
        self._carry_out = carry_out
        self._gave_up = gave_up
        #: Target and events of each link, in the order in which they came here.
        self._links: dict[Link, tuple[MqttLink, str, list[Asked]]] = {}
        #: How many PUBLISHes are among the events of each, and in all.
        self._publishes: dict[Link, int] = {}
        self.publishes = 0

    def __len__(self) -> int:
        return len(self._links)

    def hold(self, link: MqttLink, target: str, events: list[Asked]) -> None:
        """Reads the link no more; its events wait. A long request is the first of them, and what it takes counts."""
        link.hold_back(events[0].memory_bytes if isinstance(events[0], LongRequest) else 0)
        self._links[link] = (link, target, events)
        number = publishes_in(events)
        self.publishes += number - self._publishes.get(link, 0)
        self._publishes[link] = number

    def keep(self, link: MqttLink, events: Sequence[Asked]) -> bool:
        """Events of a link that is held back wait behind the others; False for a link that is not."""
        held = self._links.get(link)
        if held is None:
            return False
        held[2].extend(events)
        number = publishes_in(events)
        self._publishes[link] += number
        self.publishes += number
        return True

    def go_on(self, target: str) -> None:
        """The target has room: everyone goes on until it is full again."""
        waiting = [(link, events) for link, name, events in self._links.values() if name == target and link.is_open]
        for link, _ in waiting:
            self._forget(link)
        for link, events in waiting:
            self._let_go(link, events)

    def first_goes_on(self, target: str) -> bool:
        """Who has waited longest for it goes on, alone; False where nobody waits."""
        for link, name, events in self._links.values():
            if name == target and link.is_open:
                self._forget(link)
                self._let_go(link, events)
                return True
        return False

    def _let_go(self, link: MqttLink, events: list[Asked]) -> None:
        link.let_go()
        if link.session is not None and link.is_open:
            self._carry_out(link, link.session, events)
        else:
            self._give_up(events)

    def end(self, ended: Link, session: ClientSession) -> None:
        """The link has ended. What it had published leaves no trace; its answers to deliveries count."""
        held = self._forget(ended)
        if held is None:
            return
        link, _, events = held
        self._give_up(events)
        for event in events:
            if isinstance(event, DisconnectReceived):
                session.take_leave(event)
        self._carry_out(link, session, [event for event in events if isinstance(event, _STILL_COUNTS)])

    def _forget(self, link: Link) -> tuple[MqttLink, str, list[Asked]] | None:
        self.publishes -= self._publishes.pop(link, 0)
        return self._links.pop(link, None)

    def _give_up(self, events: Sequence[Asked]) -> None:
        """What is left of long requests is carried out by nobody, and PUBLISHes are answered by nobody."""
        self._gave_up(publishes_in(events))
        for event in events:
            if isinstance(event, LongRequest):
                event.end()


def publishes_in(events: Sequence[Asked]) -> int:
    """How many events are PUBLISHes."""
    return list(map(type, events)).count(PublishReceived)
