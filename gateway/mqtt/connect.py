"""Reads CONNECT (MQTT 3.1.1 section 3.1), the one packet that chooses the protocol level of its connection.

Variable header: protocol name (text), level (1 byte), flags (1 byte: user name 80, password 40, will retain 20, will
QoS 18, will 04, clean session 02, unused 01), keep alive (2 bytes, seconds). Payload: client identifier, will topic,
will payload, user name, password, each behind a length of two bytes and there when announced.
"""

from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import ConnectReceived, ConnectRefused, Will
from gateway.mqtt.levels import LEVELS, Level
from gateway.mqtt.packets import ConnectReturnCode
from gateway.mqtt.topics import check_topic_name
from gateway.mqtt.wire import Fields

LONGEST_CLIENT_IDENTIFIER = (
    1_024  # our choice: every record of the session carries it; 3.1.1 asks for 23 (MQTT-3.1.3-5)
)

_USER_NAME, _PASSWORD, _WILL_RETAIN, _WILL_QOS, _WILL, _CLEAN_SESSION, _UNUSED = 0x80, 0x40, 0x20, 0x18, 4, 2, 1
_PROTOCOL_NAMES = frozenset(level.protocol_name for level in LEVELS.values())


def read_connect(fields: Fields) -> ConnectReceived | ConnectRefused:
    """Read a CONNECT behind its fixed header.

    A level that is not ours, or not that of the protocol name, and a client identifier that must be rejected give
    ConnectRefused. Raises MalformedPacket and ProtocolViolation; an unknown protocol name is the latter (MQTT-3.1.2-1).
    """
    protocol_name = fields.binary()
    if protocol_name not in _PROTOCOL_NAMES:
        raise ProtocolViolation(f"the protocol name is {protocol_name[:12]!r}, not MQTT or MQIsdp")
    number = fields.byte()
    level = LEVELS.get(number)
    if level is None or level.protocol_name != protocol_name:
        return ConnectRefused(
            ConnectReturnCode.UNACCEPTABLE_PROTOCOL_VERSION,
            f"level {number} of {protocol_name.decode()} is not served",
        )
    return _read_behind_level(fields, level)


def _read_behind_level(fields: Fields, level: Level) -> ConnectReceived | ConnectRefused:
    flags = fields.byte()
    _check_flags(flags, level)
    clean_session = flags & _CLEAN_SESSION != 0
    keep_alive_s = fields.number()
    client_identifier = fields.text()
    will = _read_will(fields, flags) if flags & _WILL else None
    user_name = fields.text() if _is_there(fields, flags & _USER_NAME, level) else None
    password = fields.binary() if _is_there(fields, flags & _PASSWORD, level) else None
    fields.finish()
    if not client_identifier and not (clean_session and level.empty_client_identifier_is_assigned):
        return ConnectRefused(ConnectReturnCode.IDENTIFIER_REJECTED, "the client identifier is empty (MQTT-3.1.3-8)")
    if len(client_identifier) > LONGEST_CLIENT_IDENTIFIER:
        return ConnectRefused(
            ConnectReturnCode.IDENTIFIER_REJECTED,
            f"the client identifier has {len(client_identifier)} characters, the limit is {LONGEST_CLIENT_IDENTIFIER}",
        )
    return ConnectReceived(level.number, client_identifier, clean_session, keep_alive_s, will, user_name, password)


def _check_flags(flags: int, level: Level) -> None:
    if flags & _PASSWORD and not flags & _USER_NAME:
        raise MalformedPacket("CONNECT has a password without a user name (MQTT-3.1.2-22)")
    if flags & _WILL and flags & _WILL_QOS == _WILL_QOS:
        raise MalformedPacket("CONNECT has a will of QoS 3 (MQTT-3.1.2-14)")
    if not level.unused_connect_flags_must_be_clear:
        return
    if flags & _UNUSED:
        raise MalformedPacket("CONNECT has the reserved flag set (MQTT-3.1.2-3)")
    if not flags & _WILL and flags & (_WILL_QOS | _WILL_RETAIN):
        raise MalformedPacket("CONNECT has QoS or RETAIN of a will, but no will (MQTT-3.1.2-13, 3.1.2-15)")


def _read_will(fields: Fields, flags: int) -> Will:
    topic = fields.text()
    check_topic_name(topic)
    return Will(topic, fields.binary(), (flags & _WILL_QOS) >> 3, flags & _WILL_RETAIN != 0)


def _is_there(fields: Fields, announced: int, level: Level) -> bool:
    """Level 3: the remaining length outweighs the flags of user name and password (MQTT 3.1 section 3.1, CONNECT)."""
    return announced != 0 and not (level.announced_fields_may_be_missing and fields.left == 0)
