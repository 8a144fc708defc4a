"""The half of MQTT that outlives a connection: the packet identifiers in use to the client, and the state of each.

    outgoing QoS 1   start() -> AWAIT_PUBACK -> PUBACK -> ACKNOWLEDGED -> finish(): free
    outgoing QoS 2   start() -> AWAIT_PUBREC -> PUBREC -> RECEIVED -> release() -> AWAIT_PUBCOMP -> PUBCOMP
                     -> ACKNOWLEDGED -> finish(): free
    at level 5       PUBACK or PUBREC that refuses -> ACKNOWLEDGED -> finish(): free

A packet moves its flow to the state in front of a commit, at once and only once, so a repeated packet cannot cause a
second unit of work. The caller moves the flow on when the commit has returned. A flow in ACKNOWLEDGED has left the
window already. `connection` has the half that ends with the network connection (MQTT 3.1.1 sections 4.3 and 4.4).

Incoming flows of QoS 2 have no state here. The caller, which carries the packets out one after the other, holds each
message until its PUBREL. So a PUBLISH that is refused or given up leaves no trace.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from gateway.mqtt.errors import ProtocolViolation, UsageError
from gateway.mqtt.events import (
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DeliveryRefused,
)
from gateway.mqtt.levels import PacketType
from gateway.mqtt.properties import UNLIMITED_RECEIVE_MAXIMUM, ReasonProperties
from gateway.mqtt.wire import MAXIMUM_PACKET_IDENTIFIER


class OutgoingState(IntEnum):
    """The state of an outgoing flow. A restart may find the first three on the disk."""

    AWAIT_PUBACK = 1
    AWAIT_PUBREC = 2
    AWAIT_PUBCOMP = 3
    RECEIVED = 4
    ACKNOWLEDGED = 5


@dataclass(slots=True)
class Outgoing:
    """One PUBLISH of QoS 1 or 2 to the client; `token` is the caller's own name for the message."""

    packet_identifier: int
    token: Any  # mypyc cannot compile a field of type `object`
    qos: int
    state: OutgoingState


_ACKNOWLEDGED = OutgoingState.ACKNOWLEDGED
_FIRST_STATES = {1: OutgoingState.AWAIT_PUBACK, 2: OutgoingState.AWAIT_PUBREC}
_REPEATED_STATES = (OutgoingState.AWAIT_PUBACK, OutgoingState.AWAIT_PUBREC, OutgoingState.AWAIT_PUBCOMP)
_STATES_OF_QOS = {1: _REPEATED_STATES[:1], 2: _REPEATED_STATES[1:]}

_NONE_SEEN: Mapping[int, tuple[Outgoing, OutgoingState, int]] = {}

DeliveryEvent = DeliveryAcknowledged | DeliveryReceived | DeliveryCompleted


def _received_again(packet_identifier: int, token: object) -> DeliveryReceived:
    return DeliveryReceived(packet_identifier, token, True)


_STEPS: dict[tuple[int, OutgoingState], tuple[OutgoingState, Callable[[int, object], DeliveryEvent]]] = {
    (PacketType.PUBACK, OutgoingState.AWAIT_PUBACK): (OutgoingState.ACKNOWLEDGED, DeliveryAcknowledged),
    (PacketType.PUBREC, OutgoingState.AWAIT_PUBREC): (OutgoingState.RECEIVED, DeliveryReceived),
    (PacketType.PUBREC, OutgoingState.AWAIT_PUBCOMP): (OutgoingState.AWAIT_PUBCOMP, _received_again),
    (PacketType.PUBCOMP, OutgoingState.AWAIT_PUBCOMP): (OutgoingState.ACKNOWLEDGED, DeliveryCompleted),
}
"""From an acknowledgement and the state that it meets to the next state and the event. Other pairs change nothing."""

_REFUSALS = {PacketType.PUBACK: OutgoingState.AWAIT_PUBACK, PacketType.PUBREC: OutgoingState.AWAIT_PUBREC}
"""The acknowledgements that refuse, and the state in which each ends the flow."""


