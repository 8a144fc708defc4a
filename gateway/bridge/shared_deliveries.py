"""Publications of a group to one of its members each: a part of step 8 on the way of a PUBLISH.

They wait in the lane of the group's CorrelId until a member can take one: it is connected, its window is open and it
reads what it is sent. Who was sent something goes to the end of the queue, so members that can take one are served in
turn, and a slow one gets less. While nobody is connected everything waits. What is too large for all that can take
one, and not for another, waits aside for that one (set_aside.py), and the rest goes on.

What was sent to a member is its own until its session ends (MQTT-4.8.2-4): then what it did not acknowledge at QoS 1
goes back to the lane, at its old place, and what was on its way at QoS 2 goes to nobody else (MQTT-4.8.2-5), like all
that a client refuses (MQTT-4.8.2-6).
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from gateway.bridge.delivered_header import packet_bytes
from gateway.bridge.publications import Publication
from gateway.bridge.publish_packets import PublishPackets
from gateway.bridge.sessions import ClientSession, Link
from gateway.bridge.set_aside import SetAside
from gateway.bridge.shared_groups import SharedGroup, SharedGroups
from gateway.bridge.to_mqtt import MAXIMUM_TOPICS, ToMqtt, why_unwanted
from mappings.topics import Scheme, matches
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

#: Messages handed out in one unit of work.
_BATCH_MESSAGES: Final = 200
#: Bytes of packets for one member after which a unit of work gives it no further message.
_BATCH_BYTES: Final = 1024 * 1024


class _Parcel:
    """What one unit of work brings a member."""

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
        #: Groups for which something waited when members were last looked for. For any other, what comes is handed out
        #: in turn when it has come, and not to whoever happens to have room in that moment.
        self._short_of_room: set[SharedGroup] = set()
        to_mqtt.on_room.append(self._has_room)
        to_mqtt.other_lanes.append(lambda correl_id: groups.of_correl_id(correl_id) is not None)

    def listen(self, group: SharedGroup) -> Callable[[], None]:
        """Wakes `deliver` when publications arrive for a group; returns what undoes it."""

        def arrived() -> None:
            self.deliver(group)

        self._queue.listen(group.correl_id, arrived)
        self._short_of_room.add(group)
        return lambda: self._queue.unlisten(group.correl_id, arrived)

    def deliver(self, group: SharedGroup, member: ClientSession | None = None) -> None:
        """Hands out what waits, as far as there are members that can take it.

        `member`: the only one that may take more than before, so that many members cost an acknowledgement nothing.
        """
        if not self._has_any(group):
            self._short_of_room.discard(group)
            return
        asked = () if self._to_mqtt.is_paused else group.members if member is None else (member,)
        ready = deque(each for each in asked if _is_ready(each) and _may(each, group))
        unit = self._engine.begin()
        parcels: dict[ClientSession, _Parcel] = {}
        waiting = self._waiting(group, ready)
        is_more = True
        for _ in range(_BATCH_MESSAGES):
            while ready and not _is_ready(ready[0], parcels.get(ready[0])):
                ready.popleft()
            message = next(waiting, None) if ready else None
            if message is None:
                is_more = False
                break
            self._hand_over(unit, group, message, ready, parcels)
        if self._has_any(group):
            self._short_of_room.add(group)
        else:
            self._short_of_room.discard(group)
        if unit.removals or unit.states or is_more:
            self._engine.submit(unit, lambda _unit: self._sent(group, parcels))

    def _has_any(self, group: SharedGroup) -> bool:
        """Whether something waits for it, in its lane or aside."""
        return group.correl_id in self._queue.lanes or self._aside.has_any(group)

    def discard(self, group: SharedGroup) -> None:
        """The group has ended: what waits for it is destroyed little by little."""
        self._short_of_room.discard(group)
        self._aside.give_back(group)
        self._to_mqtt.drain_behind(group.correl_id, (group.client, group.epoch))

    def _waiting(self, group: SharedGroup, ready: deque[ClientSession]) -> Iterator[Message]:
        """What is aside for those that have room, then what is in the lane."""
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
        """The unit is committed: the packets may leave. On another link than then, the reconnect has repeated them."""
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
        """One message to the member whose turn it is, or to the next one that takes packets of its size."""
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
        """Whether a message is too large for a member, and for one that is there and has no room just now it is not."""
        if self._packets.fits(member, message, publication):
            return False
        there = (each for each in group.members if each.link is not None and _may(each, group))
        return any(self._packets.fits(each, message, publication) for each in there)

    def _packet_bytes(self, member: ClientSession, message: Message, publication: Publication) -> int:
        longest = max(publication.topics, key=len)
        return packet_bytes(member, publication, message, longest, now_us=self._engine.now_us())


def _may(member: ClientSession, group: SharedGroup) -> bool:
    """Whether the access list still allows a member what the group shares."""
    return member.rights.may_subscribe(group.topic_filter)


def _is_ready(member: ClientSession, parcel: _Parcel | None = None) -> bool:
    """Whether it can take a message now; `parcel`: what this unit of work brings it already."""
    link = member.link
    return (
        link is not None
        and link.can_send
        and not member.pending_answers
        and member.mqtt.window() > 0
        and (parcel is None or parcel.size_bytes < _BATCH_BYTES)
    )
