"""One conversation of an MQ client: who it is, then its calls, one after another.

MQCONN makes it a program: from then on it has a connection to the queue manager (mq_adapters/embedded/mqi), which ends
with the conversation. A client sends its next call when the last one is answered. One that does not wait is answered in
its order all the same, up to a number.
"""

import secrets
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from gateway.listener.mq.calls import Answer, Calls, refused
from gateway.listener.mq.consumers import Consumers
from gateway.listener.mq.identity import Credentials, Done, Identified, printable
from mq_adapters.client_channel.asynchronous import AsyncMessage
from mq_adapters.client_channel.events import CallReceived, MessagesAsked
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.status import Notification
from mq_adapters.client_channel.verbs import Mqconn
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection
from mq_adapters.embedded.mqsc.display import Shown
from mq_adapters.embedded.socket.pace import ApplicationAccount
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.mqsc import quoted
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: Calls of one conversation that wait for their turn. A client waits for each answer, so that it never has many.
MAXIMUM_WAITING_CALLS: Final = 16

#: A connection tag that no other program has: 24 bytes.
_TAG_PREFIX: Final = b"RFHB"
_TAG_RANDOM_BYTES: Final = 20
#: Numbers of programs.
_PROGRAMS: Final = count(1)


class Line(Protocol):
    """The link of a conversation, as it uses it."""

    @property
    def is_resting(self) -> bool:
        """Whether no further call is carried out for now."""
        ...

    @property
    def stream(self) -> str:
        """The queue on which publications are put."""
        ...

    @property
    def has_time(self) -> bool:
        """Whether the turn of this connection has time left."""
        ...

    def go_on_later(self, conversation: "Conversation") -> None:
        """Calls `go_on` of the conversation when it is the turn of this connection."""
        ...

    def program_changed(self, conversation: "Conversation", event: str, reason: str = "") -> None:
        """A program is connected, or is gone. From then on its answers may be long."""
        ...

    def identify(self, credentials: Credentials | None, is_wanted: Callable[[], bool], done: Done) -> None:
        """Calls `done` once with who these credentials are, or with 2035, unless `is_wanted` is false by then."""
        ...

    def charge(self, account: ApplicationAccount, unit: UnitOfWork) -> None:
        """A unit of work of this application was submitted."""
        ...

    def answer(self, call: CallReceived, answer: Answer) -> None:
        """Sends the answer to a call."""
        ...

    def refused(self, conversation: "Conversation", error: QueueManagerError) -> None:
        """A call was refused; its answer says so."""
        ...

    def deliver(self, conversation: int, request: int, message: AsyncMessage) -> None:
        """Sends a message to a listener, with the request number that it answers."""
        ...

    def fail(self, why: str) -> None:
        """Ends the whole connection, because the store has failed or the client breaks the protocol."""
        ...


