"""Publish and DeletePub: the commands on a stream queue, or on another input queue of the broker.

Step 7a on the way of a PUBLISH, inside the publisher's own unit of work: the copies, the retained publication and the
answer are committed with it. A publication with a known header takes the short way of `InputQueue.receive`.
"""

from typing import Final

from mappings.commands.command import DeletePublication, Publish
from mappings.commands.options import DeleteOption, RegistrationOption
from mappings.commands.response import ResponseReason
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.broker.dead_letters import BrokerDeadLetters
from mq_adapters.broker.deliveries import LONGEST_KEPT_HEADER, DeliveryPlan, Occasion, PlanCache, PlanKey
from mq_adapters.broker.distributor import Distributor, published_as, return_address
from mq_adapters.broker.received import UnreadableCommand, received_command
from mq_adapters.broker.responses import CommandRefusal, Responder, refusal_of, remaining_expiry
from mq_adapters.broker.retained import RetainedPublication, RetainedPublications
from mq_adapters.broker.similar_plan import Patterns
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.subscriptions import Interested, SubscriptionRegistry
from mq_adapters.broker.topic_permissions import TopicPermissions, publish_refusal
from mq_adapters.broker.topic_spaces import SCHEME_OF, TopicSpaces
from mq_adapters.command_header import DIALECT_OF_FORMAT, CommandHeader
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQCI_NONE, MQMT_DATAGRAM, MQMT_REQUEST, MQRO_PAN, Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode

_INTEGER_NIBBLE: Final = 0xF  # MQENC_INTEGER_MASK
_INTEGER_REVERSED: Final = 2  # MQENC_INTEGER_REVERSED, little-endian
_NOT_PARSED: Final = ResponseReason(reason_code=Reason.MQRC_CONTENT_ERROR)


