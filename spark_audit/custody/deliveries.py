"""The deliveries to clients, against the messages that wait for them and the filters that they have subscribed to.

Each delivery is of a message that waits in the client's own lane, or in that of its group. It goes out at no higher QoS
than the client has asked for by a filter that matches its topic, in one exchange for each topic, and behind all earlier
messages of the same publisher, topic and QoS. Sources: MQTT 3.1.1 sections 3.8.4 and 4.6, MQTT 5.0 section 4.8.2.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from spark_audit.custody.commands import Lane
from spark_audit.custody.findings import Custody, Finding, message
from spark_audit.custody.lanes import Lanes, Waiting
from spark_audit.custody.topic_match import Scheme, behind_group, is_shared, topic_matches
from spark_audit.personal import NAME_PREFIX
from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.mqtt import SUBSCRIBE, read_filter

Record = Mapping[str, Any]
_PUBACK, _PUBREC = 4, 5
#: Filters that are remembered for each subscriber. A subscriber that has had more is not judged by its filters.
_MOST_FILTERS = 1_000
#: Topics that are remembered for each subscriber.
_MOST_ANSWERS = 100
_QOS_BITS = 3


class Deliveries:
    """Judges the deliveries of a trail."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        #: The filters that each subscriber has asked for, with the highest QoS, by CorrelId. None: not all are known.
        self._filters: dict[str, dict[str, int] | None] = {}
        #: The QoS that each subscriber has asked for on topics, remembered until it asks again.
        self._granted: dict[str, dict[str, int]] = {}
        #: Publisher, topic and QoS of the publications of this commit, and whether they are persistent.
        self._published: dict[str, tuple[tuple[object, ...], bool]] = {}
        self._commit = 0

    def publish(self, record: Record) -> None:
        """A publication of a client came to the broker."""
        if record["batch"] != self._commit:
            self._published, self._commit = {}, record["batch"]
        order = (record["client"], record["topic"], record["qos"])
        self._published[record["message_id"]] = order, bool(record["persistent"])

    def subscribe(self, record: Record, correlation_id: str) -> tuple[str, int] | None:
        """A client's filter was registered for a subscriber. Returns filter and QoS; None if they cannot be read."""
        known = self._filters.setdefault(correlation_id, {})
        self._granted.pop(correlation_id, None)
        asked = _asked(record)
        if asked is None or known is None or len(known) >= _MOST_FILTERS:
            self._filters[correlation_id] = None
        else:
            known[asked[0]] = max(known.get(asked[0], 0), asked[1])
        return asked

    def filters_of(self, correlation_id: str) -> Mapping[str, int] | None:
        """The filters that a subscriber has asked for, with the highest QoS; None: not all are known."""
        return self._filters.get(correlation_id, {})

    def copied(self, record: Record, lane: Lane, *, is_persistent: bool | None) -> None:
        """A copy waits for a client from now on."""
        known = None if record["is_retained"] else self._published.get(record["source_message_id"])
        order = None if known is None else known[0]
        owner = self._lanes.owners.get(lane[1])
        self._lanes.add(
            Waiting(
                message_id=record["message_id"],
                lane=lane,
                sequence=record["sequence"],
                is_persistent=is_persistent,
                order=None if owner is None or owner.is_group else order,
            )
        )

    def is_persistent(self, copy: Record) -> bool | None:
        """Whether the publication of a copy is persistent; None where that is not known."""
        known = self._published.get(copy["source_message_id"])
        return None if known is None else known[1]

    def received(self, record: Record) -> None:
        """A message came, and its record does not tell in which lane it waits."""
        self._lanes.add(Waiting(record["message_id"], None, record["sequence"], None, queue=record["queue"]))

    def deliver(self, record: Record, commit: int) -> Iterator[Finding]:
        """A client was sent a message."""
        message_id, correlation_id = record["message_id"], record["correlation_id"] or ""
        to = record["client"], record["session_epoch"], record["topic"]
        owner = self._lanes.owners.get(correlation_id)
        if owner is not None and not owner.is_group and (owner.client, owner.epoch) != to[:2]:
            yield _found(record, f"it was for client {owner.client}, session {owner.epoch}, and went to another one")
        yield from self._beyond_filters(record, correlation_id)
        waiting = self._lanes.get(message_id)
        if waiting is not None:
            wrong = self._lanes.deliver(waiting, qos=record["qos"], exchange=record["exchange"], to=to, commit=commit)
            if wrong is not None:
                control, detail = wrong
                yield _found(record, detail, control)
        elif self._lanes.is_whole and not self._lanes.was_just_sent(message_id, to):
            yield _found(record, "it does not wait for the client: there was no copy for the client, or it has ended")

    def acknowledge(self, record: Record) -> None:
        """A client has acknowledged a message."""
        if record["packet_type"] in (_PUBACK, _PUBREC) and record["message_id"] is not None:
            self._lanes.acknowledge(record["message_id"], record["exchange"])

    def _beyond_filters(self, record: Record, correlation_id: str) -> Iterator[Finding]:
        """Whether no filter that the subscriber has asked for brings this topic, or none at so high a QoS."""
        filters, topic = self._filters.get(correlation_id), record["topic"] or ""
        if not filters or not self._lanes.is_whole or topic.startswith(NAME_PREFIX):
            return
        answers = self._granted.setdefault(correlation_id, {})
        granted = answers.get(topic)
        if granted is None:
            matching = [qos for each, qos in filters.items() if topic_matches(each, topic, Scheme.MQTT)]
            granted = max(matching, default=-1)
            if len(answers) < _MOST_ANSWERS:
                answers[topic] = granted
        if granted < 0:
            yield _found(record, f"no filter of client {record['client']} matches topic {topic}")
        elif (record["granted_qos"] or 0) > granted:
            yield _found(record, f"granted QoS {record['granted_qos']}, and the client asked for {granted}")


def _found(record: Record, detail: str, control: Custody = Custody.DELIVERIES) -> Finding:
    return Finding(control, record["sequence"], message(record["message_id"]), detail)


def _asked(record: Record) -> tuple[str, int] | None:
    """Filter and QoS of the SUBSCRIBE that caused a RegSub; None if they cannot be read."""
    if record["packet_type"] != SUBSCRIBE or not record["entry"]:
        return None
    try:
        entry = base64.b64decode(record["entry"], validate=True)
        topic_filter = read_filter(entry, SUBSCRIBE)
        return behind_group(topic_filter) if is_shared(record["client"]) else topic_filter, entry[-1] & _QOS_BITS
    except (UnreadableBytes, binascii.Error, ValueError):
        return None
