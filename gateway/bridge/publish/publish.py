"""PUBLISH and PUBREL from a client: the checks, and the acknowledgement that leaves after the commit.

Step 3 on the way of a PUBLISH. At level 5 the gateway refuses a PUBLISH with a reason code. MQTT 3.1.1 has no negative
acknowledgement, and no refusal may be silent. So at earlier levels the gateway closes the connection.

QoS 2 (MQTT 3.1.1 section 4.3.3): packets are carried out in their order, so the held messages of the session decide:

    PUBLISH, none is held   a new message: it is stored and held, then PUBREC leaves
    PUBLISH, one is held    a repeat: PUBREC leaves again. If it is a different message, the client used the identifier
                            too early. That message is lost; log, metrics and trail say so
    PUBREL, one is held     the message is put and is no longer held, then PUBCOMP leaves. A later PUBLISH is a new
                            message even before the commit, because no sender repeats a PUBLISH after its PUBREL
    PUBREL, none is held    PUBCOMP leaves. If the PUBREL is a repeat, the PUBCOMP of the first one leaves before it

Each PUBLISH of QoS 1 is a message, whatever its identifier.

PUBACK may say that nobody subscribes (reason code 10, MQTT 5.0 section 3.4.2.1). The gateway says so only where it is
certain. The broker's patterns for the gateway's clients may match more than their topic filters (mappings.topics), so
the filters decide. Any other subscription belongs to an MQ application. A matching filter counts even if No Local or a
content filter would stop the message. A target matches topics later, so its messages never get reason code 10.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from gateway.access.refused_topics import Asked
from gateway.bridge.commands.mq_refusals import name_of_refusal, refused_publication
from gateway.bridge.counts import Counts, Traffic
from gateway.bridge.deliver.shared_groups import SharedGroups
from gateway.bridge.messages.usr_folder import properties_of_header
from gateway.bridge.publish.pauses import Pauses
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.links import CODE_IN_FRONT, LinkWork
from gateway.bridge.sessions.session_limits import ClientLimits
from gateway.bridge.sessions.session_store import HeldPublish
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.config.routes import Routes
from gateway.limits.log_rate import LogRate
from gateway.limits.refusals import LimitReached
from gateway.mqtt import packets
from gateway.mqtt.connection import Connection
from gateway.mqtt.events import Event, PublishReceived, ReleaseReceived
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.properties import PublishProperties, ReasonProperties
from gateway.mqtt.reason_codes import ReasonCode
from mappings.topics.topics import Scheme, matches
from mq_adapters.broker.subscription import Subscription
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter, UnitOfWork
from mq_adapters.reasons import QueueManagerError
from spark_audit.record import EVENTS, Kind

SubscriptionsTo = Callable[[str], Iterable[Subscription]]
"""The subscriptions of the embedded broker that match a topic (mq_adapters.broker.audience.SubscriptionAudience.of)."""


class Audience(Protocol):
    """Knows whether anybody subscribes."""

    def is_known_empty(self, topic: str) -> bool:
        """Whether it is certain that nobody subscribes to a topic at this moment."""
        ...


class EmbeddedAudience:
    """The subscribers of the embedded broker."""

    def __init__(
        self,
        subscriptions_to: SubscriptionsTo,
        *,
        routes: Routes,
        sessions: Sessions,
        groups: SharedGroups,
        subscriber_queue: str,
    ) -> None:
        self._subscriptions_to = subscriptions_to
        self._routes = routes
        self._sessions = sessions
        self._groups = groups
        self._subscriber_queue = subscriber_queue

    def is_known_empty(self, topic: str) -> bool:
        if self._routes.has_targets and self._routes.of(topic).target is not None:
            return False
        return not any(self._wants(subscription, topic) for subscription in self._subscriptions_to(topic))

    def _wants(self, subscription: Subscription, topic: str) -> bool:
        """Whether the client's own filters match too. A subscription of an MQ application always counts."""
        identity = subscription.identity
        if identity.queue_name != self._subscriber_queue or identity.correl_id is None:
            return True
        session = self._sessions.of_correl_id(identity.correl_id)
        if session is not None:
            return session.pending_answers > 0 or session.granted_qos(topic) is not None
        group = self._groups.of_correl_id(identity.correl_id)
        return group is not None and matches(group.topic_filter, topic, Scheme.MQTT)


