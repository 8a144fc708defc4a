"""Hints for an operator about the refusals of a queue manager across a network."""

from collections.abc import Mapping
from typing import Final

from mq_adapters.reasons import ReasonCode

_AUTHORITY: Final = "grant what 'rfhbridge explain --mqsc' prints, and look at the queue manager's error log"
_NETWORK: Final = "is the queue manager running, its listener started, and the connection name right?"
_CERTIFICATE: Final = "cipher, key_repository and peer_name must fit the channel's; the client's error log says more"

HINTS: Final[Mapping[int, str]] = {
    ReasonCode.MQRC_CONNECTION_BROKEN: "the network or the queue manager failed; connect again",
    ReasonCode.MQRC_NOT_AUTHORIZED: _AUTHORITY,
    ReasonCode.MQRC_SECURITY_ERROR: _AUTHORITY,
    ReasonCode.MQRC_OBJECT_IN_USE: "another program has the queue open; DISPLAY QSTATUS(...) TYPE(HANDLE) says which",
    ReasonCode.MQRC_Q_MGR_NAME_ERROR: "queue_manager must be the name of the one that answers, or blank",
    ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_UNKNOWN_OBJECT_NAME: "define the queue there: 'rfhbridge explain --mqsc' prints what is needed",
    ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR: "the queue manager has no way to the one that ReplyToQMgr or a route names",
    ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL: "raise MAXMSGL of the server-connection channel",
    ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q_MGR: "raise MAXMSGL of the queue manager",
    ReasonCode.MQRC_CHANNEL_SSL_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_KEY_REPOSITORY_ERROR: "key_repository is a path without the ending .kdb, and its stash file beside",
    ReasonCode.MQRC_SSL_CONFIG_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_SSL_INITIALIZATION_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_SSL_NOT_ALLOWED: _CERTIFICATE,
    ReasonCode.MQRC_SSL_PEER_NAME_MISMATCH: "peer_name does not match the queue manager's certificate",
    ReasonCode.MQRC_UNSUPPORTED_CIPHER_SUITE: "cipher is a CipherSpec that the client knows, as the channel has it",
    ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_HOST_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_CHANNEL_CONFIG_ERROR: "channel names a SVRCONN channel, with the same TLS settings as here",
    ReasonCode.MQRC_UNKNOWN_CHANNEL_NAME: "define the channel: DEFINE CHANNEL(...) CHLTYPE(SVRCONN)",
    ReasonCode.MQRC_HCONN_ERROR: "a connection belongs to the thread that made it, until it is closed",
}
