"""Commands of queued publish/subscribe that the queue manager puts for the calls of a program, and their answers.

MQSUB is a RegSub on the control queue, its end a DeregSub, and MQSUBRQ a ReqUpdate. So the broker, its records and the
audit know one kind of subscription.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mappings.commands.command import DeregisterSubscriber, RegisterSubscriber, RequestUpdate, write_command
from mappings.commands.response import Completion, read_response
from mappings.errors import MappingError
from mappings.headers.chain import read_header_chain
from mappings.headers.charset import ENCODING_REVERSED
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.getting import GetRequest, Getter, Got
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.mqi.options import GetOption, MatchOption, ObjectKind, OpenOption
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import (
    MQMI_NONE,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_MODEL_QUEUE

FORMAT_MQRFH2: Final = b"MQHRF2  "
#: The queues that answers come to, one for each command.
_REPLIES: Final = "SYSTEM.RFHBRIDGE.ANSWER.*"
#: Milliseconds that the broker has for an answer. Retained publications come in front of it.
_ANSWER_WAIT_MS: Final = 60_000
_ANY_LENGTH: Final = 2**31 - 1
#: What the broker's reason codes are called at the MQI.
_AT_THE_MQI: Final[Mapping[int, ReasonCode]] = {
    Reason.MQRCCF_TOPIC_ERROR: ReasonCode.MQRC_TOPIC_STRING_ERROR,
    Reason.MQRCCF_NOT_REGISTERED: ReasonCode.MQRC_NO_SUBSCRIPTION,
    Reason.MQRCCF_NO_RETAINED_MSG: ReasonCode.MQRC_NO_RETAINED_MSG,
    Reason.MQRCCF_DUPLICATE_IDENTITY: ReasonCode.MQRC_IDENTITY_MISMATCH,
    Reason.MQRCCF_NOT_AUTHORIZED: ReasonCode.MQRC_SUB_INHIBITED,
    Reason.MQRCCF_WRONG_USER: ReasonCode.MQRC_IDENTITY_MISMATCH,
    Reason.MQRCCF_DUPLICATE_SUBSCRIPTION: ReasonCode.MQRC_SUB_ALREADY_EXISTS,
    Reason.MQRCCF_SUB_NAME_ERROR: ReasonCode.MQRC_SUB_NAME_ERROR,
}

Command = RegisterSubscriber | DeregisterSubscriber | RequestUpdate
#: Takes the end of a command: None, or why it was refused.
Ended = Callable[[QueueManagerError | None], None]


class NoAnswer(QueueManagerError):
    """The broker's answer did not come in time, or cannot be read. The command may be carried out all the same."""


class BrokerCommands:
    """The commands of one connection. A program on the socket may send one before another is answered."""

    def __init__(self, engine: Engine, application: Application) -> None:
        self._engine = engine
        self._application = application
        #: One for each command that is not answered.
        self._getters: set[Getter] = set()
        self._is_closed = False

    def close(self) -> None:
        """The connection is gone: nobody is answered any more."""
        self._is_closed = True
        for getter in self._getters:
            getter.close()
        self._getters.clear()

    def ask(self, command: Command, descriptor: MessageDescriptor, operation: str, ended: Ended) -> None:
        """Puts a command; `ended` is called once, with NoAnswer if none came. `descriptor` is what its MQMD says.

        Raises QueueManagerError where it cannot be put: 2425, 2531 and others.
        """
        replies = self._application.create_managed(DEFAULT_MODEL_QUEUE, _REPLIES)

        def answered(error: QueueManagerError | None) -> None:
            self._application.end_dynamic(replies)
            if not self._is_closed:  # while the answer was taken
                ended(error)

        try:
            asked = descriptor.replace(msg_type=MQMT_REQUEST, reply_to_q=replies.name)
            message = self._message(command, asked, operation)
            self._put(message, lambda: self._await(replies, message.msg_id, operation, answered))
        except QueueManagerError:
            self._application.end_dynamic(replies)
            raise

    def tell(self, command: Command, descriptor: MessageDescriptor, operation: str) -> None:
        """Puts a command whose answer nobody waits for."""
        self._put(self._message(command, descriptor, operation), lambda: None)

    def _put(self, message: Message, done: Callable[[], None]) -> None:
        if self._engine.queue(CONTROL_QUEUE).handler is None:
            raise QueueManagerError(ReasonCode.MQRC_PUBSUB_INHIBITED, "subscribe: no broker takes commands now")
        with self._application.outside_unit():
            self._application.put_unchecked(CONTROL_QUEUE, message, done)

    def _message(self, command: Command, descriptor: MessageDescriptor, operation: str) -> Message:
        try:
            data = write_command(command, Dialect.MQRFH2)
        except MappingError as error:
            raise QueueManagerError(ReasonCode.MQRC_TOPIC_STRING_ERROR, f"{operation}: {error}") from error
        return Message(
            descriptor.replace(
                format=FORMAT_MQRFH2,
                encoding=ENCODING_REVERSED,
                persistence=MQPER_NOT_PERSISTENT,  # what it changes is durable all the same
                user_identifier=self._application.user,
            ),
            data,
        )

    def _await(self, replies: Queue, command_id: bytes, operation: str, answered: Ended) -> None:
        """Takes the broker's answer, whose CorrelId is the MsgId of the command."""
        opened = OpenObject(kind=ObjectKind.Q, name=replies.name, options=OpenOption.INPUT_SHARED, queue=replies)
        request = GetRequest(
            options=GetOption.WAIT,
            match_options=MatchOption.CORREL_ID,
            msg_id=MQMI_NONE,
            correl_id=command_id,
            buffer_bytes=_ANY_LENGTH,
            wait_ms=_ANSWER_WAIT_MS,
        )

        def got(result: Got | QueueManagerError) -> None:
            self._getters.discard(getter)
            if isinstance(result, QueueManagerError):
                answered(NoAnswer(result.reason_code, operation))
            else:
                answered(_refusal(result.message, operation))

        if self._is_closed:  # while the command was committed
            return
        getter = Getter(self._engine, self._application)
        self._getters.add(getter)
        try:
            getter.get(opened, request, got)
        except QueueManagerError as error:
            got(error)


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
        return NoAnswer(ReasonCode.MQRC_UNEXPECTED_ERROR, f"{operation}: {error}")
    if response.completion is not Completion.FAILED:
        return None
    code = response.reasons[0].reason_code if response.reasons else ReasonCode.MQRC_UNEXPECTED_ERROR
    return QueueManagerError(_AT_THE_MQI.get(code, code), f"{operation}: the broker refuses it")
