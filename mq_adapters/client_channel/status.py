"""Short segments about a connection: STATUS_DATA, SOCKET_ACTION and NOTIFICATION. HEARTBEAT has no body.

    STATUS_DATA        0  4  length of the body, 8 or 12      or an empty body: all is well, or goodbye
                       4  4  code (`StatusCode`), 0 is well
                       8  4  value, if the length is 12
    SOCKET_ACTION      0  4  conversation, 4 request, 8 type, 12 and 16 two parameters
    NOTIFICATION       0  4  version, 4 object handle, 8 code, 12 value

Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, Self

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader, Record, integer, invalid, unsigned, write_integers
from mq_adapters.client_channel.segments import ByteOrder

_CODE_BYTES: Final = 8
_CODE_AND_VALUE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class StatusData:
    """STATUS_DATA. `code` is a StatusCode, or None where the body is empty; `value` may say more."""

    code: int | None = None
    value: int | None = None

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads an empty body, a code, or a code and a value. ChannelProtocolError for another length."""
        if not body.left:
            return cls()
        length = body.integer("STATUS_DATA")
        if length not in (_CODE_BYTES, _CODE_AND_VALUE_BYTES):
            raise ChannelProtocolError(StatusCode.PROTOCOL_LENGTH_ERROR, f"STATUS_DATA has the length {length}")
        return cls(*body.integers(length // 4 - 1, "STATUS_DATA"))

    def write(self, byte_order: ByteOrder) -> bytes:
        if self.code is None:
            return b""
        if self.value is None:
            return write_integers(byte_order, _CODE_BYTES, self.code)
        return write_integers(byte_order, _CODE_AND_VALUE_BYTES, self.code, self.value)


ALL_IS_WELL: Final = StatusData()


class SocketActionType(IntEnum):
    """What a client asks of the socket. What 3 and 6 mean is not known."""

    START_CONVERSATION = 1
    END_CONVERSATION = 2
    END_SOCKET = 4
    RESET_KEYS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketAction(Record):
    """SOCKET_ACTION. `type` is a SocketActionType; what the parameters mean is not known."""

    conversation: int = unsigned()
    request: int = unsigned()
    type: int = integer()
    parameter_1: int = integer()
    parameter_2: int = integer()


class NotificationCode(IntEnum):
    """Code of a NOTIFICATION. CONN_STATE, Q_STATE and TXN_REVOKE are answered by the code behind them."""

    GET_INHIBITED = 1
    GET_ALLOWED = 2
    CONN_STATE = 3
    CONN_STATE_REPLY = 4
    Q_STATE = 5
    Q_STATE_REPLY = 6
    QM_QUIESCING = 7
    TXN_ALLOWED = 8
    TXN_REVOKE = 9
    TXN_REVOKE_REPLY = 10
    CHECK_MSG = 11
    BROWSE_FIRST = 12
    MESSAGE_TOO_LARGE = 13
    STREAMING_FAILURE = 14
    CLIENT_ASYNC_EMPTY = 15
    STREAMING_TXN_PAUSED = 16
    RECONNECTION_COMPLETE = 17


_HIGHEST_CODE: Final = 2**31 - 2
#: The values of CONN_STATE with which a client starts and stops the delivery to its listeners.
DELIVERY_STOPPED: Final = 0
DELIVERY_STARTED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(Record):
    """NOTIFICATION. `object_handle` is -1 where it concerns the conversation."""

    version: int = integer(1)
    object_handle: int = integer(-1)
    code: int = integer()
    value: int = integer()

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads a notification. ChannelProtocolError for the one code that has none behind it."""
        known = super(Notification, cls).read(body)
        if known.code > _HIGHEST_CODE:
            invalid(f"NOTIFICATION has the code {known.code}")
        return known

    @property
    def answer(self) -> "Notification":
        """What is sent back where the client asks for an answer: the same with the next code."""
        return replace(self, code=self.code + 1)