class Conversation:
    """One conversation. Not thread-safe: it lives in the engine's thread."""

    def __init__(self, engine: Engine, line: Line, number: int) -> None:
        self._engine = engine
        self._line = line
        self._number = number
        self._credentials: Credentials | None = None
        self._connection: Connection | None = None
        self._calls: Calls | None = None
        self._consumers: Consumers | None = None
        self._waiting: deque[CallReceived] = deque()
        #: Work that its calls go on with in later turns, as the scan of a long queue.
        self._begun: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self._is_ended = False
        #: Calls after this are refused with that reason; MQRC_NONE: they are carried out.
        self._closing_reason = ReasonCode.MQRC_NONE
        #: A number that no other program of this process has, for DISPLAY CONN and the trail.
        self.program_number = 0
        self.application_name = ""
        #: Who the program is; None before MQCONN.
        self.who: Identified | None = None

    def shown(self) -> Shown:
        """DISPLAY CONN of the program, but for its channel and its address. There must be one."""
        assert self._connection is not None, "a program is connected"
        return {
            "CONN": f"{self.program_number:016X}",
            "TYPE": "CONN",
            "APPLTAG": quoted(self.application_name),
            "USERID": quoted(self.user),
            "UOWSTATE": "ACTIVE" if self._connection.has_unit else "NONE",
            "OBJECTS": str(self._connection.handle_count),
        }

    @property
    def user(self) -> str:
        """The application that the program is, which is the user of its messages; "" before MQCONN."""
        return "" if self.who is None else self.who.application.user

    @property
    def is_connected(self) -> bool:
        """Whether MQCONN was answered well, and MQDISC has not come."""
        return self._connection is not None

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._is_busy

    def authenticate(self, credentials: Credentials) -> None:
        """The client sends a name and a password, before its MQCONN."""
        self._credentials = credentials

    def call(self, call: CallReceived) -> None:
        """A call has come."""
        if len(self._waiting) >= MAXIMUM_WAITING_CALLS:
            self._line.fail("it does not wait for its answers")
            return
        self._waiting.append(call)
        self.go_on()

    def go_on(self) -> None:
        """Carries out the next call, if it may. What was begun goes on first."""
        if self._begun and not self._line.is_resting:
            self._begun.popleft()()
            if self._begun:
                self._line.go_on_later(self)
        if self._consumers is not None and not self._is_ended:
            self._give_to_consumers(self._consumers.go_on)
        if not (self._waiting and not self._is_busy and not self._is_ended and not self._line.is_resting):
            return
        call = self._waiting.popleft()
        self._is_busy = True
        try:
            self._carry_out(call)
        except QueueManagerError as error:
            self._line.refused(self, error)
            self._answer(call, refused(call.parameters, error.reason_code, call.header.object_handle))
        except StoreError as error:
            self._answer(call, refused(call.parameters, ReasonCode.MQRC_Q_MGR_STOPPING, call.header.object_handle))
            self._line.fail(str(error))

    def close_down(self, reason_code: ReasonCode) -> None:
        """Ends a get that waits, and refuses all calls that come later, with that reason."""
        self._closing_reason = reason_code
        if self._consumers is not None:
            self._consumers.end_all()
        if self._connection is not None:
            self._connection.end_wait(reason_code)

    def end(self, event: str = "disconnected", reason: str = "") -> None:
        """The conversation is over: backs out, and closes what it has open. `event` is for the trail."""
        self._is_ended = True
        self._waiting.clear()
        self._begun.clear()
        connection = self._connection
        self._forget_connection()
        if connection is not None:
            connection.end()
            self._line.program_changed(self, event, reason)

    def messages_asked(self, event: MessagesAsked) -> None:
        """A listener of the program has room for messages. There is no answer that could refuse it."""
        if self._consumers is None:
            return
        consumers = self._consumers
        self._give_to_consumers(lambda: consumers.messages_asked(event))

    def notified(self, notification: Notification) -> None:
        """The program begins or ends the delivery to its listeners."""
        if self._consumers is not None and not self._closing_reason:
            consumers = self._consumers
            self._give_to_consumers(lambda: consumers.notified(notification))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _later(self, work: Callable[[], None]) -> None:
        if not self._is_ended:
            self._begun.append(work)
            self._line.go_on_later(self)

    def _may_send(self) -> bool:
        """Whether a listener may get one more message now. If only time is missing, they go on in a later turn."""
        if self._line.is_resting:
            return False
        if not self._line.has_time:
            self._line.go_on_later(self)
            return False
        return True

    def _give_to_consumers(self, give: Callable[[], None]) -> None:
        """Ends the connection where its listeners cannot go on. There is no answer that could say so."""
        try:
            give()
        except (QueueManagerError, StoreError) as error:
            self._line.fail(str(error))

    def _carry_out(self, call: CallReceived) -> None:
        if self._closing_reason:
            raise QueueManagerError(self._closing_reason, "call")
        if call.verb == SegmentType.MQCONN:
            self._connect(call)
            return
        if self._calls is None:
            raise QueueManagerError(ReasonCode.MQRC_HCONN_ERROR, "call before MQCONN")
        if call.verb == SegmentType.MQCLOSE and self._consumers is not None:
            self._consumers.end(call.header.object_handle)
        self._calls.carry_out(call.verb, call.header.object_handle, call.parameters, self._answering(call))

    def _answering(self, call: CallReceived) -> Callable[[Answer], None]:
        def answered(answer: Answer) -> None:
            if call.verb == SegmentType.MQDISC and self._connection is not None:
                self._forget_connection()
                self._line.program_changed(self, "disconnected")
            self._answer(call, answer)

        return answered

    def _forget_connection(self) -> None:
        if self._consumers is not None:
            self._consumers.end_all()
        self._connection = self._calls = self._consumers = None

    def _answer(self, call: CallReceived, answer: Answer) -> None:
        self._is_busy = False
        if self._is_ended:
            return
        self._line.answer(call, answer)
        if self._waiting:
            self._line.go_on_later(self)

    def _connect(self, call: CallReceived) -> None:
        asked = call.parameters
        assert isinstance(asked, Mqconn)
        if self._connection is not None:
            raise QueueManagerError(ReasonCode.MQRC_ALREADY_CONNECTED, "connect")
        if asked.q_mgr_name not in ("", self._engine.name) and not asked.q_mgr_name.startswith("*"):
            raise QueueManagerError(ReasonCode.MQRC_Q_MGR_NAME_ERROR, f"connect to {asked.q_mgr_name!r}")
        shown, self._credentials = self._credentials, None

        def identified(result: Identified | QueueManagerError) -> None:
            if self._is_ended:
                return
            if self._closing_reason and isinstance(result, Identified):
                result = QueueManagerError(self._closing_reason, "connect")
            if isinstance(result, QueueManagerError):
                self._answer(call, refused(asked, result.reason_code, call.header.object_handle))
                return
            self._begin(result, asked)
            self._answer(call, Answer(parameters=asked.tagged(_TAG_PREFIX + secrets.token_bytes(_TAG_RANDOM_BYTES))))

        self._line.identify(shown, lambda: not self._is_ended, identified)

    def _begin(self, who: Identified, asked: Mqconn) -> None:
        """The program is connected."""
        admitted, name = who.application, printable(asked.appl_name)
        self.program_number = next(_PROGRAMS)
        application = Application(
            self._engine,
            name,
            user=admitted.user,
            operator=admitted.operator,
            rights=admitted.rights,
            program=self.program_number,
        )
        application.on_submitted = lambda unit: self._line.charge(admitted.account, unit)
        self._connection = Connection(
            self._engine,
            application,
            application_type=asked.appl_type,
            topics=admitted.topics,
            stream=self._line.stream,
            later=self._later,
        )
        self._calls = Calls(self._engine, self._connection, lambda error: self._line.refused(self, error))
        self._consumers = Consumers(
            self._engine,
            self._connection,
            may_send=self._may_send,
            wake=lambda: self._line.go_on_later(self),
            deliver=lambda request, message: self._line.deliver(self._number, request, message),
            failed=lambda error: self._line.fail(str(error)),
        )
        self.application_name, self.who = name, who
        self._line.program_changed(self, "connected")