class OutgoingFlows:
    """The outgoing flows of one client, without I/O and clock. The caller stores the parts that must survive a restart.

    `outgoing`: flows by packet identifier, in the order in which a reconnect repeats them.
    """

    __slots__ = (
        "_answered",
        "_last_identifier",
        "_limit",
        "_overdue",
        "_unanswered",
        "clean_session",
        "client_identifier",
        "maximum_in_flight",
        "outgoing",
    )

    def __init__(self, client_identifier: str, *, clean_session: bool, maximum_in_flight: int = 100) -> None:
        if not 1 <= maximum_in_flight <= MAXIMUM_PACKET_IDENTIFIER:
            raise UsageError(f"{maximum_in_flight} messages in flight are not possible, it must be 1..65,535")
        self.client_identifier = client_identifier
        self.clean_session = clean_session
        self.maximum_in_flight = maximum_in_flight
        self.outgoing: dict[int, Outgoing] = {}
        #: The number of flows whose last answer has come and is being committed.
        self._answered = 0
        self._last_identifier = 0
        self._limit = maximum_in_flight
        #: Flows whose PUBLISH must be repeated on this connection when its window has room.
        self._overdue: dict[int, Outgoing] = {}
        #: For each flow that `repeats_due` has seen on this connection: its state, and since when.
        self._unanswered: Mapping[int, tuple[Outgoing, OutgoingState, int]] = _NONE_SEEN

    def begin_connection(self, receive_maximum: int) -> None:
        """`attach` calls this: a new connection, whose client takes so many unanswered PUBLISHes (MQTT-3.3.4-9)."""
        self._limit = min(self.maximum_in_flight, receive_maximum)
        self._overdue = {}
        self._unanswered = _NONE_SEEN
        if receive_maximum < UNLIMITED_RECEIVE_MAXIMUM:
            publishes = [each for each in self.outgoing.values() if each.state in _REFUSALS.values()]
            self._overdue = {each.packet_identifier: each for each in publishes[receive_maximum:]}

    def window(self) -> int:
        """The number of PUBLISHes of QoS 1 and 2 that may still be sent, after the commits that are under way.

        A flow leaves the window with its last answer (MQTT-3.3.4-9). Its identifier is free after that answer's commit.
        """
        if self._overdue:
            return 0
        allowed = self._limit + self._answered
        allowed = min(allowed, MAXIMUM_PACKET_IDENTIFIER)
        room = allowed - len(self.outgoing)
        return room if room > 0 else 0  # asked three times for each message: max and min would take half as long again

    def start(self, token: object, qos: int) -> int:
        """Begin the flow of an outgoing PUBLISH; returns its packet identifier. UsageError if the window is closed."""
        if not self.window():
            raise UsageError(f"{self.client_identifier}: the window of {self._limit} messages is used up")
        packet_identifier = self._last_identifier % MAXIMUM_PACKET_IDENTIFIER + 1
        while packet_identifier in self.outgoing:
            packet_identifier = packet_identifier % MAXIMUM_PACKET_IDENTIFIER + 1
        self.outgoing[packet_identifier] = Outgoing(packet_identifier, token, qos, _FIRST_STATES[qos])
        self._last_identifier = packet_identifier
        return packet_identifier

    def restore(self, packet_identifier: int, token: object, qos: int, state: OutgoingState) -> None:
        """Take up a flow after a restart of the gateway; call in the order of sending. UsageError for a bad flow."""
        if not 1 <= packet_identifier <= MAXIMUM_PACKET_IDENTIFIER or packet_identifier in self.outgoing:
            raise UsageError(f"{self.client_identifier}: packet identifier {packet_identifier} is not free")
        if state not in _STATES_OF_QOS[qos]:
            raise UsageError(f"{self.client_identifier}: a flow of QoS {qos} cannot be taken up in state {state.name}")
        self.outgoing[packet_identifier] = Outgoing(packet_identifier, token, qos, state)
        self._last_identifier = packet_identifier

    def release(self, packet_identifier: int) -> None:
        """PUBREC has been committed: send PUBREL now, and await PUBCOMP.

        The flow moves behind the others, for PUBRELs are repeated in the order of their PUBRECs (MQTT-4.6.0-4).
        """
        outgoing = self.outgoing.pop(packet_identifier)
        outgoing.state = OutgoingState.AWAIT_PUBCOMP
        self.outgoing[packet_identifier] = outgoing

    def finish(self, packet_identifier: int) -> object:
        """PUBACK or PUBCOMP has been committed: free the identifier, and return the token."""
        if self._overdue:
            self._overdue.pop(packet_identifier, None)
        outgoing = self.outgoing.pop(packet_identifier)
        self._answered -= outgoing.state is _ACKNOWLEDGED
        return outgoing.token

    def unfinished(self) -> tuple[Outgoing, ...]:
        """The flows to repeat on a new connection, in order: PUBLISH with DUP, or PUBREL for AWAIT_PUBCOMP.

        Two kinds of flows are left out. If a commit is under way, its end carries the flow on, on the connection that
        the session has by then. If the client's receive maximum has no room for a flow, `overdue` has it.
        """
        return tuple(
            outgoing
            for outgoing in self.outgoing.values()
            if outgoing.state in _REPEATED_STATES and outgoing.packet_identifier not in self._overdue
        )

    def overdue(self) -> tuple[Outgoing, ...]:
        """PUBLISHes to repeat now, for which there was no room before. Ask after each `finish`, before `window`."""
        if not self._overdue:
            return ()
        room = self._limit - (len(self.outgoing) - self._answered - len(self._overdue))
        due = list(self._overdue.values())[: max(0, room)]
        for outgoing in due:
            del self._overdue[outgoing.packet_identifier]
        return tuple(outgoing for outgoing in due if outgoing.state in _REPEATED_STATES)

    def repeats_due(self, now_us: int, after_us: int) -> tuple[Outgoing, ...]:
        """Flows without an answer for `after_us`, on the clock of `now_us`. Each is due once in that time.

        Only for level 3 (MQTT 3.1 section 4.2): later standards repeat on a new connection alone (MQTT-4.4.0-1). The
        time of a flow begins with the call that first sees it in its state, so call at short intervals.
        """
        seen, still, due = self._unanswered, dict[int, tuple[Outgoing, OutgoingState, int]](), list[Outgoing]()
        for flow in self.unfinished():
            before, state, since_us = seen.get(flow.packet_identifier, (flow, flow.state, now_us))
            if before is not flow or state is not flow.state or since_us > now_us:
                since_us = now_us
            elif now_us - since_us >= after_us > 0:
                due.append(flow)
                since_us = now_us
            still[flow.packet_identifier] = (flow, flow.state, since_us)
        self._unanswered = still
        return tuple(due)

    def note_acknowledgement(self, packet_type: int, packet_identifier: int) -> DeliveryEvent | None:
        """PUBACK, PUBREC or PUBCOMP arrived. Returns None if no flow awaits it.

        PUBREC for an unused identifier gets its answer all the same. Otherwise its sender would repeat it for ever.
        """
        outgoing = self.outgoing.get(packet_identifier)
        if outgoing is None:
            return DeliveryReceived(packet_identifier, None, True) if packet_type == PacketType.PUBREC else None
        step = _STEPS.get((packet_type, outgoing.state))
        if step is None:
            return None
        outgoing.state, delivery = step
        self._answered += outgoing.state is _ACKNOWLEDGED
        return delivery(packet_identifier, outgoing.token)

    def note_refusal(
        self, packet_type: PacketType, packet_identifier: int, reason_code: int, properties: ReasonProperties | None
    ) -> DeliveryRefused | None:
        """PUBACK or PUBREC arrived with a reason code of 80 hex or more. Returns None if no flow awaits it."""
        outgoing = self.outgoing.get(packet_identifier)
        if outgoing is None or outgoing.state is not _REFUSALS[packet_type]:
            return None
        outgoing.state = OutgoingState.ACKNOWLEDGED
        self._answered += 1
        return DeliveryRefused(packet_identifier, outgoing.token, packet_type, reason_code, properties)

    def check_order(self, packet_type: int, packet_identifier: int) -> None:
        """Raises ProtocolViolation for an acknowledgement that does not belong to its flow, or comes too early.

        Call it for an acknowledgement that changed nothing. A repeated one is no violation, because its commit may be
        under way.
        """
        outgoing = self.outgoing.get(packet_identifier)
        if outgoing is None:
            return
        is_of_its_qos = (packet_type == PacketType.PUBACK) == (outgoing.qos == 1)
        is_early = packet_type == PacketType.PUBCOMP and outgoing.state is OutgoingState.AWAIT_PUBREC
        if not is_of_its_qos or is_early:
            raise ProtocolViolation(
                f"{PacketType(packet_type).name} answers a PUBLISH of QoS {outgoing.qos} in {outgoing.state.name}"
            )
