"""Topics of the MQI: puts to a topic, and MQSUB with a managed queue, on the broker's queued publish/subscribe.

A put to a topic becomes a Publish on the stream, MQSUB a RegSub on the control queue, and the end of a subscription a
DeregSub. So the broker, its records and the audit know one kind of publication and of subscription. What a program may
publish and subscribe to is a right of its own (`TopicRights`), and a right to put on a queue gives it nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import DeregisterSubscriber, Publish, RegisterSubscriber, write_command
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.commands.response import Completion, read_response
from mappings.errors import MappingError
from mappings.headers.chain import read_header_chain
from mappings.headers.charset import ENCODING_REVERSED
from mappings.headers.mqrfh2 import read_mqrfh2
from mappings.table import Dialect
from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.getting import GetRequest, Getter, Got
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.mqi.options import (
    GetOption,
    MatchOption,
    ObjectKind,
    OpenOption,
    PutOption,
    SubOption,
    check_options,
)
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import TopicRights
from mq_adapters.message import (
    MQMI_NONE,
    MQMT_DATAGRAM,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQRO_NAN,
    MQRO_PAN,
    UTF_8,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_MODEL_QUEUE, DEFAULT_STREAM

FORMAT_MQRFH2: Final = b"MQHRF2  "
#: Folders of commands and answers. A program that publishes by MQPUT has none of its own.
_OF_COMMANDS: Final = ("psc", "pscr")
_MANAGED_NAME: Final = "SYSTEM.MANAGED.NDURABLE.*"
#: Milliseconds that the broker has for the answer to a RegSub. Retained publications come in front of it.
_ANSWER_WAIT_MS: Final = 60_000
_ANY_LENGTH: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """MQSD as far as it is used. `object_name` is the name of a topic object, whose string comes first."""

    options: int
    object_name: str
    topic: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription of the connection: its topic, and the managed queue that its publications come to."""

    topic: str
    queue: Queue


#: Takes the end of MQSUB: the subscription, or why there is none.
Subscribed = Callable[[Subscription | QueueManagerError], None]


