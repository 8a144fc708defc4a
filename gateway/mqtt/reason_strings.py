"""Reason Strings: the words of a refusal for people, by reason code (MQTT 5.0 section 3.2.2.3.9 and its like).

The writer of packets takes the words of every reason code of 80 hex or more from this one table, so each refusal has
some. A caller that knows more may say more: the limit that was reached, or the fault in the client's own packet. No
text tells a client about other clients, about a rule, or whether a user exists: every login that fails gets the same
sentence.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.mqtt.reason_codes import FAILURE, ReasonCode

REASON_STRINGS: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.NO_SUBSCRIPTION_EXISTED: "there is no such subscription",
    ReasonCode.UNSPECIFIED_ERROR: "the gateway could not do it",
    ReasonCode.MALFORMED_PACKET: "a packet is not written as the standard says",
    ReasonCode.PROTOCOL_ERROR: "a packet may not be sent, or not now",
    ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR: "the gateway or a queue manager cannot take it",
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION: "this version of MQTT is not served here",
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID: "this client identifier may not be used here",
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: "the user name or the password is wrong",
    ReasonCode.NOT_AUTHORIZED: "the client is not authorized for this",
    ReasonCode.SERVER_UNAVAILABLE: "the gateway is stopping: connect again later",
    ReasonCode.SERVER_BUSY: "the gateway is busy: try again later",
    ReasonCode.BANNED: "the client is not let in",
    ReasonCode.SERVER_SHUTTING_DOWN: "the gateway stops: connect again later",
    ReasonCode.BAD_AUTHENTICATION_METHOD: "enhanced authentication is not offered",
    ReasonCode.KEEP_ALIVE_TIMEOUT: "nothing came for one and a half times the keep alive",
    ReasonCode.SESSION_TAKEN_OVER: "a connection with the same client identifier has taken the session over",
    ReasonCode.TOPIC_FILTER_INVALID: "the topic filter is too long, too deep, or has what MQ cannot say",
    ReasonCode.TOPIC_NAME_INVALID: "the topic name is too long, too deep, or has what MQ cannot say",
    ReasonCode.PACKET_IDENTIFIER_IN_USE: "the packet identifier is in use",
    ReasonCode.PACKET_IDENTIFIER_NOT_FOUND: "no message is held under this packet identifier",
    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED: "more messages are unanswered than CONNACK allowed",
    ReasonCode.TOPIC_ALIAS_INVALID: "there is no such topic alias, or CONNACK did not allow it",
    ReasonCode.PACKET_TOO_LARGE: "a packet is larger than allowed, or its answer than the client takes",
    ReasonCode.MESSAGE_RATE_TOO_HIGH: "messages come too fast",
    ReasonCode.QUOTA_EXCEEDED: "a limit is reached",
    ReasonCode.ADMINISTRATIVE_ACTION: "an operator has ended it",
    ReasonCode.PAYLOAD_FORMAT_INVALID: "the payload is not what it is said to be",
    ReasonCode.RETAIN_NOT_SUPPORTED: "messages are not retained here",
    ReasonCode.QOS_NOT_SUPPORTED: "this QoS is not served here",
    ReasonCode.USE_ANOTHER_SERVER: "another server is to be used for now",
    ReasonCode.SERVER_MOVED: "another server is to be used from now on",
    ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: "subscriptions are not shared here",
    ReasonCode.CONNECTION_RATE_EXCEEDED: "connections are made too fast: try again later",
    ReasonCode.MAXIMUM_CONNECT_TIME: "the time is over that this connection was allowed",
    ReasonCode.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: "subscription identifiers are not served here",
    ReasonCode.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: "wildcards are not served here",
}

#: The longest text that is sent, in characters: the words about a wrong packet may repeat parts of the packet.
_LONGEST: Final = 200


def reason_string(reason_code: int, told: str | None = None) -> str | None:
    """The Reason String of a refusal: `told`, or the table's words; None if the code refuses nothing."""
    if reason_code < FAILURE and reason_code not in REASON_STRINGS:
        return None
    text = told or REASON_STRINGS.get(ReasonCode(reason_code), "")
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST]) or None


def reason_string_of_codes(codes: bytes, told: Mapping[int, str] = MappingProxyType({})) -> str | None:
    """That of a SUBACK or UNSUBACK: each reason once, behind its code where there are several; `told` knows better."""
    wanted = {code: reason_string(code, told.get(code)) for code in dict.fromkeys(codes)}
    texts = {code: text for code, text in wanted.items() if text is not None}
    if len(texts) <= 1:
        return next(iter(texts.values()), None)
    return "; ".join(f"{code:02X}: {text}" for code, text in texts.items())
