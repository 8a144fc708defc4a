"""The properties of MQTT 5.0 in the header of a PUBLISH, as `audit explain` shows them: a name and a value each.

The names are those of mosquitto's clients, as for `rfhbridge explain --property`. The bytes come from a trail that
anybody may have changed.
"""

from collections.abc import Iterator
from typing import Final

from gateway.bridge.messages.usr_folder import properties_of_header
from gateway.mqtt.errors import PeerError
from gateway.mqtt.levels import PacketType

#: Names that differ from the field's.
_NAMES: Final = {
    "message_expiry_s": "message-expiry-interval",
    "user_properties": "user-property",
    "subscription_identifiers": "subscription-identifier",
}


def publish_properties(header: bytes) -> Iterator[str]:
    """A text for each property of a PUBLISH of protocol level 5; none if it has none or cannot be read."""
    if not header or header[0] >> 4 != PacketType.PUBLISH:
        return
    try:
        found = properties_of_header(header)
    except (PeerError, IndexError):
        return
    for field, value in () if found is None else found._asdict().items():
        name = _NAMES.get(field, field.replace("_", "-"))
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None:
                yield f"{name} {_text(each)}"


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return "=".join(value) if isinstance(value, tuple) else str(value)