class Topics:
    """The topics of one connection."""

    def __init__(
        self, engine: Engine, application: Application, rights: TopicRights, *, stream: str = DEFAULT_STREAM
    ) -> None:
        self._engine = engine
        self._application = application
        self._rights = rights
        self._stream = stream
        self._getter = Getter(engine, application)

    def close(self) -> None:
        """The connection is gone: nobody is answered any more."""
        self._getter.close()

    def topic_of(self, object_name: str, object_string: str, operation: str) -> str:
        """The whole topic string of a topic object and a string; 2085 without the object, 2425 for no topic."""
        parts = [object_string]
        if object_name:
            found = self._engine.objects.find(ObjectType.TOPIC, object_name)
            if found is None:
                raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, f"{operation}: topic object {object_name}")
            parts.insert(0, found.text("TOPICSTR"))
        topic = "/".join(part for part in parts if part)
        if not topic:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: no topic")
        return topic

    # -- publishing ----------------------------------------------------------------------------------------------------

    def open(self, topic: str, options: OpenOption, operation: str) -> OpenObject:
        """MQOPEN of a topic, to publish to it; 2035 without the right."""
        if options & ~(OpenOption.OUTPUT | _HARMLESS):
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, operation)
        if not self._rights.may_publish(topic):
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{operation}: no right to publish to {topic!r}")
        return OpenObject(kind=ObjectKind.TOPIC, name=topic, options=options)

    def publication(self, topic: str, message: Message, options: int) -> Message:
        """The message that publishes another one to a topic, with a header that says so. 2425 for no topic name."""
        retained = PublicationOption.RETAIN_PUBLICATION if options & PutOption.RETAIN else PublicationOption(0)
        command = Publish(topics=(topic,), publication_options=retained)
        try:
            header, data = _with_command(command, message)
        except MappingError as error:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"publish to {topic!r}: {error}") from error
        own = message.descriptor
        changes = {
            "format": FORMAT_MQRFH2,
            "coded_char_set_id": UTF_8,
            "encoding": ENCODING_REVERSED,
            # The answer is for a subscriber to give: as a request, the publication would be answered by the broker.
            "msg_type": MQMT_DATAGRAM if own.msg_type == MQMT_REQUEST else own.msg_type,
            "report": own.report & ~(MQRO_PAN | MQRO_NAN),
        }
        return Message(own.replace(**changes), header + data)

    @property
    def stream(self) -> str:
        """The queue on which publications are put."""
        return self._stream

    # -- subscribing ---------------------------------------------------------------------------------------------------

    def subscribe(self, request: SubscriptionRequest, subscribed: Subscribed) -> None:
        """MQSUB: makes a managed queue and registers it. `subscribed` is called once, when the broker has answered.

        Raises QueueManagerError: 2035, 2046, 2425, 2428, 2436, 2551.
        """
        operation = f"subscribe to {request.topic}"
        _check(request, operation)
        topic = self.topic_of(request.object_name, request.topic, operation)
        if not self._rights.may_subscribe(topic):
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, f"{operation}: no right to subscribe")
        is_new_only = bool(request.options & SubOption.NEW_PUBLICATIONS_ONLY)
        queue = self._application.create_managed(DEFAULT_MODEL_QUEUE, _MANAGED_NAME)
        subscription = Subscription(topic=topic, queue=queue)
        try:
            self._register(subscription, is_new_only, operation, subscribed)
        except QueueManagerError:
            self._application.end_dynamic(queue)
            raise

    def _register(self, subscription: Subscription, is_new_only: bool, operation: str, subscribed: Subscribed) -> None:
        options = RegistrationOption.NON_PERSISTENT  # the managed queue ends with the connection
        if is_new_only:
            options |= RegistrationOption.NEW_PUBLICATIONS_ONLY
        command = RegisterSubscriber(
            topics=(subscription.topic,),
            registration_options=options,
            stream_name=None if self._stream == DEFAULT_STREAM else self._stream,
            queue_name=subscription.queue.name,
        )
        message = self._command(command, reply_to=subscription.queue.name, operation=operation)

        def sent() -> None:
            self._await_answer(subscription, message.msg_id, operation, subscribed)

        with self._application.outside_unit():
            self._application.put_unchecked(CONTROL_QUEUE, message, sent)

    def _command(self, command: RegisterSubscriber | DeregisterSubscriber, *, reply_to: str, operation: str) -> Message:
        try:
            data = write_command(command, Dialect.MQRFH2)
        except MappingError as error:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: {error}") from error
        asks = {"msg_type": MQMT_REQUEST, "reply_to_q": reply_to} if reply_to else {}
        descriptor = MessageDescriptor(
            format=FORMAT_MQRFH2,
            encoding=ENCODING_REVERSED,
            persistence=MQPER_NOT_PERSISTENT,
            user_identifier=self._application.user,
        )
        return Message(descriptor.replace(**asks), data)

    def _await_answer(
        self, subscription: Subscription, command_id: bytes, operation: str, subscribed: Subscribed
    ) -> None:
        """Takes the broker's answer off the managed queue, whose CorrelId is the MsgId of the command."""
        opened = OpenObject(
            kind=ObjectKind.Q, name=subscription.queue.name, options=OpenOption.INPUT_SHARED, queue=subscription.queue
        )
        request = GetRequest(
            options=GetOption.WAIT,
            match_options=MatchOption.CORREL_ID,
            msg_id=MQMI_NONE,
            correl_id=command_id,
            buffer_bytes=_ANY_LENGTH,
            wait_ms=_ANSWER_WAIT_MS,
        )

        def answered(result: Got | QueueManagerError) -> None:
            error = result if isinstance(result, QueueManagerError) else _refusal(result.message, operation)
            if error is not None:
                self._application.end_dynamic(subscription.queue)
            subscribed(subscription if error is None else error)

        try:
            self._getter.get(opened, request, answered)
        except QueueManagerError as error:
            answered(error)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription. Its queue stays until its own handle is closed."""
        command = DeregisterSubscriber(
            topics=(subscription.topic,),
            stream_name=None if self._stream == DEFAULT_STREAM else self._stream,
            queue_name=subscription.queue.name,
        )
        message = self._command(command, reply_to="", operation=f"unsubscribe from {subscription.topic}")
        with self._application.outside_unit():
            self._application.put_unchecked(CONTROL_QUEUE, message, lambda: None)


_HARMLESS: Final = OpenOption.FAIL_IF_QUIESCING | OpenOption.NO_MULTICAST | OpenOption.RESOLVE_NAMES


def _check(request: SubscriptionRequest, operation: str) -> None:
    if request.options & SubOption.DURABLE:
        raise QueueManagerError(ReasonCode.MQRC_DURABILITY_NOT_ALLOWED, operation)
    check_options(SubOption, request.options, operation)
    if not request.options & SubOption.CREATE:
        raise QueueManagerError(ReasonCode.MQRC_NO_SUBSCRIPTION, operation)
    if not request.options & SubOption.MANAGED:
        raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"{operation}: only managed queues are supported")
    if request.selector:
        raise QueueManagerError(ReasonCode.MQRC_SELECTION_NOT_AVAILABLE, operation)


def _refusal(answer: Message, operation: str) -> QueueManagerError | None:
    """Why the broker refused a command; None if it carried it out."""
    descriptor = answer.descriptor
    try:
        chain = read_header_chain(
            answer.body,
            format=descriptor.format,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
        )
        response = read_response(chain)
    except MappingError as error:  # another program of the same user has put it there
        return QueueManagerError(ReasonCode.MQRC_UNEXPECTED_ERROR, f"{operation}: {error}")
    if response.completion is not Completion.FAILED:
        return None
    code = response.reasons[0].reason_code if response.reasons else ReasonCode.MQRC_UNEXPECTED_ERROR
    return QueueManagerError(code, f"{operation}: the broker refuses it")


def _with_command(command: Publish, message: Message) -> tuple[bytes, bytes]:
    """A header with the command, and the data behind it. Folders of the message's own MQRFH2 come into that header."""
    descriptor, data = message.descriptor, message.body
    folders: tuple[str, ...] = ()
    format, page, encoding = descriptor.format, descriptor.coded_char_set_id or UTF_8, descriptor.encoding
    if format == FORMAT_MQRFH2:
        own = read_mqrfh2(data, coded_char_set_id=page, encoding=encoding)
        folders = tuple(folder.text for folder in own.folders if folder.name not in _OF_COMMANDS)
        data = data[own.struc_length :]
        format, page, encoding = own.format, own.coded_char_set_id, own.encoding
    header = write_command(
        command,
        Dialect.MQRFH2,
        body_format=format,
        body_coded_char_set_id=page,
        body_encoding=encoding,
        extra_folders=folders,
    )
    return header, data
