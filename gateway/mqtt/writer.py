"""The packets that leave on a connection, in the form of its level and within the limits of its client.

At levels 3 and 4 this is `packets` without reason codes. At level 5 every refusal has the Reason String of the caller,
or that of its reason code (reason_strings.py). The writer leaves out reason strings and user properties of answers if
the client asked for none (MQTT-3.1.2-29), or if the packet would become too large (MQTT-3.4.2-2 and its like). It gives
a PUBLISH a topic alias. It makes no packet larger than the client's maximum (MQTT-3.1.2-24), and returns b"" or None
instead.
"""

from collections.abc import Iterable
from typing import Final

from gateway.mqtt import packets, property_codec
from gateway.mqtt.errors import UsageError
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import (
    PROPERTIES,
    ConnackProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
)
from gateway.mqtt.reason_strings import reason_string, reason_string_of_codes
from gateway.mqtt.topic_aliases import OutgoingAliases
from gateway.mqtt.wire import MAXIMUM_REMAINING_LENGTH

_ALIAS: Final = bytes((PROPERTIES["topic_alias"].identifier,))
_NOTHING_TOLD: Final = DisconnectProperties()
_LONGEST_PACKET_BYTES: Final = MAXIMUM_REMAINING_LENGTH + 5  # behind a fixed header of five bytes


