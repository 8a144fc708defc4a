"""The events that `connection.Connection.receive_data` returns: one for each packet, in the order of arrival.

Named tuples, because they are the cheapest values that cannot change. No event means: nothing to do, such as a PUBACK
for an identifier that is not in use. Every answer stands for a commit (MQTT 3.1.1 section 4.3): when the session is
durable, send it only when the unit of work of the event, and all those before it, have been committed.

`properties` are those of MQTT 5.0; None at levels 3 and 4, and where a packet has none.
"""

from typing import NamedTuple

from gateway.mqtt.errors import PeerError
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import (
    NEVER_EXPIRES_S,
    ConnectProperties,
    DisconnectProperties,
    Explanation,
    PublishProperties,
    SubscribeProperties,
    UnsubscribeProperties,
    WillProperties,
)

_USER_PROPERTY_BYTES = 150  # in memory, beside its characters


class Will(NamedTuple):
    """The message that is published if the client's connection ends without DISCONNECT (section 3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: WillProperties | None = None

    @property
    def kept_bytes(self) -> int:
        """Its memory while its session lives, approximately."""
        size = len(self.topic) + len(self.payload)
        if self.properties is None:
            return size
        told = self.properties
        size += len(told.content_type or "") + len(told.response_topic or "") + len(told.correlation_data or b"")
        return size + sum(_USER_PROPERTY_BYTES + len(name) + len(value) for name, value in told.user_properties)


class ConnectReceived(NamedTuple):
    """CONNECT that can be accepted: decide, call `attach`, send CONNACK, then call `receive_data(b"")`.

    Until `attach` nothing behind the CONNECT is decoded; pause reading meanwhile. An empty `client_identifier` asks the
    server to assign one; at level 4 it comes with `clean_session` only, at level 5 CONNACK must tell it. At level 5
    `clean_session` is Clean Start: it says nothing of the session's end.
    """

    level: int
    client_identifier: str
    clean_session: bool
    keep_alive_s: int
    will: Will | None
    user_name: str | None
    password: bytes | None
    properties: ConnectProperties | None = None

    @property
    def session_expiry_s(self) -> int:
        """How long the session outlives its connection, seconds; before level 5 not at all, or for ever."""
        if self.properties is not None:
            return self.properties.session_expiry_s
        return 0 if self.clean_session or LEVELS[self.level].has_properties else NEVER_EXPIRES_S


class ConnectRefused(NamedTuple):
    """CONNECT that must be answered by CONNACK with this return code; always the last event, then close.

    `answer` is that CONNACK, in the form of the client's level; b"" where the client takes none.
    """

    return_code: int
    reason: str
    answer: bytes


class PublishReceived(NamedTuple):
    """PUBLISH. Answer QoS 1 by PUBACK, QoS 2 by PUBREC; `packet_identifier` is 0 at QoS 0.

    At QoS 2, one whose identifier was not released since its last PUBLISH is a repeat: only PUBREC is due again.
    `header` is fixed and variable header exactly as received, so `header + payload` is the packet. `topic` is the name
    itself where the packet had an alias for it.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    duplicate: bool
    packet_identifier: int
    header: bytes
    properties: PublishProperties | None = None


class ReleaseReceived(NamedTuple):
    """PUBREL: publish what its PUBLISH brought, commit, send PUBCOMP. PUBCOMP is due in any case (MQTT-4.3.3-11).

    From now on a PUBLISH with that identifier is a new message, whatever its DUP flag says.
    """

    packet_identifier: int


class DeliveryAcknowledged(NamedTuple):
    """PUBACK of an outgoing QoS 1 PUBLISH: commit, then call `Session.finish`."""

    packet_identifier: int
    token: object


class DeliveryReceived(NamedTuple):
    """PUBREC of an outgoing QoS 2 PUBLISH: commit, call `Session.release`, send PUBREL.

    `repeated`: PUBREL was sent before; only send it again.
    """

    packet_identifier: int
    token: object
    repeated: bool = False


class DeliveryRefused(NamedTuple):
    """PUBACK or PUBREC with a reason code of 80 hex or more: commit, then call `Session.finish`; nothing is sent.

    The message counts as delivered and is not sent again (MQTT-4.4.0-2). `packet_type` says which of the two it was.
    """

    packet_identifier: int
    token: object
    packet_type: int
    reason_code: int
    properties: Explanation | None


class DeliveryCompleted(NamedTuple):
    """PUBCOMP of an outgoing QoS 2 PUBLISH: commit, then call `Session.finish`."""

    packet_identifier: int
    token: object


class SubscriptionOptions(NamedTuple):
    """The options of a subscription of level 5 beside its QoS (MQTT 5.0 section 3.8.3.1).

    `retain_handling`: retained messages are sent 0 always, 1 only if the subscription is new, 2 never.
    """

    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


#: Memory of an entry of a SUBSCRIBE until it is carried out, beside its bytes: 230 to 300 (CPython 3.11).
_ENTRY_MEMORY_BYTES = 300


def entries_memory_bytes(entries: int, packet_bytes: int) -> int:
    """The most memory that so many entries of a SUBSCRIBE or UNSUBSCRIBE take, by their bytes together."""
    return entries * _ENTRY_MEMORY_BYTES + 2 * packet_bytes


class SubscribeReceived(NamedTuple):
    """SUBSCRIBE: answer by SUBACK with one return code for each subscription (topic filter, requested QoS).

    `entries` are the bytes of each entry as received: length, topic filter, requested QoS (level 5: options).
    `options`: one for each subscription at level 5, nothing before. `topics.share_of` takes a shared filter apart.
    """

    packet_identifier: int
    subscriptions: tuple[tuple[str, int], ...]
    entries: tuple[bytes, ...]
    options: tuple[SubscriptionOptions, ...] = ()
    properties: SubscribeProperties | None = None


class UnsubscribeReceived(NamedTuple):
    """UNSUBSCRIBE: answer by UNSUBACK, at level 5 with one reason code for each topic filter.

    `entries` are the bytes of each entry as received: length, topic filter.
    """

    packet_identifier: int
    topic_filters: tuple[str, ...]
    entries: tuple[bytes, ...]
    properties: UnsubscribeProperties | None = None


class PingReceived(NamedTuple):
    """PINGREQ: answer by PINGRESP."""


class DisconnectReceived(NamedTuple):
    """DISCONNECT: close; whatever follows is not decoded. With reason code 0, discard the will (MQTT-3.14.4-3).

    With any other reason code, which only level 5 has, the will is due.
    """

    reason_code: int = 0
    properties: DisconnectProperties | None = None


class Violated(NamedTuple):
    """The peer broke the protocol: always the last event; the will is due.

    Send `Connection.closing_packet(error.reason_code)`, which is empty before level 5 (MQTT-4.8.0-1), and close.
    """

    error: PeerError


Event = (
    PublishReceived
    | ReleaseReceived
    | DeliveryAcknowledged
    | DeliveryReceived
    | DeliveryRefused
    | DeliveryCompleted
    | SubscribeReceived
    | UnsubscribeReceived
    | PingReceived
    | DisconnectReceived
    | ConnectReceived
    | ConnectRefused
    | Violated
)
