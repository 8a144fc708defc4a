"""Refused logins, counted for the audit trail: one record for each network, class of user and code in five minutes.

The trail says how many there were, from which network (the /24 of an IPv4 address, the /48 of an IPv6 one), and why. It
names no user: an unknown name may be a password. Limit.REFUSED_LOGINS bounds the records (tally.py).
"""

import ipaddress
from collections import Counter
from enum import Enum, StrEnum, auto
from typing import Any, Final, NamedTuple

from gateway.access.tally import Tally, code_told
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of_peer, prefix_of
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode
from mq_adapters.embedded.unit_of_work import Note

ROW_KEY: Final = b"refused-logins"
#: Networks, classes and reasons that are counted one by one, at some 250 bytes each.
_KEPT: Final = 4_096
_IPV4_PREFIX_BYTES: Final = 3


class LoginRefusal(Enum):
    """Why a client is not let in."""

    WRONG_CREDENTIALS = auto()
    NOT_ALLOWED = auto()
    WRONG_IDENTIFIER = auto()
    BUSY = auto()

    def code_at(self, level: int) -> int:
        """The code of the CONNACK at a protocol level."""
        reason_code = REFUSAL_CODES[self]
        return reason_code if LEVELS[level].has_reason_codes else CONNECT_RETURN_CODES[reason_code]


#: The reason code of a CONNACK that refuses a login; `Connection.closing_packet` puts it in the level's words.
REFUSAL_CODES: Final = {
    LoginRefusal.WRONG_CREDENTIALS: ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    LoginRefusal.NOT_ALLOWED: ReasonCode.NOT_AUTHORIZED,
    LoginRefusal.WRONG_IDENTIFIER: ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
    LoginRefusal.BUSY: ReasonCode.SERVER_BUSY,
}


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
    #: That of the CONNACK; 0: an earlier version counted the login, and kept no code.
    code: int


class RefusedLogins(Tally[_Key]):
    """The refused logins since the gateway started, by reason, and those that the trail does not have yet."""

    def __init__(self) -> None:
        records = int(Limit.REFUSED_LOGINS.value.default)
        super().__init__(row_key=ROW_KEY, words="refused logins", records=records, kept=_KEPT)
        self.totals: Counter[LoginRefusal] = Counter()

    def count(self, refusal: LoginRefusal, user_class: UserClass, peer: str, now_us: int, level: int) -> None:
        """A login of `peer` (HOST:PORT) at a protocol level is refused."""
        self.totals[refusal] += 1
        self._add(_Key(prefix_of(network_of_peer(peer)), user_class, refusal, refusal.code_at(level)), now_us)

    def _packed(self, key: _Key) -> list[object]:
        return [key.prefix, str(key.user_class), key.refusal.name, key.code]

    def _unpacked(self, parts: list[Any]) -> _Key:
        prefix, user_class, refusal, *code = parts
        return _Key(prefix, UserClass(user_class), LoginRefusal[refusal], *(code or (0,)))

    def _merged(self, key: _Key) -> _Key:
        return key._replace(prefix=b"")

    def _note(self, key: _Key, number: int, now_us: int) -> Note:
        reason, network = key.refusal.name.lower(), prefix_text(key.prefix)
        told = code_told(key.code)
        return (NoteKind.LOGINS_REFUSED, now_us, reason, str(key.user_class), network, number, self._since_us, told)


def prefix_text(prefix: bytes) -> str:
    """192.0.2.0/24 for example, or 2001:db8:1::/48; "" for none."""
    if not prefix:
        return ""
    size = 4 if len(prefix) == _IPV4_PREFIX_BYTES else 16
    address = ipaddress.ip_address(prefix + bytes(size - len(prefix)))
    return f"{address}/{len(prefix) * 8}"
