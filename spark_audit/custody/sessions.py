"""The sessions of MQTT clients and their connections, after each record of a trail.

    opened         the client has a new session, and is connected; its last one has ended
    resumed        it is connected again, with the session that it has
    taken_over     another connection of the client takes the place of this one; its own record follows
    disconnected   the session is kept, without a connection
    lost           the same
    ended          the session is gone, and with it the connection

Source: MQTT 3.1.1 section 3.1.2.4 and 3.1.4; spark_audit/record/kinds.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spark_audit.custody.topic_match import is_shared
from spark_audit.personal import NAME_PREFIX
from spark_audit.record import Kind
from spark_audit.reperform.mqtt import EXACTLY_ONCE, FIRST_LEVEL_WITH_PROPERTIES, PUBLISH

#: Events after which a session has a connection, and those after which it has none.
_CONNECTS: Final = frozenset({"opened", "resumed"})
_PARTS: Final = frozenset({"taken_over", "disconnected", "lost"})
_ENDED: Final = "ended"
_PUT: Final = str(Kind.PUT)
#: Kinds of records of packets that came or went on a client's connection.
_ON_CONNECTION: Final = frozenset(map(str, (Kind.ACCEPTED, Kind.DELIVERED, Kind.ACKNOWLEDGED, Kind.REPEATED)))
#: Packets that a client sends on its connection: PUBLISH, SUBSCRIBE, UNSUBSCRIBE.
_OF_CONNECTION: Final = frozenset({3, 8, 10})
#: With one of these in the same commit a will is due.
WILL_IS_DUE: Final = frozenset({"lost", "taken_over", _ENDED})


@dataclass(slots=True)
class Session:
    """The last session of a client."""

    epoch: int
    is_connected: bool
    has_ended: bool = False
    was_opened: bool = False
    #: The MQTT protocol level of its last connection; None where no record says it.
    level: int | None = None
    #: Whether it outlives its connection; None where no record says it.
    is_lasting: bool | None = None


class Sessions:
    """Every session that the trail tells of."""

    def __init__(self) -> None:
        self._of: dict[str, Session] = {}
        self._clients: dict[int, str] = {}
        #: There may be sessions that the trail did not tell of.
        self.is_whole = True

    def clear(self) -> None:
        """Forgets everything, because records are missing: there may be other sessions now."""
        self._of, self._clients, self.is_whole = {}, {}, False

    def change(
        self, client: str, epoch: int, event: str, level: int | None = None, *, is_lasting: bool | None = None
    ) -> str:
        """Takes a session record. Returns what is wrong with it, "" for nothing."""
        session = self._of.get(client)
        wrong = self._wrong_change(session, epoch, event) if self.is_whole else ""
        if event in _CONNECTS:
            was_opened = event == "opened" or self._was_opened(session, epoch)
            begun = Session(epoch, is_connected=True, was_opened=was_opened, level=level, is_lasting=is_lasting)
            self._set(client, begun)
        elif session is None or session.epoch != epoch:
            self._set(client, Session(epoch, is_connected=False, has_ended=event == _ENDED))
        else:
            session.is_connected, session.has_ended = False, event == _ENDED
        return wrong

    def _set(self, client: str, session: Session) -> None:
        before = self._of.get(client)
        if before is not None:
            self._clients.pop(before.epoch, None)
        self._of[client], self._clients[session.epoch] = session, client

    def get(self, client: str) -> Session | None:
        """The last session of a client."""
        return self._of.get(client)

    def client_of(self, epoch: int) -> str | None:
        """The client of a session that is its last one."""
        return self._clients.get(epoch)

    def present(self) -> Iterator[tuple[str, int]]:
        """Client and number of each session that has not ended."""
        for client, each in self._of.items():
            if not each.has_ended:
                yield client, each.epoch

    @staticmethod
    def _was_opened(session: Session | None, epoch: int) -> bool:
        return session is not None and session.epoch == epoch and session.was_opened

    def _wrong_change(self, session: Session | None, epoch: int, event: str) -> str:
        if session is None:
            return "" if event == "opened" else f"{event}, but it was never opened"
        if event == "opened":
            if session.epoch >= epoch:
                return "opened with a number that was there before"
            return "" if session.has_ended else "opened, but the client's session before has not ended"
        if session.epoch != epoch:
            return f"{event}, but it is not the client's session"
        if session.has_ended:
            return f"{event} after its end"
        if event in _PARTS and not session.is_connected:
            return f"{event}, but it was not connected"
        return f"{event}, but it was connected" if event == "resumed" and session.is_connected else ""

    def is_known(self, client: str, epoch: int) -> bool:
        """Whether the trail tells how the present session of a client began."""
        session = self._of.get(client)
        return session is not None and session.epoch == epoch and (self.is_whole or session.was_opened)

    def is_group(self, client: str) -> bool:
        """Whether a subscriber is a shared group: it has no session. Its name may be keyed."""
        return is_shared(client) or (client.startswith(NAME_PREFIX) and client not in self._of)

    def wrong_act(self, record: Mapping[str, Any]) -> str:
        """What is wrong with a record of an act of a client on its connection, or of a delivery; "" for nothing."""
        session = self._of.get(record["client"])
        if not self.is_whole:
            return ""
        if session is None:
            return "the client has no session"
        if session.epoch != record["session_epoch"]:
            return "it is not the client's session"
        if session.has_ended:
            return "the session has ended"
        if not session.is_connected:
            return "the client is not connected"
        return _wrong_level(record, session.level)


def _wrong_level(record: Mapping[str, Any], level: int | None) -> str:
    """What is wrong if a record of a PUBLISH has another level than its connection. It tells a level only from 5 on.

    A PUBLISH of QoS 2 may have come on an earlier connection than the PUBREL for which it is put.
    """
    is_put = record["kind"] == _PUT
    if level is None or record["packet_type"] != PUBLISH or (is_put and record["qos"] == EXACTLY_ONCE):
        return ""
    told, wanted = record["protocol_level"], level if level >= FIRST_LEVEL_WITH_PROPERTIES else None
    if told == wanted:
        return ""
    return f"it tells protocol level {told or 'below 5'}, but the connection has {level}"


def is_on_connection(record: Mapping[str, Any]) -> bool:
    """Whether a record tells of a packet that came or went on a client's connection.

    A QoS 2 message is put when PUBREL comes, on the connection too.
    """
    kind = record["kind"]
    if kind in _ON_CONNECTION:
        return True
    return kind == _PUT and record["direction"] == "in" and record["packet_type"] in _OF_CONNECTION
