"""The errors of the client channel, and the status codes that tell the peer why its socket is closed.

The peer is at fault in a `ChannelProtocolError`, our own caller in a `UsageError`.
Names and numbers: Wireshark's MQ dissector, which says MQ_STATUS in front of them.
"""

from enum import IntEnum


class StatusCode(IntEnum):
    """Code in STATUS_DATA. The comment is what IBM MQ's client reports for it, where another than 2059 (AMQ9503)."""

    NO_CHANNEL = 1  # 2540, AMQ9520
    CHANNEL_WRONG_TYPE = 2  # 2539, AMQ9547
    QM_UNAVAILABLE = 3  # 2059, AMQ9524
    MSG_SEQUENCE_ERROR = 4
    QM_TERMINATING = 5  # 2059, AMQ9525
    CAN_NOT_STORE = 6
    USER_CLOSED = 7  # 2059, AMQ9528
    TIMEOUT_EXPIRED = 8
    TARGET_Q_UNKNOWN = 9
    PROTOCOL_SEGMENT_TYPE = 10  # 2539, AMQ9523
    PROTOCOL_LENGTH_ERROR = 11  # 2539, AMQ9523
    PROTOCOL_INVALID_DATA = 12  # 2539, AMQ9523
    PROTOCOL_SEGMENT_ERROR = 13  # 2539, AMQ9523
    PROTOCOL_ID_ERROR = 14  # 2539, AMQ9523
    PROTOCOL_MSH_ERROR = 15
    PROTOCOL_GENERAL = 16  # 2539, AMQ9523
    BATCH_FAILURE = 17
    MESSAGE_LENGTH_ERROR = 18  # 2539, AMQ9523
    SEGMENT_NUMBER_ERROR = 19
    SECURITY_FAILURE = 20
    WRAP_VALUE_ERROR = 21
    CHANNEL_UNAVAILABLE = 22  # 2537, AMQ9558
    CLOSED_BY_EXIT = 23  # 2537, AMQ9496
    CIPHER_SPEC = 24  # 2397, AMQ9641
    PEER_NAME = 25  # 2397, AMQ9643
    SSL_CLIENT_CERTIFICATE = 26
    RMT_RSRCS_IN_RECOVERY = 27
    SSL_REFRESHING = 28  # 2397, AMQ9714
    INVALID_HOBJ = 29
    CONV_ID_ERROR = 30
    SOCKET_ACTION_TYPE = 31
    STANDBY_Q_MGR = 32  # 2543, AMQ9487
    CCSID_NOT_SUPPORTED = 240
    ENCODING_INVALID = 241
    FAP_LEVEL = 242
    NEGOTIATION_FAILED = 243


class ChannelProtocolError(Exception):
    """The peer sent bytes that are no client channel. `what` says in one sentence, for the log, what was wrong.

    The socket must end, because later bytes cannot be trusted. `status_code` is what STATUS_DATA may tell the peer.
    """

    def __init__(self, status_code: StatusCode, what: str) -> None:
        super().__init__(status_code, what)
        self.status_code = status_code
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} ({self.status_code.name})"


class UsageError(Exception):
    """The caller asked for bytes that the protocol cannot express, or broke a rule of a method's docstring."""
