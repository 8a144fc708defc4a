"""The broker's answers: whether a command wants one, its reply queue, and its contents.

MQMD of an answer: MsgType REPLY, Report 0; Persistence, Priority, Expiry and identity of the command; CorrelId is the
command's MsgId unless MQRO_PASS_CORREL_ID says otherwise. Character set and Encoding are those of the command.
Source: IBM MQ, "Broker Response message", "Message descriptor for broker responses".
"""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Final

from mappings.commands.response import Completion, Response, ResponseReason, write_response
from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_REVERSED, UTF_8
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason
from mappings.table import Dialect
from mq_adapters.broker.application_commands import ApplicationCommands
from mq_adapters.broker.dead_letters import BrokerDeadLetters, refuse_again
from mq_adapters.broker.received import UnreadableCommand
from mq_adapters.command_header import FORMAT_OF_DIALECT, CommandHeader, WrittenResponse
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import (
    MQAT_BROKER,
    MQEI_UNLIMITED,
    MQMI_NONE,
    MQMT_REPLY,
    MQMT_REQUEST,
    MQRO_NAN,
    MQRO_PAN,
    MQRO_PASS_CORREL_ID,
    MQRO_PASS_MSG_ID,
    KnownHeader,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError

MQRC_MISSING_REPLY_TO_Q: Final = 2027
MQRC_UNKNOWN_REMOTE_Q_MGR: Final = 2087

#: MQMD.PutApplName has 28 characters.
PUT_APPL_NAME_CHARACTERS: Final = 28
#: Characters of a wrong value that an answer repeats: the length of the longest valid value, a topic
#: (MQ_TOPIC_STR_LENGTH).
_OFFENDING_CHARACTERS: Final = 10_240
#: One unit of MQMD.Expiry, a tenth of a second, in microseconds.
_EXPIRY_UNIT_US: Final = 100_000

#: The most answers to keep for commands that were carried out, by verb and description of their bytes.
_KEPT_SUCCESSES: Final = 256

_WANTED_REPORT: Final = {
    Completion.OK: MQRO_PAN,
    Completion.WARNING: MQRO_PAN | MQRO_NAN,
    Completion.FAILED: MQRO_NAN,
}

#: The field of an answer for the parameter of a MappingError, by reason code.
_FIELD_OF_REASON: Final[dict[int, str]] = {
    Reason.MQRC_RFH_PARM_ERROR: "ParmId",
    Reason.MQRC_RFH_DUPLICATE_PARM: "ParmId",
    Reason.MQRC_RFH_PARM_MISSING: "ParmId",
    Reason.MQRCCF_STREAM_ERROR: "StreamName",
    Reason.MQRCCF_TOPIC_ERROR: "Topic",
    Reason.MQRCCF_Q_MGR_NAME_ERROR: "QMgrName",
    Reason.MQRCCF_Q_NAME_ERROR: "QName",
    Reason.MQRCCF_REG_OPTIONS_ERROR: "RegOpt",
    Reason.MQRCCF_PUB_OPTIONS_ERROR: "PubOpt",
    Reason.MQRCCF_DEL_OPTIONS_ERROR: "DelOpt",
    Reason.MQRCCF_FILTER_ERROR: "Filter",
    Reason.MQRCCF_SUB_NAME_ERROR: "SubName",
    Reason.MQRCCF_SUB_IDENTITY_ERROR: "SubIdentity",
}
#: The reason codes of MQGET for an unreadable header, and the broker's answer to each.
_BROKER_REASONS: Final[dict[int, int]] = {
    Reason.MQRC_SOURCE_CCSID_ERROR: Reason.MQRCCF_CCSID_ERROR,
    Reason.MQRC_SOURCE_INTEGER_ENC_ERROR: Reason.MQRCCF_ENCODING_ERROR,
}

About = CommandHeader | UnreadableCommand


class CommandRefusal(Exception):
    """The broker refuses a command. This is the fault of the application that sent it.

    `fields` identify the cause under psc names (Topic, QName ...), as an answer gives them.
    """

    def __init__(self, reason_code: int, *fields: tuple[str, str]) -> None:
        super().__init__(int(reason_code), fields)
        self.reason = ResponseReason(reason_code=int(reason_code), fields=fields)


def refusal_of(unreadable: UnreadableCommand) -> CommandRefusal:
    """The refusal of a command that cannot be read.

    A wrong command is named by MQPSErrorPos, and by ParmId in MQRFH2, which has no positions.
    """
    error = unreadable.error
    fields: list[tuple[str, str]] = []
    if error.reason_code == Reason.MQRC_RFH_COMMAND_ERROR and unreadable.dialect is Dialect.MQRFH2:
        fields.append(("ParmId", "Command"))
    name = _FIELD_OF_REASON.get(error.reason_code)
    if name is not None and error.parameter is not None:
        fields.append((name, error.parameter[:_OFFENDING_CHARACTERS]))
    if error.error_position is not None:
        fields.append(("ErrorPos", str(error.error_position)))
    return CommandRefusal(_BROKER_REASONS.get(error.reason_code, error.reason_code), *fields)


def is_wanted(descriptor: MessageDescriptor, completion: Completion) -> bool:
    """Whether a message wants an answer. A REQUEST always does; for other messages the Report field decides."""
    return descriptor.msg_type == MQMT_REQUEST or bool(descriptor.report & _WANTED_REPORT[completion])


def remaining_expiry(message: Message, now_us: int) -> int:
    """MQMD.Expiry of a message made from another: the other's Expiry less the time since its put, at least 1."""
    if not message.expires_us:
        return MQEI_UNLIMITED
    return max(1, -((now_us - message.expires_us) // _EXPIRY_UNIT_US))


class Responder:
    """Answers commands, in the unit of work that carries them out."""

    def __init__(self, engine: Engine, listener: DeliveryListener, dead_letters: BrokerDeadLetters) -> None:
        self._engine = engine
        self._listener = listener
        self._dead_letters = dead_letters
        #: Told of each command of an application that is carried out.
        self.applications = ApplicationCommands(listener)

    def obstacle(self, descriptor: MessageDescriptor) -> int:
        """0 if an answer can be put on the reply queue, else the reason code. It tries this in a unit of its own."""
        try:
            trial = Message(MessageDescriptor(persistence=descriptor.persistence), b"")
            self._engine.put(self._engine.begin(), self._reply_queue(descriptor), trial)
        except QueueManagerError as error:
            return error.reason_code
        return 0

    def accept(self, unit: UnitOfWork, message: Message, about: CommandHeader, fields: NameValues = ()) -> None:
        """Answers that the command was carried out."""
        self._answer(unit, message, about, Response(completion=Completion.OK, verb=about.verb, fields=fields))

    def warn(
        self,
        unit: UnitOfWork,
        message: Message,
        about: CommandHeader,
        reasons: tuple[ResponseReason, ...],
        fields: NameValues = (),
    ) -> None:
        """Answers that the command was carried out in part, or that a part of it had been done before."""
        response = Response(completion=Completion.WARNING, reasons=reasons, verb=about.verb, fields=fields)
        self._answer(unit, message, about, response)

    def refuse(
        self, unit: UnitOfWork, message: Message, about: About, refusal: CommandRefusal, queue_name: str
    ) -> None:
        """Answers that the command was refused. The listener is told even if no answer is wanted.

        A bad command that wants no answer ends here. A message without a header goes to the dead-letter queue.
        Raises QueueManagerError for a message that was a dead letter before.
        """
        refuse_again(unit, message, refusal.reason.reason_code)
        self._listener.refused(unit, message, about.verb, refusal.reason.reason_code)
        self.applications.tell(unit, message, about, queue_name, (refusal.reason,), is_refused=True)
        response = Response(completion=Completion.FAILED, reasons=(refusal.reason,), verb=about.verb)
        if is_wanted(message.descriptor, Completion.FAILED):
            self._answer(unit, message, about, response)
        elif refusal.reason.reason_code == Reason.MQRC_RFH_ERROR:
            self._dead_letters.put_or_discard(unit, message, queue_name, Reason.MQRC_RFH_ERROR)

    def _answer(self, unit: UnitOfWork, message: Message, about: About, response: Response) -> None:
        if not is_wanted(message.descriptor, response.completion):
            return
        if response.completion is Completion.FAILED:
            unit.answered[message.msg_id] = message
        answer = self._message(message, about, response)
        try:
            queue = self._reply_queue(message.descriptor)
            self._engine.put(unit, queue, answer)
        except QueueManagerError as error:
            self._dead_letters.put(unit, answer, message.descriptor.reply_to_q, error.reason_code)
        else:
            if not message.origin:  # it answers an application
                self._engine.reporter.on_own_put(unit, queue, answer)

    def _reply_queue(self, descriptor: MessageDescriptor) -> Queue:
        name, queue_manager_name = descriptor.reply_to_q.rstrip(), descriptor.reply_to_q_mgr.rstrip()
        if not name:
            raise QueueManagerError(MQRC_MISSING_REPLY_TO_Q, "answer a command")
        if queue_manager_name not in ("", self._engine.name):
            raise QueueManagerError(MQRC_UNKNOWN_REMOTE_Q_MGR, f"answer a command at {queue_manager_name!r}")
        return self._engine.queue(name)

    def _message(self, message: Message, about: About, response: Response) -> Message:
        """The answer to a message. The values of a plain success travel with the answer."""
        asked = message.descriptor
        header = _written(asked, about, response)
        descriptor = MessageDescriptor(
            msg_type=MQMT_REPLY,
            expiry=remaining_expiry(message, self._engine.now_us()),
            encoding=header.encoding,
            coded_char_set_id=header.coded_char_set_id,
            format=header.format,
            priority=asked.priority,
            persistence=asked.persistence,
            msg_id=message.msg_id if asked.report & MQRO_PASS_MSG_ID else MQMI_NONE,
            correl_id=asked.correl_id if asked.report & MQRO_PASS_CORREL_ID else message.msg_id,
            user_identifier=asked.user_identifier,
            accounting_token=asked.accounting_token,
            appl_identity_data=asked.appl_identity_data,
            put_appl_type=MQAT_BROKER,
            put_appl_name=self._engine.name[:PUT_APPL_NAME_CHARACTERS],
        )
        answer = Message(descriptor, header.data, message.origin)
        answer.written = header if isinstance(header, WrittenResponse) else None
        return answer


def _written(asked: MessageDescriptor, about: About, response: Response) -> KnownHeader:
    """The header of an answer in the command's character set and encoding. If that fails: in UTF-8, without details."""
    coded_char_set_id, encoding = asked.coded_char_set_id, asked.encoding
    if response.completion is Completion.OK and not response.fields:
        with suppress(MappingError):
            return _plain_success(about.dialect, about.verb, coded_char_set_id, encoding)
    try:
        data = write_response(
            response,
            about.dialect,
            coded_char_set_id=coded_char_set_id,
            encoding=encoding,
            failing_command=b"" if response.completion is Completion.OK else about.echo,
        )
    except MappingError:
        coded_char_set_id, encoding = UTF_8, ENCODING_REVERSED
        data = write_response(
            _without_details(response), about.dialect, coded_char_set_id=UTF_8, encoding=ENCODING_REVERSED
        )
    format = FORMAT_OF_DIALECT[about.dialect]
    return KnownHeader(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)


@lru_cache(maxsize=_KEPT_SUCCESSES)
def _plain_success(dialect: Dialect, verb: str, coded_char_set_id: int, encoding: int) -> WrittenResponse:
    """The answer, without details, to a command that was carried out. It is the same for every such command."""
    response = Response(completion=Completion.OK, verb=verb)
    data = write_response(response, dialect, coded_char_set_id=coded_char_set_id, encoding=encoding)
    return WrittenResponse(
        # Folder pscr names the command only in front of its fields.
        response if dialect is Dialect.MQRFH else replace(response, verb=None),
        data,
        format=FORMAT_OF_DIALECT[dialect],
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
    )


def _without_details(response: Response) -> Response:
    """An answer with numbers only. The format or code page of the command cannot express the other values."""
    reasons = tuple(ResponseReason(reason_code=reason.reason_code) for reason in response.reasons)
    return Response(completion=response.completion, reasons=reasons, verb=response.verb)
