"""Publish and DeletePub: what arrives on a stream queue.

Step 7a on the way of a PUBLISH, inside the publisher's own unit of work: the copies, the retained publication and the
answer are committed with it. Publications whose header was seen before take the short way of `StreamPublisher.receive`.
"""

from typing import Final

from mappings.command import DeletePublication, Publish
from mappings.options import DeleteOption, RegistrationOption
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.broker.dead_letters import DeadLetters
from mq_adapters.broker.deliveries import (
    LONGEST_KEPT_HEADER,
    DeliveryMaker,
    Plan,
    PlanCache,
    PlanKey,
    PublishedAs,
)
from mq_adapters.broker.received import DIALECT_OF_FORMAT, CommandHeader, UnreadableCommand, read_received
from mq_adapters.broker.responses import Refusal, Responder, refusal_of, remaining_expiry
from mq_adapters.broker.retained import RetainedPublication, RetainedPublications
from mq_adapters.broker.subscriptions import SCHEME_OF, Identity, StreamSubscriptions, Subscription
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQCI_NONE, MQMT_DATAGRAM, MQMT_REQUEST, MQRO_PAN, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode

_INTEGER_NIBBLE: Final = 0xF  # MQENC_INTEGER_MASK
_INTEGER_REVERSED: Final = 2  # MQENC_INTEGER_REVERSED, little-endian


class Distributor:
    """Puts copies on subscriber queues, in the unit of work of the publication or of the command that wants them."""

    def __init__(self, engine: Engine, listener: DeliveryListener, dead_letters: DeadLetters) -> None:
        self._engine = engine
        self._listener = listener
        self._dead_letters = dead_letters
        self.maker = DeliveryMaker(engine)

    def distribute(self, unit: UnitOfWork, message: Message, plan: Plan, without: Identity | None = None) -> None:
        """Carries a plan out for one publication; `without` is a publisher who wants no copy of its own."""
        put, copied = self._engine.put, self._listener.copied
        body, origin = message.body, message.origin
        length = len(plan.published.data)
        header: bytes | None = None
        changed = body
        for copy in plan.copies:
            if without is not None and copy.identity == without:
                continue
            if copy.header is None:
                sent = Message(copy.descriptor, body, origin)
            else:
                if copy.header is not header:
                    header = copy.header
                    changed = header + body[length:]
                sent = Message(copy.descriptor, changed, origin)
            try:
                put(unit, copy.queue, sent)
            except QueueManagerError as error:
                self._dead_letters.put(unit, message, copy.queue.name, error.reason_code)
                continue
            copied(unit, message, sent, copy.delivery)
        for failure in plan.failures:
            self._dead_letters.put(unit, message, failure.queue_name, failure.reason_code)

    def send_retained(
        self, unit: UnitOfWork, publications: list[RetainedPublication], subscription: Subscription
    ) -> None:
        """Sends stored publications to a subscriber, oldest first, each once, as the subscription wants them."""
        now_us = self._engine.now_us()
        distinct = {kept.message.sequence: kept.message for kept in publications}
        for sequence in sorted(distinct):
            message = distinct[sequence]
            published = read_received(message)
            if isinstance(published, UnreadableCommand):
                self._dead_letters.put(unit, message, subscription.identity.queue_name, published.error.reason_code)
                continue
            published_as = _published_as(message.descriptor, remaining_expiry(message, now_us))
            plan = self.maker.plan(published, (subscription,), published_as=published_as, is_retained=True)
            self.distribute(unit, message, plan)


