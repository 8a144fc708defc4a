"""Paused publishers: links that are not read while the place of their next PUBLISH is full (full_places.py).

The packets that a link had sent, from that PUBLISH on, wait here: at most one read of the socket, or one packet. When
the place has room, each link goes on where it was. None of these packets was acknowledged, so a client whose connection
ends meanwhile sends them again. Clients that wait for filter_pacing, and those that send faster than their budget
(slow_reading.py), are paused here too.
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

#: Events of a paused link that count even after it has ended, because they change flows of its session.
_STILL_COUNTS: Final = (DeliveryAcknowledged, DeliveryReceived, DeliveryCompleted, DeliveryRefused, ReleaseReceived)

CarryOut = Callable[[MqttLink, ClientSession, list[Asked]], None]


class PausedPublishers:
    """Links that wait for a place, with the events that they have sent. A closed link stays until `end`."""

    def __init__(self, carry_out: CarryOut, gave_up: Callable[[int], None]) -> None:
        """`gave_up` is called with the number of PUBLISHes that stay unanswered when a link ends."""
        self._carry_out = carry_out
        self._gave_up = gave_up
        #: Place and events of each link, in the order in which they were paused.
        self._links: dict[Link, tuple[MqttLink, str, list[Asked]]] = {}
        #: How many PUBLISHes are among the events of each link, and of all links together.
        self._publishes: dict[Link, int] = {}
        self.publishes = 0

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, link: Link) -> bool:
        return link in self._links

    def pause(self, link: MqttLink, place: str, events: list[Asked]) -> None:
        """Stops reading the link; its events wait. If the first is a long request, its memory counts."""
        first = events[0] if events else None
        link.pause_publisher(first.memory_bytes if isinstance(first, LongRequest) else 0)
        self._links[link] = (link, place, events)
        number = publishes_in(events)
        self.publishes += number - self._publishes.get(link, 0)
        self._publishes[link] = number

    def keep(self, link: MqttLink, events: Sequence[Asked]) -> bool:
        """Keeps further events of a paused link behind the others. Returns False if the link is not paused."""
        paused = self._links.get(link)
        if paused is None:
            return False
        paused[2].extend(events)
        number = publishes_in(events)
        self._publishes[link] += number
        self.publishes += number
        return True

    def go_on(self, place: str) -> None:
        """The place has room. Its links go on, one after the other, until it is full again."""
        waiting = [(link, events) for link, name, events in self._links.values() if name == place and link.is_open]
        for link, _ in waiting:
            self._forget(link)
        for link, events in waiting:
            self._resume(link, events)

    def first_goes_on(self, place: str) -> bool:
        """Lets only the link go on that has waited longest for the place. Returns False if none waits."""
        for link, name, events in self._links.values():
            if name == place and link.is_open:
                self._forget(link)
                self._resume(link, events)
                return True
        return False

    def goes_on(self, link: MqttLink) -> None:
        """Lets one link go on."""
        paused = self._forget(link)
        if paused is not None:
            self._resume(link, paused[2])

    def _resume(self, link: MqttLink, events: list[Asked]) -> None:
        link.resume_publisher()
        if link.session is not None and link.is_open:
            self._carry_out(link, link.session, events)
        else:
            self._give_up(events)

    def end(self, ended: Link, session: ClientSession) -> None:
        """The link has ended. Its PUBLISHes leave no trace; its answers to deliveries count."""
        paused = self._forget(ended)
        if paused is None:
            return
        link, _, events = paused
        self._give_up(events)
        for event in events:
            if isinstance(event, DisconnectReceived):
                session.take_leave(event)
        self._carry_out(link, session, [event for event in events if isinstance(event, _STILL_COUNTS)])

    def _forget(self, link: Link) -> tuple[MqttLink, str, list[Asked]] | None:
        self.publishes -= self._publishes.pop(link, 0)
        return self._links.pop(link, None)

    def _give_up(self, events: Sequence[Asked]) -> None:
        """Gives up events: long requests end early, and PUBLISHes stay unanswered."""
        self._gave_up(publishes_in(events))
        for event in events:
            if isinstance(event, LongRequest):
                event.end()


def publishes_in(events: Sequence[Asked]) -> int:
    """How many events are PUBLISHes."""
    return list(map(type, events)).count(PublishReceived)
