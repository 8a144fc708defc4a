"""Puts copies on subscriber queues, in the unit of work of the publication or of the command that asks for them.

The end of step 7a on the way of a PUBLISH. A plan names the recipients. If some candidates have content filters, this
module decides which of them get a copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import Publish
from mappings.commands.options import RegistrationOption
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.attributes import DEFAULT_MAXIMUM_MESSAGE_BYTES
from mq_adapters.broker.dead_letters import BrokerDeadLetters
from mq_adapters.broker.deliveries import Copy, DeliveryMaker, DeliveryPlan, Occasion, PublishedAs
from mq_adapters.broker.publication_content import PublicationContent
from mq_adapters.broker.received import UnreadableCommand, received_command
from mq_adapters.broker.registered_filter import passes
from mq_adapters.broker.responses import CommandRefusal, remaining_expiry
from mq_adapters.broker.subscription import Identity, Subscription
from mq_adapters.broker.topic_spaces import BrokerDialect, TopicSpaces
from mq_adapters.command_header import CommandHeader
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter, UnitOfWork
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from mq_adapters.selection.conditions import ContentError

#: An int counts faster than the member of PublicationCounter.
_COPY: Final = int(PublicationCounter.COPIES)


class Distributor:
    """Carries plans out."""

    def __init__(
        self, engine: Engine, listener: DeliveryListener, dead_letters: BrokerDeadLetters, spaces: TopicSpaces
    ) -> None:
        self._engine = engine
        self._listener = listener
        self._dead_letters = dead_letters
        self._is_mq6 = spaces.dialect is BrokerDialect.MQ6
        self.maker = DeliveryMaker(engine)
        #: Called before a publication is distributed, to put older ones that must arrive first; None: nothing to call.
        self.before: Callable[[UnitOfWork, Message, DeliveryPlan], None] | None = None

    def distribute(
        self, unit: UnitOfWork, message: Message, plan: DeliveryPlan, without: Identity | None = None
    ) -> None:
        """Carries out a plan for one publication. `without` is a publisher that does not want its own publications."""
        if self.before is not None:
            self.before(unit, message, plan)
        body, origin, written = message.body, message.origin, message.written
        length = len(plan.published.data)
        header: bytes | None = None
        changed = body
        for copy in plan.copies:
            if without is not None and copy.subscription.identity == without:
                continue
            if copy.header is None:
                sent = Message(copy.descriptor, body, origin)
                sent.written = written
            else:
                if copy.header is not header:
                    header = copy.header
                    changed = header + body[length:]
                sent = Message(copy.descriptor, changed, origin)
                sent.written = copy.written
            self._put(unit, message, sent, copy)
        for failure in plan.failures:
            lost = message
            if failure.descriptor is not None:
                lost = Message(failure.descriptor, failure.header + body[length:], origin)
            self._bury(unit, message, lost, failure.queue_name, failure.reason_code)

    def _put(self, unit: UnitOfWork, message: Message, sent: Message, copy: Copy) -> None:
        """Puts a copy on its queue."""
        try:
            self._engine.put(unit, copy.queue, sent)
        except QueueManagerError as error:
            if not (copy.queue.is_deleted and copy.queue.is_temporary):
                self._bury(unit, message, sent, copy.queue.name, error.reason_code)
            return
        self._listener.copied(unit, message, sent, copy.delivery)
        unit.counts.append(_COPY)

    def _bury(self, unit: UnitOfWork, message: Message, copy: Message, queue_name: str, reason_code: int) -> None:
        """Makes a dead letter of the subscriber's copy, so that it can go back to the subscriber unchanged.

        If no queue can take the copy, the publication itself becomes the dead letter.
        """
        kept = copy if len(copy.body) <= DEFAULT_MAXIMUM_MESSAGE_BYTES else message
        self._dead_letters.put(unit, kept, queue_name, reason_code, about=message)

    def candidates(self, published: CommandHeader, matching: tuple[Subscription, ...]) -> tuple[Subscription, ...]:
        """The matching subscriptions that may have a publication.

        In dialect mq6 an MQRFH publication with Local goes only to subscriptions with Local (WebSphere MQ V6
        Publish/Subscribe User's Guide, "Publish"). Elsewhere Local means this queue manager, and there is no other.
        """
        command = published.command
        assert isinstance(command, Publish)
        local = RegistrationOption.LOCAL
        if not self._is_mq6 or published.dialect is Dialect.MQRFH2 or local not in command.registration_options:
            return matching
        return tuple(found for found in matching if local in found.options)

    def filtered(self, message: Message, plan: DeliveryPlan, occasion: Occasion) -> tuple[DeliveryPlan, bool]:
        """The plan for candidates whose filter lets a publication pass, and whether all filters could be checked."""
        content = PublicationContent(message, plan.published)
        passed: list[Subscription] = []
        is_parsed = True
        for candidate in plan.candidates:
            try:
                text = candidate.interest.filter
                if not text or passes(text, content):
                    passed.append(candidate)
            except ContentError:
                is_parsed = False
        return self.maker.choice(plan, tuple(passed), occasion), is_parsed

    def plan_retained(self, message: Message, subscription: Subscription) -> "RetainedPlan":
        """Makes the copy of a stored publication for a subscription, but does not put it yet."""
        changes = self._engine.objects.changes
        if (copy := self.maker.retained_copy(message, subscription)) is not None:
            return RetainedPlan(message=message, plan=copy, is_parsed=True, object_changes=changes)
        published = received_command(message)
        if isinstance(published, UnreadableCommand):
            return RetainedPlan(message=message, plan=published, is_parsed=True, object_changes=changes)
        occasion = Occasion(
            published_as=published_as(message.descriptor, remaining_expiry(message, self._engine.now_us())),
            point=subscription.interest.point,
            is_retained=True,
            return_address=return_address(message.descriptor, published, self._engine.name),
        )
        plan = self.maker.plan(published, self.candidates(published, (subscription,)), occasion)
        is_parsed = True
        if plan.is_filtered:
            plan, is_parsed = self.filtered(message, plan, occasion)
        return RetainedPlan(message=message, plan=plan, is_parsed=is_parsed, object_changes=changes)

    def send_retained(self, unit: UnitOfWork, planned: "RetainedPlan", subscription: Subscription) -> bool:
        """Puts a copy of a stored publication. Returns whether the subscriber was due one."""
        message, plan = planned.message, planned.plan
        if isinstance(plan, Copy):
            header = plan.header
            body = message.body if header is None else header + message.body[len(plan.delivery.input_header) :]
            sent = Message(plan.descriptor, body, message.origin)
            sent.written = message.written if header is None else plan.written
            self._put(unit, message, sent, plan)
            return True
        if isinstance(plan, UnreadableCommand):
            self._dead_letters.put(unit, message, subscription.identity.queue_name, plan.error.reason_code)
            return False
        self.distribute(unit, message, plan)
        return bool(plan.copies or plan.failures)


@dataclass(slots=True, kw_only=True, eq=False)
class RetainedPlan:
    """A stored publication and its copy for one subscription; `is_parsed`: the content filter could be checked.

    The queue is as it was defined at `object_changes`. `plan` is the copy itself where it can be made the short way.
    """

    message: Message
    plan: Copy | DeliveryPlan | UnreadableCommand
    is_parsed: bool
    object_changes: int


def published_as(descriptor: MessageDescriptor, expiry: int) -> PublishedAs:
    """The fields that copies take from the publication's MQMD."""
    return PublishedAs(persistence=descriptor.persistence, priority=descriptor.priority, expiry=expiry)


def return_address(
    descriptor: MessageDescriptor, published: CommandHeader, queue_manager_name: str
) -> tuple[str, str] | None:
    """The reply queue of a publisher with DirectReq whose header names no queue for requests; else None.

    3076 if there is no reply queue.
    """
    command = published.command
    assert isinstance(command, Publish)
    if RegistrationOption.DIRECT_REQUESTS not in command.registration_options:
        return None
    if command.queue_name is not None and command.queue_manager_name is not None:
        return None
    queue_name = command.queue_name or descriptor.reply_to_q.rstrip()
    if not queue_name:
        raise CommandRefusal(Reason.MQRCCF_Q_NAME_ERROR, ("QName", ""))
    name = command.queue_manager_name or descriptor.reply_to_q_mgr.rstrip() or queue_manager_name
    return name, queue_name
