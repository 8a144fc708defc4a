"""Hints for an operator about the refusals of a queue manager across a network."""

from collections.abc import Mapping
from typing import Final

from mq_adapters.reasons import ReasonCode

_AUTHORITY: Final = "grant what 'rfhbridge explain --mqsc' prints, and look at the queue manager's error log"
_NETWORK: Final = "check that the queue manager and its listener run, and that the connection name is right"
_CERTIFICATE: Final = "cipher, key_repository and peer_name must fit the channel's; the client's error log says more"

HINTS: Final[Mapping[int, str]] = {
    ReasonCode.MQRC_CONNECTION_BROKEN: "connect again: the network or the queue manager failed",
    ReasonCode.MQRC_NOT_AUTHORIZED: _AUTHORITY,
    ReasonCode.MQRC_SECURITY_ERROR: _AUTHORITY,
    ReasonCode.MQRC_OBJECT_IN_USE: "find the other program that has the queue open: DISPLAY QSTATUS(...) TYPE(HANDLE)",
    ReasonCode.MQRC_Q_MGR_NAME_ERROR: "set queue_manager to the name of the one that answers, or leave it blank",
    ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_UNKNOWN_OBJECT_NAME: "define the queue there: 'rfhbridge explain --mqsc' prints what is needed",
    ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR: "define a way to the queue manager that ReplyToQMgr or a route names",
    ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL: "raise MAXMSGL of the server-connection channel",
    ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q_MGR: "raise MAXMSGL of the queue manager",
    ReasonCode.MQRC_CHANNEL_SSL_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_KEY_REPOSITORY_ERROR: "give key_repository without .kdb, and put its stash file beside it",
    ReasonCode.MQRC_SSL_CONFIG_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_SSL_INITIALIZATION_ERROR: _CERTIFICATE,
    ReasonCode.MQRC_SSL_NOT_ALLOWED: _CERTIFICATE,
    ReasonCode.MQRC_SSL_PEER_NAME_MISMATCH: "make peer_name match the queue manager's certificate",
    ReasonCode.MQRC_UNSUPPORTED_CIPHER_SUITE: "set cipher to the channel's CipherSpec, which the client must know",
    ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_HOST_NOT_AVAILABLE: _NETWORK,
    ReasonCode.MQRC_CHANNEL_CONFIG_ERROR: "set channel to a SVRCONN channel with the same TLS settings",
    ReasonCode.MQRC_UNKNOWN_CHANNEL_NAME: "define the channel: DEFINE CHANNEL(...) CHLTYPE(SVRCONN)",
    ReasonCode.MQRC_PASSWORD_PROTECTION_ERROR: "set cipher: within TLS the password may go as it is",
    ReasonCode.MQRC_HCONN_ERROR: "use a connection only in the thread that made it, and until it is closed",
}

#: Hints about a connection of binding "native", whose key repository is in PEM.
NATIVE_HINTS: Final[Mapping[int, str]] = {
    **HINTS,
    ReasonCode.MQRC_KEY_REPOSITORY_ERROR: (
        "give key_repository without .pem: NAME.pem has the authorities in PEM, and NAME.own.pem, if there is one, the"
        " client's certificate with its key"
    ),
}