_log = logging.getLogger(__name__)

_PUBACK: Final = b"\x40\x02"
_PUBREC: Final = b"\x50\x02"
_PUBCOMP: Final = b"\x70\x02"
#: A PUBACK which says that nobody subscribes, for the audit.
_PUBACK_TO_NOBODY: Final = PacketType.PUBACK + CODE_IN_FRONT * ReasonCode.NO_MATCHING_SUBSCRIBERS
_EXACTLY_ONCE: Final = 2
_SAME, _REUSED = EVENTS[Kind.REPEATED]
_FULL: Final = "the target's queue is full"
_PAUSED: Final = "the queue is closed by PUT(DISABLED)"
_DISK_IS_SHORT: Final = "the disk is short of space"


class Intake:
    """Takes what clients publish, in the unit of work of one read."""

    def __init__(
        self,
        engine: Engine,
        to_mq: ToMq,
        counts: Counts,
        client_limits: ClientLimits,
        traffic: Traffic,
        pauses: Pauses,
        audience: Audience | None = None,
    ) -> None:
        """`audience` knows the subscribers of the embedded broker; None: they are not known."""
        self._pauses = pauses
        self._engine = engine
        self._to_mq = to_mq
        self._counts = counts
        self._limits = client_limits
        self._published = traffic.published
        self._repeated = traffic.repeated
        self._audience = audience
        self._fine_topics = client_limits.fine_topics
        self._has_targets = to_mq.has_targets
        self._maximum_payload_bytes = to_mq.maximum_payload_bytes
        #: Meanwhile QoS 0 is dropped and only counted: an audit note for each message would fill the disk.
        self.disk_is_short = False
        self._dropped_for_space = 0
        self._refused_lines = LogRate(_log, "publishes refused client=%s count=%s")
        self._reuse_lines = LogRate(_log, "packet identifiers reused too early client=%s count=%s")

    def disk_has_room(self, unit: UnitOfWork, now_us: int) -> None:
        """The disk has room again. Notes for the audit how many PUBLISHes of QoS 0 were dropped meanwhile."""
        self.disk_is_short = False
        dropped, self._dropped_for_space = self._dropped_for_space, 0
        if dropped:
            self._to_mq.note_dropped(unit, f"{dropped} PUBLISH of QoS 0 in all: {_DISK_IS_SHORT}", now_us)

    def publish(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        """Takes a PUBLISH, or refuses it.

        A refusal that closes the connection leaves no trace of the PUBLISH. Packets behind it in the same read are
        still carried out.
        """
        session = work.session
        if event.qos == _EXACTLY_ONCE and is_repeat(session, event):
            self._repeat(work, event, now_us)
            return
        rights = session.rights
        is_plain = rights.allows_every_plain_publish and event.topic[0] != "$"
        rule = "" if is_plain else rights.publish_refused_by(event.topic)
        can_be_told = event.qos and LEVELS[session.level].has_reason_codes
        if can_be_told and not rule and self._to_mq.is_closed(event.topic):
            rule = "topic object"
        if rule:
            reason = f"publish to {event.topic!r} is not allowed"
            self._refuse_publish(work, event, reason, ReasonCode.NOT_AUTHORIZED, rule=rule, now_us=now_us)
            return
        may_be_limited = event.topic not in self._fine_topics or event.retain
        if may_be_limited and (reached := self._limits.of_publish(event)) is not None:
            self._over_limit(work, event, reached, now_us)
            return
        may_be_too_long = len(event.payload) > self._maximum_payload_bytes or event.properties is not None
        if (self._has_targets or may_be_too_long) and (problem := self._to_mq.problem(session, event)):
            reason_code = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
            self._refuse_publish(work, event, problem, reason_code, rule="MQ cannot carry it", now_us=now_us)
            return
        qos = event.qos
        if not qos and self._is_dropped(work, event, now_us):
            return
        if qos == 2:
            self._hold(work, event, now_us)
            return
        try:
            self._to_mq.publish(work.unit, session, event, now_us)
        except QueueManagerError as error:
            self._not_put(work, event, error, now_us)
            return
        self._published[qos] += 1
        if qos:
            self._acknowledge(work, event)

    def _is_dropped(self, work: LinkWork, event: PublishReceived, now_us: int) -> bool:
        """Drops a PUBLISH of QoS 0 that finds no room, and returns whether it did."""
        if self.disk_is_short:
            self._dropped_for_space += 1
            work.unit.count(PublicationCounter.DROPPED)
            self._counts.add(f"QoS 0, {_DISK_IS_SHORT}")
        elif self._has_targets and self._to_mq.full_target(event.topic) is not None:
            self._drop(work, event, _FULL, now_us)
        elif self._pauses and self._pauses.place(event.topic, work.session.client):
            self._drop(work, event, _PAUSED, now_us)
        else:
            return False
        return True

    def _acknowledge(self, work: LinkWork, event: PublishReceived) -> None:
        """Prepares PUBACK for after the commit. At level 5 it says that nobody subscribes, if that is certain."""
        session, packet_identifier = work.session, event.packet_identifier
        puback = _PUBACK + packet_identifier.to_bytes(2, "big")
        audience = self._audience if LEVELS[session.level].has_reason_codes else None
        answer: int = PacketType.PUBACK
        if audience is not None and audience.is_known_empty(event.topic):
            puback = packets.puback(packet_identifier, ReasonCode.NO_MATCHING_SUBSCRIBERS)
            answer = _PUBACK_TO_NOBODY
        work.acknowledgements.append(puback)
        work.answered += 1
        work.confirm(answer, session.incoming_exchange)

    def _over_limit(self, work: LinkWork, event: PublishReceived, reached: LimitReached, now_us: int) -> None:
        """Refuses a topic that is too long at every QoS. When a limit is reached, QoS 0 is dropped, not refused."""
        if event.qos or reached.reason_code is not ReasonCode.QUOTA_EXCEEDED:
            self._refuse_for_limit(work, event, reached, now_us)
        else:
            self._drop(work, event, reached.text, now_us)

    def _hold(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        session = work.session
        reached = self._limits.of_hold(session, event)
        if reached is not None:
            self._refuse_for_limit(work, event, reached, now_us)
            return
        self._to_mq.hold(work.unit, session, event, now_us)
        self._published[2] += 1
        work.acknowledgements.append(_PUBREC + event.packet_identifier.to_bytes(2, "big"))
        work.confirm(PacketType.PUBREC, session.incoming_exchange)

    def _not_put(self, work: LinkWork, event: PublishReceived, error: QueueManagerError, now_us: int) -> None:
        """The gateway's own queue refused the message, which was not acknowledged yet."""
        if event.qos:
            reason_code = refused_publication(error.reason_code)
            rule = name_of_refusal(error.reason_code)
            self._refuse_publish(work, event, str(error), reason_code, rule=rule, now_us=now_us)
        else:
            self._drop(work, event, error.reason_name, now_us)

    def _drop(self, work: LinkWork, event: PublishReceived, reason: str, now_us: int) -> None:
        self._counts.add(f"QoS 0, {reason}")
        work.unit.count(PublicationCounter.DROPPED)
        self._to_mq.drop(work.unit, work.session, event, reason, now_us)

    def _refuse_for_limit(self, work: LinkWork, event: PublishReceived, reached: LimitReached, now_us: int) -> None:
        rule, reason_code = reached.limit.label, reached.reason_code
        self._refuse_publish(work, event, reached.text, reason_code, rule=rule, now_us=now_us, told=reached.told)

    def _refuse_publish(
        self,
        work: LinkWork,
        event: PublishReceived,
        reason: str,
        reason_code: ReasonCode,
        *,
        rule: str,
        now_us: int,
        told: str | None = None,
    ) -> None:
        """`reason` goes to the log, `rule` to the trail, and `told` to the client.

        None: the client is told the meaning of the reason code.
        """
        work.unit.count(PublicationCounter.REFUSED)
        connection = work.link.connection
        code = reason_code if LEVELS[connection.level].has_reason_codes else 0
        work.session.rights.count_refusal(Asked.PUBLISH, event.topic, rule, now_us, code)
        if not event.qos or not LEVELS[connection.level].has_reason_codes:
            work.link.close(reason, reason_code, told)
            return
        self._counts.add(f"refused PUBLISH, reason code {reason_code.name}")
        client = work.session.client
        self._refused_lines.tell(client, client, "publish refused client=%s reason=%s", client, reason)
        explanation = None if told is None else ReasonProperties(reason_string=told)
        if event.qos == _EXACTLY_ONCE:
            work.acknowledgements.append(connection.writer.pubrec(event.packet_identifier, reason_code, explanation))
            connection.refused(event.packet_identifier)
        else:
            work.acknowledgements.append(connection.writer.puback(event.packet_identifier, reason_code, explanation))
            work.answered += 1

    def _repeat(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        """Answers PUBREC, whatever the PUBLISH contains (MQTT-4.3.3-2, at level 5 -10), unless the link is closed."""
        if not work.link.is_open:
            work.unit.count(PublicationCounter.GIVEN_UP)
            return
        session, packet_identifier = work.session, event.packet_identifier
        what = _SAME if _is_same_message(session.held[packet_identifier], event) else _REUSED
        work.unit.count(PublicationCounter.REPEATS if what is _SAME else PublicationCounter.DROPPED)
        self._repeated[what] += 1
        self._to_mq.note_repeat(work.unit, session, event, what, now_us)
        work.acknowledgements.append(_PUBREC + packet_identifier.to_bytes(2, "big"))
        if what is _REUSED:
            work.unit.notes_are_due = True  # PUBREC acknowledges the message, and only this note remains of it
            self._counts.add("QoS 2, packet identifier reused too early")
            line = "packet identifier reused too early client=%s packet_identifier=%s topic=%s"
            self._reuse_lines.tell(session.client, session.client, line, session.client, packet_identifier, event.topic)

    def release(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, ReleaseReceived)
        session, packet_identifier = work.session, event.packet_identifier
        pubcomp = _PUBCOMP + packet_identifier.to_bytes(2, "big")
        if packet_identifier in session.held:
            try:
                exchange = self._to_mq.release(work.unit, session, packet_identifier, self._engine.now_us())
            except QueueManagerError as error:  # the message stays held, and the client sends PUBREL again
                work.link.close(str(error))
                return
            work.confirm(PacketType.PUBCOMP, exchange)
            session.release_begins(packet_identifier)
            work.finished.append((session.release_ends, packet_identifier))
        elif packet_identifier not in session.releases_under_way:
            pubcomp = _pubcomp_of_unknown(work.link.connection, packet_identifier)
        work.acknowledgements.append(pubcomp)
        work.answered += 1


def is_repeat(session: ClientSession, event: PublishReceived) -> bool:
    """Whether a message with the identifier of this QoS 2 PUBLISH is held. Then the PUBLISH makes no new message."""
    return event.qos == _EXACTLY_ONCE and event.packet_identifier in session.held


def _is_same_message(held: HeldPublish, event: PublishReceived) -> bool:
    """Whether a PUBLISH equals the held one in topic, RETAIN, payload and message properties."""
    is_same = (held.topic, held.retain, held.payload) == (event.topic, event.retain, event.payload)
    if not is_same or (not LEVELS[held.level].has_properties and event.properties is None):
        return is_same
    before = properties_of_header(held.header) if LEVELS[held.level].has_properties else None
    return _of_message(before) == _of_message(event.properties)


def _of_message(properties: PublishProperties | None) -> PublishProperties:
    """The properties without topic alias (it belongs to the connection) and expiry (a repeat may give the rest)."""
    return (properties or PublishProperties())._replace(topic_alias=None, message_expiry_s=None)


def _pubcomp_of_unknown(connection: Connection, packet_identifier: int) -> bytes:
    """PUBCOMP for an identifier that is not held. At level 5 its reason code is 92, except in a resumed session.

    In a resumed session the message was released, and only the PUBCOMP was lost. There 92 would tell the client that
    its message failed (MQTT 5.0 table 3-7: no error during recovery).
    """
    is_recovery = connection.is_resumed or not LEVELS[connection.level].has_reason_codes
    reason_code = ReasonCode.SUCCESS if is_recovery else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
    return connection.writer.pubcomp(packet_identifier, reason_code)
