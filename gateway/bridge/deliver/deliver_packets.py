"""A publication as PUBLISH packets to one client, each with its flow and its audit note; a part of step 8.

The packets may leave when the unit of work is committed. If a packet would be larger than the client takes, it is not
made: the message counts as delivered, and the audit is told (MQTT-3.1.2-25).

For a client of MQTT 5 the header has the properties of the publication, the identifiers of the matching subscriptions,
the rest of the expiry, and RETAIN as published if a subscription asks for that. If this gateway published the message,
the private origin says whether RETAIN was set. If a target or an application did, the header says RetainPub, or carries
the deletion of a retained message.
Source: MQTT 5.0 sections 3.3.2.3 and 3.8.3.1.
"""

import hashlib
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind, with_level, with_sent
from gateway.audit_trail.notes.origin import ORIGIN, exchange_of, published_retain
from gateway.bridge.counts import UNFIT_PROPERTIES, Counts, Traffic
from gateway.bridge.deliver.outgoing_messages import Flow, InFlight, close_flow, flow_of, forget_flow, start_flow
from gateway.bridge.messages.publications import Publication, Publications
from gateway.bridge.messages.usr_folder import remaining_s
from gateway.bridge.sessions.sessions import ClientSession
from gateway.mqtt import packets, property_codec
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.outgoing_flows import Outgoing, OutgoingState
from gateway.mqtt.properties import PublishProperties
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, Note, UnitOfWork
from mq_adapters.message import Message

#: More than a PUBLISH can have beside the header of its publication.
_SLACK_BYTES: Final = 1_024
_NO_PROPERTIES: Final = PublishProperties()


def is_own(session: ClientSession, message: Message, publication: Publication) -> bool:
    """Whether the session's own client published it, by the private origin or by the name that a target returned."""
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
    """The header of a PUBLISH; the caller must send it. None where the packet is larger than the client takes."""
    retain, properties = _given(session, publication, message, topic, now_us)
    assert session.link is not None
    return session.link.connection.writer.publish_header(
        topic,
        publication.payload_bytes(message),
        qos=qos,
        retain=retain,
        duplicate=duplicate,
        packet_identifier=packet_identifier,
        properties=properties,
    )


def is_small_enough(
    session: ClientSession, publication: Publication, message: Message, topic: str, *, now_us: int
) -> bool:
    """Whether the client takes a PUBLISH of this size. Asked before the packet is made, so no alias is used up."""
    assert session.link is not None
    writer = session.link.connection.writer
    if not publication.converts_map and writer.takes(len(message.body) + _SLACK_BYTES):
        return True
    return writer.takes(packet_bytes(session, publication, message, topic, now_us=now_us))


def packet_bytes(session: ClientSession, publication: Publication, message: Message, topic: str, *, now_us: int) -> int:
    """The length of a PUBLISH of QoS 1 or 2 without an alias."""
    _, properties = _given(session, publication, message, topic, now_us)
    payload_bytes = publication.payload_bytes(message)
    encoded = property_codec.PUBLISH.encode(properties)
    header = packets.publish_header(topic, payload_bytes, qos=1, packet_identifier=1, properties=encoded)
    return len(header) + payload_bytes


def _given(
    session: ClientSession, publication: Publication, message: Message, topic: str, now_us: int
) -> tuple[bool, PublishProperties]:
    """RETAIN and the properties of a PUBLISH, as the matching subscriptions ask."""
    retain = publication.is_retained
    identifiers: tuple[int, ...] = ()
    if message.descriptor.correl_id != session.correl_id:
        if (shared := session.shared.get(message.descriptor.correl_id)) is not None:
            identifiers = (shared.options.identifier,) if shared.options.identifier else ()
            retain = retain or (shared.options.retain_as_published and _had_retain(message, publication))
    elif session.options and (found := session.entitlement(topic, is_own=is_own(session, message, publication))):
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


#: An int packs faster than the member of NoteKind. Other modules on the way of each message do the same.
_DELIVERED: Final = int(NoteKind.DELIVERED)
_TOO_LARGE: Final = "larger than the client takes"


