"""Shared subscriptions of level 5: joining and leaving a group, and the delivery of its publications.

A part of step 8 on the way of a PUBLISH. Each publication goes to one member of the group. Publications wait in the
lane of the group's CorrelId until a member can take one: it is connected, its window is open, and it reads fast enough.
A member that was sent a message goes to the end of the queue. So the members take turns, and a slow one gets less.

A message may be too large for the members that have room, but not for another connected member. Then it waits aside
for that member (`SetAside`), and the rest of the lane goes on. A message aside is off its lane, and its body is not in
memory. It goes to the first member with room for its size, before the messages of the lane. When the group or the
gateway ends, it goes back to its old place in the lane.

A message sent to a member belongs to that member until its session ends (MQTT-4.8.2-4). Then a message of QoS 1 without
PUBACK goes back to its old place in the lane, for another member. A message of QoS 2 on its way goes to nobody else
(MQTT-4.8.2-5), and neither does a message that a client refused (MQTT-4.8.2-6).

Each SUBSCRIBE registers the filter for the group, even if the broker has it already, and the broker's answer decides
the SUBACK. When the last member leaves, the registration ends and the waiting messages are destroyed.
Source: MQTT 5.0 section 4.8.2.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from gateway.bridge.commands.registrations import Registrations
from gateway.bridge.deliver.deliver import MAXIMUM_TOPICS, MOST_S, ToMqtt, why_unwanted
from gateway.bridge.deliver.deliver_packets import PublishPackets, packet_bytes
from gateway.bridge.deliver.shared_groups import SharedGroup, SharedGroups
from gateway.bridge.messages.publications import Publication
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.subscriber import Subscriber
from gateway.bridge.sessions.subscription import GrantedOptions, SharedSubscription
from gateway.config.routes import Registration
from gateway.mqtt.levels import PacketType
from mappings.topics.topics import Scheme, matches
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

#: The most messages aside, of all groups together, at some 500 bytes each. A further one holds up its group.
_MOST_MESSAGES: Final = 20_000
#: The oldest messages aside of a group that are checked when a member has room.
_LOOKED_AT: Final = 100
#: Bytes of a subscription identifier, which only some members have: the property and four bytes.
_OWN_BYTES: Final = 5


class _Aside(NamedTuple):
    """A message that was taken off its lane, without its body; `least_bytes`: the least size of its packet."""

    message: Message
    least_bytes: int


class SetAside:
    """The messages aside of every group, oldest first."""

    def __init__(self, engine: Engine, queue: Queue) -> None:
        self._engine = engine
        self._queue = queue
        self._waiting: dict[SharedGroup, deque[_Aside]] = {}
        self._messages = 0

    def has_any(self, group: SharedGroup) -> bool:
        return group in self._waiting

    def add(self, group: SharedGroup, message: Message, packet_bytes: int) -> bool:
        """Sets a message aside that was taken off the group's lane. False if there are too many already."""
        if self._messages >= _MOST_MESSAGES:
            return False
        bodiless = Message(message.descriptor, b"")
        bodiless.sequence, bodiless.expires_us = message.sequence, message.expires_us
        waiting = self._waiting.setdefault(group, deque())
        place = len(waiting)
        while place and waiting[place - 1].message.sequence > message.sequence:
            place -= 1
        waiting.insert(place, _Aside(bodiless, packet_bytes - _OWN_BYTES))
        self._messages += 1
        return True

    def taken_up(self, group: SharedGroup, ready: Iterable[ClientSession]) -> Iterator[Message]:
        """Gives the caller messages that fit a member with room, and messages that fit no connected member."""
        waiting = self._waiting.get(group)
        if waiting is None:
            return
        has_room, is_there = _longest_packet(ready), _longest_packet(group.members)
        for aside in tuple(islice(waiting, _LOOKED_AT)):
            if has_room < aside.least_bytes <= is_there:
                continue
            self._remove(group, aside)
            self._engine.give_back([(self._queue, aside.message)], wake=False)
            message = self._engine.take_number(self._queue, aside.message.sequence)
            if message is not None:
                yield message

    def give_back(self, group: SharedGroup) -> None:
        """Puts all messages of a group back to their places in its lane."""
        waiting = self._waiting.pop(group, ())
        self._messages -= len(waiting)
        self._engine.give_back([(self._queue, aside.message) for aside in waiting], wake=False)

    def _remove(self, group: SharedGroup, aside: _Aside) -> None:
        waiting = self._waiting[group]
        waiting.remove(aside)
        if not waiting:
            del self._waiting[group]
        self._messages -= 1


def _longest_packet(members: Iterable[ClientSession]) -> int:
    """The longest packet that any of the connected members takes."""
    links = (each.link for each in members)
    return max((link.connection.writer.maximum_bytes for link in links if link is not None), default=0)


