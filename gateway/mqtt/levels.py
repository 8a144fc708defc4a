"""The protocol levels as a table: the packets that a server may receive at each, and all other differences.

    first byte          level 3 (3.1)                levels 4 (3.1.1) and 5 (5.0)
    10  CONNECT         its flags are not used       10 only (MQTT-2.2.2-2, at level 5 MQTT-2.1.3-1)
    3x  PUBLISH         DUP with QoS 0 is tolerated  DUP with QoS 0 is malformed (MQTT-3.3.1-2)
    62  PUBREL          DUP too, RETAIN not used     62 only (MQTT-3.6.1-1)
    82  SUBSCRIBE       DUP too, RETAIN not used     82 only (MQTT-3.8.1-1)
    A2  UNSUBSCRIBE     DUP too, RETAIN not used     A2 only (MQTT-3.10.1-1)
    40 50 70 C0 E0      its flags are not used       PUBACK PUBREC PUBCOMP PINGREQ DISCONNECT: these only
    F0                                               AUTH, at level 5 only
    texts           control characters are taken     control characters are malformed (section 1.5.3, 1.5.4)

A further level is a further row. Code that treats levels differently asks the row, and never compares numbers.
"""

from dataclasses import dataclass
from enum import IntEnum

from gateway.mqtt.errors import MalformedPacket, PeerError, ProtocolViolation
from gateway.mqtt.property_codec import LONGEST_PROPERTIES_BYTES
from gateway.mqtt.topics import TOPIC_NAMES, TOPIC_NAMES_OF_3_1, TopicNames
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH, Fields


class PacketType(IntEnum):
    """Bits 7-4 of the first byte; 0 is reserved, and 15 is before MQTT 5.0 (table 2.1)."""

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
    AUTH = 15


#: Variable header of 12 bytes at level 3, and five fields of 2 + 65,535 bytes; at level 5 our choice.
LONGEST_CONNECT_BYTES = 327_697
LONGEST_SUBSCRIBE_BYTES = 1_048_576  # our choice: an entry of 4 bytes takes some 125 in memory

_LONGEST = {
    PacketType.CONNECT: LONGEST_CONNECT_BYTES,
    PacketType.PUBLISH: MAXIMUM_REMAINING_LENGTH,
    PacketType.SUBSCRIBE: LONGEST_SUBSCRIBE_BYTES,
    PacketType.UNSUBSCRIBE: LONGEST_SUBSCRIBE_BYTES,
    PacketType.PINGREQ: 0,
    PacketType.PINGRESP: 0,
    PacketType.DISCONNECT: 0,
}
_WITH_PROPERTIES = {
    packet_type: LONGEST_PROPERTIES_BYTES
    for packet_type in PacketType
    if packet_type not in (PacketType.CONNECT, PacketType.PINGREQ, PacketType.PINGRESP)
}


def _longest(by_type: dict[PacketType, int]) -> tuple[int, ...]:
    return tuple(by_type.get(PacketType(number), 2) if number else 0 for number in range(16))


LONGEST = _longest(_LONGEST)
"""For each packet type the largest remaining length in bytes; 2 is a packet identifier, or the two bytes of CONNACK."""

LONGEST_WITH_PROPERTIES = _longest(_WITH_PROPERTIES | _LONGEST | {PacketType.DISCONNECT: LONGEST_PROPERTIES_BYTES})
"""The largest remaining lengths at level 5."""

#: Packets that no client may send. That is their error even when their flags are wrong too: of several errors the
#: server may choose any (MQTT 5.0 section 4.13.2).
_WRONG_BEFORE_FLAGS = (PacketType.CONNACK, PacketType.PINGRESP)

_RECEIVED_AT_ALL = "30 31 32 33 34 35 3A 3B 3C 3D 40 50 62 70 82 A2 C0 E0"
#: Flags that MQTT 3.1 does not use, as it says of each packet, may be set.
_RECEIVED_IN_3_1 = "38 39 63 6A 6B 83 8A 8B A3 AA AB" + "".join(
    f"{packet_type}{flags:X}" for packet_type in "457CE" for flags in range(16)
)


