"""Paused publishers: links that are not read while a place is full, or until their client is back within its budget.

A PUBLISH of QoS 1 or 2 waits until its place has room. A place is the disk, a target (by its name), or a queue that an
operator has closed (pauses.py). It is the dead-letter queue for a client whose dead letters wait to be put there.

The packets that a link had sent, from that PUBLISH on, wait here: at most one read of the socket, or one packet. When
the place has room, each link goes on where it was. None of these packets was acknowledged, so a client whose connection
ends meanwhile sends them again. Clients that wait for filter_pacing are paused here too.

The packets of one read are carried out for a limited time in a turn of the event loop, whatever they ask for. The rest
waits here until the link's next turn, in the line that its listener keeps (listener/long_reads.py). When a place has
room, or pauses are over, the links that go on share such a time too.

A link that sends faster than its budget allows is not read for a while, at every level of MQTT. The bridge carries out
and acknowledges the packets that have arrived, and TCP makes the client wait with the rest. So nothing is lost, and a
device that empties a day's backlog gets through. Only a client that gets far ahead nevertheless is disconnected, with
96 hex at level 5 (MQTT 5.0 section 3.14.2.1): it comes back on new connections, or with new identifiers, and each of
them brings one more read. The last read of such a client is neither carried out nor acknowledged.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final

from gateway.bridge.publish.pauses import Pauses
from gateway.bridge.publish.publish import Intake, is_repeat
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.letter_payers import payer_of_session
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.links import MqttLink
from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.bridge.subscribe.filter_pacing import Asked, LongRequest
from gateway.limits.budgets import FAR_AHEAD_S, Account, Budgets
from gateway.limits.refusals import LimitReached
from gateway.mqtt.events import (
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DeliveryRefused,
    DisconnectReceived,
    PublishReceived,
    ReleaseReceived,
)
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter

#: Events of a paused link that count even after it has ended, because they change flows of its session.
_STILL_COUNTS: Final = (DeliveryAcknowledged, DeliveryReceived, DeliveryCompleted, DeliveryRefused, ReleaseReceived)

#: No packet of a link begins in a turn of the event loop in which its packets have taken so long, seconds. In that time
#: 16 KiB of usual messages are carried out, and one read of the socket that takes longer is cut. Bulk senders are no
#: faster with 4 ms, also where nobody else sends.
_MOST_S: Final = 0.002
#: The place's name of links that have used up their time in this turn.
_TURN: Final = "turn"

CarryOut = Callable[[MqttLink, ClientSession, list[Asked]], None]


class PausedPublishers:
    """Links that wait for a place, with the events that they have sent. A closed link stays until `end`."""

    def __init__(
        self,
        engine: Engine,
        carry_out: CarryOut,
        call_soon: Callable[[Callable[[], None]], object],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now_s`: a clock that never goes back."""
        self._engine = engine
        self._carry_out = carry_out
        self._call_soon = call_soon
        self._now_s = now_s
        #: Place and events of each link, in the order in which they were paused.
        self._links: dict[Link, tuple[MqttLink, str, list[Asked]]] = {}
        #: How many PUBLISHes are among the events of each link, and of all links together.
        self._publishes: dict[Link, int] = {}
        self.publishes = 0
        #: Links that go on, with the place for which each has waited, in the order in which they were paused.
        self._going_on: OrderedDict[Link, str] = OrderedDict()
        self._is_due = False

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, link: Link) -> bool:
        return link in self._links

    def pause(self, link: MqttLink, place: str, events: list[Asked]) -> None:
        """Stops reading the link; its events wait. If the first is a long request, its memory counts."""
        first = events[0] if events else None
        link.pause_publisher(first.memory_bytes if isinstance(first, LongRequest) else 0)
        self._hold(link, place, events)

    def in_time(self, link: MqttLink, events: Sequence[Asked]) -> Iterator[tuple[int, Asked]]:
        """The events that may be carried out in this turn of the event loop, at least one, each with its place.

        The others wait. The link goes on with them in its next turn.
        """
        now_s = self._now_s
        ends_s = now_s() + _MOST_S
        for place, event in enumerate(events):
            if place and now_s() > ends_s:
                self._hold(link, _TURN, list(events[place:]))
                link.wait_for_turn()
                return
            yield place, event

    def _hold(self, link: MqttLink, place: str, events: list[Asked]) -> None:
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
        self._going_on.update((link, place) for link, name, _ in self._links.values() if name == place)
        if not self._is_due:
            self._some_go_on()

    def goes_on_soon(self, link: MqttLink, place: str) -> None:
        """Lets one link go on, behind others that go on already. `place`: for which it has waited."""
        self._going_on[link] = place
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._some_go_on)

    def _some_go_on(self) -> None:
        """Lets links go on for a limited time, and the others in the next turn of the event loop."""
        if self._engine.failed is not None:
            return
        ends_s = self._now_s() + _MOST_S
        try:
            while self._going_on:
                link, place = self._going_on.popitem(last=False)
                paused = self._links.get(link)
                if paused is not None and paused[1] == place and link.is_open:
                    self.goes_on(paused[0])
                if self._now_s() > ends_s:
                    break
        finally:  # the loop reports an error of one link, and the other links go on
            self._is_due = bool(self._going_on)
            if self._is_due:
                self._call_soon(self._some_go_on)

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
        counting: list[Asked] = [event for event in events if isinstance(event, _STILL_COUNTS)]
        while counting:
            self._carry_out(link, session, counting)
            out_of_time = self._forget(link)  # there is no next turn of this link
            counting = [] if out_of_time is None else out_of_time[2]

    def _forget(self, link: Link) -> tuple[MqttLink, str, list[Asked]] | None:
        self.publishes -= self._publishes.pop(link, 0)
        return self._links.pop(link, None)

    def _give_up(self, events: Sequence[Asked]) -> None:
        """Gives up events: long requests end early, and PUBLISHes stay unanswered."""
        self._engine.counters.count(PublicationCounter.GIVEN_UP, publishes_in(events))
        for event in events:
            if isinstance(event, LongRequest):
                event.end()


