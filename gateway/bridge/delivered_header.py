"""The header of a PUBLISH to a client of level 5; a part of step 8 on the way of a PUBLISH.

It has the properties that the publication carries, the identifiers of the subscriptions that brought it, RETAIN as
published where one of them asks for that, and what is left of the message's expiry. RETAIN of what a gateway published
is known from the private origin; what comes from a target or an application says RetainPub in its header, or carries
that it deletes what is retained.
Source: MQTT 5.0 sections 3.3.2.3 and 3.8.3.1.
"""

from typing import Final

from gateway.bridge.message_expiry import remaining_s
from gateway.bridge.origin import ORIGIN, exchange_of, published_retain
from gateway.bridge.publications import Publication
from gateway.bridge.sessions import ClientSession
from gateway.mqtt import packets, property_codec
from gateway.mqtt.properties import PublishProperties
from mq_adapters.message import Message

#: Far more than a PUBLISH has that does not stand in the header of its publication.
_SLACK_BYTES: Final = 1_024
_NO_PROPERTIES: Final = PublishProperties()


def is_own(session: ClientSession, message: Message, publication: Publication) -> bool:
    """Whether the session's own client published it: as the gateway knows, or as it carries from a target."""
    client, _, exchange = exchange_of(message.origin)
    return (client if exchange else publication.carried.client) == session.client


def header_with_properties(
    session: ClientSession,
    publication: Publication,
    message: Message,
    topic: str,
    *,
    qos: int,
    duplicate: bool,
    packet_identifier: int,
    now_us: int,
) -> bytes | None:
    """The header of a PUBLISH, which must be sent; None where the packet is larger than the client takes."""
    retain, properties = _given(session, publication, message, topic, now_us)
    assert session.link is not None
    return session.link.connection.writer.publish_header(
        topic,
        len(message.body) - publication.body_offset,
        qos=qos,
        retain=retain,
        duplicate=duplicate,
        packet_identifier=packet_identifier,
        properties=properties,
    )


def is_small_enough(
    session: ClientSession, publication: Publication, message: Message, topic: str, *, now_us: int
) -> bool:
    """Whether the client takes a PUBLISH that is not made yet, so that no alias is given for it."""
    assert session.link is not None
    writer = session.link.connection.writer
    if writer.takes(len(message.body) + _SLACK_BYTES):
        return True
    return writer.takes(packet_bytes(session, publication, message, topic, now_us=now_us))


def packet_bytes(session: ClientSession, publication: Publication, message: Message, topic: str, *, now_us: int) -> int:
    """How long a PUBLISH of QoS 1 or 2 is without an alias."""
    _, properties = _given(session, publication, message, topic, now_us)
    payload_bytes = len(message.body) - publication.body_offset
    encoded = property_codec.PUBLISH.encode(properties)
    header = packets.publish_header(topic, payload_bytes, qos=1, packet_identifier=1, properties=encoded)
    return len(header) + payload_bytes


def _given(
    session: ClientSession, publication: Publication, message: Message, topic: str, now_us: int
) -> tuple[bool, PublishProperties]:
    """RETAIN and the properties, by the subscriptions that brought it."""
    retain = publication.is_retained
    identifiers: tuple[int, ...] = ()
    if message.descriptor.correl_id != session.correl_id:
        if (shared := session.shared.get(message.descriptor.correl_id)) is not None:
            identifiers = (shared.wishes.identifier,) if shared.wishes.identifier else ()
            retain = retain or (shared.wishes.retain_as_published and _had_retain(message, publication))
    elif session.wishes and (found := session.entitlement(topic, is_own=is_own(session, message, publication))):
        identifiers = found.identifiers
        retain = retain or (found.retain_as_published and _had_retain(message, publication))
    properties = publication.carried.properties or _NO_PROPERTIES
    remaining = remaining_s(message, now_us)
    return retain, properties._replace(message_expiry_s=remaining, subscription_identifiers=identifiers)


def _had_retain(message: Message, publication: Publication) -> bool:
    if len(message.origin) >= ORIGIN.size:
        return published_retain(message)
    is_empty = len(message.body) == publication.body_offset
    return publication.retains or (publication.carried.deletes and is_empty)
