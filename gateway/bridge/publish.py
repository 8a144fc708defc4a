"""Whether anybody subscribes to what a client publishes: reason code 10 of PUBACK (MQTT 5.0 section 3.4.2.1).

Beside step 3 on the way of a PUBLISH. What the embedded broker registers for the gateway's own clients may match more
than their topic filters (mappings.topics), so these have the last word; any other subscription is an MQ application's.
A filter that matches counts, whatever No Local or a content filter makes of the message: 10 is said only where it is
certain. What goes to a target is matched there, later, and never gets it.

PUBLISH and PUBREL of a client: what may be taken, and what is acknowledged after the commit.

Step 3 on the way of a PUBLISH. A PUBLISH that may not be or cannot be taken is refused by reason code at level 5.
Before it the connection is closed: MQTT 3.1.1 has no negative acknowledgement, and nothing may be refused in silence.

QoS 2 (MQTT 3.1.1 section 4.3.3). Packets are carried out in their order, so what the session holds decides:

    PUBLISH, nothing held   a new message: it is stored and held, then PUBREC leaves
    PUBLISH, one is held    a repeat: PUBREC leaves again. Another message under that identifier came too early. It is
                            lost by its client's fault, and log, metrics and trail say so
    PUBREL, one is held     it is put and no longer held, then PUBCOMP leaves. From here on a PUBLISH is a new message,
                            committed or not, for no sender repeats a PUBLISH behind its PUBREL
    PUBREL, nothing held    PUBCOMP leaves, behind that of the first where it is a repeat

Identifiers of QoS 1 are not looked at: each PUBLISH of QoS 1 is a message.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from gateway.bridge.counts import Counts, Traffic
from gateway.bridge.links import LinkWork
from gateway.bridge.mq_refusals import refused_publication
from gateway.bridge.pauses import Pauses
from gateway.bridge.publish_command import ToMq
from gateway.bridge.session_limits import Quotas
from gateway.bridge.session_store import HeldPublish
from gateway.bridge.sessions import ClientSession, Sessions
from gateway.bridge.shared_groups import SharedGroups
from gateway.bridge.usr_folder import properties_of_header
from gateway.config.routes import Routes
from gateway.limits.log_rate import LogRate
from gateway.limits.refusals import LimitReached
from gateway.mqtt import packets
from gateway.mqtt.connection import Connection
from gateway.mqtt.events import Event, PublishReceived, ReleaseReceived
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.properties import Explanation, PublishProperties
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
    """Who listens."""

    def is_known_empty(self, topic: str) -> bool:
        """Whether it is certain that nobody subscribes to a topic at this moment."""
        ...


class EmbeddedAudience:
    """Who gets what is published at the embedded broker."""

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
        """Whether a subscription that the broker found matches by the client's own filters; an application's does."""
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
        quotas: Quotas,
        traffic: Traffic,
        pauses: Pauses,
        audience: Audience | None = None,
    ) -> None:
        """`audience`: who listens at the embedded broker; None: nobody knows."""
        self._pauses = pauses
        self._engine = engine
        self._to_mq = to_mq
        self._counts = counts
        self._quotas = quotas
        self._published = traffic.published
        self._repeated = traffic.repeated
        self._audience = audience
        self._fine_topics = quotas.fine_topics
        self._has_targets = to_mq.has_targets
        self._maximum_payload_bytes = to_mq.maximum_payload_bytes
        #: QoS 0 is dropped, and counted alone: a note of each would fill the disk.
        self.disk_is_short = False
        self._dropped_for_space = 0
        self._refused_lines = LogRate(_log, "publishes refused client=%s count=%s")
        self._reuse_lines = LogRate(_log, "packet identifiers reused too early client=%s count=%s")

    def disk_has_room(self, unit: UnitOfWork, now_us: int) -> None:
        """The audit hears how many were dropped meanwhile."""
        self.disk_is_short = False
        dropped, self._dropped_for_space = self._dropped_for_space, 0
        if dropped:
            self._to_mq.note_dropped(unit, f"{dropped} PUBLISH of QoS 0 in all: {_DISK_IS_SHORT}", now_us)

    def publish(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        """Where the client may not publish there, the connection is closed and the PUBLISH leaves no trace.

        What came behind it in the same read is carried out all the same.
        """
        session = work.session
        if event.qos == _EXACTLY_ONCE and is_repeat(session, event):
            self._repeat(work, event, now_us)
            return
        rights = session.rights
        is_plain = rights.allows_every_plain_publish and event.topic[0] != "$"
        is_allowed = is_plain or rights.may_publish(event.topic)
        can_be_told = event.qos and LEVELS[session.level].has_reason_codes
        if not is_allowed or (can_be_told and self._to_mq.is_closed(event.topic)):
            self._refuse_publish(work, event, f"publish to {event.topic!r} is not allowed", ReasonCode.NOT_AUTHORIZED)
            return
        may_be_limited = event.topic not in self._fine_topics or event.retain
        if may_be_limited and (reached := self._quotas.of_publish(event)) is not None:
            self._over_limit(work, event, reached, now_us)
            return
        may_be_too_long = len(event.payload) > self._maximum_payload_bytes or event.properties is not None
        if (self._has_targets or may_be_too_long) and (problem := self._to_mq.problem(session, event)):
            self._refuse_publish(work, event, problem, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
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
        """Whether a PUBLISH of QoS 0 finds no room, and so ends here."""
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
        """PUBACK, for after the commit; level 5 hears in it that nobody subscribes, where that is known."""
        session, packet_identifier = work.session, event.packet_identifier
        puback = _PUBACK + packet_identifier.to_bytes(2, "big")
        audience = self._audience if LEVELS[session.level].has_reason_codes else None
        if audience is not None and audience.is_known_empty(event.topic):
            puback = packets.puback(packet_identifier, ReasonCode.NO_MATCHING_SUBSCRIBERS)
        work.acknowledgements.append(puback)
        work.answered += 1
        work.confirm(PacketType.PUBACK, session.incoming_exchange)

    def _over_limit(self, work: LinkWork, event: PublishReceived, reached: LimitReached, now_us: int) -> None:
        """A topic that is too long is refused at every QoS; where there is no room, QoS 0 is dropped as elsewhere."""
        if event.qos or reached.reason_code is not ReasonCode.QUOTA_EXCEEDED:
            self._refuse_publish(work, event, reached.text, reached.reason_code, reached.told)
        else:
            self._drop(work, event, reached.text, now_us)

    def _hold(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        session = work.session
        reached = self._quotas.of_hold(session, event)
        if reached is not None:
            self._refuse_publish(work, event, reached.text, reached.reason_code, reached.told)
            return
        self._to_mq.hold(work.unit, session, event, now_us)
        self._published[2] += 1
        work.acknowledgements.append(_PUBREC + event.packet_identifier.to_bytes(2, "big"))
        work.confirm(PacketType.PUBREC, session.incoming_exchange)

    def _not_put(self, work: LinkWork, event: PublishReceived, error: QueueManagerError, now_us: int) -> None:
        """The queue here does not take it; nothing that was acknowledged is lost by that."""
        if event.qos:
            self._refuse_publish(work, event, str(error), refused_publication(error.reason_code))
        else:
            self._drop(work, event, error.reason_name, now_us)

    def _drop(self, work: LinkWork, event: PublishReceived, reason: str, now_us: int) -> None:
        self._counts.add(f"QoS 0, {reason}")
        work.unit.count(PublicationCounter.DROPPED)
        self._to_mq.drop(work.unit, work.session, event, reason, now_us)

    def _refuse_publish(
        self, work: LinkWork, event: PublishReceived, reason: str, reason_code: ReasonCode, told: str | None = None
    ) -> None:
        """The reason is for the log; `told` is said to the client, None: what the reason code means."""
        work.unit.count(PublicationCounter.REFUSED)
        connection = work.link.connection
        if not event.qos or not LEVELS[connection.level].has_reason_codes:
            work.link.close(reason, reason_code, told)
            return
        self._counts.add(f"refused PUBLISH, reason code {reason_code.name}")
        client = work.session.client
        self._refused_lines.tell(client, client, "publish refused client=%s reason=%s", client, reason)
        explanation = None if told is None else Explanation(reason_string=told)
        if event.qos == _EXACTLY_ONCE:
            work.acknowledgements.append(connection.writer.pubrec(event.packet_identifier, reason_code, explanation))
            connection.refused(event.packet_identifier)
        else:
            work.acknowledgements.append(connection.writer.puback(event.packet_identifier, reason_code, explanation))
            work.answered += 1

    def _repeat(self, work: LinkWork, event: PublishReceived, now_us: int) -> None:
        """PUBREC, whatever the PUBLISH says (MQTT-4.3.3-2, at level 5 -10); nothing once the link is closed."""
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
            work.unit.notes_are_due = True  # PUBREC says that it is taken, and the note is all that stays of it
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
            except QueueManagerError as error:  # it is held as before, and the client sends PUBREL again
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
    """Whether a PUBLISH of QoS 2 has the identifier of one whose PUBREL has not come: then it becomes nothing."""
    return event.qos == _EXACTLY_ONCE and event.packet_identifier in session.held


def _is_same_message(held: HeldPublish, event: PublishReceived) -> bool:
    """Whether a PUBLISH says what the one that is held said: topic, RETAIN, payload, and properties of the message."""
    is_same = (held.topic, held.retain, held.payload) == (event.topic, event.retain, event.payload)
    if not is_same or (not LEVELS[held.level].has_properties and event.properties is None):
        return is_same
    before = properties_of_header(held.header) if LEVELS[held.level].has_properties else None
    return _of_message(before) == _of_message(event.properties)


def _of_message(properties: PublishProperties | None) -> PublishProperties:
    """Without an alias, which is the connection's, and the expiry, of which a repeat may say what is left."""
    return (properties or PublishProperties())._replace(topic_alias=None, message_expiry_s=None)


def _pubcomp_of_unknown(connection: Connection, packet_identifier: int) -> bytes:
    """PUBCOMP for an identifier that is not held: at level 5 it says so (92).

    In a session from before it was released, and only the answer was lost: then 92 would tell a client that its message
    has failed (MQTT 5.0 table 3-7: no error during recovery).
    """
    is_recovery = connection.is_resumed or not LEVELS[connection.level].has_reason_codes
    reason_code = ReasonCode.SUCCESS if is_recovery else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
    return connection.writer.pubcomp(packet_identifier, reason_code)
