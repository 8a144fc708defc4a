"""Shared subscriptions of level 5: joining and leaving a group, and what becomes of a group that nobody needs.

Each SUBSCRIBE registers the group's filter for the group; a broker that has it already learns nothing new, and its
answer decides the SUBACK as for every other filter. The last who leaves takes the registration along. What waits for a
group then is destroyed; what was on its way to a member at QoS 1 when its session ends goes to another one.
Source: MQTT 5.0 section 4.8.2.
"""

import logging
from collections.abc import Callable, Iterable, Iterator

from gateway.bridge.registrations import Registrations
from gateway.bridge.routes import Registration
from gateway.bridge.sessions import ClientSession, Sessions, SharedSubscription, Wishes
from gateway.bridge.shared_deliveries import SharedDeliveries
from gateway.bridge.shared_groups import SharedGroup, SharedGroups
from gateway.bridge.subscriber import Subscriber
from gateway.mqtt.packets import PacketType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork

_log = logging.getLogger(__name__)


class AllSubscribers:
    """Sessions and groups together (gateway.bridge.subscriber.Subscribers)."""

    def __init__(self, sessions: Sessions, groups: SharedGroups) -> None:
        self._sessions = sessions
        self._groups = groups

    def __iter__(self) -> Iterator[Subscriber]:
        yield from self._sessions
        yield from self._groups

    def knows(self, subscriber: Subscriber) -> bool:
        found = self._groups if isinstance(subscriber, SharedGroup) else self._sessions
        return found.get(subscriber.client) is subscriber

    def save(self, unit: UnitOfWork, subscriber: Subscriber) -> None:
        if isinstance(subscriber, SharedGroup):
            self._groups.save(unit, subscriber)
        elif isinstance(subscriber, ClientSession):
            self._sessions.save(unit, subscriber)


class SharedSubscriptions:
    """Who shares what: changed by SUBSCRIBE, UNSUBSCRIBE and the end of a session."""

    def __init__(
        self, engine: Engine, groups: SharedGroups, registrations: Registrations, deliveries: SharedDeliveries
    ) -> None:
        self._engine = engine
        self._groups = groups
        self._registrations = registrations
        self._deliveries = deliveries
        self._stop_listening: dict[SharedGroup, Callable[[], None]] = {}

    def load(self) -> None:
        """Takes up every group of the store. One without members was not granted when the gateway died: it ends."""
        for group in self._groups:
            self._registrations.restore(group, [group.topic_filter] * len(group.members))
            self._stop_listening[group] = self._deliveries.listen(group)
            if not group.members:
                unit = self._engine.begin()
                self._end(unit, group, PacketType.DISCONNECT, self._engine.now_us())
                self._engine.submit(unit)

    def group(self, topic_filter: str) -> SharedGroup:
        """The group of a filter `$share/GROUP/FILTER`; a new one where there is none."""
        group = self._groups.get(topic_filter)
        if group is None:
            group = self._groups.create(topic_filter)
            self._stop_listening[group] = self._deliveries.listen(group)
        return group

    def save(self, unit: UnitOfWork, group: SharedGroup) -> None:
        """What is registered for a group is in its row."""
        self._groups.save(unit, group)

    def group_of(self, session: ClientSession, topic_filter: str) -> SharedGroup | None:
        """The group of that filter, if the session is a member."""
        group = self._groups.get(topic_filter)
        return group if group is not None and session in group.members else None

    def grant(
        self,
        unit: UnitOfWork,
        group: SharedGroup,
        session: ClientSession,
        qos: int,
        wishes: Wishes,
        wanted: Iterable[Registration],
    ) -> None:
        """The session is a member; it counts once, however often it asked."""
        if session in group.members:
            self._registrations.let_go(group, wanted)
        self._groups.join(unit, group, session, SharedSubscription(group.client, qos, wishes))
        self._groups.save(unit, group)

    def leave(self, unit: UnitOfWork, session: ClientSession, group: SharedGroup) -> list[Registration]:
        """A member gives its part up; what nobody of the group needs any more. Then call `settle`."""
        self._groups.leave(unit, group, session)
        return self._registrations.let_go(group, self._registrations.of(group.topic_filter))

    def settle(self, unit: UnitOfWork, group: SharedGroup) -> None:
        """A group that nobody holds any more, and that is deregistered, is forgotten."""
        if not group.is_held and self._groups.get(group.client) is group:
            self._forget(unit, group)

    def end_session(self, unit: UnitOfWork, session: ClientSession) -> list[SharedGroup]:
        """A session ends: it leaves every group. Those that nobody holds any more, for `end_unheld`.

        Until that is called the row of such a group has no members, and a restart ends it.
        """
        groups = [self._groups.get(shared.topic_filter) for shared in session.shared.values()]
        left = [group for group in groups if group is not None]
        for group in left:
            self.leave(unit, session, group)
        return [group for group in left if not group.is_held]

    def end_unheld(self, unit: UnitOfWork, group: SharedGroup, packet_type: int, now_us: int) -> None:
        """Ends a group, unless somebody holds it again or it has ended already."""
        if not group.is_held and self._groups.get(group.client) is group:
            self._end(unit, group, packet_type, now_us)

    def _end(self, unit: UnitOfWork, group: SharedGroup, packet_type: int, now_us: int) -> None:
        self._registrations.end(unit, group, packet_type, now_us)
        self._forget(unit, group)

    def _forget(self, unit: UnitOfWork, group: SharedGroup) -> None:
        _log.debug("group ended group=%s", group.client)
        self._stop_listening.pop(group)()
        self._groups.end(unit, group)
        self._deliveries.discard(group)
