"""Reads CONNECT (MQTT 3.1.1 and 5.0, section 3.1), the one packet that chooses the level of its connection.

Variable header: protocol name (text), level (1 byte), flags (1 byte: user name 80, password 40, will retain 20, will
QoS 18, will 04, clean session 02, unused 01), keep alive (2 bytes, seconds), at level 5 properties. Payload: client
identifier, at level 5 the will's properties, will topic, will payload, user name, password, each field behind a length
of two bytes and there when announced.
"""

from collections.abc import Container

from gateway.mqtt import packets, property_codec
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import ConnectReceived, ConnectRefused, Will
from gateway.mqtt.incoming import check_response_topic
from gateway.mqtt.levels import LEVELS, MQTT_3_1, MQTT_5_0, Level
from gateway.mqtt.properties import ConnackProperties, ConnectProperties
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode
from gateway.mqtt.topics import check_topic_name
from gateway.mqtt.wire import Fields
from gateway.mqtt.writer import PacketWriter

LONGEST_CLIENT_IDENTIFIER = (
    1_024  # our choice: every record of the session carries it; 3.1.1 asks for 23 (MQTT-3.1.3-5)
)

_USER_NAME, _PASSWORD, _WILL_RETAIN, _WILL_QOS, _WILL, _CLEAN_SESSION, _UNUSED = 0x80, 0x40, 0x20, 0x18, 4, 2, 1
_BRIDGE = 0x80  # what bridges of levels 3 and 4 add to the level
_PROTOCOL_NAMES = frozenset(level.protocol_name for level in LEVELS.values())
#: The reason code of a CONNACK, and why, for the log.
_Problem = tuple[ReasonCode, str]


def read_level(fields: Fields, served: Container[int]) -> Level | ConnectRefused:
    """Read protocol name and level of a CONNECT; `served`: the numbers of the levels that may connect.

    ConnectRefused is the result for a level that is not served, and for a level that the protocol name does not have.
    It has the form of levels 3 and 4 if the client is older than level 5. It also has that form if the level is unknown
    and the CONNECT has no properties. From level 5 on, an unknown protocol name gives ConnectRefused too; at earlier
    levels it raises ProtocolViolation (MQTT-3.1.2-1).
    """
    protocol_name = fields.binary()
    if protocol_name not in _PROTOCOL_NAMES:
        reason = f"the protocol name is {protocol_name[:12]!r}, not MQTT or MQIsdp"
        if fields.left and fields.byte() & ~_BRIDGE >= MQTT_5_0.number:
            return _refused(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, reason, MQTT_5_0.number)
        raise ProtocolViolation(reason)
    number = fields.byte()
    level = LEVELS.get(number)
    if level is not None and level.protocol_name == protocol_name and number in served:
        return level
    reason = f"level {number} of {protocol_name.decode()} is not served"
    is_of_the_time_before = protocol_name == MQTT_3_1.protocol_name or number & ~_BRIDGE < MQTT_5_0.number
    if is_of_the_time_before or (level is None and _has_no_properties(fields)):
        return_code = CONNECT_RETURN_CODES[ReasonCode.UNSUPPORTED_PROTOCOL_VERSION]
        return ConnectRefused(return_code, reason, packets.connack(False, return_code))
    return _refused(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, reason, MQTT_5_0.number)


def _has_no_properties(fields: Fields) -> bool:
    """Whether the rest of a CONNECT, behind its level, has exactly the layout of level 4."""
    try:
        flags = fields.byte()
        fields.number()  # keep alive
        for announced in (True, flags & _WILL, flags & _WILL, flags & _USER_NAME, flags & _PASSWORD):
            if announced:
                fields.binary()
    except MalformedPacket:
        return False
    return not fields.left


