"""What waits aside of a group's lane: messages that are too large for all members but some without room just now.

So the others go on with what they can take. A message aside is off its lane, and its body is not kept in memory; it
goes to the first member with room that takes a packet of its size, before what is still in the lane, and back to its
old place in the lane when the group ends or the gateway does. A part of step 8 on the way of a PUBLISH.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from gateway.bridge.sessions import ClientSession
from gateway.bridge.shared_groups import SharedGroup
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message

#: Messages of all groups together, at some 500 bytes each; further ones hold up their group.
_MOST_MESSAGES: Final = 20_000
#: Of these the oldest of a group that are looked at when a member has room.
_LOOKED_AT: Final = 100
#: A subscription identifier, which is not every member's: the property and four bytes.
_OWN_BYTES: Final = 5


class _Aside(NamedTuple):
    """A message that was taken off its lane, without its body; `least_bytes`: of the packet that it becomes."""

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
        """Takes a message that was taken off the group's lane; False where there are too many already."""
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
        """Messages for those who have room, and such as nobody takes who is there: each is the caller's again."""
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
        """All of a group go back to their places in its lane."""
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
    """The longest packet that one of those takes who are connected."""
    links = (each.link for each in members)
    return max((link.connection.writer.maximum_bytes for link in links if link is not None), default=0)
