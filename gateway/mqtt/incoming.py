"""A PUBLISH of level 5: its properties, its topic alias, and its place in the receive window.

One `PublishReader` belongs to one connection; neither aliases nor window outlive it (MQTT-3.3.2-7, section 4.9).
"""

from gateway.mqtt import property_codec
from gateway.mqtt.errors import LimitExceeded, ProtocolViolation
from gateway.mqtt.properties import UNLIMITED_RECEIVE_MAXIMUM, PublishProperties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topic_aliases import IncomingAliases
from gateway.mqtt.topics import TOPIC_NAMES
from gateway.mqtt.wire import Fields

_EXACTLY_ONCE = 2


class PublishReader:
    """Reads the rest of the variable header of a PUBLISH, within the receive and alias maximum that we announced."""

    __slots__ = ("_aliases", "_receive_maximum", "_unanswered", "_unreleased")

    def __init__(self, *, receive_maximum: int, topic_alias_maximum: int) -> None:
        self._receive_maximum = receive_maximum
        self._aliases = IncomingAliases(topic_alias_maximum)
        #: PUBLISHes of QoS 1 and 2 of this connection that wait for their last answer.
        self._unanswered = 0
        #: Identifiers of PUBLISHes of QoS 2 without PUBREL: their repeats take no further place.
        self._unreleased: set[int] = set()

    def read(
        self, data: bytes, topic_data: bytes, position: int, end: int, packet_identifier: int, qos: int
    ) -> tuple[str, PublishProperties | None, int]:
        """The topic name, the properties, and where the payload begins; `position` is behind the packet identifier.

        A fault raises a PeerError, and the table of aliases stays as it was.
        """
        properties: PublishProperties | None = None
        if position < end and not data[position]:
            payload = position + 1
        else:
            fields = Fields(data, position, end)
            properties = property_codec.PUBLISH.read(fields)
            payload = fields.position
        alias = None
        if properties is not None:
            self._check(properties)
            alias = properties.topic_alias
        if topic_data or alias is None:
            topic = TOPIC_NAMES[topic_data]
            if alias is not None:
                self._aliases.assign(alias, topic, len(topic_data))
        else:
            topic = self._aliases.name_of(alias)
        if packet_identifier and self._receive_maximum < UNLIMITED_RECEIVE_MAXIMUM:
            self._note(packet_identifier, qos)
        return topic, properties, payload

    def answered(self, count: int) -> None:
        """`count` PUBACKs and PUBCOMPs were sent: each frees a place, whichever PUBLISH it answers (section 4.9)."""
        self._unanswered = max(0, self._unanswered - count)

    def released(self, packet_identifier: int) -> None:
        """PUBREL has come: from now on a PUBLISH with that identifier is another message, with a place of its own."""
        self._unreleased.discard(packet_identifier)

    def refused(self, packet_identifier: int) -> None:
        """PUBREC with 80 hex or more was sent: the place is free, because no PUBREL will follow."""
        self._unreleased.discard(packet_identifier)
        self.answered(1)

    def _note(self, packet_identifier: int, qos: int) -> None:
        if qos == _EXACTLY_ONCE:
            if packet_identifier in self._unreleased:
                return
            self._unreleased.add(packet_identifier)
        self._unanswered += 1
        if self._unanswered > self._receive_maximum:
            raise LimitExceeded(
                f"more than {self._receive_maximum} PUBLISHes of QoS 1 and 2 are unanswered (section 3.3.4)",
                ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
            )

    def _check(self, properties: PublishProperties) -> None:
        if properties.subscription_identifiers:
            raise ProtocolViolation("PUBLISH of a client has a subscription identifier (MQTT-3.3.4-6)")
        check_response_topic(properties.response_topic)


def check_response_topic(topic: str | None) -> None:
    """Raises ProtocolViolation if a response topic is no topic name (MQTT-3.3.2-14)."""
    if topic is not None and (not topic or "#" in topic or "+" in topic):
        raise ProtocolViolation("the response topic is empty or holds a wildcard (MQTT-3.3.2-14)")
