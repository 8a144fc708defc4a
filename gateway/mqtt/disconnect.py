"""Reads DISCONNECT and AUTH (MQTT 5.0 sections 3.14, 3.15): optional reason code (1 byte) and optional properties.

At levels 3 and 4 DISCONNECT has neither: its remaining length must be 0 (`levels.LONGEST`).
"""

from collections.abc import Container

from gateway.mqtt import property_codec
from gateway.mqtt.errors import ProtocolViolation
from gateway.mqtt.events import AuthReceived, DisconnectReceived
from gateway.mqtt.reason_codes import AUTH_CODES
from gateway.mqtt.wire import Fields


def read_disconnect(fields: Fields, allowed: Container[int]) -> DisconnectReceived:
    """Read a DISCONNECT behind its fixed header; `allowed`: the reason codes of the side that sent it."""
    reason_code = _read_reason_code(fields)
    properties = property_codec.DISCONNECT.read(fields) if fields.left else None
    fields.finish()
    if reason_code not in allowed:
        raise ProtocolViolation(f"DISCONNECT has the reason code {reason_code:02X} (MQTT-3.14.2-1)")
    return DisconnectReceived(reason_code, properties)


def read_auth(fields: Fields) -> AuthReceived:
    """Read an AUTH behind its fixed header."""
    reason_code = _read_reason_code(fields)
    properties = property_codec.AUTH.read(fields) if fields.left else None
    fields.finish()
    if reason_code not in AUTH_CODES:
        raise ProtocolViolation(f"AUTH has the reason code {reason_code:02X} (MQTT-3.15.2-1)")
    return AuthReceived(reason_code, properties)


def _read_reason_code(fields: Fields) -> int:
    return fields.byte() if fields.left else 0
