"""Command to transmission queue: step 5 on the way of a PUBLISH whose route has a target.

A message for a target is put on the transmission queue of the client's shard. It stands whole behind an MQXQH that
names the queue at the target, and a channel takes it from there. All commands and publications of one client are on one
queue, so they arrive in the order in which the client sent them. A DeletePub says that its empty Publish must go in the
same unit of work.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from gateway.audit_trail.notes.notes import Translation
from gateway.audit_trail.notes.origin import had_retain
from gateway.bridge.commands.target_messages import (
    TargetMessage,
    deletion,
    deregistration,
    own_message_identifier,
    publication,
    registration,
    update_request,
)
from gateway.bridge.messages.usr_folder import NOTHING_CARRIED, CarriedPairs
from gateway.bridge.sessions.sessions import ClientSession
from gateway.bridge.sessions.subscriber import Subscriber
from gateway.channels.target import Target
from gateway.config import TargetSettings
from gateway.config.routes import Destination, Registration, Route
from mappings.commands.command import (
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RegisterSubscriber,
    RequestUpdate,
)
from mappings.headers.name_value import NameValues
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import (
    MQAT_QMGR,
    MQEI_UNLIMITED,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENT,
    Message,
    MessageDescriptor,
)
from mq_adapters.transmission import FORMAT_TRANSMISSION, kept_with_next, transmission_message

_PUT_APPL_NAME_CHARACTERS: Final = 28
#: MQXQH and the MQMD in it, in bytes.
_TRANSMISSION_HEADER_BYTES: Final = 428
#: Bytes of a header beside topic, client and user; and the most bytes that one byte of these three becomes in it.
_HEADER_BYTES: Final = 1_024
_ESCAPED_BYTES: Final = 5
#: How often the folders of JMS have the topic, too.
_TOPICS_OF_JMS: Final = 2


class ToTarget:
    """Puts commands for the targets in the unit of work; each `put` returns MsgId number and header context."""

    def __init__(self, engine: Engine, targets: Iterable[Target] = ()) -> None:
        self._engine = engine
        self._targets = {target.name: target for target in targets}
        #: The outer MQMD, by persistence and whether the next message goes with it. It is the same for many messages,
        #: so it is shared. It has no CorrelId, which would make a lane of each message.
        self._outside: dict[tuple[int, bool], MessageDescriptor] = {}
        for persistence in (MQPER_NOT_PERSISTENT, MQPER_PERSISTENT):
            alone = MessageDescriptor(
                format=FORMAT_TRANSMISSION,
                persistence=persistence,
                put_appl_type=MQAT_QMGR,
                put_appl_name=engine.name[:_PUT_APPL_NAME_CHARACTERS],
            )
            self._outside[persistence, False] = alone
            self._outside[persistence, True] = kept_with_next(Message(alone, b"")).descriptor

    def __iter__(self) -> Iterator[Target]:
        return iter(tuple(self._targets.values()))

    def of(self, settings: TargetSettings) -> Target:
        """The target of a route or destination."""
        return self._targets[settings.name]

    # -- publications --------------------------------------------------------------------------------------------------

    def maximum_payload_bytes(self, route: Route, topic: str, client: str, user: str | None) -> int:
        """The longest payload that fits, with its header, on the queue there and on the transmission queue."""
        assert route.target is not None
        target = self.of(route.target)
        texts = len(topic.encode()) + len(route.destination.prefix) + len(client.encode()) + len((user or "").encode())
        if route.target.jms_folders:
            texts += _TOPICS_OF_JMS * len(topic.encode())
        header = _HEADER_BYTES + _ESCAPED_BYTES * texts
        here = target.transmission_queue(client).maximum_message_bytes - _TRANSMISSION_HEADER_BYTES
        return min(here, target.maximum_message_bytes(route.queue)) - header

    def publish(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        route: Route,
        *,
        topic: str,
        flags: int,
        exchange: int,
        payload: bytes,
        origin: bytes,
        carried: CarriedPairs = NOTHING_CARRIED,
        expiry: int = MQEI_UNLIMITED,
    ) -> tuple[int, Translation]:
        """Puts a Publish; `flags` are QoS and RETAIN as in a PUBLISH. Raises MappingError if MQ cannot express it."""
        made = self.publication(
            session,
            route,
            topic=topic,
            flags=flags,
            exchange=exchange,
            carried=carried,
            expiry=expiry,
            deletes=not payload and had_retain(origin),
        )
        dropped = carried.left_out
        return self._put(unit, session, route.destination, made, origin, payload=payload, topic=topic, dropped=dropped)

    def publication(
        self,
        session: ClientSession,
        route: Route,
        *,
        topic: str,
        flags: int,
        exchange: int,
        carried: CarriedPairs = NOTHING_CARRIED,
        expiry: int = MQEI_UNLIMITED,
        deletes: bool = False,
    ) -> TargetMessage:
        """The Publish without its payload; it is not put."""
        return publication(
            route,
            topic=topic,
            qos=flags >> 1,
            retain=bool(flags & 1),
            client=session.client,
            user=session.user,
            sequence=exchange,
            msg_id=self._identifier(session, Publish.verb, exchange),
            deletes=deletes,
            properties=carried.pairs,
            jms=carried.jms,
            expiry=expiry,
        )

    def delete_retained(
        self, unit: UnitOfWork, session: ClientSession, route: Route, *, topic: str, exchange: int, origin: bytes
    ) -> tuple[int, Translation]:
        """Puts the DeletePub in front of an empty Publish. The Publish follows unless it has expired."""
        msg_id = self._identifier(session, DeletePublication.verb, exchange)
        made = deletion(route, topic=topic, msg_id=msg_id)
        return self._put(unit, session, route.destination, made, origin, topic=topic, with_next=True)

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def register(
        self, unit: UnitOfWork, session: Subscriber, wanted: Registration, *, origin: bytes, anew: bool
    ) -> tuple[int, Translation, bytes]:
        """Puts a RegSub; the third item is its MsgId, which the answer carries as CorrelId."""
        destination = wanted.destination
        msg_id = self._identifier(session, RegisterSubscriber.verb, self._engine.number())
        made = registration(
            destination,
            patterns=wanted.patterns,
            correl_id=session.correl_id,
            msg_id=msg_id,
            anew=anew or not session.takes_retained,
        )
        return *self._put(unit, session, destination, made, origin, topic_filters=wanted.topic_filters), msg_id

    def deregister(
        self, unit: UnitOfWork, session: Subscriber, unwanted: Registration, *, origin: bytes
    ) -> tuple[int, Translation, bytes]:
        """Puts a DeregSub for some patterns, or with DeregAll if there are none; only a refusal is answered."""
        destination = unwanted.destination
        msg_id = self._identifier(session, DeregisterSubscriber.verb, self._engine.number())
        made = deregistration(
            destination,
            patterns=unwanted.patterns,
            correl_id=session.correl_id,
            msg_id=msg_id,
        )
        return *self._put(unit, session, destination, made, origin, topic_filters=unwanted.topic_filters), msg_id

    def request_update(
        self, unit: UnitOfWork, session: Subscriber, registered: Registration, pattern: str, *, origin: bytes
    ) -> tuple[int, Translation]:
        """Puts a ReqUpdate for one registered pattern; only a refusal is answered."""
        destination = registered.destination
        made = update_request(
            destination,
            pattern=pattern,
            correl_id=session.correl_id,
            msg_id=self._identifier(session, RequestUpdate.verb, self._engine.number()),
        )
        return self._put(unit, session, destination, made, origin, topic_filters=registered.topic_filters)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _put(
        self,
        unit: UnitOfWork,
        session: Subscriber,
        destination: Destination,
        made: TargetMessage,
        origin: bytes,
        *,
        payload: bytes = b"",
        topic: str = "",
        topic_filters: tuple[str, ...] = (),
        with_next: bool = False,
        dropped: NameValues = (),
    ) -> tuple[int, Translation]:
        descriptor = made.descriptor
        wrapped = transmission_message(
            Message(descriptor, made.header + payload),
            queue_name=made.queue,
            queue_manager_name="",
            own_name=self._engine.name,
            now_us=self._engine.now_us(),
        )
        outside = self._outside[descriptor.persistence, with_next]
        queue = self._at(destination).transmission_queue(session.client)
        number = self._engine.put(unit, queue, Message(outside, wrapped.body, origin))
        return number, _context(destination, made, topic, topic_filters, dropped)

    def _at(self, destination: Destination) -> Target:
        assert destination.target is not None
        return self._targets[destination.target.name]

    def _identifier(self, session: Subscriber, verb: str, sequence: int) -> bytes:
        return own_message_identifier(
            self._engine.incarnation, epoch=session.epoch, client=session.client, verb=verb, sequence=sequence
        )


def _context(
    destination: Destination, made: TargetMessage, topic: str, topic_filters: tuple[str, ...], dropped: NameValues
) -> Translation:
    descriptor = made.descriptor
    assert destination.target is not None
    return Translation(
        command=made.verb,
        topic=topic or " ".join(made.topics),
        queue=made.queue,
        correl_id=descriptor.correl_id,
        persistent=descriptor.persistence == MQPER_PERSISTENT,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
        header=made.header,
        destination=destination.target.name,
        stream=destination.stream,
        stream_style=destination.target.streams,
        user=made.user,
        topic_filters=topic_filters,
        dropped=dropped,
    )