#: Messages handed out in one unit of work.
_BATCH_MESSAGES: Final = 200
#: Bytes of packets for one member after which a unit of work gives it no further message.
_BATCH_BYTES: Final = 1024 * 1024


class _Parcel:
    """The packets that one unit of work sends to a member."""

    __slots__ = ("link", "packets", "size_bytes")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.packets: list[bytes] = []
        self.size_bytes = 0


class SharedDeliveries:
    """Takes publications off the lanes of groups, and has them sent."""

    def __init__(
        self, engine: Engine, groups: SharedGroups, queue: Queue, to_mqtt: ToMqtt, packets: PublishPackets
    ) -> None:
        self._engine = engine
        self._groups = groups
        self._queue = queue
        self._to_mqtt = to_mqtt
        self._packets = packets
        self._aside = SetAside(engine, queue)
        #: Groups for which messages were still waiting after the last search for members. In any other group, members
        #: take turns when a message comes: a member that gets room does not start a delivery.
        self._short_of_room: set[SharedGroup] = set()
        to_mqtt.on_room.append(self._has_room)
        to_mqtt.other_lanes.append(lambda correl_id: groups.of_correl_id(correl_id) is not None)

    def listen(self, group: SharedGroup) -> Callable[[], None]:
        """Calls `deliver` when publications arrive for a group. Call the result to stop that."""

        def arrived() -> None:
            self.deliver(group)

        self._queue.listen(group.correl_id, arrived)
        self._short_of_room.add(group)
        return lambda: self._queue.unlisten(group.correl_id, arrived)

    def deliver(self, group: SharedGroup, member: ClientSession | None = None) -> None:
        """Hands out waiting messages to members that can take them.

        `member`: the only member that may take more than before. Then an acknowledgement does not check all members.
        """
        if not self._has_any(group):
            self._short_of_room.discard(group)
            return
        asked = () if self._to_mqtt.is_paused else group.members if member is None else (member,)
        ready = deque(each for each in asked if _is_ready(each) and _may(each, group))
        unit = self._engine.begin()
        parcels: dict[ClientSession, _Parcel] = {}
        waiting = self._waiting(group, ready)
        is_more, ends_s = True, self._to_mqtt.now_s() + MOST_S
        for _ in range(_BATCH_MESSAGES):
            while ready and not _is_ready(ready[0], parcels.get(ready[0])):
                ready.popleft()
            message = next(waiting, None) if ready else None
            if message is None:
                is_more = False
                break
            self._hand_over(unit, group, message, ready, parcels)
            if self._to_mqtt.now_s() > ends_s:
                break
        if self._has_any(group):
            self._short_of_room.add(group)
        else:
            self._short_of_room.discard(group)
        if unit.removals or unit.states or is_more:
            self._engine.submit(unit, lambda _unit: self._sent(group, parcels))

    def _has_any(self, group: SharedGroup) -> bool:
        """Whether messages wait for a group, in its lane or aside."""
        return group.correl_id in self._queue.lanes or self._aside.has_any(group)

    def discard(self, group: SharedGroup) -> None:
        """The group has ended: its waiting messages are destroyed little by little."""
        self._short_of_room.discard(group)
        self._aside.give_back(group)
        self._to_mqtt.drain_behind(group.correl_id, (group.client, group.epoch))

    def _waiting(self, group: SharedGroup, ready: deque[ClientSession]) -> Iterator[Message]:
        """The messages aside that fit members with room, then the messages in the lane."""
        if ready:
            yield from self._aside.taken_up(group, ready)
        while (message := self._engine.take(self._queue, group.correl_id)) is not None:
            yield message

    def _has_room(self, session: ClientSession) -> None:
        """A member may take more than before."""
        for correl_id in tuple(session.shared):
            group = self._groups.of_correl_id(correl_id)
            if group in self._short_of_room:
                self.deliver(group, session)

    def _sent(self, group: SharedGroup, parcels: dict[ClientSession, _Parcel]) -> None:
        """The unit is committed, so the packets may leave. If a link is new, the reconnect has repeated them."""
        for session, parcel in parcels.items():
            if parcel.packets and session.link is parcel.link:
                parcel.link.send(b"".join(parcel.packets))
        self.deliver(group)

    def _hand_over(
        self,
        unit: UnitOfWork,
        group: SharedGroup,
        message: Message,
        ready: deque[ClientSession],
        parcels: dict[ClientSession, _Parcel],
    ) -> None:
        """Gives one message to the next member that takes packets of its size."""
        publication = self._to_mqtt.read(unit, message)
        if publication is None:
            return
        topics = [
            place
            for place, topic in enumerate(publication.topics[:MAXIMUM_TOPICS])
            if matches(group.topic_filter, topic, Scheme.MQTT)
        ]
        if not topics:
            self._to_mqtt.drop(unit, (group.client, group.epoch), message, why_unwanted(publication))
            return
        member = next((each for each in ready if self._packets.fits(each, message, publication)), ready[0])
        if self._waits_for_another(group, member, message, publication):
            if not self._aside.add(group, message, self._packet_bytes(member, message, publication)):
                self._engine.give_back([(self._queue, message)], wake=False)
                ready.clear()
            return
        assert member.link is not None
        parcel = parcels.setdefault(member, _Parcel(member.link))
        wanted = [(place, group.members[member].qos) for place in topics]
        before = len(parcel.packets)
        if not self._packets.add(unit, member, message, publication, wanted, parcel.packets):
            ready.remove(member)
            return
        parcel.size_bytes += sum(map(len, parcel.packets[before:]))
        group.was_served(member)
        ready.remove(member)
        ready.append(member)

    def _waits_for_another(
        self, group: SharedGroup, member: ClientSession, message: Message, publication: Publication
    ) -> bool:
        """Whether a message is too large for a member, but fits another connected member, which has no room now."""
        if self._packets.fits(member, message, publication):
            return False
        there = (each for each in group.members if each.link is not None and _may(each, group))
        return any(self._packets.fits(each, message, publication) for each in there)

    def _packet_bytes(self, member: ClientSession, message: Message, publication: Publication) -> int:
        longest = max(publication.topics, key=len)
        return packet_bytes(member, publication, message, longest, now_us=self._engine.now_us())


