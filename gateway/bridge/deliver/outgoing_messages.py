"""Flows: messages on their way to a client at QoS 1 or 2, and the rows by which they survive a restart.

Each flow has a row of state (kind SESSION_OUTGOING, key: epoch and packet identifier), see `_ROW`. So the gateway
repeats PUBLISH or PUBREL with the same identifier after a restart. A publication with several topics is one flow for
each topic that the session wants; the message is destroyed with the last of these flows.

If a message stays in memory because its session ends with the process, its flows do too.
"""

import struct
from typing import Final, NamedTuple

from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.sessions.sessions import ClientSession, flow_key
from gateway.mqtt.outgoing_flows import OutgoingState
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, StateKind, UnitOfWork
from mq_adapters.message import Message

#: Number of the message, exchange, order of sending, QoS, granted QoS, index of the topic, OutgoingState.
_ROW: Final = struct.Struct(">QQQBBBB")

_ACKNOWLEDGED: Final = int(NoteKind.ACKNOWLEDGED)
_KIND: Final = StateKind.SESSION_OUTGOING


class InFlight:
    """A message on its way to a client, and the number of flows that still need its bytes."""

    __slots__ = ("message", "open_flows")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.open_flows = 0


class Flow:
    """Token of an outgoing flow. `in_flight` is None once PUBREC has come: from then on only PUBREL is repeated.

    `is_stored`: it has a row, so that it survives a restart.
    """

    __slots__ = ("exchange", "granted_qos", "in_flight", "is_stored", "number", "order", "topic_index")

    def __init__(
        self, in_flight: InFlight | None, number: int, exchange: int, granted_qos: int, topic_index: int
    ) -> None:
        self.in_flight = in_flight
        self.number = number
        self.exchange = exchange
        self.order = exchange
        self.granted_qos = granted_qos
        self.topic_index = topic_index
        self.is_stored = in_flight is None or in_flight.message.is_stored

    def pack(self, qos: int, state: OutgoingState) -> bytes:
        return _ROW.pack(self.number, self.exchange, self.order, qos, self.granted_qos, self.topic_index, state)


class StoredFlow(NamedTuple):
    """A flow as it stands in its row."""

    number: int
    exchange: int
    order: int
    qos: int
    granted_qos: int
    topic_index: int
    state: int

    @classmethod
    def unpack(cls, row: bytes) -> "StoredFlow":
        return cls._make(_ROW.unpack(row))


def start_flow(unit: UnitOfWork, session: ClientSession, flow: Flow, qos: int) -> int:
    """Begins a flow; its row of state goes into the unit, if it has one. Returns the packet identifier."""
    packet_identifier = session.mqtt.start(flow, qos)
    assert flow.in_flight is not None
    flow.in_flight.open_flows += 1
    keep_flow(unit, session, flow, packet_identifier, qos, session.mqtt.outgoing[packet_identifier].state)
    return packet_identifier


def keep_flow(
    unit: UnitOfWork, session: ClientSession, flow: Flow, packet_identifier: int, qos: int, state: OutgoingState
) -> None:
    """Writes the row of a flow, if it has one."""
    if flow.is_stored:
        unit.set_state(_KIND, flow_key(session, packet_identifier), flow.pack(qos, state))


def forget_flow(unit: UnitOfWork, session: ClientSession, flow: Flow, packet_identifier: int) -> None:
    """Deletes the row of a flow, if it has one."""
    if flow.is_stored:
        unit.delete_state(_KIND, flow_key(session, packet_identifier))


def close_flow(unit: UnitOfWork, queue: Queue, flow: Flow, departure: Departure = Departure.TAKEN) -> None:
    """A flow no longer needs its message's bytes. The last flow destroys the message, which came off `queue`."""
    in_flight, flow.in_flight = flow.in_flight, None
    if in_flight is not None:
        in_flight.open_flows -= 1
        if not in_flight.open_flows:
            unit.remove(queue, in_flight.message, departure)


def bytes_in_flight(session: ClientSession, correl_id: bytes) -> int:
    """Bytes on their way to a client from the lane of that CorrelId: the session's own lane, or a group's."""
    bodies: dict[InFlight, int] = {}  # each once, however many of its topics are under way
    for outgoing in session.mqtt.outgoing.values():
        in_flight = flow_of(outgoing.token).in_flight
        if in_flight is not None and in_flight.message.descriptor.correl_id == correl_id:
            bodies[in_flight] = len(in_flight.message.body)
    return sum(bodies.values())


def flow_of(token: object) -> Flow:
    """The flow that `OutgoingFlows.outgoing` knows as a token."""
    assert isinstance(token, Flow)
    return token


def note_acknowledgement(
    unit: UnitOfWork, session: ClientSession, flow: Flow, packet_type: int, packet_identifier: int, now_us: int
) -> None:
    """Notes a client's acknowledgement of a delivery for the audit."""
    unit.notes.append(
        (
            _ACKNOWLEDGED,
            now_us,
            session.client,
            session.epoch,
            flow.exchange,
            packet_type,
            packet_identifier,
            flow.number,
        )
    )
