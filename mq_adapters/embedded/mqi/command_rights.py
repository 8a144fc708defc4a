"""What a program may have the broker do with a command that it puts on a queue of the broker.

A command does what MQSUB and a put to a topic do, so the same rights decide: those on topics, and `get` for the queue
that publications come to. A right to put on the broker's queues is no way around them. A command that cannot be read
here goes on to the broker, which refuses it or makes a dead letter of it.
"""

from typing import Final

from mappings.commands.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RegisterSubscriber,
    RequestUpdate,
    find_command,
    read_command,
)
from mappings.commands.options import RegistrationOption
from mappings.errors import MappingError
from mappings.topics.topics import topic_filter_for
from mq_adapters.command_header import DIALECT_OF_FORMAT, chain_of
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.publish_subscribe import RegisteredSubscription
from mq_adapters.embedded.rights import MissingRight, Right, RightMissing, TopicRights, check_system_queue
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.system_queues import DEFAULT_STREAM

#: The topic that IBM's JMS client (provider version 6) names where it means a subscription by its name alone.
_NO_TOPIC: Final = "JMS:SYS:Unknown"

SubscriberCommand = RegisterSubscriber | DeregisterSubscriber | RequestUpdate


class CommandRights:
    """The rights of one program."""

    def __init__(self, engine: Engine, application: Application, rights: TopicRights) -> None:
        self._engine = engine
        self._application = application
        self._rights = rights

    def check(self, message: Message, operation: str) -> None:
        """2035 for a command that the program may not give, or whose answer it may not have there."""
        reply_queue = message.descriptor.reply_to_q.rstrip()
        if reply_queue:
            self._check_answers(reply_queue, operation)
        read = _read(message)
        if read is None:
            return
        command, is_of_characters = read
        if isinstance(command, Publish | DeletePublication):
            for topic in command.topics:
                if not self._rights.may_publish(topic):
                    raise RightMissing(MissingRight.PUBLISH, topic, f"{operation}: no right to publish to {topic!r}")
        elif isinstance(command, SubscriberCommand):
            self._check_subscriber(command, message, operation, is_of_characters=is_of_characters)

    def _check_answers(self, queue_name: str, operation: str) -> None:
        try:
            self._check_queue(Right.PUT, queue_name, operation)
        except QueueManagerError:
            self._check_queue(Right.GET, queue_name, f"{operation}: answers")

    def _check_queue(self, right: Right, queue_name: str, operation: str) -> None:
        """2035 as at MQOPEN of that queue."""
        self._application.check(right, queue_name, operation)
        check_system_queue(self._application.rights, right, queue_name, operation)

    def _check_subscriber(
        self, command: SubscriberCommand, message: Message, operation: str, *, is_of_characters: bool
    ) -> None:
        for existing in self._meant(command, message):
            if existing.user_identifier != self._application.user:
                why = f"{operation}: the subscription belongs to another application"
                raise RightMissing(MissingRight.OWNER, existing.name, why)
        if isinstance(command, DeregisterSubscriber):
            return
        for topic in command.topics:
            if topic != _NO_TOPIC and not self._may_subscribe(topic, is_of_characters=is_of_characters):
                raise RightMissing(MissingRight.SUBSCRIBE, topic, f"{operation}: no right to subscribe to {topic!r}")
        queue_name = command.queue_name or message.descriptor.reply_to_q.rstrip()
        if queue_name:
            self._check_queue(Right.GET, queue_name, operation)

    def _may_subscribe(self, topic: str, *, is_of_characters: bool) -> bool:
        try:
            return self._rights.may_subscribe(topic_filter_for(topic) if is_of_characters else topic)
        except MappingError:  # the topic scheme has no such pattern
            return False

    def _meant(self, command: SubscriberCommand, message: Message) -> list[RegisteredSubscription]:
        """The subscriptions that a command may change: by its SubName, or those of its queue and CorrelId."""
        broker = self._engine.objects.publish_subscribe
        if broker is None:
            return []
        administration, stream = broker(), command.stream_name or DEFAULT_STREAM
        named = administration.named(stream, command.subscription_name) if command.subscription_name else None
        is_correlated = RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options
        queue_name = command.queue_name or message.descriptor.reply_to_q.rstrip()
        correl_id = message.descriptor.correl_id if is_correlated else None
        return [*([named] if named is not None else []), *administration.of(stream, queue_name, correl_id)]


def _read(message: Message) -> tuple[Command, bool] | None:
    """The command of a message, and whether its patterns are of the character scheme; None if it cannot be read."""
    if message.descriptor.format not in DIALECT_OF_FORMAT:
        return None
    try:
        chain = chain_of(message)
        folder, _ = find_command(chain)
        return read_command(chain), folder is None
    except MappingError:
        return None
