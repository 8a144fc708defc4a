"""The properties of MQTT 5.0: what may stand in each packet (section 2.2.2.2, table 2-4), as values.

An absent property has the default of its field. The default means the same as the property's absence in the standard,
so a value equal to the default is not written. A field whose name is in the plural may stand in a packet many times.
`property_codec` reads and writes them.
"""

from enum import Enum
from typing import Final, NamedTuple

UserProperties = tuple[tuple[str, str], ...]
"""Names and values, in order. A name may come several times (section 2.2.2.2, User Property)."""

UNLIMITED_RECEIVE_MAXIMUM: Final = 65_535  # an absent Receive Maximum means this (section 3.1.2.11.3)
NEVER_EXPIRES_S: Final = 0xFFFF_FFFF  # Session Expiry Interval without an end (section 3.1.2.11.2)


class ConnectProperties(NamedTuple):
    """CONNECT (section 3.1.2.11). `maximum_packet_bytes` 0: the client takes packets of every size."""

    session_expiry_s: int = 0
    receive_maximum: int = UNLIMITED_RECEIVE_MAXIMUM
    maximum_packet_bytes: int = 0
    topic_alias_maximum: int = 0
    request_response_information: bool = False
    request_problem_information: bool = True
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    user_properties: UserProperties = ()


class WillProperties(NamedTuple):
    """The will (section 3.1.3.2)."""

    will_delay_s: int = 0
    payload_format_indicator: int | None = None
    message_expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: UserProperties = ()


class ConnackProperties(NamedTuple):
    """CONNACK (section 3.2.2.3). `session_expiry_s` None: as the client asked for."""

    session_expiry_s: int | None = None
    topic_alias_maximum: int = 0
    maximum_packet_bytes: int = 0
    receive_maximum: int = UNLIMITED_RECEIVE_MAXIMUM
    maximum_qos: int = 2
    retain_available: bool = True
    assigned_client_identifier: str | None = None
    reason_string: str | None = None
    user_properties: UserProperties = ()
    wildcard_subscription_available: bool = True
    subscription_identifiers_available: bool = True
    shared_subscription_available: bool = True
    server_keep_alive_s: int | None = None
    response_information: str | None = None
    server_reference: str | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None


class PublishProperties(NamedTuple):
    """PUBLISH (section 3.3.2.3). Only a PUBLISH of a server has subscription identifiers (MQTT-3.3.4-6)."""

    payload_format_indicator: int | None = None
    message_expiry_s: int | None = None
    topic_alias: int | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: UserProperties = ()
    subscription_identifiers: tuple[int, ...] = ()
    content_type: str | None = None


class ReasonProperties(NamedTuple):
    """PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK: for people, and left out if the packet gets too large."""

    reason_string: str | None = None
    user_properties: UserProperties = ()


class SubscribeProperties(NamedTuple):
    """SUBSCRIBE (section 3.8.2.1)."""

    subscription_identifier: int | None = None
    user_properties: UserProperties = ()


class UnsubscribeProperties(NamedTuple):
    """UNSUBSCRIBE (section 3.10.2.1)."""

    user_properties: UserProperties = ()


class DisconnectProperties(NamedTuple):
    """DISCONNECT (section 3.14.2.2). Only a client sends the expiry, and only a server the reference."""

    session_expiry_s: int | None = None
    reason_string: str | None = None
    user_properties: UserProperties = ()
    server_reference: str | None = None


class AuthProperties(NamedTuple):
    """AUTH (section 3.15.2.2)."""

    authentication_method: str | None = None
    authentication_data: bytes | None = None
    reason_string: str | None = None
    user_properties: UserProperties = ()


class PropertyKind(Enum):
    """The form of a property. BIT and FLAG are a byte of 0 or 1; a BIT is read as a number, a FLAG as a truth."""

    BIT = 1
    FLAG = 2
    TWO_BYTES = 3
    FOUR_BYTES = 4
    VARIABLE = 5
    TEXT = 6
    BINARY = 7
    TEXT_PAIR = 8


class Property(NamedTuple):
    """A row of table 2-4; `minimum`: the least value that the standard allows."""

    identifier: int
    kind: PropertyKind
    minimum: int = 0


PROPERTIES: Final = {
    "payload_format_indicator": Property(0x01, PropertyKind.BIT),
    "message_expiry_s": Property(0x02, PropertyKind.FOUR_BYTES),
    "content_type": Property(0x03, PropertyKind.TEXT),
    "response_topic": Property(0x08, PropertyKind.TEXT),
    "correlation_data": Property(0x09, PropertyKind.BINARY),
    "subscription_identifier": Property(0x0B, PropertyKind.VARIABLE, 1),
    "subscription_identifiers": Property(0x0B, PropertyKind.VARIABLE, 1),
    "session_expiry_s": Property(0x11, PropertyKind.FOUR_BYTES),
    "assigned_client_identifier": Property(0x12, PropertyKind.TEXT),
    "server_keep_alive_s": Property(0x13, PropertyKind.TWO_BYTES),
    "authentication_method": Property(0x15, PropertyKind.TEXT),
    "authentication_data": Property(0x16, PropertyKind.BINARY),
    "request_problem_information": Property(0x17, PropertyKind.FLAG),
    "will_delay_s": Property(0x18, PropertyKind.FOUR_BYTES),
    "request_response_information": Property(0x19, PropertyKind.FLAG),
    "response_information": Property(0x1A, PropertyKind.TEXT),
    "server_reference": Property(0x1C, PropertyKind.TEXT),
    "reason_string": Property(0x1F, PropertyKind.TEXT),
    "receive_maximum": Property(0x21, PropertyKind.TWO_BYTES, 1),
    "topic_alias_maximum": Property(0x22, PropertyKind.TWO_BYTES),
    "topic_alias": Property(0x23, PropertyKind.TWO_BYTES),  # 0 has a reason code of its own, see `topic_aliases`
    "maximum_qos": Property(0x24, PropertyKind.BIT),
    "retain_available": Property(0x25, PropertyKind.FLAG),
    "user_properties": Property(0x26, PropertyKind.TEXT_PAIR),
    "maximum_packet_bytes": Property(0x27, PropertyKind.FOUR_BYTES, 1),
    "wildcard_subscription_available": Property(0x28, PropertyKind.FLAG),
    "subscription_identifiers_available": Property(0x29, PropertyKind.FLAG),
    "shared_subscription_available": Property(0x2A, PropertyKind.FLAG),
}
"""Identifier and type of each property, by the name of its field."""

MAY_REPEAT: Final = frozenset({"user_properties", "subscription_identifiers"})
