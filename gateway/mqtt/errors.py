"""The errors of MQTT. Each name says who is at fault.

A `PeerError` never leaves `connection.Connection`: it arrives as the last event, `events.Violated`, and the connection
must then be closed. A `UsageError` means that our own caller broke a rule of the method's docstring.
"""

from gateway.mqtt.reason_codes import ReasonCode


class PeerError(Exception):
    """The peer sent a packet that cannot be accepted. `reason` says why, in one sentence for the log.

    `reason_code` is what MQTT 5.0 tells the peer before the connection is closed (section 4.13).
    """

    def __init__(self, reason: str, reason_code: ReasonCode) -> None:
        super().__init__(reason)
        self.reason = reason
        self.reason_code = reason_code


class MalformedPacket(PeerError):
    """The bytes are no MQTT packet: a length, a text or a flag is wrong in itself."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, ReasonCode.MALFORMED_PACKET)


class ProtocolViolation(PeerError):
    """A well-formed packet that the peer may not send, or may not send now."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, ReasonCode.PROTOCOL_ERROR)


class LimitExceeded(PeerError):
    """The peer passed a limit: its packet is too large, too many are unanswered, or an alias is too high."""


class UsageError(Exception):
    """The caller asked for a thing that MQTT cannot express, such as a packet identifier of 0."""