def publishes_in(events: Sequence[Asked]) -> int:
    """How many events are PUBLISHes."""
    return list(map(type, events)).count(PublishReceived)


#: The name of the disk as a place; names of targets have no small letters.
_DISK: Final = "disk"
#: The name of the dead-letter queue as a place.
_LETTERS: Final = "letters"


class FullPlaces:
    """Finds the full place of a PUBLISH, and lets its publishers go on when it has room."""

    def __init__(
        self, engine: Engine, *, intake: Intake, to_mq: ToMq, pauses: Pauses, paused: PausedPublishers
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._to_mq = to_mq
        self._pauses = pauses
        self._paused = paused
        self._letters = engine.dead_letters
        self._letters.on_wait, self._letters.on_release = self._look_for_room, self._letters_went_on
        for target in to_mq.targets:
            target.on_room.append(partial(paused.go_on, target.name))
        #: Whether a place may be full. Each PUBLISH asks this; most of the time none is.
        self.may_be_full = to_mq.has_targets

    def of(self, session: ClientSession, event: PublishReceived) -> str:
        """The full place for which a PUBLISH must wait; "" if it need not wait."""
        if self._intake.disk_is_short:
            return _DISK
        if is_repeat(session, event):
            return ""
        if self._letters.waits(session.client, payer_of_session(session)):
            return _LETTERS
        target = self._to_mq.full_target(event.topic) if self._to_mq.has_targets else None
        if target is not None:
            return target.name
        return self._pauses.place(event.topic, session.client) if self._pauses else ""

    def look(self) -> None:
        """Lets publishers go on when an operator has opened their queue again."""
        if self._pauses.are_known:
            return
        opened = self._pauses.look()
        self._look_for_room()
        for place in opened:
            self._paused.go_on(place)

    def disk_space_changed(self, is_short: bool) -> None:
        """The free space has fallen below its mark, or is above it again: then all publishers go on."""
        if is_short:
            self._intake.disk_is_short = True
        else:
            unit = self._engine.begin()
            self._intake.disk_has_room(unit, self._engine.now_us())
            self._engine.submit(unit)
        self._look_for_room()
        if not is_short:
            self._paused.go_on(_DISK)

    def _look_for_room(self) -> None:
        is_short = self._intake.disk_is_short or self._letters.somebody_waits
        self.may_be_full = self._to_mq.has_targets or is_short or bool(self._pauses)

    def _letters_went_on(self) -> None:
        """All dead letters of a client are on the dead-letter queue now."""
        self._look_for_room()
        self._paused.go_on(_LETTERS)


#: The place's name of links that are read slowly (paused_publishers.py).
_PACE: Final = "pace"


class SlowReading:
    """Charges what each read brings, and pauses the links that are ahead of their budgets."""

    def __init__(
        self, budgets: Budgets, trail: TrailCharges, paused: PausedPublishers, now_s: Callable[[], float]
    ) -> None:
        """`now_s`: a clock that never goes back."""
        self._budgets = budgets
        self._trail = trail
        self._paused = paused
        self._now_s = now_s
        #: The end of each pause, and its link.
        self._ends: list[tuple[float, int, MqttLink]] = []
        self._tie_breaker = count()

    def charge(self, account: Account, messages: int, size: int) -> tuple[float, LimitReached | None]:
        """Charges a read. Returns the seconds for which its link must not be read, and the limit that closes it."""
        wait_s = self._budgets.spend(account, messages, size, 0, self._now_s())
        if wait_s <= FAR_AHEAD_S:
            return wait_s, None
        return wait_s, self._budgets.too_fast(account, messages, size)

    def pause(self, link: MqttLink, account: Account, wait_s: float, topics: int) -> None:
        """Charges the new topics of a read, and does not read its link for as long as it must not be read."""
        now_s = self._now_s()
        if topics or self._trail.is_ahead:
            self._trail.is_ahead = False
            wait_s = max(wait_s, self._budgets.spend(account, 0, 0, topics, now_s))
        if wait_s > 0 and link.is_open and link.session is not None and link not in self._paused:
            self._budgets.slowed_down(account)
            self._paused.pause(link, _PACE, [])
            heappush(self._ends, (now_s + wait_s, next(self._tie_breaker), link))

    def go_on(self, link: MqttLink, take_new_topics: Callable[[], int]) -> None:
        """Lets a link go on that has waited for its turn. It pays for what its packets cost now."""
        session = link.session
        self._paused.goes_on(link)
        if session is not None:
            wait_s, _ = self.charge(session.account, 0, 0)
            self.pause(link, session.account, wait_s, take_new_topics())

    def tick(self) -> None:
        """Several times a second: reads the links again whose pause is over, as many as there is time for."""
        now_s = self._now_s()
        while self._ends and self._ends[0][0] <= now_s and self._now_s() <= now_s + _MOST_S:
            _, _, link = heappop(self._ends)
            self._paused.goes_on_soon(link, _PACE)
