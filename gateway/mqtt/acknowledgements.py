"""Reads PUBACK, PUBREC, PUBREL and PUBCOMP in any form, and hands them to the session (MQTT 5.0 sections 3.4 to 3.7).

Packet identifier (2 bytes); at level 5 an optional reason code (1 byte) and optional properties. The usual
form, the identifier alone, is read by `receiver` itself.
"""

from gateway.mqtt import property_codec
from gateway.mqtt.errors import MalformedPacket, ProtocolViolation
from gateway.mqtt.events import Event, ReleaseReceived
from gateway.mqtt.levels import Level, PacketType
from gateway.mqtt.outgoing_flows import OutgoingFlows
from gateway.mqtt.properties import ReasonProperties
from gateway.mqtt.reason_codes import ACKNOWLEDGEMENT_CODES, FAILURE, RELEASE_CODES
from gateway.mqtt.wire import Fields

_CODES = {
    PacketType.PUBACK: ACKNOWLEDGEMENT_CODES,
    PacketType.PUBREC: ACKNOWLEDGEMENT_CODES,
    PacketType.PUBREL: RELEASE_CODES,
    PacketType.PUBCOMP: RELEASE_CODES,
}


def read_acknowledgement(packet_type: PacketType, fields: Fields, flows: OutgoingFlows, level: Level) -> Event | None:
    """Reads an acknowledgement behind its fixed header; None if it changes no flow.

    A fault of the peer raises a PeerError.
    """
    if fields.left != 2 and not (level.has_properties and fields.left > 2):
        raise MalformedPacket(f"{packet_type.name} has a remaining length of {fields.left}")
    packet_identifier = fields.number()
    if not packet_identifier:
        raise ProtocolViolation(f"{packet_type.name} has the packet identifier 0")
    reason_code = fields.byte() if fields.left else 0
    properties: ReasonProperties | None = property_codec.ANSWER.read(fields) if fields.left else None
    fields.finish()
    if reason_code not in _CODES[packet_type]:
        raise ProtocolViolation(f"{packet_type.name} has the reason code {reason_code:02X}")
    if packet_type is PacketType.PUBREL:
        return ReleaseReceived(packet_identifier)
    if reason_code >= FAILURE and packet_type is not PacketType.PUBCOMP:
        return flows.note_refusal(packet_type, packet_identifier, reason_code, properties)
    event = flows.note_acknowledgement(packet_type, packet_identifier)
    if event is None and level.acknowledgements_must_fit:
        flows.check_order(packet_type, packet_identifier)
    return event
