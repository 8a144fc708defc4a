"""MQGET: matching, browsing, waiting, truncation, and units of work."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.lanes import SEQUENCE_MASK
from mq_adapters.embedded.mqi.data_conversion import DataFormat, converted
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.mqi.options import (
    BROWSING,
    INPUT,
    GetOption,
    MatchOption,
    OpenOption,
    check_options,
)
from mq_adapters.embedded.mqi.properties import leaves_out_properties, without_properties
from mq_adapters.embedded.mqi.publications import delivered
from mq_adapters.embedded.mqi.scan import Progress, Scan, Wanted
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.socket.waiting_get import WaitingGet
from mq_adapters.message import MQCI_NONE, MQMI_NONE, Message
from mq_adapters.mqmd import write_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

WAIT_FOR_EVER_MS: Final = -1
_TOKEN_TAG: Final = b"RFHBRIDG"
_NUMBER_BYTES: Final = 8
NO_TOKEN: Final = bytes(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRequest:
    """The parameters of one MQGET. `wait_ms` is -1 for ever; `buffer_bytes` is the room that the program has.

    `data_format` is what MQGMO_CONVERT converts to.
    """

    options: int
    match_options: int
    msg_id: bytes
    correl_id: bytes
    buffer_bytes: int
    wait_ms: int = 0
    token: bytes = NO_TOKEN
    data_format: DataFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """A message for the program. `data` is cut to the buffer; `reason_code` is 0, or 2079 or 2080 with a cut one.

    A message that was not converted as asked has another warning. `data_format` is that of converted data.
    """

    message: Message
    data: bytes
    queue_name: str
    reason_code: ReasonCode = ReasonCode.MQRC_NONE
    data_format: DataFormat | None = None

    @property
    def token(self) -> bytes:
        """MsgToken: 16 bytes by which the program can ask for this message again."""
        return _TOKEN_TAG + self.message.sequence.to_bytes(_NUMBER_BYTES, "big")


#: Takes the end of a call: what was got, or why nothing was.
Answered = Callable[[Got | QueueManagerError], None]
#: Calls what it is given later, when it is the program's turn again.
Later = Callable[[Callable[[], None]], None]


def soon(work: Callable[[], None]) -> None:
    """In the next turn of the event loop: for a program that shares its turns with nobody."""
    asyncio.get_running_loop().call_soon(work)


@dataclass(slots=True, kw_only=True)
class _Call:
    """An MQGET under way. `has_begun` tells that MQGMO_BROWSE_FIRST has set the cursor back."""

    opened: OpenObject
    request: GetRequest
    answered: Answered
    has_begun: bool = False

    @property
    def operation(self) -> str:
        return f"get from {self.opened.name}"

    @property
    def is_browse(self) -> bool:
        return bool(self.request.options & BROWSING)

    def got(self, message: Message) -> Got:
        """What the program gets of a message, as far as its buffer goes."""
        message = delivered(message)
        if leaves_out_properties(self.request.options, self.opened.property_control):
            message = without_properties(message)
        room = max(0, self.request.buffer_bytes)
        name = self.opened.local_queue(self.operation).name
        if len(message.body) <= room:
            return self._converted(message, name)
        accepts = self.request.options & GetOption.ACCEPT_TRUNCATED_MSG
        reason_code = ReasonCode.MQRC_TRUNCATED_MSG_ACCEPTED if accepts else ReasonCode.MQRC_TRUNCATED_MSG_FAILED
        return Got(message=message, data=message.body[:room], queue_name=name, reason_code=reason_code)

    def _converted(self, message: Message, name: str) -> Got:
        """MQGMO_CONVERT: text in the code page that the program asks for, or the message as it is with a warning."""
        wanted = self.request.data_format
        if not self.request.options & GetOption.CONVERT or wanted is None:
            return Got(message=message, data=message.body, queue_name=name)
        data, reason_code = converted(message, wanted)
        if len(data) > self.request.buffer_bytes:
            data, reason_code = message.body, ReasonCode.MQRC_CONVERTED_MSG_TOO_BIG
        is_other = reason_code == ReasonCode.MQRC_NONE
        return Got(
            message=message,
            data=data,
            queue_name=name,
            reason_code=reason_code,
            data_format=wanted if is_other else None,
        )


class Getter:
    """The gets of one connection, which are carried out one after another."""

    def __init__(self, engine: Engine, application: Application, later: Later = soon) -> None:
        self._engine = engine
        self._application = application
        self._later = later
        #: The get that waits for a message: how it is woken, and its call.
        self._waiting: tuple[WaitingGet, _Call] | None = None
        #: The get whose scan of the queue has not come to its end.
        self._scanning: _Call | None = None

    def get(self, opened: OpenObject, request: GetRequest, answered: Answered) -> None:
        """Calls `answered` once: now, after a commit, in a later turn, or when a message comes or the wait ends.

        Raises QueueManagerError for a call that is wrong, and 2033 where nothing is there and it does not wait.
        """
        call = _Call(opened=opened, request=request, answered=answered)
        _check(call)
        if self._waiting is not None or self._scanning is not None:
            raise QueueManagerError(ReasonCode.MQRC_CALL_IN_PROGRESS, call.operation)
        progress = self._attempt(call)
        if progress is Progress.UNFINISHED:
            self._scan_on(call)
        elif progress is Progress.NOTHING:
            self._wait(call)

    def end_wait(self, reason_code: ReasonCode) -> None:
        """Ends the get that waits, if one does, with that reason."""
        call = self._waiting[1] if self._waiting is not None else self._scanning
        if call is not None:
            self._answer(call, QueueManagerError(reason_code, call.operation))

    def close(self) -> None:
        """The connection is gone: nobody is answered any more."""
        self._leave_wait()

    def _attempt(self, call: _Call) -> Progress | None:
        """Answers the call if a message is there; else tells why not. The answer may follow after a commit."""
        return self._browse(call) if call.is_browse else self._take(call)

    def _answer(self, call: _Call, result: Got | QueueManagerError) -> None:
        self._leave_wait()
        call.answered(result)

    # -- scanning ------------------------------------------------------------------------------------------------------

    def _scan_on(self, call: _Call) -> None:
        self._scanning = call
        self._later(lambda: self._go_on(call))

    def _go_on(self, call: _Call) -> None:
        """The next share of a scan. Nobody is there whose call it was if that call was answered meanwhile."""
        if self._scanning is not call:
            return
        self._scanning = None
        self._end_in_answer(call, self._try_again)

    def _try_again(self, call: _Call) -> None:
        progress = self._attempt(call)
        if progress is Progress.UNFINISHED:
            self._scan_on(call)
        elif progress is None:
            self._leave_wait()
        elif self._waiting is None:
            self._wait(call)
        elif self._waiting[0].is_over:
            self._answer(call, QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, call.operation))

    def _end_in_answer(self, call: _Call, work: Callable[[_Call], None]) -> None:
        """Never raises into the engine, or into the loop."""
        try:
            work(call)
        except QueueManagerError as error:
            self._answer(call, error)
        except StoreError:
            self._answer(call, QueueManagerError(ReasonCode.MQRC_Q_MGR_STOPPING, call.operation))

    # -- taking --------------------------------------------------------------------------------------------------------

    def _take(self, call: _Call) -> Progress | None:
        """Takes a message. Nobody else has missed one that it gives back, so that nobody must be woken."""
        queue = call.opened.local_queue(call.operation)
        message = self._taken(call, queue)
        if isinstance(message, Progress):
            return message
        try:
            got = call.got(message)
            if got.reason_code != ReasonCode.MQRC_TRUNCATED_MSG_FAILED:
                write_mqmd(got.message)  # what no MQMD can say stays: behind its removal it would be lost
                self._remove(call, queue, message, got)
                return None
        except QueueManagerError:
            self._engine.give_back([(queue, message)], wake=False)
            raise
        self._engine.give_back([(queue, message)], wake=False)
        self._answer(call, got)
        return None

    def _remove(self, call: _Call, queue: Queue, message: Message, got: Got) -> None:
        application = self._application
        is_in_unit = _is_in_unit(call.request.options, message)
        if is_in_unit and not application.has_unit:
            application.begin()
        with nullcontext() if is_in_unit else application.outside_unit():
            application.remove(queue, message, lambda: self._answer(call, got))

    def _taken(self, call: _Call, queue: Queue) -> Message | Progress:
        if call.request.options & GetOption.MSG_UNDER_CURSOR:
            assert call.opened.cursor is not None, "the handle is open for browsing"
            return call.opened.cursor.take()
        wanted = msg_id, correl_id, number = _wanted(call.request)
        if number is not None:
            return self._taken_by_number(queue, number, call.opened.scan)
        if call.opened.scan is None:
            return self._application.take(queue, correl_id, msg_id) or Progress.NOTHING
        self._application.check_getting(queue)
        found = call.opened.scan.next(wanted)
        return self._application.take_number(queue, found.sequence) if isinstance(found, Message) else found

    def _taken_by_number(self, queue: Queue, number: int, scan: Scan | None) -> Message | Progress:
        try:
            message = self._application.take_number(queue, number)
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_NO_MSG_UNDER_CURSOR:
                raise
            return Progress.NOTHING
        if scan is None or scan.takes(message):
            return message
        self._engine.give_back([(queue, message)], wake=False)
        return Progress.NOTHING

    # -- browsing ------------------------------------------------------------------------------------------------------

    def _browse(self, call: _Call) -> Progress | None:
        cursor, options = call.opened.cursor, call.request.options
        assert cursor is not None, "the handle is open for browsing"
        if options & GetOption.BROWSE_MSG_UNDER_CURSOR:
            got = call.got(cursor.look())
            if options & GetOption.LOCK:
                cursor.lock()
            self._answer(call, got)
            return None
        if options & GetOption.BROWSE_FIRST and not call.has_begun:
            cursor.reset()
        call.has_begun = True
        found = cursor.next(_wanted(call.request))
        if isinstance(found, Progress):
            return found
        got = call.got(found)
        if got.reason_code != ReasonCode.MQRC_TRUNCATED_MSG_FAILED:
            cursor.move(found)
            if options & GetOption.LOCK:
                cursor.lock()
        self._answer(call, got)
        return None

    # -- waiting -------------------------------------------------------------------------------------------------------

    def _wait(self, call: _Call) -> None:
        request = call.request
        if not request.options & GetOption.WAIT or request.wait_ms == 0:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, call.operation)
        queue = call.opened.local_queue(call.operation)
        msg_id, correl_id, _number = _wanted(request)
        waiting = WaitingGet(0, queue, correl_id, msg_id, self._again)
        self._waiting = waiting, call
        if request.wait_ms != WAIT_FOR_EVER_MS:
            loop = asyncio.get_running_loop()
            waiting.timer = loop.call_later(request.wait_ms / 1000, self._wait_is_over)

    def _wait_is_over(self) -> None:
        """The get ends in 2033. A scan under way goes to its end before that, because it may find a message."""
        if self._waiting is not None:
            self._waiting[0].is_over = True
        if self._scanning is None:
            self.end_wait(ReasonCode.MQRC_NO_MSG_AVAILABLE)

    def _again(self) -> None:
        """Messages came. Another program may have taken them. Never raises into the engine."""
        if self._waiting is not None and self._scanning is None:
            self._end_in_answer(self._waiting[1], self._try_again)

    def _leave_wait(self) -> None:
        waiting, self._waiting = self._waiting, None
        self._scanning = None
        if waiting is not None:
            waiting[0].end()


def _check(call: _Call) -> None:
    """Refuses a call whose options are wrong, or whose handle is not open for it."""
    request, operation = call.request, call.operation
    check_options(GetOption, request.options, operation)
    check_options(MatchOption, request.match_options, operation)
    if request.wait_ms < WAIT_FOR_EVER_MS:
        raise QueueManagerError(ReasonCode.MQRC_WAIT_INTERVAL_ERROR, operation)
    call.opened.check_open_for(OpenOption.BROWSE if call.is_browse else INPUT, operation)
    if request.options & GetOption.MSG_UNDER_CURSOR:
        call.opened.check_open_for(OpenOption.BROWSE, operation)
    if request.options & GetOption.LOCK:
        call.opened.check_open_for(INPUT, operation)
        if not call.is_browse:
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"{operation}: only a browse locks")
    if call.opened.local_queue(operation).is_get_inhibited:
        raise QueueManagerError(ReasonCode.MQRC_GET_INHIBITED, operation)


def _wanted(request: GetRequest) -> Wanted:
    """The identifiers that must match; an identifier of zeros matches every message."""
    match = request.match_options
    msg_id = request.msg_id if match & MatchOption.MSG_ID and request.msg_id != MQMI_NONE else None
    correl_id = request.correl_id if match & MatchOption.CORREL_ID and request.correl_id != MQCI_NONE else None
    return msg_id, correl_id, _number_of(request.token) if match & MatchOption.MSG_TOKEN else None


def _number_of(token: bytes) -> int:
    """The number of the message of a token; 0, which no message has, for a token that nobody got here."""
    number = int.from_bytes(token[len(_TOKEN_TAG) :], "big")
    return number if token.startswith(_TOKEN_TAG) and number <= SEQUENCE_MASK else 0


def _is_in_unit(options: int, message: Message) -> bool:
    if options & GetOption.SYNCPOINT_IF_PERSISTENT:
        return message.is_persistent
    return bool(options & GetOption.SYNCPOINT)
