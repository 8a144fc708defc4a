"""An MQTT connection as the bridge sees it (bridge.links.MqttLink), over TCP, TLS or WebSocket.

If a client reads too slowly, the gateway sends it nothing more until the client has caught up. If a client sends faster
than the disk commits, the gateway pauses reading from it. A connection that is not admitted is read until its CONNECT,
which the bridge answers.
"""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gateway.bridge.sessions.sessions import ClientSession
from gateway.config.values import Address
from gateway.listener.client_certificates import certificate_of, read_shown
from gateway.mqtt.connection import Connection
from gateway.mqtt.properties import DisconnectProperties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.silence import Silence

if TYPE_CHECKING:
    from gateway.listener.listener import Listener
    from gateway.listener.rules import ListenerRules


class NetworkLink(ABC):
    """One MQTT connection. A subclass carries its bytes, and calls `_writing_paused` and `_writing_resumed`."""

    __slots__ = (
        "_is_paused",
        "_listener",
        "_paused_writing",
        "_proxied",
        "_waiting_bytes",
        "_waits_for_commit",
        "accepted_s",
        "address",
        "certificate_ends_s",
        "certificate_subject",
        "certificate_user",
        "closed_s",
        "connection",
        "is_admitted",
        "is_open",
        "is_soon_due",
        "outstanding",
        "peer",
        "received_bytes",
        "sent_bytes",
        "session",
        "silence",
        "taken_bytes",
        "taken_s",
    )

    def __init__(self, listener: "Listener", proxied: Address | None = None) -> None:
        """`proxied`: the client's address in the PROXY header."""
        self._listener = listener
        self._proxied = proxied
        #: The client's address for the log, and its address without the port; "" if it has none.
        self.peer = "unknown"
        self.address = ""
        #: The subject of the client's certificate, and its user, where the listener takes users from certificates;
        #: "": none.
        self.certificate_subject = self.certificate_user = ""
        #: The end of the client's certificate, seconds since 1970.
        self.certificate_ends_s = math.inf
        self._paused_writing = False
        #: The bridge has paused reading: until commits under way are done, or until a place has room
        #: (paused_publishers.py).
        self._waits_for_commit = False
        self._is_paused = False
        #: Memory of a request that waits to be carried out.
        self._waiting_bytes = 0
        self.connection = Connection(
            levels=listener.rules.levels,
            maximum_packet_bytes=listener.rules.maximum_packet_bytes,
            receive_maximum=listener.rules.receive_maximum,
            topic_alias_maximum=listener.rules.topic_alias_maximum,
            maximum_keep_alive_s=listener.rules.maximum_keep_alive_s,
        )
        self.session: ClientSession | None = None
        self.outstanding = 0
        self.is_open = False
        #: Whether the link counts among the connections of its listener.
        self.is_admitted = False
        self.received_bytes = self.sent_bytes = 0
        #: Bytes that the client has taken, and the time of the last ones (limits/slow_clients.py).
        self.taken_bytes = 0
        self.accepted_s = self.taken_s = time.monotonic()
        self.silence = Silence(self.accepted_s)
        #: Whether its listener checks its silence more often than once a second.
        self.is_soon_due = False
        self.closed_s = math.inf

    # -- what carries the bytes ----------------------------------------------------------------------------------------

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Hands bytes on, in the order of the calls. A closed link drops them."""

    @property
    def unfinished_bytes(self) -> int:
        """Memory of an incomplete packet, or of a request that waits to be carried out."""
        return self.connection.unfinished_bytes + self._waiting_bytes

    @property
    @abstractmethod
    def unsent_bytes(self) -> int:
        """Bytes of `sent_bytes` that the client has not taken."""

    @property
    @abstractmethod
    def shown_certificate(self) -> bytes | None:
        """The client's certificate from its TLS handshake, in DER."""

    @abstractmethod
    def abort(self) -> None:
        """Ends the connection at once."""

    @abstractmethod
    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        """Ends the connection after the bytes that were sent. The link is closed already."""

    @abstractmethod
    def _stop_reading(self) -> None:
        """Pauses reading from the network."""

    @abstractmethod
    def _start_reading(self) -> None:
        """Reads from the network again."""

    # -- its listener --------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> "ListenerRules":
        """The rules of its listener."""
        return self._listener.rules

    # -- its life ------------------------------------------------------------------------------------------------------

    def _identify(self, transport: asyncio.BaseTransport) -> None:
        """Takes the client's address and certificate from the transport."""
        found = transport.get_extra_info("peername")
        client = self._proxied or (Address(host=found[0], port=found[1]) if found else None)
        if client is not None:
            self.peer, self.address = str(client), client.host
        certificate = certificate_of(transport)
        if certificate is not None:
            shown = read_shown(certificate, self.rules.user_from_certificate)
            self.certificate_ends_s, self.certificate_subject = shown.ends_s, shown.subject
            self.certificate_user = shown.user

    def _opened(self) -> None:
        """The connection is made."""
        self.is_open = True
        self.is_admitted = self._listener.admit(self)

    def _lost(self) -> None:
        self.is_open = False
        self._listener.forget(self)
        self._listener.bridge.lost(self)

    def _writing_paused(self) -> None:
        self._paused_writing = True
        self._stop_reading()  # a client that does not take answers may send no more requests

    def _writing_resumed(self) -> None:
        self._paused_writing = False
        self._read_if_possible()
        self._listener.bridge.resumed(self)

    # -- Link ----------------------------------------------------------------------------------------------------------

    @property
    def can_send(self) -> bool:
        return self.is_open and not self._paused_writing

    def close(
        self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR, told: str | None = None
    ) -> None:
        """Closes the connection after the bytes that were sent. `reason` is for the log; "": the client asked for it.

        If its level has a packet for that, the client gets the reason code, with `told` as its words. None: the words
        are the meaning of the reason code.
        """
        if not self.is_open:
            return
        if farewell := self.connection.closing_packet(reason_code, DisconnectProperties(reason_string=told)):
            self.send(farewell)
        self.is_open = False
        self.closed_s = time.monotonic()
        log = self._listener.bridge.admission.connection_log
        if reason and self.session is None:
            log.closed_without_session(self.address, listener=self.rules.name, peer=self.peer, reason=reason)
        elif reason and self.session is not None:
            log.closed(self.session.client, listener=self.rules.name, peer=self.peer, reason=reason)
        self._end(reason, reason_code)

    def pause_reading(self) -> None:
        self._waits_for_commit = True
        self._read_no_more()

    def resume_reading(self) -> None:
        if self._waits_for_commit:
            self.silence.end(time.monotonic())
        self._waits_for_commit = False
        self._read_if_possible()

    def pause_publisher(self, waiting_bytes: int = 0) -> None:
        self._is_paused, self._waiting_bytes = True, waiting_bytes
        self._read_no_more()

    def resume_publisher(self) -> None:
        self._is_paused, self._waiting_bytes = False, 0
        self.silence.end(time.monotonic())
        self._read_if_possible()

    @abstractmethod
    def wait_for_turn(self) -> None:
        """See MqttLink."""

    @property
    def silence_ends_s(self) -> float:
        """The monotonic time at which its silence is too long; never while the gateway has paused reading from it."""
        if self._waits_for_commit or self._is_paused:
            return math.inf
        return self.connection.keep_alive_deadline(self.silence.since_s)

    def _read_no_more(self) -> None:
        if self.is_open:
            self._stop_reading()

    def _read_if_possible(self) -> None:
        may_read = not (self._waits_for_commit or self._is_paused or self._paused_writing)
        if may_read and self.is_open:
            self._start_reading()
