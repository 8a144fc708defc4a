"""The packets that a client of one level may get, judged by the tables of MQTT 3.1, 3.1.1 and 5.0 (chapter 3)."""

from typing import Final

from gateway.mqtt import property_codec
from gateway.mqtt.errors import MalformedPacket
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.property_codec import PropertySection
from gateway.mqtt.reason_codes import (
    ACKNOWLEDGEMENT_CODES,
    CONNACK_CODES,
    DISCONNECT_CODES_OF_SERVER,
    RELEASE_CODES,
    SUBACK_CODES,
    UNSUBACK_CODES,
)
from gateway.mqtt.wire import Fields, decode_remaining_length

FIRST_BYTES: Final = bytes.fromhex("20 30 31 32 33 34 35 3A 3B 3C 3D 40 50 62 70 90 B0 D0")
FIRST_BYTES_OF_3_1: Final = FIRST_BYTES + b"\x6a"
FIRST_BYTES_OF_5: Final = FIRST_BYTES + b"\xe0"
ANSWER_CODES: Final = {
    PacketType.PUBACK: ACKNOWLEDGEMENT_CODES,
    PacketType.PUBREC: ACKNOWLEDGEMENT_CODES,
    PacketType.PUBREL: RELEASE_CODES,
    PacketType.PUBCOMP: RELEASE_CODES,
}


class ServerPackets:
    """Cuts what a server sends into packets and reads each; MalformedPacket or AssertionError for what is wrong."""

    def __init__(self, level: int) -> None:
        self._rules = LEVELS[level]
        self._first_bytes = {3: FIRST_BYTES_OF_3_1, 4: FIRST_BYTES, 5: FIRST_BYTES_OF_5}[level]
        self._rest = b""

    def read(self, data: bytes) -> None:
        self._rest += data
        while self._rest:
            assert self._rest[0] in self._first_bytes, self._rest[:20].hex(" ")
            length, body = decode_remaining_length(self._rest, 1)
            if length < 0 or body + length > len(self._rest):
                return
            fields = Fields(self._rest, body, body + length)
            self._read_packet(PacketType(self._rest[0] >> 4), self._rest[0] & 15, fields)
            fields.finish()
            self._rest = self._rest[body + length :]

    def _read_packet(self, packet_type: PacketType, flags: int, fields: Fields) -> None:
        if packet_type is PacketType.CONNACK:
            self._read_connack(fields)
        elif packet_type is PacketType.PUBLISH:
            self._read_publish(flags >> 1 & 3, fields)
        elif packet_type in ANSWER_CODES:
            fields.packet_identifier()
            self._read_reason(ANSWER_CODES[packet_type], property_codec.ANSWER, fields)
        elif packet_type is PacketType.DISCONNECT:
            self._read_reason(DISCONNECT_CODES_OF_SERVER, property_codec.DISCONNECT, fields)
        elif packet_type is PacketType.SUBACK:
            self._read_list(SUBACK_CODES if self._rules.has_properties else frozenset((0, 1, 2, 0x80)), fields)
        elif packet_type is PacketType.UNSUBACK:
            self._read_list(UNSUBACK_CODES if self._rules.has_properties else frozenset(), fields)

    def _read_connack(self, fields: Fields) -> None:
        session_present, code = fields.byte(), fields.byte()
        assert session_present <= (not code and self._rules.has_session_present)
        assert code in CONNACK_CODES if self._rules.has_properties else code <= 5
        if self._rules.has_properties:
            property_codec.CONNACK.read(fields)

    def _read_publish(self, qos: int, fields: Fields) -> None:
        """The clients of the fuzzer allow no topic alias."""
        topic = self._rules.text(fields)
        assert topic
        assert not {"+", "#"} & set(topic), topic
        if qos:
            fields.packet_identifier()
        if self._rules.has_properties:
            properties = property_codec.PUBLISH.read(fields)
            assert properties is None or properties.topic_alias is None
        fields.take(fields.left)

    def _read_reason(self, allowed: frozenset[int], section: PropertySection, fields: Fields) -> None:
        if fields.left and not self._rules.has_properties:
            raise MalformedPacket("a reason code before level 5")
        assert not fields.left or fields.byte() in allowed
        if fields.left:
            section.read(fields)

    def _read_list(self, allowed: frozenset[int], fields: Fields) -> None:
        fields.packet_identifier()
        if self._rules.has_properties:
            property_codec.ANSWER.read(fields)
        codes = set(fields.take(fields.left))
        assert codes <= allowed, codes
