"""Refused MQ programs, counted for the audit trail: their logins, their channels, and connections past a limit.

The first refusal is told whole, with the user's name if it is that of a known user: an unknown name may be a password.
Further ones are counted for five minutes (tally.py), by reason, rule, network, class of user, listener and channel.
Limit.REFUSED_PROGRAMS bounds both kinds of records.
"""

from collections import Counter
from enum import StrEnum
from typing import Any, Final, NamedTuple

from gateway.access.refused_logins import UserClass, prefix_text
from gateway.access.tally import TallyWithFirsts
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of, prefix_of
from mq_adapters.embedded.rights import MissingRight
from mq_adapters.embedded.unit_of_work import Note
from mq_adapters.reasons import QueueManagerError, ReasonCode

ROW_KEY: Final = b"refused-programs"
#: Keys that are counted one by one, at some 400 bytes each.
_KEPT: Final = 1_024
#: Of a longer complaint the beginning is told.
_LONGEST_REASON_CHARACTERS: Final = 200


class ProgramRefusal(StrEnum):
    """Why a program is refused: its channel, its credentials, its rights, too many logins or connections, a name."""

    CHANNEL = "channel"
    WRONG_CREDENTIALS = "wrong_credentials"
    NOT_ALLOWED = "not_allowed"
    BUSY = "busy"
    LIMIT = "limit"
    #: 2058 at MQCONN. The trail does not tell it: the program has not proved who it is, and tries no right.
    QUEUE_MANAGER = "queue_manager"


class ProgramRefused(QueueManagerError):
    """2035 at MQCONN. `rule` names what refuses it: a key of the configuration, or an attribute of its channel."""

    def __init__(self, refusal: ProgramRefusal, why: str, hint: str = "", *, rule: str = "") -> None:
        super().__init__(ReasonCode.MQRC_NOT_AUTHORIZED, why, hint)
        self.refusal, self.rule = refusal, rule


class _Key(NamedTuple):
    refusal: ProgramRefusal
    rule: str
    prefix: bytes
    user_class: UserClass
    listener: str
    #: "": there is no channel of that name, or no channel was named.
    channel: str
    #: That of the answer to MQCONN; 0: the connection was closed instead.
    reason_code: int


class RefusedPrograms(TallyWithFirsts[_Key]):
    """The refusals since the gateway started, by reason, and those that the trail does not have yet."""

    def __init__(self) -> None:
        records = int(Limit.REFUSED_PROGRAMS.value.default)
        super().__init__(row_key=ROW_KEY, words="refused programs", records=records, kept=_KEPT)
        self.totals: Counter[ProgramRefusal] = Counter()
        #: Calls of connected programs that were refused with 2035. The log tells them, and not the trail.
        self.rights: Counter[MissingRight] = Counter()

    def count(
        self,
        refusal: ProgramRefusal,
        *,
        rule: str,
        address: str,
        listener: str,
        now_us: int,
        channel: str = "",
        user_class: UserClass = UserClass.NONE,
        user: str = "",
        reason_code: int = 0,
        reason: str = "",
    ) -> None:
        """A program of an address is refused. `user` is that of a known user, and `reason` may quote the program."""
        self.totals[refusal] += 1
        key = _Key(refusal, rule, prefix_of(network_of(address)), user_class, listener, channel, reason_code)
        complaint = reason[:_LONGEST_REASON_CHARACTERS]
        self._add_or_tell(key, now_us, lambda: _told_of(key, 1, now_us, now_us, user, complaint))

    def _packed(self, key: _Key) -> list[object]:
        return [str(key.refusal), key.rule, key.prefix, str(key.user_class), *key[4:]]

    def _unpacked(self, parts: list[Any]) -> _Key:
        refusal, rule, prefix, user_class, listener, channel, reason_code = parts
        return _Key(ProgramRefusal(refusal), rule, prefix, UserClass(user_class), listener, channel, reason_code)

    def _merged(self, key: _Key) -> _Key:
        return key._replace(prefix=b"", channel="")

    def _note(self, key: _Key, number: int, now_us: int) -> Note:
        return _told_of(key, number, now_us, self._since_us)


def _told_of(key: _Key, number: int, now_us: int, since_us: int, user: str = "", reason: str = "") -> Note:
    what = (str(key.refusal), str(key.user_class), number, since_us)
    where = (prefix_text(key.prefix), key.listener, key.channel)
    return (NoteKind.PROGRAMS_REFUSED, now_us, *what, user, *where, key.rule, key.reason_code, reason)
