"""Reads DISCONNECT and checks AUTH (MQTT 5.0 sections 3.14, 3.15): optional reason code (1 byte), optional properties.

At levels 3 and 4 DISCONNECT has neither: its remaining length must be 0 (`levels.LONGEST`).
"""

from gateway.mqtt import property_codec
from gateway.mqtt.errors import ProtocolViolation
from gateway.mqtt.events import DisconnectReceived
from gateway.mqtt.reason_codes import AUTH_CODES, DISCONNECT_CODES_OF_CLIENT
from gateway.mqtt.wire import Fields


def read_disconnect(fields: Fields) -> DisconnectReceived:
    """Read a client's DISCONNECT behind its fixed header."""
    reason_code = _read_reason_code(fields)
    properties = property_codec.DISCONNECT.read(fields) if fields.left else None
    fields.finish()
    if reason_code not in DISCONNECT_CODES_OF_CLIENT:
        raise ProtocolViolation(f"DISCONNECT has the reason code {reason_code:02X} (MQTT-3.14.2-1)")
    return DisconnectReceived(reason_code, properties)


def check_auth(fields: Fields) -> None:
    """Raise if an AUTH is malformed or has an unknown reason code; `fields` stands behind the fixed header."""
    reason_code = _read_reason_code(fields)
    if fields.left:
        property_codec.AUTH.read(fields)
    fields.finish()
    if reason_code not in AUTH_CODES:
        raise ProtocolViolation(f"AUTH has the reason code {reason_code:02X} (MQTT-3.15.2-1)")


def _read_reason_code(fields: Fields) -> int:
    return fields.byte() if fields.left else 0