class StreamPublisher:
    """The handler of one stream queue."""

    def __init__(
        self,
        stream_name: str,
        engine: Engine,
        *,
        subscriptions: StreamSubscriptions,
        retained: RetainedPublications,
        distributor: Distributor,
        responder: Responder,
        dead_letters: DeadLetters,
    ) -> None:
        self._stream_name = stream_name
        self._engine = engine
        self._subscriptions = subscriptions
        self._retained = retained
        self._distributor = distributor
        self._responder = responder
        self._dead_letters = dead_letters
        self._plans = PlanCache()

    def receive(self, unit: UnitOfWork, queue: Queue, message: Message) -> None:
        """Takes a message off the stream queue; see embedded.queue.ServedHandler."""
        key = self._key(message)
        plan = self._plans.get(key)
        if plan is None or (self._is_stale(plan) and not self._is_renewed(plan)):
            if not self._is_command(unit, queue, message):
                return
            received = plan.published if plan is not None else read_received(message)
            try:
                plan = self._read(unit, message, received, key)
            except Refusal as refusal:
                self._responder.refuse(unit, message, received, refusal)
                return
            if plan is None:
                return
        try:
            self._publish(unit, message, plan)
        except Refusal as refusal:
            self._responder.refuse(unit, message, plan.published, refusal)

    def _key(self, message: Message) -> PlanKey:
        """Equal keys have equal plans. Bytes 8 to 11 of an MQRFH or MQRFH2 are its StrucLength.

        Only chains of one header are kept under a key, so a length that is none finds nothing.
        """
        descriptor, body = message.descriptor, message.body
        if descriptor.encoding & _INTEGER_NIBBLE == _INTEGER_REVERSED:
            length = int.from_bytes(body[8:12], "little")
        else:
            length = int.from_bytes(body[8:12], "big")
        return (
            body[:length] if length <= LONGEST_KEPT_HEADER else b"",
            descriptor.format,
            descriptor.coded_char_set_id,
            descriptor.encoding,
            descriptor.persistence,
            descriptor.priority,
            descriptor.expiry if not message.expires_us else remaining_expiry(message, self._engine.now_us()),
        )

    def _is_stale(self, plan: Plan) -> bool:
        if plan.generation != self._subscriptions.generation:
            return True
        return 0 < plan.valid_until_us <= self._engine.now_us()

    def _is_renewed(self, plan: Plan) -> bool:
        """Whether a stale plan is good again, because its recipients are still the same."""
        recipients = self._subscriptions.recipients(plan.command.topics, self._engine.now_us())
        if recipients == plan.recipients:
            plan.generation = self._subscriptions.generation
        return recipients == plan.recipients

    def _is_command(self, unit: UnitOfWork, queue: Queue, message: Message) -> bool:
        if message.descriptor.format in DIALECT_OF_FORMAT:
            return True
        self._dead_letters.put_or_discard(unit, message, queue.name, ReasonCode.MQRC_FORMAT_ERROR)
        return False

    def _read(
        self, unit: UnitOfWork, message: Message, received: CommandHeader | UnreadableCommand, key: PlanKey
    ) -> Plan | None:
        """The plan of a publication with a header not seen before; None for another command, which is carried out."""
        if isinstance(received, UnreadableCommand):
            raise refusal_of(received.error)
        command = received.command
        if not isinstance(command, Publish | DeletePublication):
            raise Refusal(Reason.MQRCCF_INCORRECT_Q)
        if command.stream_name not in (None, self._stream_name):
            raise Refusal(Reason.MQRCCF_INCORRECT_STREAM, ("StreamName", command.stream_name))
        if isinstance(command, DeletePublication):
            _check_message_type(message.descriptor)
            self._delete(unit, command, received.dialect)
            self._responder.accept(unit, message, received)
            return None
        return self._plan(message, received, command, key)

    def _plan(self, message: Message, published: CommandHeader, command: Publish, key: PlanKey) -> Plan:
        plan = self._distributor.maker.plan(
            published,
            self._subscriptions.recipients(command.topics, self._engine.now_us()),
            published_as=_published_as(message.descriptor, key[-1]),
            generation=self._subscriptions.generation,
        )
        if published.data == key[0] and not plan.failures:
            self._plans.put(key, plan)
        return plan

    def _publish(self, unit: UnitOfWork, message: Message, plan: Plan) -> None:
        descriptor = message.descriptor
        if descriptor.msg_type != MQMT_DATAGRAM:
            _check_message_type(descriptor)
        if plan.is_correlated and descriptor.correl_id == MQCI_NONE:
            raise Refusal(Reason.MQRCCF_CORREL_ID_ERROR)
        without = self._publisher(descriptor, plan) if plan.excludes_publisher else None
        self._distributor.distribute(unit, message, plan, without)
        if plan.retains:
            is_local = RegistrationOption.LOCAL in plan.command.registration_options
            kept = RetainedPublication(message=message, is_local=is_local)
            self._retained.keep(unit, self._stream_name, plan.command.topics, kept)
        if descriptor.msg_type != MQMT_DATAGRAM or descriptor.report & MQRO_PAN:
            self._responder.accept(unit, message, plan.published)

    def _publisher(self, descriptor: MessageDescriptor, plan: Plan) -> Identity:
        """Who publishes: QMgrName and QName, by default the reply queue."""
        command = plan.command
        return Identity(
            queue_manager_name=command.queue_manager_name or descriptor.reply_to_q_mgr.rstrip() or self._engine.name,
            queue_name=command.queue_name or descriptor.reply_to_q.rstrip(),
            correl_id=descriptor.correl_id if plan.is_correlated else None,
        )

    def _delete(self, unit: UnitOfWork, command: DeletePublication, dialect: Dialect) -> None:
        """Forgets retained publications; nothing there to forget is no failure.

        In MQRFH, Local means those that were published Local, and nothing means the others; in MQRFH2 it means all at
        this queue manager, and nothing means all at all queue managers, which here is the same.
        """
        is_local = DeleteOption.LOCAL in command.delete_options
        for pattern in command.topics:
            found = self._retained.matching(self._stream_name, pattern, SCHEME_OF[dialect], self._engine.now_us())
            for topic, kept in found.items():
                if dialect is Dialect.MQRFH2 or kept.is_local == is_local:
                    self._retained.delete(unit, self._stream_name, topic)


def _published_as(descriptor: MessageDescriptor, expiry: int) -> PublishedAs:
    return PublishedAs(persistence=descriptor.persistence, priority=descriptor.priority, expiry=expiry)


def _check_message_type(descriptor: MessageDescriptor) -> None:
    if descriptor.msg_type not in (MQMT_DATAGRAM, MQMT_REQUEST):
        raise Refusal(Reason.MQRC_MSG_TYPE_ERROR)
