"""Packet to command to queue: steps 3 to 5 on the way of a PUBLISH.

A PUBLISH becomes a Publish command on the stream queue, its payload untouched behind the header. The header depends on
the topic, QoS above 0 and RETAIN only, so it is written once and kept; a message costs a lookup, a join and a put.

    QoS 0      Publish, not persistent
    QoS 1      Publish, persistent; the caller sends PUBACK when the unit is committed
    QoS 2      stored as state of the session; PUBREL makes it a Publish, once (seed 004)
    RETAIN     PubOpt RetainPub; with an empty payload DeletePub, then a Publish without RetainPub

Every Publish asks for negative notification (MQRO_NAN) to the reply queue: nothing acknowledged is refused in silence.
"""

import hashlib
import struct
from typing import Final, NamedTuple

from gateway.audit_trail.notes import NoteKind, Translation
from gateway.bridge.dead_letters import put_dead_letter
from gateway.bridge.sessions import ClientSession, HeldPublish, Sessions, flow_key
from gateway.mqtt.events import PublishReceived, Will
from gateway.mqtt.packets import PacketType
from mappings.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Dialect,
    Publish,
    RegisterSubscriber,
    write_command,
)
from mappings.errors import MappingError
from mappings.header_chain import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.options import PublicationOption, RegistrationOption
from mappings.topics import character_patterns, escape_topic
from mq_adapters.embedded.engine import CONTROL_QUEUE, Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import StateSpace, UnitOfWork
from mq_adapters.message import (
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    MQRO_NAN,
    Message,
    MessageDescriptor,
)

#: Private origin of a message: session epoch, exchange, packet identifier, QoS; the client identifier follows.
ORIGIN: Final = struct.Struct(">QQHB")
#: Translations kept for each kind of PUBLISH; past it the cache is emptied.
_TRANSLATION_ENTRIES: Final = 10_000
#: Headers longer than this (bytes) are written anew for each PUBLISH: they would fill the memory.
_LONGEST_KEPT_HEADER: Final = 1_024
#: A topic has at most 65,535 bytes; each may become five (an ampersand's escape) in the header.
LONGEST_HEADER_BYTES: Final = 393_216
_APPLICATION_NAME: Final = "rfhbridge"
_NO_PAYLOAD: Final = (0, b"")
_SUBSCRIBER: Final = RegistrationOption.CORREL_ID_AS_IDENTITY | RegistrationOption.INFORM_IF_RETAINED


def exchange_of(origin: bytes) -> tuple[str, int, int]:
    """Client identifier, session epoch and exchange of a private origin; ("", 0, 0) for a message without one."""
    if len(origin) < ORIGIN.size:
        return "", 0, 0
    epoch, exchange, _, _ = ORIGIN.unpack_from(origin)
    return origin[ORIGIN.size :].decode(errors="replace"), epoch, exchange


def published_qos(message: Message) -> int:
    """The QoS with which a message was published; without a private origin a persistent message means QoS 1."""
    if len(message.origin) < ORIGIN.size:
        return 1 if message.is_persistent else 0
    return message.origin[ORIGIN.size - 1]


class PublishTranslation(NamedTuple):
    """What every PUBLISH of one topic, persistence and RETAIN becomes."""

    descriptor: MessageDescriptor
    header: bytes
    sheet: Translation


