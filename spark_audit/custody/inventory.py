"""Inventories against the state of the replay: sessions, filters, registrations and retained publications.

An inventory is several records, each with a page of entries that are true at its place. So each entry is compared with
the state there. Whatever stays the same from the first record to the last must be among the entries. Keyed names are
not compared, nor is anything that began before the first record of the trail. Source: spark_audit/record/kinds.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from spark_audit.custody.commands import Lane
from spark_audit.custody.deliveries import Deliveries
from spark_audit.custody.findings import Custody, Finding
from spark_audit.custody.lanes import Lanes, Owner
from spark_audit.custody.places import DEFAULT_PLACE, Place
from spark_audit.custody.registry import Registry, Subscription
from spark_audit.custody.retained import Kept, RetainedTopics
from spark_audit.custody.sessions import Sessions
from spark_audit.custody.topic_match import is_shared
from spark_audit.personal import NAME_PREFIX

Record = Mapping[str, Any]
_Entry = list[str | None]
_NO_CORRELATION_ID: Final = "00" * 24
#: In one of the dialects, topics that begin with this stand for other streams.
_OF_STREAMS: Final = "$SYS/STREAM/"


class Inventory:
    """The inventory that is under way, beside the state that the replay keeps."""

    def __init__(
        self, *, sessions: Sessions, registry: Registry, retained: RetainedTopics, lanes: Lanes, deliveries: Deliveries
    ) -> None:
        self._sessions = sessions
        self._registry = registry
        self._retained = retained
        self._lanes = lanes
        self._deliveries = deliveries
        self._takes: Mapping[str, Callable[[_Entry], str]] = {
            "sessions": self._session,
            "filters": self._filter,
            "registrations": self._registration,
            "retained": self._retained_publication,
        }
        self.clear()

    def clear(self) -> None:
        """Forgets the inventory that is under way."""
        self._is_begun = False
        self._listed: set[object] = set()
        self._sessions_before: set[tuple[str, int]] = set()
        self._registered_before: set[Subscription] = set()
        self._retained_before: dict[tuple[Place, str], Kept] = {}

    def take(self, record: Record) -> Iterator[Finding]:
        """One of its records."""
        event = record["event"]
        if event == "begun":
            self._begin()
        elif event == "complete" and self._is_begun:
            yield from self._missing(record)
            self.clear()
        for entry in json.loads(record["listed"] or "[]") if event in self._takes else ():
            if entry and None not in entry and (wrong := self._wrong(event, entry)):
                yield Finding(Custody.INVENTORY, record["sequence"], f"inventory, {event}", wrong)

    def _wrong(self, event: str, entry: _Entry) -> str:
        try:
            return self._takes[event](entry)
        except (ValueError, IndexError, TypeError):
            return "an entry that is none"

    def _begin(self) -> None:
        self.clear()
        self._is_begun = True
        self._sessions_before = set(self._sessions.present())
        self._registered_before = set(self._due_registrations())
        self._retained_before = dict(self._retained.certain())

    # -- one entry -----------------------------------------------------------------------------------------------------

    def _session(self, entry: _Entry) -> str:
        client, epoch, _, level, state = entry
        self._listed.add((client, int(epoch or 0)))
        if not self._sessions.is_whole:
            return ""
        session = self._sessions.get(str(client))
        if session is None or session.has_ended or session.epoch != int(epoch or 0):
            return f"session {epoch} of client {client} is kept, and by the records there is none"
        if session.is_connected != (state == "connected"):
            return f"client {client} is {state}, and by the records it is not"
        if session.level is not None and session.level != int(level or 0):
            return f"client {client} speaks level {level}, and by the records {session.level}"
        return ""

    def _filter(self, entry: _Entry) -> str:
        epoch, topic_filter, qos = entry
        client = self._sessions.client_of(int(epoch or 0))
        if client is None or is_shared(str(topic_filter)) or str(topic_filter).startswith(NAME_PREFIX):
            return ""
        lanes = self._lanes.of_owner(Owner(client, int(epoch or 0)))
        known = [self._deliveries.filters_of(lane) for lane in lanes]
        is_known = self._sessions.is_known(client, int(epoch or 0)) and None not in known
        asked = max((each.get(str(topic_filter), -1) for each in known if each is not None), default=-1)
        if asked < 0 and is_known:
            return f"filter {topic_filter} of client {client} is kept, and by the records it has not subscribed to it"
        if is_known and int(qos or 0) > asked:
            return f"filter {topic_filter} of client {client} has QoS {qos}, and the client asked for {asked}"
        return ""

    def _registration(self, entry: _Entry) -> str:
        queue, correlation_id, stream, topic, point, content_filter, _options = map(str, entry)
        lane = (queue, "" if correlation_id == _NO_CORRELATION_ID else correlation_id)
        self._listed.add((lane, stream, topic, point, content_filter))
        if topic.startswith(NAME_PREFIX) or not self._is_whole(lane):
            return ""
        for each in self._registry.of_lane.get(lane, {}).values():
            if _as_listed(each) == (stream, topic, point, content_filter):
                return ""
        return f"topic {topic} is registered for {self._who(lane)}, and by the records it is not"

    def _is_whole(self, lane: Lane) -> bool:
        """Whether a lane has no subscription but those that the records tell of."""
        if lane[0] in self._lanes.queues:
            return self._lanes.tells_all_of(lane)
        return self._registry.tells_all_of(lane[0])

    def _retained_publication(self, entry: _Entry) -> str:
        space, topic, point, message_id, *_ = map(str, entry)
        place = Place(space, point)
        is_default = place == DEFAULT_PLACE and not topic.startswith(_OF_STREAMS)
        if not (self._registry.rules.are_known or is_default) or topic.startswith(NAME_PREFIX):
            return ""
        self._listed.add((place, topic, message_id))
        if not self._retained.is_whole or self._retained.may_keep_elsewhere(topic):
            return ""
        kept = self._retained.get(place, topic)
        if kept is None:
            return f"topic {topic} retains message {message_id}, and by the records nothing"
        if kept.is_certain and kept.message_id != message_id:
            return f"topic {topic} retains message {message_id}, and by the records message {kept.message_id}"
        return ""

    # -- what is not there ---------------------------------------------------------------------------------------------

    def _missing(self, record: Record) -> Iterator[Finding]:
        """Parts of the state that were there throughout the inventory, and that no entry names."""
        missing = [
            f"session {epoch} of client {client} is not among the sessions"
            for client, epoch in sorted(self._sessions_before & set(self._sessions.present()))
            if (client, epoch) not in self._listed
        ]
        for each in self._due_registrations():
            if each in self._registered_before and (each.lane, *_as_listed(each)) not in self._listed:
                missing.append(f"topic {each.topic} of {self._who(each.lane)} is not among the registrations")
        for (place, topic), kept in self._retained.certain():
            is_listed = (place, topic, kept.message_id) in self._listed
            if self._retained_before.get((place, topic)) == kept and not is_listed:
                missing.append(f"topic {topic} with message {kept.message_id} is not among the retained publications")
        for what in missing:
            yield Finding(Custody.INVENTORY, record["sequence"], "inventory, complete", what)

    def _due_registrations(self) -> Iterator[Subscription]:
        """The subscriptions of MQTT clients, none of which ends without a record."""
        for lane, subscriptions in self._registry.of_lane.items():
            if lane[0] in self._lanes.queues and lane[1] not in self._lanes.unread:
                yield from (each for each in subscriptions.values() if each.is_certain)

    def _who(self, lane: Lane) -> str:
        owner = self._lanes.owners.get(lane[1])
        return f"client {owner.client}" if owner is not None else f"the subscriber of queue {lane[0]}"


def _as_listed(each: Subscription) -> tuple[str, str, str, str]:
    """Stream, topic, point and filter of a subscription, as an inventory lists them."""
    return each.stream, each.topic, each.interest.point, each.interest.content_filter
