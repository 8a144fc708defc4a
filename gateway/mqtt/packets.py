"""The fourteen packet types and their encoders (MQTT 3.1.1 chapter 3; 3.1 differs only where `level` is asked).

Fixed header: type in bits 7-4 of byte 1, flags in bits 3-0 (PUBLISH: DUP 8, QoS 6, RETAIN 1), then the remaining
length.
Every encoder raises UsageError for what MQTT cannot express.
"""

from collections.abc import Iterable
from enum import IntEnum

from gateway.mqtt.errors import UsageError
from gateway.mqtt.events import Will
from gateway.mqtt.wire import (
    MAXIMUM_FIELD_BYTES,
    MAXIMUM_PACKET_IDENTIFIER,
    encode_binary,
    encode_remaining_length,
    encode_text,
)


class PacketType(IntEnum):
    """Bits 7-4 of the first byte; 0 and 15 are reserved (table 2.1)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


class ConnectReturnCode(IntEnum):
    """The second byte of a CONNACK (table 3.1)."""

    ACCEPTED = 0
    UNACCEPTABLE_PROTOCOL_VERSION = 1
    IDENTIFIER_REJECTED = 2
    SERVER_UNAVAILABLE = 3
    BAD_USER_NAME_OR_PASSWORD = 4
    NOT_AUTHORIZED = 5


SUBSCRIPTION_FAILED = 0x80
"""The return code of a SUBACK for a subscription that was not made; unknown to MQTT 3.1 (section 3.9.3)."""

PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"
DISCONNECT = b"\xe0\x00"

PROTOCOL_NAMES = {3: "MQIsdp", 4: "MQTT"}
"""The protocol name of each protocol level."""


def _identifier(packet_identifier: int) -> bytes:
    if not 1 <= packet_identifier <= MAXIMUM_PACKET_IDENTIFIER:
        raise UsageError(f"{packet_identifier} is not a packet identifier, it must be 1..65,535")
    return packet_identifier.to_bytes(2, "big")


def _check_qos(qos: int) -> None:
    if qos not in (0, 1, 2):
        raise UsageError(f"{qos} is not a QoS, it must be 0, 1 or 2")


def _packet(first_byte: int, body: bytes) -> bytes:
    return bytes((first_byte,)) + encode_remaining_length(len(body)) + body


def connect(
    client_identifier: str,
    *,
    level: int = 4,
    clean_session: bool = True,
    keep_alive_s: int = 0,
    will: Will | None = None,
    user_name: str | None = None,
    password: bytes | None = None,
) -> bytes:
    """CONNECT of a client (section 3.1). `keep_alive_s` 0..65,535, 0 is none; a password needs a user name."""
    if password is not None and user_name is None:
        raise UsageError("a password needs a user name")
    if not 0 <= keep_alive_s <= MAXIMUM_FIELD_BYTES:
        raise UsageError(f"a keep alive of {keep_alive_s} s cannot be encoded, it must be 0..65,535")
    flags = clean_session << 1 | (user_name is not None) << 7 | (password is not None) << 6
    fields = [encode_text(client_identifier)]
    if will is not None:
        _check_qos(will.qos)
        flags |= 4 | will.qos << 3 | will.retain << 5
        fields += encode_text(will.topic), encode_binary(will.payload)
    if user_name is not None:
        fields.append(encode_text(user_name))
    if password is not None:
        fields.append(encode_binary(password))
    variable_header = encode_text(PROTOCOL_NAMES[level]) + bytes((level, flags)) + keep_alive_s.to_bytes(2, "big")
    return _packet(0x10, variable_header + b"".join(fields))


def connack(session_present: bool, return_code: int) -> bytes:
    """CONNACK (section 3.2). In MQTT 3.1 the byte of `session_present` is reserved: give False there."""
    if session_present and return_code:
        raise UsageError("a refused connection has no session (MQTT-3.2.2-4)")
    return bytes((0x20, 2, session_present, return_code))


def publish_header(
    topic: str,
    payload_bytes: int,
    *,
    qos: int = 0,
    retain: bool = False,
    duplicate: bool = False,
    packet_identifier: int = 0,
) -> bytes:
    """Fixed and variable header of a PUBLISH whose payload of `payload_bytes` bytes is sent behind it (section 3.3)."""
    _check_qos(qos)
    if duplicate and not qos:
        raise UsageError("a PUBLISH of QoS 0 cannot be a duplicate (MQTT-3.3.1-2)")
    variable_header = encode_text(topic)
    if qos:
        variable_header += _identifier(packet_identifier)
    first_byte = 0x30 | duplicate << 3 | qos << 1 | retain
    return bytes((first_byte,)) + encode_remaining_length(len(variable_header) + payload_bytes) + variable_header


def publish(
    topic: str,
    payload: bytes,
    *,
    qos: int = 0,
    retain: bool = False,
    duplicate: bool = False,
    packet_identifier: int = 0,
) -> bytes:
    """PUBLISH (section 3.3); `packet_identifier` is needed at QoS 1 and 2, and left out at QoS 0."""
    header = publish_header(
        topic, len(payload), qos=qos, retain=retain, duplicate=duplicate, packet_identifier=packet_identifier
    )
    return header + payload


def puback(packet_identifier: int) -> bytes:
    """PUBACK, the answer to a PUBLISH of QoS 1 (section 3.4)."""
    return b"\x40\x02" + _identifier(packet_identifier)


def pubrec(packet_identifier: int) -> bytes:
    """PUBREC, the first answer to a PUBLISH of QoS 2 (section 3.5)."""
    return b"\x50\x02" + _identifier(packet_identifier)


def pubrel(packet_identifier: int, duplicate: bool = False, level: int = 4) -> bytes:
    """PUBREL, the answer to PUBREC (section 3.6); `duplicate` sets DUP at level 3 only, where a repeat carries it."""
    first = b"\x6a\x02" if duplicate and level == 3 else b"\x62\x02"
    return first + _identifier(packet_identifier)


def pubcomp(packet_identifier: int) -> bytes:
    """PUBCOMP, the answer to PUBREL (section 3.7)."""
    return b"\x70\x02" + _identifier(packet_identifier)


def subscribe(packet_identifier: int, subscriptions: Iterable[tuple[str, int]]) -> bytes:
    """SUBSCRIBE of a client: topic filters with the requested QoS (section 3.8)."""
    entries = [encode_text(topic_filter) + bytes((qos,)) for topic_filter, qos in subscriptions]
    return _packet(0x82, _identifier(packet_identifier) + b"".join(entries))


def suback(packet_identifier: int, return_codes: bytes) -> bytes:
    """SUBACK (section 3.9): for each subscription the granted QoS, or 80 hex for failure (not in MQTT 3.1)."""
    return _packet(0x90, _identifier(packet_identifier) + return_codes)


def unsubscribe(packet_identifier: int, topic_filters: Iterable[str]) -> bytes:
    """UNSUBSCRIBE of a client (section 3.10)."""
    return _packet(0xA2, _identifier(packet_identifier) + b"".join(map(encode_text, topic_filters)))


def unsuback(packet_identifier: int) -> bytes:
    """UNSUBACK (section 3.11)."""
    return b"\xb0\x02" + _identifier(packet_identifier)
