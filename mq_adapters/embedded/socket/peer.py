"""The operating system's user of an application, for MQMD.UserIdentifier where the message names none.

The kernel tells it of the other end of a Unix socket (unix(7), SO_PEERCRED), so it is no claim of the application.
UserIdentifier has 12 characters. A longer name is not cut, which could make it another user's: it becomes UNKNOWN, as
on IBM MQ. A user without a name is its number.
Source: IBM MQ documentation, "UserIdentifier (MQCHAR12)" and the length of user IDs.
"""

import os
import pwd
import socket
import struct
from functools import lru_cache
from typing import Final

_LONGEST_NAME_CHARACTERS: Final = 12
_UNKNOWN: Final = "UNKNOWN"
#: struct ucred: pid, uid, gid.
_CREDENTIALS: Final = struct.Struct("iII")
_KEPT_NAMES: Final = 256


def own_user() -> str:
    """The user of this process."""
    return user_identifier(os.geteuid())


def own_name() -> str:
    """The same with its whole name."""
    return user_name(os.geteuid())


def peer_user(connection: socket.socket) -> str:
    """The user of the process at the other end of a Unix socket."""
    return user_identifier(peer_uid(connection))


def peer_name(connection: socket.socket) -> str:
    """The same with its whole name."""
    return user_name(peer_uid(connection))


def peer_uid(connection: socket.socket) -> int:
    """That user's number."""
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def user_name(uid: int) -> str:
    """A user's whole name; the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache(maxsize=_KEPT_NAMES)
def user_identifier(uid: int) -> str:
    """A user as MQMD.UserIdentifier says it."""
    name = user_name(uid)
    return name if len(name) <= _LONGEST_NAME_CHARACTERS and name.isascii() else _UNKNOWN
