"""What `connection.Connection.receive_data` reports: one event for a packet, in the order of arrival.

Named tuples, because they are the cheapest values that cannot change. No event means: nothing to do, such as a PUBACK
for an identifier that is not in use. Every answer stands for a commit (MQTT 3.1.1 section 4.3): when the session is
durable, send it only when the unit of work of the event, and all those before it, have been committed.
"""

from typing import NamedTuple

from gateway.mqtt.errors import PeerError


class Will(NamedTuple):
    """The message that a client leaves for the case that its connection ends without DISCONNECT (section 3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool


class ConnectReceived(NamedTuple):
    """CONNECT that can be accepted: decide, call `attach`, send CONNACK, then call `receive_data(b"")`.

    Until `attach` nothing behind the CONNECT is decoded; pause reading meanwhile. An empty `client_identifier` comes
    with `clean_session` only, and asks the server to assign one.
    """

    level: int
    client_identifier: str
    clean_session: bool
    keep_alive_s: int
    will: Will | None
    user_name: str | None
    password: bytes | None


class ConnectRefused(NamedTuple):
    """CONNECT that must be answered by CONNACK with this return code; always the last event, then close."""

    return_code: int
    reason: str


class PublishReceived(NamedTuple):
    """PUBLISH. Answer QoS 1 by PUBACK, QoS 2 by PUBREC; `packet_identifier` is 0 at QoS 0.

    `header` is fixed and variable header exactly as received, so `header + payload` is the packet. At QoS 2 the
    identifier is in `Session.held` from now on.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    duplicate: bool
    packet_identifier: int
    header: bytes


class PublishRepeated(NamedTuple):
    """PUBLISH of QoS 2 whose identifier is still held: it is not a new message, only PUBREC is due again.

    The first PUBLISH may still be on its way to the disk: send PUBREC behind it, not at once.
    """

    packet_identifier: int


class ReleaseReceived(NamedTuple):
    """PUBREL. With `held`: publish, commit, call `Session.drop`, send PUBCOMP. Without: only PUBCOMP is due.

    A PUBREL repeated before `drop` gives no event; its PUBCOMP is the one of the commit under way.
    """

    packet_identifier: int
    held: bool


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


class DeliveryCompleted(NamedTuple):
    """PUBCOMP of an outgoing QoS 2 PUBLISH: commit, then call `Session.finish`."""

    packet_identifier: int
    token: object


class SubscribeReceived(NamedTuple):
    """SUBSCRIBE: answer by SUBACK with one return code for each subscription (topic filter, requested QoS).

    `entries` are the bytes of each entry as received: length, topic filter, requested QoS.
    """

    packet_identifier: int
    subscriptions: tuple[tuple[str, int], ...]
    entries: tuple[bytes, ...]


class UnsubscribeReceived(NamedTuple):
    """UNSUBSCRIBE: answer by UNSUBACK. `entries` are the bytes of each entry as received: length, topic filter."""

    packet_identifier: int
    topic_filters: tuple[str, ...]
    entries: tuple[bytes, ...]


class PingReceived(NamedTuple):
    """PINGREQ: answer by PINGRESP."""


class DisconnectReceived(NamedTuple):
    """DISCONNECT: discard the will and close; whatever follows is not decoded."""


class Violated(NamedTuple):
    """The peer broke the protocol: always the last event; close without an answer (MQTT-4.8.0-1), publish the will."""

    error: PeerError


class ConnectAnswered(NamedTuple):
    """CONNACK, as a client gets it; `return_code` is 0 when the connection is accepted (table 3.1)."""

    session_present: bool
    return_code: int


class SubscribeAnswered(NamedTuple):
    """SUBACK, as a client gets it: one byte for each subscription, the granted QoS or 80 hex."""

    packet_identifier: int
    return_codes: bytes


class UnsubscribeAnswered(NamedTuple):
    """UNSUBACK, as a client gets it."""

    packet_identifier: int


class PingAnswered(NamedTuple):
    """PINGRESP, as a client gets it."""


Event = (
    PublishReceived
    | PublishRepeated
    | ReleaseReceived
    | DeliveryAcknowledged
    | DeliveryReceived
    | DeliveryCompleted
    | SubscribeReceived
    | UnsubscribeReceived
    | PingReceived
    | DisconnectReceived
    | ConnectReceived
    | ConnectRefused
    | ConnectAnswered
    | SubscribeAnswered
    | UnsubscribeAnswered
    | PingAnswered
    | Violated
)
