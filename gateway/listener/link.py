"""What every MQTT connection is to the bridge (bridge.turn.MqttLink), whatever carries its bytes.

A peer that reads too slowly is sent nothing more until it has caught up; one that sends faster than the disk commits is
not read. One that is not admitted is read until its CONNECT, which the bridge answers with the reason.
"""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gateway.bridge.sessions import ClientSession
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
    """One MQTT connection; what carries it reads and writes, and calls `_writing_paused` and `_writing_resumed`."""

    __slots__ = (
        "_is_held",
        "_is_held_back",
        "_listener",
        "_paused_writing",
        "_proxied",
        "_waiting_bytes",
        "accepted_s",
        "address",
        "certificate_ends_s",
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
        """`proxied`: where the connection comes from by its PROXY header."""
        self._listener = listener
        self._proxied = proxied
        #: The client's address, for the log; and without its port, "" where it has none.
        self.peer = "unknown"
        self.address = ""
        #: The user that the client's certificate stands for on this listener; "": none.
        self.certificate_user = ""
        #: When the certificate that it has shown ends, seconds since 1970.
        self.certificate_ends_s = math.inf
        self._paused_writing = False
        #: The bridge has paused reading, until commits under way are done; or until there is room at a target.
        self._is_held = False
        self._is_held_back = False
        #: What a request takes that waits to be carried out.
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
        #: Whether it counts among the connections of its listener.
        self.is_admitted = False
        self.received_bytes = self.sent_bytes = 0
        #: What of the sent bytes the peer has taken, and when last (limits/slow_clients.py).
        self.taken_bytes = 0
        self.accepted_s = self.taken_s = time.monotonic()
        self.silence = Silence(self.accepted_s)
        #: Whether its listener looks at its silence more often.
        self.is_soon_due = False
        self.closed_s = math.inf

    # -- what carries the bytes ----------------------------------------------------------------------------------------

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Hands bytes on, in the order of the calls; a closed link takes none."""

    @property
    def unfinished_bytes(self) -> int:
        """What the packet takes whose end has not come, or the request that waits to be carried out."""
        return self.connection.unfinished_bytes + self._waiting_bytes

    @property
    @abstractmethod
    def unsent_bytes(self) -> int:
        """What of the sent bytes the peer has not taken yet."""

    @property
    @abstractmethod
    def shown_certificate(self) -> bytes | None:
        """What the client has shown in its TLS handshake, in DER."""

    @abstractmethod
    def abort(self) -> None:
        """Ends the connection at once."""

    @abstractmethod
    def _end(self, reason: str, reason_code: ReasonCode) -> None:
        """Ends the connection after what was sent; the link is closed already."""

    @abstractmethod
    def _stop_reading(self) -> None:
        """Takes nothing more off the network."""

    @abstractmethod
    def _start_reading(self) -> None:
        """Goes on taking what comes."""

    # -- whose it is ---------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> "ListenerRules":
        """What holds for the connections of its listener."""
        return self._listener.rules

    # -- its life ------------------------------------------------------------------------------------------------------

    def _identify(self, transport: asyncio.BaseTransport) -> None:
        """Takes from the transport who is at its other end."""
        found = transport.get_extra_info("peername")
        client = self._proxied or (Address(host=found[0], port=found[1]) if found else None)
        if client is not None:
            self.peer, self.address = str(client), client.host
        certificate = certificate_of(transport)
        if certificate is not None:
            shown = read_shown(certificate, self.rules.user_from_certificate)
            self.certificate_ends_s, self.certificate_user = shown.ends_s, shown.user

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
        self._stop_reading()  # who does not take answers may ask nothing more

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
        """Closes the connection after what was sent; a reason is logged, none means that the client asked for it.

        The client is told the reason code where its level has a packet for it, and in words what is `told` or else what
        the code means; the reason is the operator's.
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
        self._is_held = True
        self._read_no_more()

    def resume_reading(self) -> None:
        if self._is_held:
            self.silence.end(time.monotonic())
        self._is_held = False
        self._read_if_possible()

    def hold_back(self, waiting_bytes: int = 0) -> None:
        self._is_held_back, self._waiting_bytes = True, waiting_bytes
        self._read_no_more()

    def let_go(self) -> None:
        self._is_held_back, self._waiting_bytes = False, 0
        self.silence.end(time.monotonic())
        self._read_if_possible()

    @property
    def silence_ends_s(self) -> float:
        """When it has been silent for too long, by the monotonic clock; never while the gateway does not read."""
        if self._is_held or self._is_held_back:
            return math.inf
        return self.connection.keep_alive_deadline(self.silence.since_s)

    def _read_no_more(self) -> None:
        if self.is_open:
            self._stop_reading()

    def _read_if_possible(self) -> None:
        may_read = not (self._is_held or self._is_held_back or self._paused_writing)
        if may_read and self.is_open:
            self._start_reading()
