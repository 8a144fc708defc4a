"""The control queue, SYSTEM.BROKER.CONTROL.QUEUE: every command but Publish and DeletePub.

Publishers need no registration here: RegPub and DeregPub are checked and answered. `subscribers` carries out the
commands of subscribers. `updates` answers them when it has sent the retained publications.
"""

from mappings.commands.command import (
    DeregisterPublisher,
    DeregisterSubscriber,
    RegisterPublisher,
    RegisterSubscriber,
    RequestUpdate,
)
from mappings.commands.response import Completion, ResponseReason
from mappings.reasons import Reason
from mq_adapters.broker.dead_letters import BrokerDeadLetters, refuse_again
from mq_adapters.broker.received import UnreadableCommand, received_command
from mq_adapters.broker.responses import CommandRefusal, Responder, is_wanted, refusal_of
from mq_adapters.broker.subscribers import DONE, Done, SubscriberCommands
from mq_adapters.broker.updates import Updates
from mq_adapters.command_header import DIALECT_OF_FORMAT, CommandHeader
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, Message
from mq_adapters.reasons import ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE


class ControlQueue:
    """The handler of the control queue."""

    def __init__(
        self,
        *,
        subscribers: SubscriberCommands,
        updates: Updates,
        responder: Responder,
        dead_letters: BrokerDeadLetters,
    ) -> None:
        self._subscribers = subscribers
        self._updates = updates
        self._responder = responder
        self._dead_letters = dead_letters

    def receive(self, unit: UnitOfWork, queue: Queue, message: Message) -> None:
        """Takes a message off the control queue; see mq_adapters.embedded.queue.ServedHandler."""
        if message.descriptor.format not in DIALECT_OF_FORMAT:
            self._dead_letters.put_or_discard(unit, message, queue.name, ReasonCode.MQRC_FORMAT_ERROR)
            return
        received = received_command(message)
        try:
            if isinstance(received, UnreadableCommand):
                raise refusal_of(received)
            self._carry_out(unit, queue, message, received)
        except CommandRefusal as refusal:
            self._responder.refuse(unit, message, received, refusal, queue.name)

    def _carry_out(self, unit: UnitOfWork, queue: Queue, message: Message, received: CommandHeader) -> None:
        """Carries out a command. If its answer cannot be put, the command becomes a dead letter instead."""
        descriptor = message.descriptor
        if descriptor.msg_type not in (MQMT_DATAGRAM, MQMT_REQUEST):
            raise CommandRefusal(Reason.MQRC_MSG_TYPE_ERROR)
        obstacle = self._responder.obstacle(descriptor) if is_wanted(descriptor, Completion.OK) else 0
        if obstacle:
            refuse_again(unit, message, obstacle)
            reason = ResponseReason(reason_code=obstacle)
            self._responder.applications.tell(unit, message, received, queue.name, (reason,), is_refused=True)
            self._dead_letters.put(unit, message, queue.name, obstacle)
            return
        done = self._act(unit, message, received)
        if not done.is_requested:
            self._responder.applications.tell(unit, message, received, queue.name, done.warnings)
        self._updates.begin(unit, done, message, received)

    def _act(self, unit: UnitOfWork, message: Message, received: CommandHeader) -> Done:
        """Carries out a command on the subscriptions that have not expired."""
        self._subscribers.end_expired(unit)
        command = received.command
        if isinstance(command, RegisterSubscriber):
            return self._subscribers.register(unit, message, command, received.dialect)
        if isinstance(command, DeregisterSubscriber):
            return self._subscribers.deregister(unit, message, command, received.dialect)
        if isinstance(command, RequestUpdate):
            return self._subscribers.request_update(message, command, received.dialect)
        if isinstance(command, RegisterPublisher | DeregisterPublisher):
            self._subscribers.check_publisher(message, command)
            return DONE
        raise CommandRefusal(Reason.MQRCCF_INCORRECT_Q, ("QName", CONTROL_QUEUE))
