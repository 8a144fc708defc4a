"""Links: a connection as the bridge sees it, the work of one read, and how long each client may stay connected.

A token lets its client in until it expires (access.tokens). Then the gateway closes the connection, and the session
stays. At level 5 DISCONNECT says reason code A0 hex, Maximum connect time (MQTT 5.0 section 3.14.2.1).
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from gateway.access.login import Admitted
from gateway.audit_trail.notes.notes import NoteKind, Ranges
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.sessions import ClientSession
from gateway.mqtt.connection import Connection
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.unit_of_work import Note, UnitOfWork
from spark_audit.record import LoginProof

#: Times this, a reason code stands in front of a packet type.
CODE_IN_FRONT: Final = 16


class EntranceRules(Protocol):
    """The rules of a listener, as far as the bridge needs them (listener/rules.py)."""

    @property
    def name(self) -> str: ...

    @property
    def allows_anonymous(self) -> bool | None:
        """Whether clients without a user may connect; None: the setting in [access] decides."""
        ...


class MqttLink(Link, Protocol):
    """The network side of a connection, as the bridge needs it (gateway.listener)."""

    connection: Connection
    session: ClientSession | None
    outstanding: int
    is_open: bool

    #: The address of the client, HOST:PORT. Behind a load balancer the PROXY header gives it.
    peer: str
    #: The same without its port.
    address: str
    #: The subject of the client certificate, and its user, where the listener takes users from certificates; "": none.
    certificate_subject: str
    certificate_user: str

    @property
    def rules(self) -> EntranceRules:
        """The rules of its listener."""
        ...

    def pause_reading(self) -> None:
        """Stops reading until the commits under way are done."""
        ...

    def resume_reading(self) -> None: ...

    def pause_publisher(self, waiting_bytes: int = 0) -> None:
        """Reads no more until a place has room (paused_publishers.py). Meanwhile the keep-alive time does not count.

        `waiting_bytes`: memory of a waiting request, which counts like the memory of an incomplete packet.
        """
        ...

    def resume_publisher(self) -> None: ...

    def wait_for_turn(self) -> None:
        """Reads no more until the link's next turn. Then it calls `Bridge.go_on`, also if its peer has gone."""
        ...


class LinkWork:
    """The work that the events of one read ask for, until its commit."""

    __slots__ = ("acknowledgements", "answered", "carried_on", "confirmed", "finished", "link", "session", "unit")

    def __init__(self, link: MqttLink, session: ClientSession, unit: UnitOfWork) -> None:
        self.link = link
        self.session = session
        self.unit = unit
        #: Packets for the link, in order.
        self.acknowledgements: list[bytes] = []
        #: How many of these packets are PUBACK or PUBCOMP (Connection.answered).
        self.answered = 0
        #: The PUBRELs among these packets: the session's next link needs them if this one is gone.
        self.carried_on: list[bytes] = []
        #: Functions to call with packet identifiers of the session, after the commit.
        self.finished: list[tuple[Callable[[int], object], int]] = []
        #: Ranges of exchanges that are acknowledged, by `answer` (below).
        self.confirmed: dict[int, Ranges] = {}

    def confirm(self, answer: int, exchange: int) -> None:
        """An exchange is acknowledged. `answer`: the packet type, with a reason code other than 00 in front of it."""
        ranges = self.confirmed.get(answer)
        if ranges is None:
            self.confirmed[answer] = [[exchange, exchange]]
        elif ranges[-1][1] == exchange - 1:
            ranges[-1][1] = exchange
        else:
            ranges.append([exchange, exchange])


