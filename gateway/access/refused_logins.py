"""Refused logins, counted for the audit trail: one record for each network, class of user and reason in five minutes.

A record for each refused CONNECT would let 25 bytes of a stranger write 400 bytes of trail. So the trail says how many
there were, from which network (the /24 of an IPv4 address, the /48 of an IPv6 one), and why. It names no user: an
unknown name may be a password. Memory and trail are bounded (Limit.REFUSED_LOGINS) whatever comes. What was counted and
not yet noted is lost with a `kill -9`, and nothing else.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from gateway.audit_trail.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of_peer, prefix_of
from mq_adapters.embedded.unit_of_work import Note

#: How long refusals are counted together, microseconds.
INTERVAL_US: Final = 300_000_000
_RECORDS: Final = int(Limit.REFUSED_LOGINS.value.default)
#: Networks, classes and reasons that are counted one by one, at some 250 bytes each; further ones are counted together.
_KEPT: Final = 4_096
_IPV4_PREFIX_BYTES: Final = 3


class Refusal(Enum):
    """Why a client is not let in; the bridge knows the code of each protocol level for it."""

    WRONG_CREDENTIALS = auto()
    NOT_ALLOWED = auto()
    WRONG_IDENTIFIER = auto()
    BUSY = auto()


class UserClass(StrEnum):
    """What is known of a refused client's user."""

    NONE = "none"
    KNOWN = "known"
    UNKNOWN = "unknown"
    EXTERNAL = "external"


class _Key(NamedTuple):
    prefix: bytes
    user_class: UserClass
    refusal: Refusal


class RefusedLogins:
    """The refused logins since the gateway started, by reason, and those that the trail does not have yet."""

    def __init__(self) -> None:
        self.totals: Counter[Refusal] = Counter()
        self._counted: Counter[_Key] = Counter()
        self._since_us = 0

    def count(self, refusal: Refusal, user_class: UserClass, peer: str, now_us: int) -> None:
        """A login of `peer` (HOST:PORT) is refused."""
        self.totals[refusal] += 1
        if not self._counted:
            self._since_us = now_us
        key = _Key(prefix_of(network_of_peer(peer)), user_class, refusal)
        if key not in self._counted and len(self._counted) >= _KEPT:
            key = key._replace(prefix=b"")
        self._counted[key] += 1

    def is_due(self, now_us: int, *, is_last: bool = False) -> bool:
        """Whether the trail should have what was counted; `is_last`: the gateway stops. A clock may be set back."""
        return bool(self._counted) and (is_last or not self._since_us <= now_us < self._since_us + INTERVAL_US)

    def notes(self, now_us: int) -> Iterator[Note]:
        """The notes of what was counted, which is forgotten then. The networks with most refusals have their own."""
        counted, self._counted = self._counted, Counter()
        rest: Counter[_Key] = Counter()
        for place, (key, logins) in enumerate(counted.most_common()):
            if place < _RECORDS and key.prefix:
                yield self._note(key, logins, now_us)
            else:
                rest[key._replace(prefix=b"")] += logins
        for key, logins in rest.items():
            yield self._note(key, logins, now_us)

    def _note(self, key: _Key, logins: int, now_us: int) -> Note:
        reason = key.refusal.name.lower()
        return (
            NoteKind.LOGINS_REFUSED,
            now_us,
            reason,
            str(key.user_class),
            prefix_text(key.prefix),
            logins,
            self._since_us,
        )


def prefix_text(prefix: bytes) -> str:
    """192.0.2.0/24 for example, or 2001:db8:1::/48; "" for none."""
    if not prefix:
        return ""
    size = 4 if len(prefix) == _IPV4_PREFIX_BYTES else 16
    address = ipaddress.ip_address(prefix + bytes(size - len(prefix)))
    return f"{address}/{len(prefix) * 8}"
