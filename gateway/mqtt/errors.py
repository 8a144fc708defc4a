"""The errors of the MQTT room; the name says whose fault it is.

A `PeerError` never leaves `connection.Connection`: it arrives as the last event, `events.Violated`, and the connection
must then be closed. A `UsageError` is raised: our own caller broke a rule that stands in the method's docstring.
"""


class PeerError(Exception):
    """What the peer sent cannot be accepted; `reason` says why, in one sentence for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MalformedPacket(PeerError):
    """The bytes are no MQTT packet: a length, a text or a flag is wrong in itself."""


class ProtocolViolation(PeerError):
    """A well-formed packet that the peer may not send, or may not send now."""


class UsageError(Exception):
    """The caller asked for something that MQTT cannot express, such as a packet identifier of 0."""