class Confirmations:
    """Acknowledgements sent to clients, for the audit: ranges of exchanges by session, packet type and reason code."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[ClientSession, int], Ranges] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def add(self, work: LinkWork) -> None:
        """Adds the acknowledgements of a read, which have left."""
        for answer, ranges in work.confirmed.items():
            known = self._ranges.setdefault((work.session, answer), [])
            if known and known[-1][1] == ranges[0][0] - 1:
                known[-1][1] = ranges[0][1]
                known += ranges[1:]
            else:
                known += ranges

    def take(self, now_us: int) -> Iterator[tuple[ClientSession, Note]]:
        """The notes of all acknowledgements, each with its session; then they are forgotten."""
        taken, self._ranges = self._ranges, {}
        for (session, answer), ranges in taken.items():
            reason_code, packet_type = divmod(answer, CODE_IN_FRONT)
            note = (NoteKind.CONFIRMED, now_us, session.client, session.epoch, packet_type, ranges)
            yield session, (*note, bytes([reason_code])) if reason_code else note


#: Time between two searches for expired tokens, microseconds.
_LOOK_US: Final = 1_000_000


class ConnectedClient(NamedTuple):
    """Who is connected, from when and until when, in microseconds since 1970; `until_us` 0: for ever.

    `fingerprint`: of the key that signed the client's token; "": the client has no token. `peer`: HOST:PORT; `address`:
    HOST. `certificate_subject`: of the client's certificate; "": it has shown none.
    """

    since_us: int = 0
    until_us: int = 0
    fingerprint: str = ""
    listener: str = ""
    peer: str = ""
    user: str | None = None
    proof: str = ""
    address: str = ""
    certificate_subject: str = ""

    @property
    def told(self) -> tuple[str | None, str, str, str, str]:
        """What the audit trail says of it, in the order of the note of a session (spark_audit/record/notes.py)."""
        return self.user, self.proof, self.address, self.listener, self.certificate_subject


class ConnectedClients:
    """The links that were let in, from the login to the loss of the connection."""

    def __init__(self) -> None:
        self._by_link: dict[Link, ConnectedClient] = {}
        self._looked_us = 0

    def __len__(self) -> int:
        """The number of these links."""
        return len(self._by_link)

    def begin(self, link: MqttLink, admitted: Admitted, now_us: int) -> ConnectedClient:
        """Adds a link that is let in."""
        connected = self._by_link[link] = ConnectedClient(
            since_us=now_us,
            until_us=admitted.until_us,
            fingerprint=admitted.fingerprint,
            listener=link.rules.name,
            peer=link.peer,
            user=admitted.user,
            proof=str(admitted.proof),
            address=link.address,
            certificate_subject=link.certificate_subject,
        )
        return connected

    def end(self, link: MqttLink) -> None:
        """Removes a link, which may never have been let in."""
        self._by_link.pop(link, None)

    def of(self, link: Link) -> ConnectedClient | None:
        """The client of a link that is let in."""
        return self._by_link.get(link)

    def tick(self, now_us: int) -> None:
        """Once a second: closes connections whose token has expired."""
        if self._looked_us <= now_us < self._looked_us + _LOOK_US:  # a clock may be set back
            return
        self._looked_us = now_us
        self._close(
            lambda connected: 0 < connected.until_us <= now_us,
            "the token has expired",
            ReasonCode.MAXIMUM_CONNECT_TIME,
        )

    def users_changed(self, users: frozenset[str]) -> None:
        """Closes the connections of users who have a new password or were removed."""
        self._close(
            lambda connected: connected.proof == LoginProof.PASSWORD and connected.user in users,
            "the user's line in the password file has changed or gone",
            ReasonCode.NOT_AUTHORIZED,
        )

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        """Closes the connections whose token was signed with one of these keys."""
        self._close(
            lambda connected: connected.fingerprint in fingerprints,
            "the key of its token is no longer in the file",
            ReasonCode.NOT_AUTHORIZED,
        )

    def _close(self, is_over: Callable[[ConnectedClient], bool], reason: str, reason_code: ReasonCode) -> None:
        over = [link for link, connected in self._by_link.items() if is_over(connected)]
        for link in over:
            self._by_link.pop(link, None)
            link.close(reason, reason_code)