def read_connect(fields: Fields, level: Level) -> ConnectReceived | ConnectRefused:
    """Read a CONNECT behind its level. Returns ConnectRefused if a return code must reject it.

    Raises MalformedPacket, ProtocolViolation and LimitExceeded.
    """
    flags = fields.byte()
    _check_flags(flags, level)
    clean_session = flags & _CLEAN_SESSION != 0
    keep_alive_s = fields.number()
    properties = property_codec.CONNECT.read(fields) if level.has_properties else None
    client_identifier = level.text(fields)
    will = _read_will(fields, flags, level) if flags & _WILL else None
    user_name = level.text(fields) if _is_there(fields, flags & _USER_NAME, level) else None
    password = fields.binary() if _is_there(fields, flags & _PASSWORD, level) else None
    fields.finish()
    problem = _problem_of_method(properties) or _problem_of_identifier(client_identifier, clean_session, level)
    if problem is not None:
        return _refused(*problem, level.number, properties.maximum_packet_bytes if properties is not None else 0)
    return ConnectReceived(
        level.number, client_identifier, clean_session, keep_alive_s, will, user_name, password, properties
    )


def _problem_of_identifier(client_identifier: str, clean_session: bool, level: Level) -> _Problem | None:
    characters = len(client_identifier)
    if characters > LONGEST_CLIENT_IDENTIFIER:
        reason = f"the client identifier has {characters} characters, the limit is {LONGEST_CLIENT_IDENTIFIER}"
        return ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason
    is_assigned = level.empty_client_identifier_is_assigned and (
        clean_session or not level.empty_client_identifier_needs_clean_session
    )
    if not client_identifier and not is_assigned:
        reason = "the client identifier is empty (MQTT-3.1.3-8)"
        return ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, reason
    return None


def _problem_of_method(properties: ConnectProperties | None) -> _Problem | None:
    """Refuses each authentication method (MQTT-4.12.0-1). Data without a method raises ProtocolViolation."""
    if properties is None:
        return None
    if properties.authentication_method is not None:
        reason = f"the authentication method {properties.authentication_method[:32]!r} is not known"
        return ReasonCode.BAD_AUTHENTICATION_METHOD, reason
    if properties.authentication_data is not None:
        raise ProtocolViolation("CONNECT has authentication data without a method (section 3.1.2.11.10)")
    return None


def _refused(reason_code: ReasonCode, reason: str, level: int, maximum_bytes: int = 0) -> ConnectRefused:
    """A ConnectRefused with its CONNACK of at most `maximum_bytes` (0: any); b"" if none fits (MQTT-3.1.2-24)."""
    return_code = CONNECT_RETURN_CODES[reason_code] if not LEVELS[level].has_reason_codes else reason_code
    answer = PacketWriter(level, maximum_packet_bytes=maximum_bytes).connack(False, return_code, ConnackProperties())
    return ConnectRefused(return_code, reason, answer)


def _check_flags(flags: int, level: Level) -> None:
    if flags & _PASSWORD and not flags & _USER_NAME and level.password_needs_user_name:
        raise MalformedPacket("CONNECT has a password without a user name (MQTT-3.1.2-22)")
    if flags & _WILL and flags & _WILL_QOS == _WILL_QOS:
        raise MalformedPacket("CONNECT has a will of QoS 3 (MQTT-3.1.2-14)")
    if not level.unused_connect_flags_must_be_clear:
        return
    if flags & _UNUSED:
        raise MalformedPacket("CONNECT has the reserved flag set (MQTT-3.1.2-3)")
    if not flags & _WILL and flags & (_WILL_QOS | _WILL_RETAIN):
        raise MalformedPacket("CONNECT has QoS or RETAIN of a will, but no will (MQTT-3.1.2-13, 3.1.2-15)")


def _read_will(fields: Fields, flags: int, level: Level) -> Will:
    properties = property_codec.WILL.read(fields) if level.has_properties else None
    if properties is not None:
        check_response_topic(properties.response_topic)
    topic = level.text(fields)
    check_topic_name(topic)
    return Will(topic, fields.binary(), (flags & _WILL_QOS) >> 3, flags & _WILL_RETAIN != 0, properties)


def _is_there(fields: Fields, announced: int, level: Level) -> bool:
    """Level 3: the remaining length outweighs the flags of user name and password (MQTT 3.1 section 3.1, CONNECT)."""
    return announced != 0 and not (level.announced_fields_may_be_missing and fields.left == 0)