class PacketWriter:
    """Makes the packets of one connection. Send all of them, in the order in which they were made."""

    __slots__ = ("_aliases", "_explains", "_level", "_maximum_bytes")

    def __init__(
        self,
        level: int,
        *,
        maximum_packet_bytes: int = 0,
        topic_alias_maximum: int = 0,
        request_problem_information: bool = True,
    ) -> None:
        self._level = LEVELS[level]
        self._maximum_bytes = maximum_packet_bytes or _LONGEST_PACKET_BYTES
        self._explains = request_problem_information
        self._aliases = OutgoingAliases(topic_alias_maximum) if topic_alias_maximum else None

    @property
    def maximum_bytes(self) -> int:
        """The longest packet that the client takes."""
        return self._maximum_bytes

    def takes(self, packet_bytes: int) -> bool:
        """Whether the client takes a packet of that length."""
        return packet_bytes <= self._maximum_bytes

    def publish_header(
        self,
        topic: str,
        payload_bytes: int,
        *,
        qos: int = 0,
        retain: bool = False,
        duplicate: bool = False,
        packet_identifier: int = 0,
        properties: PublishProperties | None = None,
    ) -> bytes | None:
        """The header of a PUBLISH; None if the packet is larger than the client takes.

        Then drop the message as if it had been delivered (MQTT-3.1.2-25). The writer gives topic aliases itself, so
        `properties` must have none (UsageError). Before level 5 it ignores `properties`.
        """

        def header(name: str, encoded: bytes) -> bytes:
            return packets.publish_header(
                name,
                payload_bytes,
                qos=qos,
                retain=retain,
                duplicate=duplicate,
                packet_identifier=packet_identifier,
                properties=encoded,
            )

        if not self._level.has_properties:
            return header(topic, b"")
        if properties is not None and properties.topic_alias is not None:
            raise UsageError("the writer gives topic aliases itself")
        longest = self._maximum_bytes - payload_bytes
        if self._aliases is not None and (alias := self._aliases.known(topic) or self._aliases.next_for(topic)):
            is_new = not self._aliases.known(topic)
            encoded = property_codec.PUBLISH.encode(properties, _ALIAS + alias.to_bytes(2, "big"))
            made = header(topic if is_new else "", encoded)
            if len(made) <= longest:
                if is_new:
                    self._aliases.keep(topic, alias)
                return made
        made = header(topic, property_codec.PUBLISH.encode(properties))
        return made if len(made) <= longest else None

    def puback(
        self, packet_identifier: int, reason_code: int = 0, explanation: ReasonProperties | None = None
    ) -> bytes:
        """PUBACK. Only level 5 has a reason code: earlier levels have no refusal."""
        explained = explanation or _explanation(reason_string(reason_code))
        return self._first_that_fits(
            packets.puback(packet_identifier, reason_code, each) for each in self._explanations(explained)
        )

    def pubrec(
        self, packet_identifier: int, reason_code: int = 0, explanation: ReasonProperties | None = None
    ) -> bytes:
        """PUBREC. A reason code of 80 hex or more ends the flow: call `Connection.refused` too (MQTT-4.3.3-9)."""
        explained = explanation or _explanation(reason_string(reason_code))
        return self._first_that_fits(
            packets.pubrec(packet_identifier, reason_code, each) for each in self._explanations(explained)
        )

    def pubrel(self, packet_identifier: int, reason_code: int = 0, *, duplicate: bool = False) -> bytes:
        """PUBREL. `duplicate`: it is a repeat; only level 3 shows that."""
        made = packets.pubrel(packet_identifier, duplicate, self._level.number, reason_code=reason_code)
        return self._first_that_fits((made,))

    def pubcomp(self, packet_identifier: int, reason_code: int = 0) -> bytes:
        """PUBCOMP."""
        explained = _explanation(reason_string(reason_code))
        return self._first_that_fits(
            packets.pubcomp(packet_identifier, reason_code, each) for each in self._explanations(explained)
        )

    def suback(self, packet_identifier: int, return_codes: bytes, explanation: ReasonProperties | None = None) -> bytes:
        """SUBACK: one code for each subscription, in the order of the SUBSCRIBE (MQTT-3.9.3-1)."""
        return self._first_that_fits(
            packets.suback(packet_identifier, return_codes, level=self._level.number, explanation=each)
            for each in self._explanations(explanation or _explanation(reason_string_of_codes(return_codes)))
        )

    def unsuback(
        self, packet_identifier: int, reason_codes: bytes, explanation: ReasonProperties | None = None
    ) -> bytes:
        """UNSUBACK: one code for each topic filter, which level 5 alone sends (MQTT-3.11.3-1)."""
        return self._first_that_fits(
            packets.unsuback(packet_identifier, reason_codes, level=self._level.number, explanation=each)
            for each in self._explanations(explanation or _explanation(reason_string_of_codes(reason_codes)))
        )

    def connack(self, session_present: bool, return_code: int, properties: ConnackProperties) -> bytes:
        """CONNACK, without reason string and user properties if they do not fit (MQTT-3.2.2-19, -20)."""
        if self._level.has_properties and properties.reason_string is None:
            properties = properties._replace(reason_string=reason_string(return_code))
        less = properties._replace(user_properties=())
        return self._first_that_fits(
            packets.connack(session_present, return_code, level=self._level.number, properties=each)
            for each in (properties, less, less._replace(reason_string=None))
        )

    def disconnect(self, reason_code: int, properties: DisconnectProperties | None = None) -> bytes:
        """DISCONNECT of a server; b"" before level 5, which has none. Only a client sends an expiry (MQTT-3.14.2-2)."""
        if not self._level.has_properties:
            return b""
        told = properties or DisconnectProperties()
        told = told._replace(session_expiry_s=None, reason_string=told.reason_string or reason_string(reason_code))
        less = told._replace(user_properties=())
        made = (told, less, less._replace(reason_string=None))
        return self._first_that_fits(
            packets.disconnect(reason_code, None if each == _NOTHING_TOLD else each) for each in made
        )

    def _explanations(self, explanation: ReasonProperties | None) -> tuple[ReasonProperties | None, ...]:
        """The explanations that an answer may have, the longest first."""
        if explanation is None or not self._explains or not self._level.has_properties:
            return (None,)
        return explanation, explanation._replace(user_properties=()), None

    def _first_that_fits(self, made: Iterable[bytes]) -> bytes:
        return next((packet for packet in made if len(packet) <= self._maximum_bytes), b"")


def _explanation(text: str | None) -> ReasonProperties | None:
    return None if text is None else ReasonProperties(reason_string=text)
