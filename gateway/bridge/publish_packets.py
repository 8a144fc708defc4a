"""A publication as PUBLISH packets to one client, each with its flow and its audit note; a part of step 8.

What is made here may leave when the unit of work is committed. A packet that is larger than the client takes is not
made: the message counts as delivered, and the audit hears of it (MQTT-3.1.2-25).
"""

import hashlib
from typing import Final

from gateway.audit_trail.notes import NoteKind, with_level
from gateway.bridge.counts import Counts
from gateway.bridge.delivered_header import header_with_properties, is_small_enough
from gateway.bridge.flows import Flow, InFlight, close_flow, flow_of, forget_flow, start_flow
from gateway.bridge.publications import Publication, Publications
from gateway.bridge.sessions import ClientSession
from gateway.bridge.traffic import Traffic
from gateway.mqtt import packets
from gateway.mqtt.session import Outgoing, OutgoingState
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, Note, UnitOfWork
from mq_adapters.message import Message

_FIRST_LEVEL_WITH_PROPERTIES: Final = 5
#: Packs faster than the member of NoteKind; so in other rooms where every message passes.
_DELIVERED: Final = int(NoteKind.DELIVERED)
_TOO_LARGE: Final = "larger than the client takes"
_UNFIT: Final = "properties in a header that are none of MQTT, delivered without them"


class PublishPackets:
    """Makes the packets of what comes off the subscriber queue."""

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
        """Adds a PUBLISH to `out` for each wanted topic: its index, and the QoS granted to it.

        False when the message must wait for a wider window: then it has been given back.
        """
        if publication.carried.has_unfit_properties:
            self._counts.add(_UNFIT)
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
                self._give_up(unit, session, message, packet_identifier)
                in_flight.open_flows -= packet_identifier > 0
                room += packet_identifier > 0
        if not in_flight.open_flows:
            unit.remove(self._queue, message, Departure.TAKEN if is_sent else Departure.DROPPED)
        return True

    def fits(self, session: ClientSession, message: Message, publication: Publication) -> bool:
        """Whether each PUBLISH of a publication to a connected client is as small as the client wants it."""
        if session.level < _FIRST_LEVEL_WITH_PROPERTIES:
            return True
        longest = max(publication.topics, key=len, default="")
        return is_small_enough(session, publication, message, longest, now_us=self._engine.now_us())

    def again(self, unit: UnitOfWork, session: ClientSession, outgoing: Outgoing) -> bytes:
        """What repeats an unfinished flow: PUBLISH with DUP, or PUBREL; b"" for what the client takes no more."""
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
            self._give_up(unit, session, in_flight.message, outgoing.packet_identifier)
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
        """One PUBLISH, with its audit note in the unit; None where it is larger than the client takes."""
        payload = message.body[publication.body_offset :]
        now_us = self._engine.now_us()
        packet_header: bytes | None
        if session.level < _FIRST_LEVEL_WITH_PROPERTIES:
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
            len(payload),
            hashlib.sha256(payload).digest(),
            flow.granted_qos,
            published_qos,
            self._publications.sheet(publication, message),
        )
        if session.level >= _FIRST_LEVEL_WITH_PROPERTIES:
            note = with_level(note, session.level, packet_header, publication.topics[flow.topic_index])
        unit.notes.append(note)
        self._traffic.delivered[qos] += 1
        return packet_header + payload

    def _give_up(self, unit: UnitOfWork, session: ClientSession, message: Message, packet_identifier: int) -> None:
        """What is larger than the client takes counts as delivered (MQTT-3.1.2-25); the identifier is free again."""
        self._counts.add(_TOO_LARGE)
        owner = (session.client, session.epoch)
        unit.notes.append(
            (NoteKind.DROPPED, self._engine.now_us(), *owner, 0, self._queue.name, message.sequence, _TOO_LARGE)
        )
        if packet_identifier:
            forget_flow(unit, session, packet_identifier)
            session.mqtt.finish(packet_identifier)
