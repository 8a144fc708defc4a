"""The encoders of the packets that a server sends (MQTT 3.1.1 and 5.0, chapter 3); `level` says in which form.

Fixed header: type in bits 7-4 of byte 1, flags in bits 3-0 (PUBLISH: DUP 8, QoS 6, RETAIN 1), then the remaining
length. Level 5 adds reason codes and properties. The encoders leave them out where the standard allows it, so the short
form of an answer is the same at every level. Every encoder raises UsageError for a value that MQTT cannot express.
"""

from gateway.mqtt import property_codec
from gateway.mqtt.errors import UsageError
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import (
    ConnackProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
)
from gateway.mqtt.wire import (
    MAXIMUM_PACKET_IDENTIFIER,
    encode_remaining_length,
    encode_text,
)

PINGRESP = b"\xd0\x00"


def _identifier(packet_identifier: int) -> bytes:
    if not 1 <= packet_identifier <= MAXIMUM_PACKET_IDENTIFIER:
        raise UsageError(f"{packet_identifier} is not a packet identifier, it must be 1..65,535")
    return packet_identifier.to_bytes(2, "big")


def _check_qos(qos: int) -> None:
    if qos not in (0, 1, 2):
        raise UsageError(f"{qos} is not a QoS, it must be 0, 1 or 2")


def _packet(first_byte: int, body: bytes) -> bytes:
    return bytes((first_byte,)) + encode_remaining_length(len(body)) + body


def connack(
    session_present: bool, return_code: int, *, level: int = 4, properties: ConnackProperties | None = None
) -> bytes:
    """CONNACK (section 3.2). In MQTT 3.1 the byte of `session_present` is reserved: give False there."""
    if session_present and return_code:
        raise UsageError("a refused connection has no session (MQTT-3.2.2-4)")
    if not LEVELS[level].has_properties:
        return bytes((0x20, 2, session_present, return_code))
    return _packet(0x20, bytes((session_present, return_code)) + property_codec.CONNACK.encode(properties))


def publish_header(
    topic: str,
    payload_bytes: int,
    *,
    qos: int = 0,
    retain: bool = False,
    duplicate: bool = False,
    packet_identifier: int = 0,
    properties: bytes = b"",
) -> bytes:
    """Fixed and variable header of a PUBLISH whose payload of `payload_bytes` bytes is sent behind it (section 3.3).

    `properties`: encoded, with their length; at level 5 at least the length 0, before it nothing.
    """
    return publish_header_of(
        encode_text(topic),
        payload_bytes,
        qos=qos,
        retain=retain,
        duplicate=duplicate,
        packet_identifier=packet_identifier,
        properties=properties,
    )


def publish_header_of(
    topic_field: bytes,
    payload_bytes: int,
    *,
    qos: int,
    retain: bool,
    duplicate: bool,
    packet_identifier: int,
    properties: bytes = b"",
) -> bytes:
    """`publish_header` for a topic that `wire.encode_text` has encoded before."""
    _check_qos(qos)
    if duplicate and not qos:
        raise UsageError("a PUBLISH of QoS 0 cannot be a duplicate (MQTT-3.3.1-2)")
    variable_header = topic_field
    if qos:
        variable_header += _identifier(packet_identifier)
    if properties:
        variable_header += properties
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
    level: int = 4,
    properties: PublishProperties | None = None,
) -> bytes:
    """PUBLISH (section 3.3); `packet_identifier` is needed at QoS 1 and 2, and left out at QoS 0."""
    header = publish_header(
        topic,
        len(payload),
        qos=qos,
        retain=retain,
        duplicate=duplicate,
        packet_identifier=packet_identifier,
        properties=property_codec.PUBLISH.encode(properties) if LEVELS[level].has_properties else b"",
    )
    return header + payload


def _acknowledgement(
    first_byte: int, packet_identifier: int, reason_code: int, explanation: ReasonProperties | None
) -> bytes:
    """The short form for success, the middle one for a reason code, the long one with properties (section 3.4.2)."""
    if not reason_code and explanation is None:
        return bytes((first_byte, 2)) + _identifier(packet_identifier)
    body = _identifier(packet_identifier) + bytes((reason_code,))
    if explanation is not None:
        body += property_codec.ANSWER.encode(explanation)
    return _packet(first_byte, body)


def puback(packet_identifier: int, reason_code: int = 0, explanation: ReasonProperties | None = None) -> bytes:
    """PUBACK, the answer to a PUBLISH of QoS 1 (section 3.4). Only level 5 has more than the identifier."""
    return _acknowledgement(0x40, packet_identifier, reason_code, explanation)


def pubrec(packet_identifier: int, reason_code: int = 0, explanation: ReasonProperties | None = None) -> bytes:
    """PUBREC, the first answer to a PUBLISH of QoS 2 (section 3.5). Only level 5 has more than the identifier."""
    return _acknowledgement(0x50, packet_identifier, reason_code, explanation)


def pubrel(packet_identifier: int, duplicate: bool = False, level: int = 4, *, reason_code: int = 0) -> bytes:
    """PUBREL, the answer to PUBREC (section 3.6). `duplicate` sets DUP, which only level 3 has in a repeat."""
    first_byte = 0x6A if duplicate and LEVELS[level].repeated_pubrel_has_dup else 0x62
    return _acknowledgement(first_byte, packet_identifier, reason_code, None)


def pubcomp(packet_identifier: int, reason_code: int = 0, explanation: ReasonProperties | None = None) -> bytes:
    """PUBCOMP, the answer to PUBREL (section 3.7). Only level 5 has more than the identifier."""
    return _acknowledgement(0x70, packet_identifier, reason_code, explanation)


def suback(
    packet_identifier: int, return_codes: bytes, *, level: int = 4, explanation: ReasonProperties | None = None
) -> bytes:
    """SUBACK (section 3.9): for each subscription the granted QoS, or 80 hex for failure (not in MQTT 3.1)."""
    properties = property_codec.ANSWER.encode(explanation) if LEVELS[level].has_properties else b""
    return _packet(0x90, _identifier(packet_identifier) + properties + return_codes)


def unsuback(
    packet_identifier: int, reason_codes: bytes = b"", *, level: int = 4, explanation: ReasonProperties | None = None
) -> bytes:
    """UNSUBACK (section 3.11); at level 5 with a reason code for each topic filter."""
    if not LEVELS[level].has_properties:
        return b"\xb0\x02" + _identifier(packet_identifier)
    return _packet(0xB0, _identifier(packet_identifier) + property_codec.ANSWER.encode(explanation) + reason_codes)


def disconnect(reason_code: int, properties: DisconnectProperties | None = None) -> bytes:
    """DISCONNECT of level 5 (section 3.14). Without a reason it has two bytes."""
    encoded = None if properties is None else property_codec.DISCONNECT.encode(properties)
    return _short_or_long(0xE0, reason_code, encoded)


def _short_or_long(first_byte: int, reason_code: int, properties: bytes | None) -> bytes:
    if properties is not None:
        return _packet(first_byte, bytes((reason_code,)) + properties)
    return bytes((first_byte, 1, reason_code)) if reason_code else bytes((first_byte, 0))