def _received(first_bytes: str) -> bytes:
    table = bytearray(256)
    for first_byte in bytes.fromhex(first_bytes):
        table[first_byte] = first_byte >> 4
    return bytes(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One protocol level. Each way in which levels differ is an attribute here.

    `version`: of MQTT, as people say it. `received`: for each first byte the packet type; 0 if a server may not receive
    it. `longest`: for each packet type the largest remaining length. `acknowledgements_must_fit`: if true, an
    acknowledgement of the other QoS, or before its turn, is a violation; otherwise it is ignored.
    """

    number: int
    version: str
    protocol_name: bytes
    received: bytes
    longest: tuple[int, ...] = LONGEST
    #: Nearly every packet has properties: Will Delay, Session Expiry, Topic Alias, Maximum Packet Size and others.
    has_properties: bool = False
    #: PUBACK, PUBREC, SUBACK and UNSUBACK say why something is refused, and DISCONNECT why the server closes.
    has_reason_codes: bool = False
    has_shared_subscriptions: bool = False
    #: CONNACK says whether there is a session.
    has_session_present: bool = True
    #: SUBACK can say that a filter is refused.
    suback_can_refuse: bool = True
    #: A PUBREL that is sent again has DUP set.
    repeated_pubrel_has_dup: bool = False
    connect_flags_must_be_clear: bool = True
    unused_connect_flags_must_be_clear: bool = True
    announced_fields_may_be_missing: bool = False
    password_needs_user_name: bool = True
    empty_client_identifier_is_assigned: bool = True
    empty_client_identifier_needs_clean_session: bool = True
    acknowledgements_must_fit: bool = True
    texts_may_hold_control_characters: bool = False

    def text(self, fields: Fields) -> str:
        """The next field, a text."""
        return fields.any_text() if self.texts_may_hold_control_characters else fields.text()

    @property
    def topic_names(self) -> TopicNames:
        """Topic names by their bytes."""
        return TOPIC_NAMES_OF_3_1 if self.texts_may_hold_control_characters else TOPIC_NAMES


MQTT_3_1 = Level(
    number=3,
    version="3.1",
    protocol_name=b"MQIsdp",
    received=_received(_RECEIVED_AT_ALL + _RECEIVED_IN_3_1),
    has_session_present=False,
    suback_can_refuse=False,
    repeated_pubrel_has_dup=True,
    connect_flags_must_be_clear=False,
    unused_connect_flags_must_be_clear=False,
    announced_fields_may_be_missing=True,
    empty_client_identifier_is_assigned=False,
    acknowledgements_must_fit=False,
    texts_may_hold_control_characters=True,
)
MQTT_3_1_1 = Level(
    number=4,
    version="3.1.1",
    protocol_name=b"MQTT",
    received=_received(_RECEIVED_AT_ALL),
)
MQTT_5_0 = Level(
    number=5,
    version="5",
    protocol_name=b"MQTT",
    received=_received(_RECEIVED_AT_ALL + "F0"),
    longest=LONGEST_WITH_PROPERTIES,
    has_properties=True,
    has_reason_codes=True,
    has_shared_subscriptions=True,
    password_needs_user_name=False,
    empty_client_identifier_needs_clean_session=False,
)

LEVELS = {level.number: level for level in (MQTT_3_1, MQTT_3_1_1, MQTT_5_0)}
BEFORE_MQTT_5 = frozenset(number for number, level in LEVELS.items() if not level.has_properties)


def explain_first_byte(first_byte: int, level: Level) -> PeerError:
    """Why a server cannot accept a first byte that `level.received` does not have."""
    number = first_byte >> 4
    if number == 0 or (number == PacketType.AUTH and not level.has_properties):
        return ProtocolViolation(f"the packet type {number} is reserved")
    packet_type = PacketType(number)
    if packet_type is PacketType.CONNECT:
        return ProtocolViolation("CONNECT was sent on a connection that has one (MQTT-3.1.0-2)")
    if packet_type is PacketType.AUTH:
        return ProtocolViolation("AUTH was sent, with flags, and no authentication is under way (MQTT-4.12.0-7)")
    if number not in level.received and (not first_byte & 15 or packet_type in _WRONG_BEFORE_FLAGS):
        return ProtocolViolation(f"{packet_type.name} was sent in the wrong direction (table 2.1)")
    if packet_type is not PacketType.PUBLISH:
        return MalformedPacket(f"{packet_type.name} has the flags {first_byte & 15:04b} (MQTT-2.2.2-2)")
    if first_byte & 6 == 6:
        return MalformedPacket("PUBLISH has QoS 3 (MQTT-3.3.1-4)")
    return MalformedPacket("PUBLISH of QoS 0 has DUP set (MQTT-3.3.1-2)")