class ToMq:
    """Writes commands for packets and puts them, in the caller's unit of work."""

    def __init__(
        self, engine: Engine, *, dialect: Dialect, stream: str, subscriber_queue: str, reply_queue: str
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._stream = engine.queue(stream)
        self._control = engine.queue(CONTROL_QUEUE)
        self._subscriber_queue = subscriber_queue
        self._reply_queue = reply_queue
        self._format = FORMAT_MQRFH2 if dialect is Dialect.MQRFH2 else FORMAT_MQRFH
        #: By QoS and RETAIN as they stand in the low bits of a PUBLISH's first byte.
        self._translations: tuple[dict[str, PublishTranslation], ...] = tuple({} for _ in range(8))

    @property
    def stream_name(self) -> str:
        return self._stream.name

    @property
    def maximum_payload_bytes(self) -> int:
        """The longest payload that the stream queue takes with any header in front."""
        return self._stream.maximum_message_bytes - LONGEST_HEADER_BYTES

    # -- publications --------------------------------------------------------------------------------------------------

    def publish(self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, now_us: int) -> None:
        """A PUBLISH of QoS 0 or 1 becomes a Publish."""
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        payload, header = event.payload, event.header
        flags = header[0] & 7
        if flags & 1 and not payload:
            self._delete_retained(unit, session, event.topic, event.packet_identifier, header, now_us)
            flags &= 6
        origin = ORIGIN.pack(session.epoch, exchange, event.packet_identifier, event.qos) + session.origin_suffix
        try:
            translation = self._translations[flags].get(event.topic) or self._translate(event.topic, flags)
        except MappingError as error:
            self._refuse(unit, session, exchange, header, payload, origin, error, now_us)
            return
        message = Message(translation.descriptor, translation.header + payload, origin)
        number = self._engine.put(unit, self._stream, message)
        unit.notes.append(
            (
                NoteKind.PUBLISHED,
                now_us,
                session.mqtt.client_identifier,
                session.epoch,
                exchange,
                header,
                len(payload),
                hashlib.sha256(payload).digest(),
                number,
                translation.sheet,
            )
        )

    def hold(self, unit: UnitOfWork, session: ClientSession, event: PublishReceived, now_us: int) -> None:
        """A PUBLISH of QoS 2 is stored, and available to nobody yet; then PUBREC may leave."""
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        held = HeldPublish(exchange, event.topic, event.retain, event.header, event.payload)
        session.held[event.packet_identifier] = held
        session.held_bytes += len(event.payload)
        unit.set_state(StateSpace.SESSION_INCOMING, flow_key(session, event.packet_identifier), held.pack())
        digest = hashlib.sha256(event.payload).digest()
        unit.notes.append(
            (
                NoteKind.ACCEPTED,
                now_us,
                session.client,
                session.epoch,
                exchange,
                event.header,
                len(event.payload),
                digest,
            )
        )

    def release(self, unit: UnitOfWork, session: ClientSession, packet_identifier: int, now_us: int) -> int:
        """PUBREL: what was held becomes a Publish and is held no more; then PUBCOMP may leave. Returns the exchange."""
        held = session.held.pop(packet_identifier)
        session.held_bytes -= len(held.payload)
        unit.delete_state(StateSpace.SESSION_INCOMING, flow_key(session, packet_identifier))
        flags = held.header[0] & 7
        if held.retain and not held.payload:
            self._delete_retained(unit, session, held.topic, packet_identifier, held.header, now_us)
            flags &= 6
        origin = ORIGIN.pack(session.epoch, held.exchange, packet_identifier, 2) + session.origin_suffix
        try:
            translation = self._translations[flags].get(held.topic) or self._translate(held.topic, flags)
        except MappingError as error:
            self._refuse(unit, session, held.exchange, b"", held.payload, origin, error, now_us)
            return held.exchange
        message = Message(translation.descriptor, translation.header + held.payload, origin)
        number = self._engine.put(unit, self._stream, message)
        unit.notes.append(
            (
                NoteKind.RELEASED,
                now_us,
                session.client,
                session.epoch,
                held.exchange,
                held.header,
                len(held.payload),
                hashlib.sha256(held.payload).digest(),
                number,
                translation.sheet,
            )
        )
        return held.exchange

    def publish_will(self, unit: UnitOfWork, session: ClientSession, will: Will, now_us: int) -> None:
        """The will of a connection that ended without DISCONNECT becomes a Publish."""
        retain = will.retain and bool(will.payload)
        flags = will.qos << 1 | retain
        part = len(will.topic.encode()).to_bytes(2, "big") + will.topic.encode() + bytes((will.qos << 1 | will.retain,))
        session.incoming_exchange = exchange = session.incoming_exchange + 1
        origin = ORIGIN.pack(session.epoch, exchange, 0, will.qos) + session.origin_suffix
        payload = (len(will.payload), hashlib.sha256(will.payload).digest())
        if will.retain and not will.payload:
            self._delete_retained(unit, session, will.topic, 0, part, now_us, packet_type=PacketType.CONNECT)
        try:
            translation = self._translations[flags].get(will.topic) or self._translate(will.topic, flags)
        except MappingError as error:
            self._refuse(unit, session, exchange, b"", will.payload, origin, error, now_us)
            return
        message = Message(translation.descriptor, translation.header + will.payload, origin)
        number = self._engine.put(unit, self._stream, message)
        self._note_request(unit, session, (PacketType.CONNECT, 0, part), payload, number, translation.sheet, now_us)

    def load(self, sessions: Sessions) -> None:
        """Takes up what every session held for QoS 2 when the gateway stopped."""
        by_epoch = sessions.by_epoch()
        for key, value in self._engine.states(StateSpace.SESSION_INCOMING):
            session = by_epoch.get(int.from_bytes(key[:8], "big"))
            if session is not None:
                packet_identifier = int.from_bytes(key[8:], "big")
                held = session.held[packet_identifier] = HeldPublish.unpack(value)
                session.held_bytes += len(held.payload)
                session.mqtt.hold(packet_identifier)

    # -- commands ------------------------------------------------------------------------------------------------------

    def patterns(self, topic_filter: str) -> tuple[str, ...]:
        """What is registered at the broker for an MQTT topic filter: in MQRFH, a superset of character patterns."""
        return (topic_filter,) if self._dialect is Dialect.MQRFH2 else character_patterns(topic_filter)

    def register(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        patterns: tuple[str, ...],
        packet: tuple[int, int, bytes],
        now_us: int,
    ) -> bytes:
        """RegSub for one topic filter; returns the MsgId that the broker's answer carries as CorrelId."""
        command = RegisterSubscriber(
            topics=patterns,
            registration_options=_SUBSCRIBER,
            queue_name=self._subscriber_queue,
            queue_manager_name=self._engine.name,
        )
        return self._request(unit, session, command, packet, now_us)

    def deregister(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        patterns: tuple[str, ...],
        packet: tuple[int, int, bytes],
        now_us: int,
    ) -> bytes:
        """DeregSub for patterns that were registered; returns the MsgId that the answer carries as CorrelId."""
        command = DeregisterSubscriber(
            topics=patterns,
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
            queue_name=self._subscriber_queue,
            queue_manager_name=self._engine.name,
        )
        return self._request(unit, session, command, packet, now_us)

    def deregister_all(self, unit: UnitOfWork, session: ClientSession, packet_type: int, now_us: int) -> None:
        """DeregSub with DeregAll at the end of a session; only a refusal is answered."""
        command = DeregisterSubscriber(
            topics=(),
            registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY | RegistrationOption.DEREGISTER_ALL,
            queue_name=self._subscriber_queue,
            queue_manager_name=self._engine.name,
        )
        self._request(unit, session, command, (packet_type, 0, b""), now_us, msg_type=MQMT_DATAGRAM)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _translate(self, topic: str, flags: int) -> PublishTranslation:
        """The translation for one topic, QoS and RETAIN. Raises MappingError for a topic that MQ cannot carry."""
        options = PublicationOption.RETAIN_PUBLICATION if flags & 1 else PublicationOption(0)
        if self._dialect is Dialect.MQRFH:
            options |= PublicationOption.NO_REGISTRATION
        descriptor = self._descriptor(persistent=flags > 1)
        header = self._write(Publish(topics=(topic,), publication_options=options))
        sheet = self._sheet("Publish", topic, self._stream, descriptor, header)
        translation = PublishTranslation(descriptor, header, sheet)
        if len(header) <= _LONGEST_KEPT_HEADER:
            cache = self._translations[flags]
            if len(cache) >= _TRANSLATION_ENTRIES:
                cache.clear()
            cache[topic] = translation
        return translation

    def _delete_retained(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        topic: str,
        packet_identifier: int,
        packet_part: bytes,
        now_us: int,
        packet_type: int = PacketType.PUBLISH,
    ) -> None:
        """DeletePub in front of the empty Publish, in the same unit of work."""
        descriptor = self._descriptor(persistent=True)
        try:
            # DeletePub takes patterns: in MQRFH `*`, `?` and `%` of a topic name have to be escaped.
            pattern = escape_topic(topic) if self._dialect is Dialect.MQRFH else topic
            header = self._write(DeletePublication(topics=(pattern,)))
        except MappingError:
            return  # the Publish that follows is refused for the same reason, and says so
        number = self._engine.put(unit, self._stream, Message(descriptor, header, self._origin(session)))
        sheet = self._sheet(DeletePublication.verb, topic, self._stream, descriptor, header)
        packet = (packet_type, packet_identifier, packet_part)
        self._note_request(unit, session, packet, _NO_PAYLOAD, number, sheet, now_us)

    def _request(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        command: RegisterSubscriber | DeregisterSubscriber,
        packet: tuple[int, int, bytes],
        now_us: int,
        msg_type: int = MQMT_REQUEST,
    ) -> bytes:
        descriptor = self._descriptor(persistent=True, msg_type=msg_type, correl_id=session.correl_id)
        header = self._write(command)
        message = Message(descriptor, header, self._origin(session))
        number = self._engine.put(unit, self._control, message)
        sheet = self._sheet(command.verb, " ".join(command.topics), self._control, descriptor, header)
        self._note_request(unit, session, packet, _NO_PAYLOAD, number, sheet, now_us)
        return message.msg_id

    def _refuse(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        exchange: int,
        header: bytes,
        payload: bytes,
        origin: bytes,
        error: MappingError,
        now_us: int,
    ) -> None:
        """A PUBLISH that no header can carry: the payload goes whole to the dead-letter queue, with the reason."""
        identity = (session.client, session.epoch, exchange)
        if header:
            digest = hashlib.sha256(payload).digest()
            unit.notes.append((NoteKind.ACCEPTED, now_us, *identity, header, len(payload), digest))
        message = Message(
            MessageDescriptor(persistence=MQPER_PERSISTENT, put_appl_name=_APPLICATION_NAME), payload, origin
        )
        unit.notes.append((NoteKind.REFUSED, now_us, *identity, Publish.verb, 0, error.reason_code, str(error)))
        put_dead_letter(
            self._engine,
            unit,
            message,
            queue_name=self._stream.name,
            reason_code=error.reason_code,
            exchange=identity,
        )

    def _note_request(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        packet: tuple[int, int, bytes],
        payload: tuple[int, bytes],
        number: int,
        sheet: Translation,
        now_us: int,
    ) -> None:
        unit.notes.append((NoteKind.REQUESTED, now_us, session.client, session.epoch, *packet, *payload, number, sheet))

    def _origin(self, session: ClientSession) -> bytes:
        return ORIGIN.pack(session.epoch, 0, 0, 1) + session.origin_suffix

    def _write(self, command: Command) -> bytes:
        return write_command(command, self._dialect)

    def _descriptor(
        self, *, persistent: bool, msg_type: int = MQMT_DATAGRAM, correl_id: bytes = bytes(24)
    ) -> MessageDescriptor:
        return MessageDescriptor(
            format=self._format,
            msg_type=msg_type,
            report=MQRO_NAN if msg_type == MQMT_DATAGRAM else 0,
            reply_to_q=self._reply_queue,
            reply_to_q_mgr=self._engine.name,
            persistence=MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT,
            correl_id=correl_id,
            put_appl_name=_APPLICATION_NAME,
        )

    def _sheet(self, verb: str, topic: str, queue: Queue, descriptor: MessageDescriptor, header: bytes) -> Translation:
        return Translation(
            command=verb,
            topic=topic,
            queue=queue.name,
            correl_id=descriptor.correl_id,
            persistent=descriptor.persistence == MQPER_PERSISTENT,
            format=descriptor.format,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
            header=header,
        )
