"""The events that `server.ServerConnection.receive` returns, in the order of arrival.

Conversations have the client's numbers, 1, 3, 5, ...; a socket without numbers has conversation 1 alone. A heartbeat's
answer is made already, and must only be sent.
"""

from dataclasses import dataclass, field
from typing import Any

from mq_adapters.client_channel.asynchronous import RequestMsgs
from mq_adapters.client_channel.errors import ChannelProtocolError
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import InitialData
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.status import ALL_IS_WELL, Notification, StatusData
from mq_adapters.client_channel.verbs import ApiHeader
from mq_adapters.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class InitialDataOffered:
    """The first event: call `accept` with the answer (`initial_data.negotiate` makes it), or `refuse`."""

    offer: InitialData


@dataclass(frozen=True, slots=True)
class UserAsserted:
    """The client's operating system says that this is its user, which proves nothing. No answer is due."""

    conversation: int
    user: UserIdData


@dataclass(frozen=True, slots=True)
class AuthenticationAsked:
    """A user and a password: check them, then call `answer_authentication`, whatever the verdict.

    No answer refuses them. The reply to MQCONN does, with 2035.
    """

    conversation: int
    credentials: ConAuthInfo
    #: The code page of user and password.
    ccsid: int


@dataclass(frozen=True, slots=True)
class ConversationAsked:
    """The client wants one more conversation on this socket: call `open_conversation` or `refuse_conversation`."""

    conversation: int


@dataclass(frozen=True, slots=True)
class ConversationEnded:
    """The client has ended a conversation: back out its unit of work, and drop its handles."""

    conversation: int


@dataclass(frozen=True, slots=True)
class HeartbeatAsked:
    """Send the answer at once, even while a call waits."""

    answer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReceived:
    """A call: carry it out, then call `reply` or `fail` with this event.

    `parameters` is what `verbs.VERBS` says of the verb. A verb that it does not have has `Unknown` parameters. XA calls
    have their return value, flags and resource manager where others have completion code, reason code and handle.
    """

    conversation: int
    request: int
    verb: SegmentType
    header: ApiHeader
    byte_order: ByteOrder
    parameters: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTooLong:
    """A call of more bytes than its connection may have, or than there is room for. Nothing of its data was kept.

    Call `fail` with `call` and `reason_code`. The `parameters` of `call` are those of the reply.
    """

    call: CallReceived
    call_bytes: int
    reason_code: ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAsked:
    """A listener has room for messages: `asynchronous.Consumer` counts it, `deliver` sends one. No answer is due."""

    conversation: int
    request: int
    asked: RequestMsgs


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A notification, such as that delivery begins or ends. Call `answer_notification` if an answer is wanted.

    After the answer to a stop nothing may be delivered until the next start.
    """

    conversation: int
    request: int
    notification: Notification
    is_answer_wanted: bool
    byte_order: ByteOrder


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The client ends the connection, with every conversation. It is the last event, and no answer is due: close.

    `status` has a code where the client ends because of an error.
    """

    status: StatusData = ALL_IS_WELL


@dataclass(frozen=True, slots=True)
class Violated:
    """The client broke the protocol. It is the last event: send `answer`, which may be empty, and close."""

    error: ChannelProtocolError
    answer: bytes


Event = (
    InitialDataOffered
    | UserAsserted
    | AuthenticationAsked
    | ConversationAsked
    | ConversationEnded
    | HeartbeatAsked
    | CallReceived
    | CallTooLong
    | MessagesAsked
    | Notified
    | Goodbye
    | Violated
)
