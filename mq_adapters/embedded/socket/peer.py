"""The operating system's user of an application, for MQMD.UserIdentifier if the message names none.

The kernel tells the user at the other end of a Unix socket (unix(7), SO_PEERCRED), so no application can claim another.
UserIdentifier has 12 characters. A longer name becomes UNKNOWN, as on IBM MQ, because a cut name could be another
user's. A user without a name is shown by its number. Source: IBM MQ documentation, "UserIdentifier (MQCHAR12)" and the
length of user IDs.
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
    """The whole name of this process's user."""
    return user_name(os.geteuid())


def peer_uid(connection: socket.socket) -> int:
    """The number of the user of the process at the other end of a Unix socket."""
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def user_name(uid: int) -> str:
    """A user's whole name; its number if it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache(maxsize=_KEPT_NAMES)
def user_identifier(uid: int) -> str:
    """A user as a value of MQMD.UserIdentifier."""
    name = user_name(uid)
    return name if len(name) <= _LONGEST_NAME_CHARACTERS and name.isascii() else _UNKNOWN
