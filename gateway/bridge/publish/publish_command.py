"""A PUBLISH becomes a Publish command on the stream queue: steps 3 to 5 on its way.

The payload stands untouched behind the header (translations.py). The command itself travels with the message, so the
broker does not read it.

    QoS 0      Publish, not persistent
    QoS 1      Publish, persistent; the caller sends PUBACK when the unit is committed
    QoS 2      stored as state of the session; PUBREL makes it a Publish, once
    RETAIN     PubOpt RetainPub; with an empty payload DeletePub, then a Publish without RetainPub

Every Publish asks for negative notification (MQRO_NAN) to the reply queue: nothing acknowledged is refused in silence.
A topic whose route has a target follows the same rules on that target's transmission queue (transmission_queues.py).
"""

import hashlib
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind, Translation, with_level
from gateway.audit_trail.notes.origin import ORIGIN, RETAIN
from gateway.bridge.commands.mq_refusals import ClosedTopics
from gateway.bridge.commands.requests import NO_PAYLOAD, OwnCommands, PacketPart, note_request
from gateway.bridge.commands.target_messages import user_identifier
from gateway.bridge.commands.transmission_queues import ToTarget
from gateway.bridge.messages.jms_form import CarriedForms
from gateway.bridge.messages.usr_folder import (
    NOTHING_CARRIED,
    CarriedPairs,
    expires_us,
    expiry_of,
    expiry_until,
    longest_carried_bytes,
    properties_of_header,
)
from gateway.bridge.publish.translations import Translations
from gateway.bridge.publish.whole_packets import packet_message, whole_publish, whole_will
from gateway.bridge.sessions.session_store import HeldPublish
from gateway.bridge.sessions.sessions import ClientSession, Sessions, flow_key
from gateway.bridge.sessions.subscriber import own_origin
from gateway.channels.target import Target
from gateway.config.routes import Route, Routes
from gateway.mqtt import property_codec
from gateway.mqtt.events import PublishReceived, Will
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.properties import PublishProperties
from gateway.mqtt.wire import encode_text
from mappings.commands.command import DeletePublication, Dialect, Publish
from mappings.errors import MappingError
from mappings.topics.topics import escape_topic
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter, StateKind, UnitOfWork
from mq_adapters.message import MQEI_UNLIMITED, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: A topic has at most 65,535 bytes; each may become five (an ampersand's escape) in the header.
LONGEST_HEADER_BYTES: Final = 393_216
#: With folders of JMS the topic stands there three times.
_TOPICS_OF_JMS: Final = 3
#: MsgId number, reason code and text for a message that expired between PUBLISH and PUBREL.
_EXPIRED: Final = (0, int(ReasonCode.MQRC_EXPIRY_ERROR), "it expired before its PUBREL")
_PUBLISHED: Final = int(NoteKind.PUBLISHED)
_COUNTED: Final = int(PublicationCounter.PUBLISHED)


class ToMq:
    """Writes commands for packets and puts them, in the caller's unit of work."""

    def __init__(
        self,
        engine: Engine,
        *,
        commands: OwnCommands,
        stream: str,
        routes: Routes,
        to_target: ToTarget,
        forms: CarriedForms,
        closed: ClosedTopics = (),
    ) -> None:
        self._engine = engine
        self._routes = routes
        self._to_target = to_target
        self._closed = closed
        self.has_targets = routes.has_targets
        self._commands = commands
        self._forms = forms
        self._stream = engine.queue(stream)
        self._longest_header_bytes = LONGEST_HEADER_BYTES * (_TOPICS_OF_JMS if forms.writes_jms else 1)
        #: By whether the message is persistent.
        self._descriptors = tuple(commands.descriptor(persistent=persistent) for persistent in (False, True))
        self._translations = Translations(commands, self._stream, self._descriptors)

    @property
    def stream_name(self) -> str:
        return self._stream.name

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(self._to_target)

    @property
    def maximum_payload_bytes(self) -> int:
        """The longest payload that the stream queue takes, whatever header stands in front."""
        return self._stream.maximum_message_bytes - self._longest_header_bytes

    # -- what may be taken ---------------------------------------------------------------------------------------------

    def problem(self, session: ClientSession, event: PublishReceived) -> str:
        """Why the gateway cannot take a PUBLISH, for the log; "" if it can."""
        carried_bytes = 0 if event.properties is None else longest_carried_bytes(event.header)
        return self._problem(event.topic, len(event.payload), carried_bytes, session.client, session.user)

    def problem_of_will(self, will: Will, client: str, user: str | None) -> str:
        """Why the gateway cannot take a will. Asked at CONNECT: when the will is due, the client is gone."""
        properties = b"" if will.properties is None else property_codec.WILL.encode(will.properties)
        return self._problem(will.topic, len(will.payload), longest_carried_bytes(properties), client, user)

    def _problem(self, topic: str, payload_bytes: int, carried_bytes: int, client: str, user: str | None) -> str:
        route = self._routes.of(topic)
        maximum = self.maximum_payload_bytes
        if route.target is not None:
            maximum = self._to_target.maximum_payload_bytes(route, topic, client, user)
            try:
                user_identifier(route.target, user)
            except MappingError as error:
                return str(error)
        if payload_bytes > maximum - carried_bytes:
            return f"a payload of {payload_bytes} bytes is too big for queue {route.queue or self._stream.name}"
        return ""

    def is_closed(self, topic: str) -> bool:
        """Whether the broker here would refuse publications on a topic. Nothing is known about a target's broker."""
        return len(self._closed) > 0 and self._routes.of(topic).target is None and topic in self._closed

    def full_target(self, topic: str) -> Target | None:
        """The target of a topic's route if its queue is full."""
        settings = self._routes.of(topic).target
        if settings is None:
            return None
        target = self._to_target.of(settings)
        return target if target.is_full else None

    def drop(self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, reason: str, now_us: int) -> None:
        """Drops a PUBLISH of QoS 0, and notes it for the audit."""
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        queue_name = self._routes.of(event.topic).queue or self._stream.name
        unit.notes.append((NoteKind.DROPPED, now_us, session.client, session.epoch, exchange, queue_name, 0, reason))

    def note_dropped(self, unit: UnitOfWork, reason: str, now_us: int) -> None:
        """Notes once for the audit how much was dropped from many clients."""
        unit.notes.append((NoteKind.DROPPED, now_us, "", 0, 0, self._stream.name, 0, reason))

    # -- publications --------------------------------------------------------------------------------------------------

    def publish(self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, now_us: int) -> None:
        """A PUBLISH of QoS 0 or 1 becomes a Publish."""
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        payload, header = event.payload, event.header
        flags = header[0] & 7
        if flags & 1 and not payload:
            packet = (int(PacketType.PUBLISH), event.packet_identifier, header)
            self._delete_retained(unit, session, event.topic, exchange, packet, session.level, now_us)
            flags &= 6
        described = event.qos | RETAIN if event.retain else event.qos
        origin = ORIGIN.pack(session.epoch, exchange, event.packet_identifier, described) + session.origin_suffix
        expiry, carried = MQEI_UNLIMITED, NOTHING_CARRIED
        digest = hashlib.sha256(payload).digest()
        if event.properties is not None or not self._forms.is_plain:
            expiry = expiry_of(event.properties)
            carried = self._forms.of(event.properties, event.topic, payload, event.qos, now_us)
        try:
            number, context = self._put(
                unit, session, event.topic, flags, exchange, payload, digest, origin, expiry, carried
            )
        except MappingError as error:
            _note_accepted(
                unit, (session.client, session.epoch, exchange), header, payload, session.level, event.topic, now_us
            )
            message = packet_message(whole_publish(header, event.topic, payload), session.level, origin)
            self._refuse(unit, session, event.topic, exchange, message, error, now_us)
            return
        unit.counts.append(_COUNTED)
        note = (
            _PUBLISHED,
            now_us,
            session.mqtt.client_identifier,
            session.epoch,
            exchange,
            header,
            len(payload),
            digest,
            number,
            context,
        )
        if not LEVELS[session.level].has_properties:
            unit.notes.append(note)
        else:
            unit.notes.append(with_level(note, session.level, header, event.topic))

    def hold(self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, now_us: int) -> None:
        """Stores a PUBLISH of QoS 2. Nobody gets it before PUBREL; PUBREC may leave after the commit."""
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        due_us = expires_us(expiry_of(event.properties), now_us)
        held = HeldPublish(exchange, event.topic, event.retain, event.header, event.payload, due_us, session.level)
        session.held[event.packet_identifier] = held
        session.held_bytes += held.packet_bytes
        unit.set_state(StateKind.SESSION_INCOMING, flow_key(session, event.packet_identifier), held.pack())
        identity = (session.client, session.epoch, exchange)
        _note_accepted(unit, identity, held.header, held.payload, held.level, held.topic, now_us)

    def note_repeat(
        self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, what: str, now_us: int
    ) -> None:
        """Notes a PUBLISH whose identifier is held for the audit. It belongs to that exchange and makes no message.

        `what`: one of spark_audit.record.EVENTS.
        """
        exchange = session.held[event.packet_identifier].exchange
        digest = hashlib.sha256(event.payload).digest()
        identity = (session.client, session.epoch, exchange)
        note = (NoteKind.REPEATED, now_us, *identity, event.header, len(event.payload), digest, what)
        unit.notes.append(with_level(note, session.level, event.header, event.topic))

    def release(self, unit: UnitOfWork, session: ClientSession, packet_identifier: int, now_us: int) -> int:
        """PUBREL: the held message becomes a Publish; PUBCOMP may leave after the commit. Returns the exchange.

        A message that has expired since is not put, but the retained message that it should have replaced is deleted.
        Raises QueueManagerError if the queue does not take the message. Then the message stays held.
        """
        held = session.held[packet_identifier]
        flags = held.header[0] & 7
        has_expired = 0 < held.expires_us <= now_us
        if held.retain and (has_expired or not held.payload):  # it replaces the retained message (MQTT-3.3.1-5)
            packet = (int(PacketType.PUBLISH), packet_identifier, held.header)
            self._delete_retained(unit, session, held.topic, held.exchange, packet, held.level, now_us)
            flags &= 6
        if has_expired:  # nobody may get it any more (MQTT-3.3.2-5), and the flow ends (-4.3.3-13)
            identity = (session.client, session.epoch, held.exchange)
            unit.notes.append((NoteKind.REFUSED, now_us, *identity, Publish.verb, *_EXPIRED))
            unit.count(PublicationCounter.DROPPED)
            self._forget(unit, session, packet_identifier)
            return held.exchange
        origin = (
            ORIGIN.pack(session.epoch, held.exchange, packet_identifier, 2 | held.retain * RETAIN)
            + session.origin_suffix
        )
        digest = hashlib.sha256(held.payload).digest()
        try:
            expiry = expiry_until(held.expires_us, now_us)
            carried = self._forms.of(_properties_of(held), held.topic, held.payload, 2, now_us)
            number, context = self._put(
                unit, session, held.topic, flags, held.exchange, held.payload, digest, origin, expiry, carried
            )
        except MappingError as error:
            message = packet_message(whole_publish(held.header, held.topic, held.payload), held.level, origin)
            self._refuse(unit, session, held.topic, held.exchange, message, error, now_us)
            self._forget(unit, session, packet_identifier)
            return held.exchange
        self._forget(unit, session, packet_identifier)
        unit.count(PublicationCounter.PUBLISHED)
        note = (
            NoteKind.RELEASED,
            now_us,
            session.client,
            session.epoch,
            held.exchange,
            held.header,
            len(held.payload),
            digest,
            number,
            context,
        )
        unit.notes.append(with_level(note, held.level, held.header, held.topic))
        return held.exchange

    @staticmethod
    def _forget(unit: UnitOfWork, session: ClientSession, packet_identifier: int) -> None:
        held = session.held.pop(packet_identifier)
        session.held_bytes -= held.packet_bytes
        unit.delete_state(StateKind.SESSION_INCOMING, flow_key(session, packet_identifier))

    def publish_will(self, unit: UnitOfWork, session: ClientSession, will: Will, now_us: int) -> None:
        """Puts the will of a connection that ended without DISCONNECT as a Publish."""
        retain = will.retain and bool(will.payload)
        flags = will.qos << 1 | retain
        part = encode_text(will.topic) + bytes((will.qos << 1 | will.retain,))
        if LEVELS[session.level].has_properties:
            part += property_codec.WILL.encode(will.properties)
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        origin = ORIGIN.pack(session.epoch, exchange, 0, will.qos | will.retain * RETAIN) + session.origin_suffix
        payload = (len(will.payload), hashlib.sha256(will.payload).digest())
        packet = (int(PacketType.CONNECT), 0, part)
        carried = self._forms.of(will.properties, will.topic, will.payload, will.qos, now_us)
        try:
            if will.retain and not will.payload:
                self._delete_retained(unit, session, will.topic, exchange, packet, session.level, now_us)
            number, context = self._put(
                unit,
                session,
                will.topic,
                flags,
                exchange,
                will.payload,
                payload[1],
                origin,
                expiry_of(will.properties),
                carried,
            )
        except (MappingError, QueueManagerError) as error:
            self._bury_will(unit, session, will, flags, exchange, origin, carried, error, now_us)
            return
        unit.count(PublicationCounter.PUBLISHED)
        note_request(unit, session, packet, payload, number, context, now_us, session.level)

    def load(self, sessions: Sessions) -> None:
        """Loads the messages of QoS 2 that the sessions held when the gateway stopped."""
        by_epoch = sessions.by_epoch()
        for key, value in self._engine.states(StateKind.SESSION_INCOMING):
            session = by_epoch.get(int.from_bytes(key[:8], "big"))
            if session is not None:
                packet_identifier = int.from_bytes(key[8:], "big")
                held = session.held[packet_identifier] = HeldPublish.unpack(value)
                session.held_bytes += held.packet_bytes
                # Numbers of exchanges are never used again, and this one may be ahead of the store's own numbers.
                session.incoming_exchange = max(session.incoming_exchange, held.exchange)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _put(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        topic: str,
        flags: int,
        exchange: int,
        payload: bytes,
        digest: bytes,
        origin: bytes,
        expiry: int,
        carried: CarriedPairs,
    ) -> tuple[int, Translation]:
        """Puts a Publish on the queue of its route. Raises MappingError for a topic that MQ cannot carry."""
        if self.has_targets and (route := self._routes.of(topic)).target is not None:
            return self._to_target.publish(
                unit,
                session,
                route,
                topic=topic,
                flags=flags,
                exchange=exchange,
                payload=payload,
                origin=origin,
                carried=carried,
                expiry=expiry,
            )
        translation = self._translations.of(topic, flags, carried)
        message = translation.message(payload, origin, expiry)
        message.payload_sha256 = digest
        return self._engine.put(unit, self._stream, message), translation.context

    def _delete_retained(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        topic: str,
        exchange: int,
        packet: PacketPart,
        level: int,
        now_us: int,
    ) -> None:
        """Puts DeletePub. An empty Publish, if there is one, follows in the same unit of work."""
        try:
            route = self._routes.of(topic)
            if route.target is None:
                number, context = self._put_deletion(unit, session, topic)
            else:
                number, context = self._put_deletion_at_target(unit, session, route, topic, exchange)
        except MappingError:
            return  # the Publish that follows is refused for the same reason, and says so
        note_request(unit, session, packet, NO_PAYLOAD, number, context, now_us, level)

    def _put_deletion(self, unit: UnitOfWork, session: ClientSession, topic: str) -> tuple[int, Translation]:
        descriptor = self._descriptors[True]
        # DeletePub takes patterns: in MQRFH `*`, `?` and `%` of a topic name have to be escaped.
        pattern = escape_topic(topic) if self._commands.dialect is Dialect.MQRFH else topic
        header = self._commands.write(DeletePublication(topics=(pattern,)))
        message = header.message(descriptor, b"", own_origin(session))
        number = self._engine.put(unit, self._stream, message)
        return number, self._commands.context(DeletePublication.verb, topic, self._stream, descriptor, header.data)

    def _put_deletion_at_target(
        self, unit: UnitOfWork, session: ClientSession, route: Route, topic: str, exchange: int
    ) -> tuple[int, Translation]:
        assert route.target is not None
        user_identifier(route.target, session.user)  # a user who may not publish may not delete either
        origin = own_origin(session)
        return self._to_target.delete_retained(unit, session, route, topic=topic, exchange=exchange, origin=origin)

    def _bury_will(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        will: Will,
        flags: int,
        exchange: int,
        origin: bytes,
        carried: CarriedPairs,
        error: MappingError | QueueManagerError,
        now_us: int,
    ) -> None:
        """Makes a dead letter of a will that its queue does not take. It is a Publish, so it can be put back later.

        Two kinds of will stay packets: MQ cannot express the will, or it needs two commands to delete a retained one.
        """
        if isinstance(error, MappingError) or (will.retain and not will.payload):
            message = packet_message(whole_will(will, session.level), session.level, origin)
        elif (route := self._routes.of(will.topic)).target is not None:
            made = self._to_target.publication(
                session, route, topic=will.topic, flags=flags, exchange=exchange, carried=carried
            )
            message = Message(made.descriptor, made.header + will.payload, origin)
        else:
            translation = self._translations.of(will.topic, flags, carried)
            message = translation.message(will.payload, origin)
        self._refuse(unit, session, will.topic, exchange, message, error, now_us)

    def _refuse(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        topic: str,
        exchange: int,
        message: Message,
        error: MappingError | QueueManagerError,
        now_us: int,
    ) -> None:
        """Makes a dead letter of a message that cannot be carried or put: the whole packet, with the reason."""
        identity = (session.client, session.epoch, exchange)
        unit.notes.append((NoteKind.REFUSED, now_us, *identity, Publish.verb, 0, error.reason_code, str(error)))
        unit.count(PublicationCounter.REFUSED)
        route = self._routes.of(topic)
        there = "" if route.target is None else self._to_target.of(route.target).queue_manager_name or route.target.name
        self._engine.dead_letters.put(
            unit,
            message,
            queue_name=route.queue or self._stream.name,
            reason_code=error.reason_code,
            queue_manager_name=there,
        )


def _properties_of(held: HeldPublish) -> PublishProperties | None:
    """The properties in the header of a held PUBLISH."""
    return properties_of_header(held.header) if LEVELS[held.level].has_properties else None


def _note_accepted(
    unit: UnitOfWork,
    identity: tuple[str, int, int],
    header: bytes,
    payload: bytes,
    level: int,
    topic: str,
    now_us: int,
) -> None:
    note = (NoteKind.ACCEPTED, now_us, *identity, header, len(payload), hashlib.sha256(payload).digest())
    unit.notes.append(with_level(note, level, header, topic))
