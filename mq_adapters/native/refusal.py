"""Why a connection cannot be made or was lost, as a reason code of the MQI."""

from collections.abc import Mapping
from typing import Final

from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.reasons import ReasonCode

#: What IBM's clients report for a status code; 2059 for the others.
_REASONS: Final[Mapping[int, ReasonCode]] = {
    StatusCode.NO_CHANNEL: ReasonCode.MQRC_UNKNOWN_CHANNEL_NAME,
    StatusCode.CHANNEL_WRONG_TYPE: ReasonCode.MQRC_CHANNEL_CONFIG_ERROR,
    **dict.fromkeys(
        (
            StatusCode.PROTOCOL_SEGMENT_TYPE,
            StatusCode.PROTOCOL_LENGTH_ERROR,
            StatusCode.PROTOCOL_INVALID_DATA,
            StatusCode.PROTOCOL_SEGMENT_ERROR,
            StatusCode.PROTOCOL_ID_ERROR,
            StatusCode.PROTOCOL_GENERAL,
            StatusCode.MESSAGE_LENGTH_ERROR,
        ),
        ReasonCode.MQRC_CHANNEL_CONFIG_ERROR,
    ),
    StatusCode.CHANNEL_UNAVAILABLE: ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE,
    StatusCode.CLOSED_BY_EXIT: ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE,
    StatusCode.CIPHER_SPEC: ReasonCode.MQRC_SSL_INITIALIZATION_ERROR,
    StatusCode.PEER_NAME: ReasonCode.MQRC_SSL_INITIALIZATION_ERROR,
    StatusCode.SSL_CLIENT_CERTIFICATE: ReasonCode.MQRC_SSL_INITIALIZATION_ERROR,
}


class Refusal(Exception):
    """A connection that is refused, or lost. The text is for the log."""

    def __init__(self, reason_code: int, why: str) -> None:
        super().__init__(why)
        self.reason_code = reason_code


def reason_of(status_code: int | None) -> ReasonCode:
    """The reason code of a connection that the queue manager refuses with a status code."""
    return _REASONS.get(status_code or 0, ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE)
