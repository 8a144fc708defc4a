"""The events that `connection.Connection.receive_data` returns: one for each packet, in the order of arrival.

They are named tuples, because those are the cheapest values that cannot change. A packet that needs no action, such as
a PUBACK for an unused identifier, gives no event. Every answer stands for a commit (MQTT 3.1.1 section 4.3). If the
session is durable, send an answer only after the unit of work of its event, and all earlier ones, have been committed.

`properties` are those of MQTT 5.0. They are None at levels 3 and 4, and for a packet without properties.
"""

from typing import NamedTuple

from gateway.mqtt.errors import PeerError
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import (
    NEVER_EXPIRES_S,
    ConnectProperties,
    DisconnectProperties,
    PublishProperties,
    ReasonProperties,
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

    Until `attach`, no packet behind the CONNECT is decoded; pause reading meanwhile. An empty `client_identifier` asks
    the server to assign one. At level 4 it comes only with `clean_session`; at level 5 CONNACK must name the assigned
    one. At level 5 `clean_session` is Clean Start, which does not decide when the session ends.
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
        """Seconds for which the session outlives its connection. Before level 5 it is 0 or for ever."""
        if self.properties is not None:
            return self.properties.session_expiry_s
        return 0 if self.clean_session or LEVELS[self.level].has_properties else NEVER_EXPIRES_S


class ConnectRefused(NamedTuple):
    """CONNECT to which CONNACK with this return code is the answer. It is always the last event; then close.

    `answer` is that CONNACK, in the form of the client's level; b"" if the client takes none.
    """

    return_code: int
    reason: str
    answer: bytes


class PublishReceived(NamedTuple):
    """PUBLISH. Answer QoS 1 by PUBACK, QoS 2 by PUBREC; `packet_identifier` is 0 at QoS 0.

    At QoS 2, if no PUBREL has released the identifier since its last PUBLISH, this is a repeat: only PUBREC is due
    again. `header` is the fixed and the variable header exactly as received, so `header + payload` is the packet.
    `topic` is the topic name, even if the packet had an alias for it.
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
    """PUBREL: publish the message of its PUBLISH, commit, send PUBCOMP. PUBCOMP is always due (MQTT-4.3.3-11).

    From now on a PUBLISH with that identifier is a new message, whatever its DUP flag says.
    """

    packet_identifier: int


class DeliveryAcknowledged(NamedTuple):
    """PUBACK of an outgoing QoS 1 PUBLISH: commit, then call `OutgoingFlows.finish`."""

    packet_identifier: int
    token: object


class DeliveryReceived(NamedTuple):
    """PUBREC of an outgoing QoS 2 PUBLISH: commit, call `OutgoingFlows.release`, send PUBREL.

    `repeated`: PUBREL was sent before; only send it again.
    """

    packet_identifier: int
    token: object
    repeated: bool = False


class DeliveryRefused(NamedTuple):
    """PUBACK or PUBREC with a reason code of 80 hex or more: commit, then call `OutgoingFlows.finish`. Send no packet.

    The message counts as delivered and is not sent again (MQTT-4.4.0-2). `packet_type` says which of the two it was.
    """

    packet_identifier: int
    token: object
    packet_type: int
    reason_code: int
    properties: ReasonProperties | None


class DeliveryCompleted(NamedTuple):
    """PUBCOMP of an outgoing QoS 2 PUBLISH: commit, then call `OutgoingFlows.finish`."""

    packet_identifier: int
    token: object


class SubscriptionOptions(NamedTuple):
    """The options of a subscription of level 5 beside its QoS (MQTT 5.0 section 3.8.3.1).

    `retain_handling`: retained messages are sent 0 always, 1 only if the subscription is new, 2 never.
    """

    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


_RETAIN_HANDLING = 0x30


def with_retain_handling(entry: bytes, of: bytes) -> bytes:
    """An entry of a SUBSCRIBE with the retain handling of another one; before level 5 it stays as it is."""
    return entry[:-1] + bytes([entry[-1] & ~_RETAIN_HANDLING | of[-1] & _RETAIN_HANDLING])


#: Memory of an entry of a SUBSCRIBE until it is carried out, beside its bytes: 230 to 300 (CPython 3.11).
_ENTRY_MEMORY_BYTES = 300


def entries_memory_bytes(entries: int, packet_bytes: int) -> int:
    """The most memory that the entries of a SUBSCRIBE or UNSUBSCRIBE take, from their number and their bytes."""
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
    """DISCONNECT: close; later bytes are not decoded. With reason code 0, discard the will (MQTT-3.14.4-3).

    With any other reason code, which only level 5 has, the will is due.
    """

    reason_code: int = 0
    properties: DisconnectProperties | None = None


class Violated(NamedTuple):
    """The peer broke the protocol. This is always the last event, and the will is due.

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
