"""Refused logins, counted for the audit trail: one record for each network, class of user and reason in five minutes.

A record for each refused CONNECT would let 25 bytes of a stranger write 400 bytes of trail. So the trail says how many
there were, from which network (the /24 of an IPv4 address, the /48 of an IPv6 one), and why. It names no user: an
unknown name may be a password. Memory and trail are bounded (Limit.REFUSED_LOGINS) whatever comes.

What is counted and not yet noted stands in one row of the store, which is written every five seconds at most. So a
`kill -9` loses the refusals of the last five seconds, and the next start notes the others. The row (StateSpace.GATEWAY,
key `refused-logins`) is deleted in the unit of work that has the notes. It has the networks that get a note:

    msgpack [version, when counting began (microseconds since 1970), [[network, class of user, reason, number], ...]]
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from enum import Enum, StrEnum, auto
from typing import Any, Final, NamedTuple, cast

import ormsgpack

from gateway.audit_trail.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of_peer, prefix_of
from mq_adapters.embedded.unit_of_work import Note, StateSpace, UnitOfWork
from mq_adapters.reasons import StoreError

#: How long refusals are counted together, microseconds.
INTERVAL_US: Final = 300_000_000
#: After how long the store has them, microseconds.
KEPT_AFTER_US: Final = 5_000_000
ROW_KEY: Final = b"refused-logins"
_VERSION: Final = 1
_RECORDS: Final = int(Limit.REFUSED_LOGINS.value.default)
#: Networks, classes and reasons that are counted one by one, at some 250 bytes each; further ones are counted together.
_KEPT: Final = 4_096
_IPV4_PREFIX_BYTES: Final = 3


class LoginRefusal(Enum):
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
    refusal: LoginRefusal


class RefusedLogins:
    """The refused logins since the gateway started, by reason, and those that the trail does not have yet."""

    def __init__(self) -> None:
        self.totals: Counter[LoginRefusal] = Counter()
        self._counted: Counter[_Key] = Counter()
        self._since_us = 0
        #: Since when the row in the store lacks something; 0: it has everything. And whether there is a row.
        self._unkept_us = 0
        self._has_row = False
        #: Whether they are of a run that was killed.
        self._is_left = False

    def load(self, packed: bytes | None) -> None:
        """Takes up what a run that was killed had counted, from the value of the row."""
        if packed is None:
            return
        try:
            version, self._since_us, rows = cast(list[Any], ormsgpack.unpackb(packed))
            if version != _VERSION:
                raise ValueError(f"version {version} of the row, and this program reads {_VERSION}")
            for prefix, user_class, refusal, logins in rows:
                self._counted[_Key(prefix, UserClass(user_class), LoginRefusal[refusal])] += logins
        except (ValueError, TypeError, KeyError) as error:
            hint = "use the program that wrote it, or a later one"
            raise StoreError("read the refused logins", str(error), hint) from error
        self._has_row = self._is_left = True

    def write(self, unit: UnitOfWork, now_us: int, *, is_last: bool = False) -> bool:
        """Adds to a unit of work what the trail or the store should have by now. Returns whether there is something."""
        if self.is_due(now_us, is_last=is_last):
            unit.notes += self.notes(now_us)
            unit.notes_are_due = True
            if self._has_row:
                unit.delete_state(StateSpace.GATEWAY, ROW_KEY)
            self._has_row = self._is_left = False
            return True
        if not self._unkept_us or self._unkept_us <= now_us < self._unkept_us + KEPT_AFTER_US:
            return False
        rows = [[key.prefix, str(key.user_class), key.refusal.name, logins] for key, logins in self._sums()]
        unit.set_state(StateSpace.GATEWAY, ROW_KEY, ormsgpack.packb([_VERSION, self._since_us, rows]))
        self._has_row, self._unkept_us = True, 0
        return True

    def count(self, refusal: LoginRefusal, user_class: UserClass, peer: str, now_us: int) -> None:
        """A login of `peer` (HOST:PORT) is refused."""
        self.totals[refusal] += 1
        if not self._counted:
            self._since_us = now_us
        if not self._unkept_us:
            self._unkept_us = now_us
        key = _Key(prefix_of(network_of_peer(peer)), user_class, refusal)
        if key not in self._counted and len(self._counted) >= _KEPT:
            key = key._replace(prefix=b"")
        self._counted[key] += 1

    def is_due(self, now_us: int, *, is_last: bool = False) -> bool:
        """Whether the trail should have what was counted; `is_last`: the gateway stops. A clock may be set back."""
        is_over = is_last or self._is_left or not self._since_us <= now_us < self._since_us + INTERVAL_US
        return bool(self._counted) and is_over

    def notes(self, now_us: int) -> Iterator[Note]:
        """The notes of what was counted, which is forgotten then. The networks with most refusals have their own."""
        sums = list(self._sums())
        self._counted, self._unkept_us = Counter(), 0
        for key, logins in sums:
            yield self._note(key, logins, now_us)

    def _sums(self) -> Iterator[tuple[_Key, int]]:
        """The networks with most refusals one by one, then all others together."""
        rest: Counter[_Key] = Counter()
        for place, (key, logins) in enumerate(self._counted.most_common()):
            if place < _RECORDS and key.prefix:
                yield key, logins
            else:
                rest[key._replace(prefix=b"")] += logins
        yield from rest.items()

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