def _may(member: ClientSession, group: SharedGroup) -> bool:
    """Whether the access list still allows a member the filter of the group."""
    return member.rights.may_subscribe(group.topic_filter)


def _is_ready(member: ClientSession, parcel: _Parcel | None = None) -> bool:
    """Whether a member can take a message now; `parcel`: the packets that this unit of work sends to it already."""
    link = member.link
    return (
        link is not None
        and link.can_send
        and not member.pending_answers
        and member.mqtt.window() > 0
        and (parcel is None or parcel.size_bytes < _BATCH_BYTES)
    )


_log = logging.getLogger(__name__)


class AllSubscribers:
    """Sessions and groups together (gateway.bridge.sessions.subscriber.Subscribers)."""

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
    """The members of all groups. SUBSCRIBE, UNSUBSCRIBE and the end of a session change them."""

    def __init__(
        self, engine: Engine, groups: SharedGroups, registrations: Registrations, deliveries: SharedDeliveries
    ) -> None:
        self._engine = engine
        self._groups = groups
        self._registrations = registrations
        self._deliveries = deliveries
        self._stop_listening: dict[SharedGroup, Callable[[], None]] = {}

    def load(self) -> None:
        """Loads every group from the store. A group without members was not granted before the restart, so it ends."""
        for group in self._groups:
            self._registrations.restore(group, [group.topic_filter] * len(group.members))
            self._stop_listening[group] = self._deliveries.listen(group)
            if not group.members:
                unit = self._engine.begin()
                self._end(unit, group, PacketType.DISCONNECT, self._engine.now_us())
                self._engine.submit(unit)

    def group(self, topic_filter: str) -> SharedGroup:
        """The group of a filter `$share/GROUP/FILTER`; a new group if there is none."""
        group = self._groups.get(topic_filter)
        if group is None:
            group = self._groups.create(topic_filter)
            self._stop_listening[group] = self._deliveries.listen(group)
        return group

    def save(self, unit: UnitOfWork, group: SharedGroup) -> None:
        """Writes the registrations of a group into its row."""
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
        options: GrantedOptions,
        wanted: Iterable[Registration],
    ) -> None:
        """Makes the session a member. It counts once, however often it asked."""
        if session in group.members:
            self._registrations.let_go(group, wanted)
        self._groups.join(unit, group, session, SharedSubscription(group.client, qos, options))
        self._groups.save(unit, group)

    def leave(self, unit: UnitOfWork, session: ClientSession, group: SharedGroup) -> list[Registration]:
        """Removes a member. Returns the registrations that the group no longer needs. Call `settle` next."""
        self._groups.leave(unit, group, session)
        return self._registrations.let_go(group, self._registrations.of(group.topic_filter))

    def settle(self, unit: UnitOfWork, group: SharedGroup) -> None:
        """Forgets a group that nobody holds any more and that is deregistered."""
        if not group.is_held and self._groups.get(group.client) is group:
            self._forget(unit, group)

    def end_session(self, unit: UnitOfWork, session: ClientSession) -> list[SharedGroup]:
        """A session ends and leaves every group. Returns the groups that nobody holds any more, for `end_unheld`.

        Until then the row of such a group has no members, and a restart ends the group.
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
