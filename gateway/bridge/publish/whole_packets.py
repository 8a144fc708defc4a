"""A PUBLISH that no header of MQ can express is kept whole: the packet itself is the body of a dead letter.

MQMD.Format is RFHBMQTn, where n is the protocol level of MQTT: 3, 4 or 5. The body is fixed header, topic name, packet
identifier at QoS 1 and 2, properties at level 5, and the payload (MQTT 3.1.1 section 3.3, 5.0 section 3.3). A topic
alias is replaced by its name. A will is kept as the PUBLISH that it would have become. No client chose a packet
identifier for it, so that is 1.
"""

from typing import Final

from gateway.bridge.commands.target_messages import APPLICATION_NAME
from gateway.bridge.messages.usr_folder import properties_of_header
from gateway.mqtt import packets
from gateway.mqtt.events import Will
from gateway.mqtt.properties import PublishProperties
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.record.packet_header import first_byte_fields, packet_identifier, topic_bytes

FORMAT_PREFIX: Final = b"RFHBMQT"
_QOS: Final = 0x06


def whole_publish(header: bytes, topic: str, payload: bytes) -> bytes:
    """The packet of a PUBLISH, from its header as it came. The topic replaces an alias."""
    if topic_bytes(header):
        return header + payload
    qos, retain, duplicate = first_byte_fields(header[0])
    told = properties_of_header(header)
    return packets.publish(
        topic,
        payload,
        qos=qos,
        retain=retain,
        duplicate=duplicate,
        packet_identifier=packet_identifier(header) if qos else 0,
        level=5,  # the first level with aliases
        properties=None if told is None else told._replace(topic_alias=None),
    )


def whole_will(will: Will, level: int) -> bytes:
    """The packet of the PUBLISH that a will would have become."""
    told, properties = will.properties, None
    if told is not None:
        properties = PublishProperties(
            payload_format_indicator=told.payload_format_indicator,
            message_expiry_s=told.message_expiry_s,
            content_type=told.content_type,
            response_topic=told.response_topic,
            correlation_data=told.correlation_data,
            user_properties=told.user_properties,
        )
    return packets.publish(
        will.topic,
        will.payload,
        qos=will.qos,
        retain=will.retain,
        packet_identifier=1 if will.qos else 0,
        level=level,
        properties=properties,
    )


def packet_message(packet: bytes, level: int, origin: bytes) -> Message:
    """The message that holds a PUBLISH packet; it is persistent unless QoS is 0."""
    persistence = MQPER_PERSISTENT if packet[0] & _QOS else MQPER_NOT_PERSISTENT
    descriptor = MessageDescriptor(
        format=FORMAT_PREFIX + str(level).encode(), persistence=persistence, put_appl_name=APPLICATION_NAME
    )
    return Message(descriptor, packet, origin)
