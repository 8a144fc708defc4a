"""Reads SUBSCRIBE and UNSUBSCRIBE (MQTT 3.1.1 and 5.0, sections 3.8 and 3.10).

Packet identifier (2 bytes), at level 5 properties, then at least one entry: topic filter (text) and, in SUBSCRIBE, the
requested QoS (1 byte, 0..2; at level 5 also no local 04, retain as published 08, retain handling 30).
"""

from gateway.mqtt import property_codec
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import SubscribeReceived, SubscriptionOptions, UnsubscribeReceived
from gateway.mqtt.levels import Level
from gateway.mqtt.topics import check_shared_filter, check_topic_filter, share_of
from gateway.mqtt.wire import Fields

_QOS, _NO_LOCAL, _RETAIN_AS_PUBLISHED, _RETAIN_HANDLING, _RESERVED = 0x03, 0x04, 0x08, 0x30, 0xC0


def read_subscribe(fields: Fields, level: Level) -> SubscribeReceived:
    """Read a SUBSCRIBE behind its fixed header; MalformedPacket or ProtocolViolation is the client's fault."""
    packet_identifier = fields.packet_identifier()
    properties = property_codec.SUBSCRIBE.read(fields) if level.has_properties else None
    subscriptions: list[tuple[str, int]] = []
    entries: list[bytes] = []
    options: list[SubscriptionOptions] = []
    while fields.left:
        start = fields.position
        topic_filter = _read_topic_filter(fields, level)
        if level.has_properties:
            qos, asked = _read_options(fields, topic_filter)
            options.append(asked)
        else:
            qos = _read_qos(fields)
        subscriptions.append((topic_filter, qos))
        entries.append(fields.data[start : fields.position])
    if not entries:
        raise ProtocolViolation("SUBSCRIBE has no topic filter (MQTT-3.8.3-3, at level 5 MQTT-3.8.3-2)")
    return SubscribeReceived(packet_identifier, tuple(subscriptions), tuple(entries), tuple(options), properties)


def read_unsubscribe(fields: Fields, level: Level) -> UnsubscribeReceived:
    """Read an UNSUBSCRIBE behind its fixed header; MalformedPacket or ProtocolViolation is the client's fault."""
    packet_identifier = fields.packet_identifier()
    properties = property_codec.UNSUBSCRIBE.read(fields) if level.has_properties else None
    topic_filters: list[str] = []
    entries: list[bytes] = []
    while fields.left:
        start = fields.position
        topic_filters.append(_read_topic_filter(fields, level))
        entries.append(fields.data[start : fields.position])
    if not entries:
        raise ProtocolViolation("UNSUBSCRIBE has no topic filter (MQTT-3.10.3-2)")
    return UnsubscribeReceived(packet_identifier, tuple(topic_filters), tuple(entries), properties)


def _read_topic_filter(fields: Fields, level: Level) -> str:
    topic_filter = level.text(fields)
    check_topic_filter(topic_filter)
    if level.has_properties:
        check_shared_filter(topic_filter)
    return topic_filter


def _read_options(fields: Fields, topic_filter: str) -> tuple[int, SubscriptionOptions]:
    """QoS and options of an entry of level 5."""
    flags = fields.byte()
    if flags & _RESERVED:
        raise MalformedPacket(f"the subscription options {flags:02X} have a reserved bit (MQTT-3.8.3-5)")
    qos, retain_handling = flags & _QOS, (flags & _RETAIN_HANDLING) >> 4
    if qos == 3 or retain_handling == 3:
        raise ProtocolViolation(f"the subscription options {flags:02X} have QoS or retain handling 3 (section 3.8.3.1)")
    no_local = flags & _NO_LOCAL != 0
    if no_local and share_of(topic_filter) is not None:
        raise ProtocolViolation("a shared subscription has no local set (MQTT-3.8.3-4)")
    return qos, SubscriptionOptions(no_local, flags & _RETAIN_AS_PUBLISHED != 0, retain_handling)


def _read_qos(fields: Fields) -> int:
    qos = fields.byte()
    if qos > 2:
        raise MalformedPacket(f"SUBSCRIBE requests the QoS byte {qos:02X}, it must be 0, 1 or 2 (MQTT-3.8.3-4)")
    return qos