class PublishPackets:
    """Makes packets of the publications that come off the subscriber queue."""

    def __init__(
        self, engine: Engine, queue: Queue, *, publications: Publications, counts: Counts, traffic: Traffic
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._publications = publications
        self._counts = counts
        self._traffic = traffic

    def add(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        message: Message,
        publication: Publication,
        wanted: list[tuple[int, int]],
        out: list[bytes],
    ) -> bool:
        """Adds a PUBLISH to `out` for each wanted topic (its index, and the QoS granted to it).

        Returns False if the message must wait for a wider window. Then it is back on the queue.
        """
        if publication.carried.has_unfit_properties:
            self._counts.add(UNFIT_PROPERTIES)
        published = publication.qos(message)
        room = session.mqtt.window()
        if len(wanted) > room and session.mqtt.outgoing and sum(1 for _, qos in wanted if qos and published) > room:
            self._engine.give_back([(self._queue, message)], wake=False)
            return False
        in_flight = InFlight(message)
        is_sent = False
        for index, granted in wanted:
            qos = min(granted, published) if room else 0
            flow = Flow(in_flight, message.sequence, message.sequence, granted, index)
            if in_flight.open_flows:
                flow.exchange = flow.order = self._engine.number()
            packet_identifier = 0
            if qos:
                packet_identifier = start_flow(unit, session, flow, qos)
                room -= 1
            packet = self._packet(unit, session, publication, message, flow, qos, packet_identifier, published)
            if packet is not None:
                out.append(packet)
                is_sent = True
            else:
                self._give_up(unit, session, message, flow, packet_identifier)
                in_flight.open_flows -= packet_identifier > 0
                room += packet_identifier > 0
        if not in_flight.open_flows:
            unit.remove(self._queue, message, Departure.TAKEN if is_sent else Departure.DROPPED)
        return True

    def fits(self, session: ClientSession, message: Message, publication: Publication) -> bool:
        """Whether each PUBLISH of a publication is small enough for a connected client."""
        if not LEVELS[session.level].has_properties:
            return True
        longest = max(publication.topics, key=len, default="")
        return is_small_enough(session, publication, message, longest, now_us=self._engine.now_us())

    def again(self, unit: UnitOfWork, session: ClientSession, outgoing: Outgoing) -> bytes:
        """The packet that repeats an unfinished flow: PUBLISH with DUP, or PUBREL; b"" if it is too large now."""
        flow = flow_of(outgoing.token)
        in_flight = flow.in_flight
        if outgoing.state is OutgoingState.AWAIT_PUBCOMP or in_flight is None:
            self._traffic.answers += 1
            return packets.pubrel(outgoing.packet_identifier, duplicate=True, level=session.level)
        publication = self._publications.of(in_flight.message)
        assert publication is not None
        packet = self._packet(
            unit,
            session,
            publication,
            in_flight.message,
            flow,
            outgoing.qos,
            outgoing.packet_identifier,
            publication.qos(in_flight.message),
            duplicate=True,
        )
        if packet is None:
            close_flow(unit, self._queue, flow, Departure.DROPPED)
            self._give_up(unit, session, in_flight.message, flow, outgoing.packet_identifier)
        return packet or b""

    def _packet(
        self,
        unit: UnitOfWork,
        session: ClientSession,
        publication: Publication,
        message: Message,
        flow: Flow,
        qos: int,
        packet_identifier: int,
        published_qos: int,
        duplicate: bool = False,
    ) -> bytes | None:
        """One PUBLISH; its audit note goes into the unit. None where it is larger than the client takes."""
        body = message.body[publication.body_offset :]
        payload = publication.payload(body)
        now_us = self._engine.now_us()
        packet_header: bytes | None
        if not LEVELS[session.level].has_properties:
            packet_header = packets.publish_header_of(
                publication.topic_fields[flow.topic_index],
                len(payload),
                qos=qos,
                retain=publication.is_retained,
                duplicate=duplicate,
                packet_identifier=packet_identifier,
            )
        else:
            packet_header = header_with_properties(
                session,
                publication,
                message,
                publication.topics[flow.topic_index],
                qos=qos,
                duplicate=duplicate,
                packet_identifier=packet_identifier,
                now_us=now_us,
            )
            if packet_header is None:
                return None
        note: Note = (
            _DELIVERED,
            now_us,
            session.client,
            session.epoch,
            flow.exchange,
            message.sequence,
            packet_header,
            len(body),
            hashlib.sha256(body).digest(),
            flow.granted_qos,
            published_qos,
            self._publications.context(publication, message),
        )
        if LEVELS[session.level].has_properties:
            note = with_level(note, session.level, packet_header, publication.topics[flow.topic_index])
        if payload is not body:
            note = with_sent(note, payload)
        unit.notes.append(note)
        self._traffic.delivered[qos] += 1
        return packet_header + payload

    def _give_up(
        self, unit: UnitOfWork, session: ClientSession, message: Message, flow: Flow, packet_identifier: int
    ) -> None:
        """Counts a message that is too large for the client as delivered (MQTT-3.1.2-25), and frees its identifier."""
        self._counts.add(_TOO_LARGE)
        owner = (session.client, session.epoch)
        unit.notes.append(
            (NoteKind.DROPPED, self._engine.now_us(), *owner, 0, self._queue.name, message.sequence, _TOO_LARGE)
        )
        if packet_identifier:
            forget_flow(unit, session, flow, packet_identifier)
            session.mqtt.finish(packet_identifier)
