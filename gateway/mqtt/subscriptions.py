"""Reads SUBSCRIBE and UNSUBSCRIBE (MQTT 3.1.1 sections 3.8 and 3.10).

Packet identifier (2 bytes), then at least one entry: topic filter (text) and, in SUBSCRIBE, the requested QoS (1 byte,
0..2).
"""

from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import SubscribeReceived, UnsubscribeReceived
from gateway.mqtt.topics import check_topic_filter
from gateway.mqtt.wire import Fields


def read_subscribe(fields: Fields) -> SubscribeReceived:
    """Read a SUBSCRIBE behind its fixed header; MalformedPacket or ProtocolViolation is the client's fault."""
    packet_identifier = fields.packet_identifier()
    subscriptions: list[tuple[str, int]] = []
    entries: list[bytes] = []
    while fields.left:
        start = fields.position
        subscriptions.append((_read_topic_filter(fields), _read_qos(fields)))
        entries.append(fields.data[start : fields.position])
    if not entries:
        raise ProtocolViolation("SUBSCRIBE has no topic filter (MQTT-3.8.3-3)")
    return SubscribeReceived(packet_identifier, tuple(subscriptions), tuple(entries))


def read_unsubscribe(fields: Fields) -> UnsubscribeReceived:
    """Read an UNSUBSCRIBE behind its fixed header; MalformedPacket or ProtocolViolation is the client's fault."""
    packet_identifier = fields.packet_identifier()
    topic_filters: list[str] = []
    entries: list[bytes] = []
    while fields.left:
        start = fields.position
        topic_filters.append(_read_topic_filter(fields))
        entries.append(fields.data[start : fields.position])
    if not entries:
        raise ProtocolViolation("UNSUBSCRIBE has no topic filter (MQTT-3.10.3-2)")
    return UnsubscribeReceived(packet_identifier, tuple(topic_filters), tuple(entries))


def _read_topic_filter(fields: Fields) -> str:
    topic_filter = fields.text()
    check_topic_filter(topic_filter)
    return topic_filter


def _read_qos(fields: Fields) -> int:
    qos = fields.byte()
    if qos > 2:
        raise MalformedPacket(f"SUBSCRIBE requests the QoS byte {qos:02X}, it must be 0, 1 or 2 (MQTT-3.8.3-4)")
    return qos
