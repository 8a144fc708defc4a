"""Who an MQ client is: its name and password decide, or the channel's MCAUSER; never the user that it asserts.

A program is an [[application]] of the configuration. Its password is the application's token. Without a password it is
the application that MCAUSER of its channel names, and nobody without MCAUSER.
"""

import ipaddress
from dataclasses import dataclass, field
from typing import Self

from mq_adapters.attributes import Definition
from mq_adapters.client_channel.events import AuthenticationAsked
from mq_adapters.embedded.socket.applications import AdmittedApplication, Applications
from mq_adapters.message import UTF_8
from mq_adapters.reasons import QueueManagerError, ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The name and the password that a client sent. `is_protected` tells that nobody on the way could read them."""

    user: str
    password: str = field(repr=False)
    is_protected: bool

    @classmethod
    def of(cls, event: AuthenticationAsked, *, is_protected: bool) -> Self:
        """What a client has sent, in UTF-8 if it says so, else in ISO 8859-1."""
        said, encoding = event.credentials, "utf-8" if event.ccsid == UTF_8 else "iso-8859-1"
        user, password = (each.decode(encoding, errors="replace") for each in (said.user, said.password))
        return cls(user=user, password=password, is_protected=is_protected)


def printable(name: str) -> str:
    """A program's own name without what would move an operator's terminal."""
    return "".join(each if each.isprintable() else "?" for each in name)


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def identified(
    applications: Applications,
    channel: Definition,
    credentials: Credentials | None,
    *,
    peer: str,
    plain_passwords: bool,
) -> AdmittedApplication:
    """The application that a client is. Raises QueueManagerError 2035."""
    if credentials is None:
        return _unnamed(applications, channel, peer)
    if not (credentials.is_protected or plain_passwords):
        why = "connect with a password in clear from another machine"
        hint = "use TLS, or allow it with mq_listener.plain_passwords"
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, why, hint)
    return applications.with_password(credentials.user, credentials.password, peer)


def _unnamed(applications: Applications, channel: Definition, peer: str) -> AdmittedApplication:
    user = channel.text("MCAUSER")
    if not user:
        why, hint = f"connect to channel {channel.name} without a password", "send one, or set MCAUSER of the channel"
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, why, hint)
    return applications.without_password(user, peer)
