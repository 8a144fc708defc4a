"""Who the client is: USERID_DATA, which proves nothing, and CONAUTH_INFO with a user and a password.

    USERID_DATA     0  4  `UID `                           CONAUTH_INFO    0  4  `CAUT`
                    4 12  user                                             4  4  type: 1 is user and password
                   16 12  password                                         8  4  longest user
                   28 64  long user                                       12  4  longest password
                   92 40  security identifier                             16  4  user length
                                                                          20  4  password length
    The first 28 bytes are a USERID_DATA of older clients.                24  8  two integers
                                                                          32     user, password, each of its longest
Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from mq_adapters.client_channel.fields import BodyReader, Record, integer, invalid, octets, reserved, text
from mq_adapters.client_channel.segments import ByteOrder

MQCSP_AUTH_USER_ID_AND_PWD: Final = 1
_SHORT_BYTES: Final = 28
#: The most bytes of a user or a password: MQ_CLIENT_USER_ID_LENGTH, and more than MQ_CSP_PASSWORD_LENGTH.
_MOST_BYTES: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class UserIdData(Record):
    """USERID_DATA: the user of the client's operating system, in capitals and cut to 12 bytes, and as it is.

    `password` is blank but for clients that are set to send it here (compatibility mode): then it is cut to 12 bytes.
    """

    STRUC_ID: ClassVar[bytes] = b"UID "

    user: str = text(12)
    password: bytes = octets(12, b" " * 12, secret=True)
    long_user: str = text(64)
    security_identifier: bytes = octets(40)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the long form, or the short one as a long one with zeros behind it."""
        if body.left == _SHORT_BYTES:
            missing = 132 - _SHORT_BYTES
            body = BodyReader(body.rest() + bytes(missing), body.byte_order)
        return super(UserIdData, cls).read(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning(Record):
    STRUC_ID: ClassVar[bytes] = b"CAUT"

    authentication_type: int = integer(MQCSP_AUTH_USER_ID_AND_PWD)
    longest_user: int = integer()
    longest_password: int = integer()
    user_length: int = integer()
    password_length: int = integer()
    unknown: bytes = reserved(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConAuthInfo:
    """CONAUTH_INFO. User and password are bytes in the code page of the segment, and the password is never shown.

    The password is in clear only if `InitialData` has let it come so. Otherwise it is not readable.
    """

    user: bytes
    password: bytes = field(repr=False)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads the first `user_length` and `password_length` bytes of their places. Raises ChannelProtocolError."""
        beginning = _Beginning.read(body)
        if beginning.authentication_type != MQCSP_AUTH_USER_ID_AND_PWD:
            invalid(f"CONAUTH_INFO has the authentication type {beginning.authentication_type}")
        user = _part(body, "user", beginning.longest_user, beginning.user_length)
        return cls(user=user, password=_part(body, "password", beginning.longest_password, beginning.password_length))

    def write(self, byte_order: ByteOrder) -> bytes:
        lengths = len(self.user), len(self.password)
        beginning = _Beginning(
            longest_user=lengths[0], longest_password=lengths[1], user_length=lengths[0], password_length=lengths[1]
        )
        return beginning.write(byte_order) + self.user + self.password


def _part(body: BodyReader, what: str, longest: int, length: int) -> bytes:
    if not 0 <= length <= min(longest, _MOST_BYTES):
        invalid(f"CONAUTH_INFO has a {what} of {length} bytes in a field of {longest}")
    return body.take(longest, f"CONAUTH_INFO's {what}")[:length]
