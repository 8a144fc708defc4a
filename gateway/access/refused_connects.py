"""Refused CONNECTs, counted for the audit trail: those past a limit, and those that MQTT or the gateway does not allow.

Refused logins are counted elsewhere (refused_logins.py). The first refusal is told whole, with the client identifier,
if it could be read, and with the complaint. Further ones are counted for five minutes (tally.py), by reason, network,
limit, protocol level and code. Limit.REFUSED_CONNECTS bounds both kinds of records.
"""

from enum import StrEnum
from typing import Any, Final, NamedTuple

from gateway.access.refused_logins import prefix_text
from gateway.access.tally import TallyWithFirsts, code_told
from gateway.audit_trail.notes.notes import NoteKind
from gateway.config.limits import Limit
from gateway.limits.addresses import network_of_peer, prefix_of
from gateway.mqtt.connection import Connection
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode
from mq_adapters.embedded.unit_of_work import Note

ROW_KEY: Final = b"refused-connects"
#: Keys that are counted one by one, at some 300 bytes each.
_KEPT: Final = 1_024
#: A longer client identifier is left out; of a longer complaint the beginning is told.
_LONGEST_NAME_CHARACTERS: Final = 512
_LONGEST_REASON_CHARACTERS: Final = 200


class ConnectRefusal(StrEnum):
    """Why a CONNECT is refused."""

    LIMIT = "limit"
    MALFORMED = "malformed"
    NOT_SERVED = "not_served"
    IDENTIFIER = "identifier"
    UNKNOWN_METHOD = "unknown_method"
    WILL = "will"


#: Why, by the code of a CONNACK that the reader of CONNECT has made.
_BY_REASON_CODE: Final = {
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION: ConnectRefusal.NOT_SERVED,
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID: ConnectRefusal.IDENTIFIER,
    ReasonCode.BAD_AUTHENTICATION_METHOD: ConnectRefusal.UNKNOWN_METHOD,
}
REFUSAL_OF_CODE: Final[dict[int, ConnectRefusal]] = dict(_BY_REASON_CODE) | {
    CONNECT_RETURN_CODES[code]: refusal for code, refusal in _BY_REASON_CODE.items() if code in CONNECT_RETURN_CODES
}


class _Key(NamedTuple):
    refusal: ConnectRefusal
    prefix: bytes
    rule: str
    #: The protocol level in which CONNACK would be written; 0: the client can be told nothing in any.
    level: int
    #: That of the CONNACK; 0: the client was told none.
    code: int


class RefusedConnects(TallyWithFirsts[_Key]):
    """The refusals that the trail does not have yet."""

    def __init__(self) -> None:
        records = int(Limit.REFUSED_CONNECTS.value.default)
        super().__init__(row_key=ROW_KEY, words="refused CONNECTs", records=records, kept=_KEPT)

    def count(
        self,
        refusal: ConnectRefusal,
        connection: Connection,
        *,
        peer: str,
        now_us: int,
        rule: str = "",
        client: str = "",
        reason: str = "",
    ) -> None:
        """The CONNECT of `peer` (HOST:PORT) was refused, and its connection told so. `rule`: the limit, if it is one.

        `client` and `reason` are what a stranger has sent, and a complaint that may quote it.
        """
        code = connection.refusal_code
        has_no_answer = not code and connection.level and LEVELS[connection.level].has_reason_codes
        key = _Key(refusal, prefix_of(network_of_peer(peer)), rule, 0 if has_no_answer else connection.level, code)
        shown = client if len(client) <= _LONGEST_NAME_CHARACTERS else ""
        self._add_or_tell(
            key, now_us, lambda: self._told_of(key, 1, now_us, now_us, shown, reason[:_LONGEST_REASON_CHARACTERS])
        )

    def _packed(self, key: _Key) -> list[object]:
        return [str(key.refusal), *key[1:]]

    def _unpacked(self, parts: list[Any]) -> _Key:
        refusal, prefix, rule, level, code = parts
        return _Key(ConnectRefusal(refusal), prefix, rule, level, code)

    def _merged(self, key: _Key) -> _Key:
        return key._replace(prefix=b"")

    def _note(self, key: _Key, number: int, now_us: int) -> Note:
        return self._told_of(key, number, now_us, self._since_us)

    @staticmethod
    def _told_of(key: _Key, number: int, now_us: int, since_us: int, client: str = "", reason: str = "") -> Note:
        where = (client, prefix_text(key.prefix), key.level, key.rule)
        told = code_told(key.code)
        return (NoteKind.CONNECTS_REFUSED, now_us, str(key.refusal), *where, number, since_us, told, reason)