class InputQueue:
    """The handler of one queue that takes publications. It publishes them at one subscription point."""

    def __init__(
        self,
        queue_name: str,
        point: str,
        engine: Engine,
        *,
        spaces: TopicSpaces,
        registry: SubscriptionRegistry,
        retained: RetainedPublications,
        distributor: Distributor,
        responder: Responder,
        dead_letters: BrokerDeadLetters,
    ) -> None:
        self._queue_name = queue_name
        self._point = point
        self._engine = engine
        self._spaces = spaces
        self._space = spaces.space(queue_name)
        self._index = registry.space(self._space).index(point)
        self._interested = Interested(self._index, spaces)
        self._retained = retained
        self._distributor = distributor
        self._responder = responder
        self._dead_letters = dead_letters
        self._objects = engine.objects
        self._permissions = TopicPermissions(engine.objects)
        self._plans = PlanCache()
        self._patterns = Patterns()

    def receive(self, unit: UnitOfWork, queue: Queue, message: Message) -> None:
        """Takes a message off the queue; see mq_adapters.embedded.queue.ServedHandler."""
        key = self._key(message)
        plan = self._plans.get(key)
        if plan is None or (self._is_stale(plan) and not self._is_renewed(plan)):
            if message.descriptor.format not in DIALECT_OF_FORMAT:
                self._dead_letters.put_or_discard(unit, message, queue.name, ReasonCode.MQRC_FORMAT_ERROR)
                return
            received = plan.published if plan is not None else received_command(message)
            try:
                plan = self._read(unit, message, received, key, plan)
            except CommandRefusal as refusal:
                self._responder.refuse(unit, message, received, refusal, queue.name)
                return
            if plan is None:
                return
        try:
            self._publish(unit, message, plan, key)
        except CommandRefusal as refusal:
            self._responder.refuse(unit, message, plan.published, refusal, queue.name)

    def _key(self, message: Message) -> PlanKey:
        """The key of a publication's plan; equal keys have equal plans. Bytes 8 to 11 of a header are its StrucLength.

        Only chains of one header are kept under a key, so a wrong length finds no plan.
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

    def _is_stale(self, plan: DeliveryPlan) -> bool:
        if plan.generation != self._index.generation or plan.object_changes != self._objects.changes:
            return True
        return 0 < plan.valid_until_us <= self._engine.now_us()

    def _is_renewed(self, plan: DeliveryPlan) -> bool:
        """Renews a stale plan if its candidates and all objects are still the same. Returns whether it did."""
        if plan.object_changes != self._objects.changes:
            return False
        candidates = self._candidates(plan.published, plan.routing_topics)
        if candidates == plan.candidates:
            plan.generation = self._index.generation
        return candidates == plan.candidates

    def _candidates(self, published: CommandHeader, routing_topics: tuple[str, ...]) -> tuple[Subscription, ...]:
        matching = self._interested.of(routing_topics, self._engine.now_us())
        return self._distributor.candidates(published, matching)

    def _read(
        self,
        unit: UnitOfWork,
        message: Message,
        received: CommandHeader | UnreadableCommand,
        key: PlanKey,
        stale: DeliveryPlan | None,
    ) -> DeliveryPlan | None:
        """The plan of a publication with a new header, or a stale plan. Carries out any other command: None."""
        if isinstance(received, UnreadableCommand):
            raise refusal_of(received)
        command = received.command
        if not isinstance(command, Publish | DeletePublication):
            raise CommandRefusal(Reason.MQRCCF_INCORRECT_Q, ("QName", self._queue_name))
        stream_name = self._spaces.stream_of_publication(command.stream_name, self._queue_name, received.dialect)
        if isinstance(command, DeletePublication):
            _check_message_type(message.descriptor)
            refused = self._delete(unit, command, received.dialect, stream_name)
            self._answer(unit, message, received, tuple(publish_refusal((topic,)).reason for topic in refused))
            return None
        return self._plan(message, received, stream_name, key, stale)

    def _plan(
        self,
        message: Message,
        published: CommandHeader,
        stream_name: str,
        key: PlanKey,
        stale: DeliveryPlan | None,
    ) -> DeliveryPlan:
        """The plan for the topics on which publishing is allowed; 3081 if there are none.

        With the same objects the copies of a stale plan are still right, and only those of new subscriptions are made.
        """
        changes = self._objects.changes
        named = published.command.topics
        routing_topics = self._spaces.routing_topics(stream_name, named)
        closed = self._permissions.refused_topics(self._space, routing_topics)
        refused = tuple(topic for topic, routing in zip(named, routing_topics, strict=True) if routing in closed)
        if closed:
            routing_topics = tuple(topic for topic in routing_topics if topic not in closed)
        if not routing_topics:
            raise publish_refusal(refused)
        candidates = self._candidates(published, routing_topics)
        has_key = published.data == key[0]  # no long header has one of its own
        similar = None
        if has_key and not refused:
            similar = self._patterns.plan(
                key,
                published,
                candidates,
                routing_topics,
                generation=self._index.generation,
                object_changes=changes,
            )
        if similar is not None:
            self._plans.put(key, similar)
            return similar
        occasion = self._occasion(message, published, key)
        plan = self._distributor.maker.plan(
            published,
            candidates,
            occasion,
            routing_topics=routing_topics,
            refused_topics=refused,
            generation=self._index.generation,
            object_changes=changes,
            earlier=stale if stale is not None and stale.object_changes == changes else None,
        )
        if has_key and not plan.failures and occasion.return_address is None:
            self._plans.put(key, plan)
            self._patterns.keep(key, plan)
        return plan

    def _occasion(self, message: Message, published: CommandHeader, key: PlanKey) -> Occasion:
        descriptor = message.descriptor
        return Occasion(
            published_as=published_as(descriptor, key[-1]),
            point=self._point,
            return_address=return_address(descriptor, published, self._engine.name),
        )

    def _publish(self, unit: UnitOfWork, message: Message, plan: DeliveryPlan, key: PlanKey) -> None:
        descriptor = message.descriptor
        if descriptor.msg_type != MQMT_DATAGRAM:
            _check_message_type(descriptor)
        if plan.is_correlated and descriptor.correl_id == MQCI_NONE:
            raise CommandRefusal(Reason.MQRCCF_CORREL_ID_ERROR, ("CorrelId", MQCI_NONE.hex()))
        is_parsed = True
        if plan.is_filtered:
            plan, is_parsed = self._distributor.filtered(message, plan, self._occasion(message, plan.published, key))
        without = self._publisher(descriptor, plan) if plan.excludes_publisher else None
        self._distributor.distribute(unit, message, plan, without)
        if plan.retains:
            is_local = RegistrationOption.LOCAL in plan.command.registration_options
            kept = RetainedPublication(message=message, is_local=is_local)
            self._retained.keep(unit, self._space, self._point, plan.routing_topics, kept)
        warnings: tuple[ResponseReason, ...] = ()
        if plan.refused_topics or not is_parsed:
            warnings = () if is_parsed else (_NOT_PARSED,)
            warnings += tuple(publish_refusal((topic,)).reason for topic in plan.refused_topics)
            self._responder.warn(unit, message, plan.published, warnings)
        elif descriptor.msg_type != MQMT_DATAGRAM or descriptor.report & MQRO_PAN:
            self._responder.accept(unit, message, plan.published)
        if not message.origin:
            self._responder.applications.tell(unit, message, plan.published, self._queue_name, warnings)

    def _publisher(self, descriptor: MessageDescriptor, plan: DeliveryPlan) -> Identity:
        """The publisher's identity: QMgrName and QName, by default the reply queue."""
        command = plan.command
        return Identity(
            queue_manager_name=command.queue_manager_name or descriptor.reply_to_q_mgr.rstrip() or self._engine.name,
            queue_name=command.queue_name or descriptor.reply_to_q.rstrip(),
            correl_id=descriptor.correl_id if plan.is_correlated else None,
        )

    def _delete(
        self, unit: UnitOfWork, command: DeletePublication, dialect: Dialect, stream_name: str
    ) -> tuple[str, ...]:
        """Deletes retained publications. If there are none, the command succeeds all the same.

        Returns the refused patterns, and the patterns with topics on which nobody may publish. Publications on those
        topics stay. 3081 if all patterns were refused.

        In MQRFH a DeletePub with Local deletes the publications with Local, and one without it deletes the others. In
        MQRFH2 both delete all publications here: Local means this queue manager, and there is no other.
        """
        scheme, space = SCHEME_OF[dialect], self._space
        patterns = {topic: self._spaces.routing_pattern(stream_name, topic, dialect) for topic in command.topics}
        allowed = {
            topic: pattern
            for topic, pattern in patterns.items()
            if self._permissions.may_publish_on(space, pattern, scheme)
        }
        if not allowed:
            raise publish_refusal(patterns)
        refused = [topic for topic in patterns if topic not in allowed]
        for topic_pattern, pattern in allowed.items():
            meant = self._meant(command, dialect, pattern)
            spared = self._permissions.refused_topics(space, meant)
            refused += [topic_pattern] if spared else []
            for topic in meant:
                if topic not in spared:
                    self._retained.delete(unit, space, self._point, topic)
        return tuple(refused)

    def _meant(self, command: DeletePublication, dialect: Dialect, pattern: str) -> list[str]:
        """The topics with a publication to which a pattern of a DeletePub refers."""
        is_local = DeleteOption.LOCAL in command.delete_options
        now_us = self._engine.now_us()
        found = self._retained.matching(self._space, self._point, pattern, SCHEME_OF[dialect], now_us)
        return [
            topic
            for topic, kept in found.items()
            if (dialect is Dialect.MQRFH2 or kept.is_local == is_local)
            and not self._spaces.spans_streams(pattern, topic)
        ]

    def _answer(
        self, unit: UnitOfWork, message: Message, received: CommandHeader, warnings: tuple[ResponseReason, ...]
    ) -> None:
        self._responder.applications.tell(unit, message, received, self._queue_name, warnings)
        if warnings:
            self._responder.warn(unit, message, received, warnings)
        else:
            self._responder.accept(unit, message, received)


def _check_message_type(descriptor: MessageDescriptor) -> None:
    if descriptor.msg_type not in (MQMT_DATAGRAM, MQMT_REQUEST):
        raise CommandRefusal(Reason.MQRC_MSG_TYPE_ERROR)
