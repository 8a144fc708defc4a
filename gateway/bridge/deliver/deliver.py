"""Publication to packet: step 8 on the way of a PUBLISH.

Publications for the gateway's subscriptions arrive on one subscriber queue, each session's in the lane of its CorrelId.
They wait there until the client is connected and its window is open. Then one unit of work records the delivery, and
the packets leave after its commit. The unit joins the commit of the publication, or of the answer that opened the
window:

    QoS 0   the message is destroyed, then PUBLISH leaves: at most once
    QoS 1   the packet identifier is noted, PUBLISH leaves; PUBACK destroys the message
    QoS 2   the packet identifier is noted, PUBLISH leaves; PUBREC destroys the message and notes the release,
            PUBREL leaves; PUBCOMP forgets the identifier

A message on its way at QoS 1 or 2 is a flow (outgoing_messages.py).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from gateway.audit_trail.notes.charges import USUAL_HEADER_BYTES, delivery_trail_bytes, repeats_trail_bytes
from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.counts import Counts
from gateway.bridge.deliver.deliver_packets import PublishPackets, is_own
from gateway.bridge.deliver.outgoing_messages import (
    Flow,
    InFlight,
    StoredFlow,
    close_flow,
    flow_of,
    forget_flow,
    keep_flow,
    note_acknowledgement,
)
from gateway.bridge.messages.publications import Publication, Publications
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.mqtt.events import DeliveryAcknowledged, DeliveryCompleted, DeliveryReceived, DeliveryRefused
from gateway.mqtt.levels import PacketType
from gateway.mqtt.outgoing_flows import Outgoing, OutgoingState
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, StateKind, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import ReasonCode

#: Messages taken for one session in one unit of work.
_BATCH_MESSAGES: Final = 200
#: Bytes of messages after which a unit of work takes no further one.
_BATCH_BYTES: Final = 1024 * 1024
#: No session's deliveries of what has arrived begin in a turn of the event loop when others have taken so long, and no
#: further message of a session when its own have, seconds.
MOST_S: Final = 0.002
#: Messages destroyed in one unit of work when a session ends: some 3 microseconds each, and their bytes are read.
_DRAIN_MESSAGES: Final = 1_000
_PUBACK: Final = int(PacketType.PUBACK)
_PUBREC: Final = int(PacketType.PUBREC)
_PUBCOMP: Final = int(PacketType.PUBCOMP)
_UNKNOWN: Final = "publications for sessions that have ended"
_SESSION_ENDED: Final = "the session ended"
#: Topics of one publication that are compared with filters; the index of a topic is stored in one byte.
MAXIMUM_TOPICS: Final = 256


class ToMqtt:
    """Takes publications off the subscriber queue and sends them to the connected clients."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        queue: Queue,
        *,
        publications: Publications,
        packets: PublishPackets,
        counts: Counts,
        trail: TrailCharges,
        call_soon: Callable[[Callable[[], None]], object],
        now_s: Callable[[], float],
    ) -> None:
        """`now_s`: a clock that never goes back."""
        self._engine = engine
        self._sessions = sessions
        self._queue = queue
        self._publications = publications
        self._packets = packets
        self._counts = counts
        self._trail = trail
        self._call_soon = call_soon
        self.now_s = now_s
        #: When the time of this turn for deliveries is over; 0: it has none yet.
        self._ends_s = 0.0
        #: Sessions whose deliveries had no time left in their turn.
        self._late: OrderedDict[ClientSession, None] = OrderedDict()
        #: Sessions whose windows were opened by answers in the group of units that is gathering.
        self._widened: dict[ClientSession, None] = {}
        #: True while only the reserve of the disk is left: nothing new is delivered, but flows under way go on.
        self.is_paused = False
        #: Called when a session may take more than before.
        self.on_room: list[Callable[[ClientSession], None]] = []
        #: Each tells whether publications wait for a CorrelId that belongs to no session.
        self.other_lanes: list[Callable[[bytes], bool]] = []

    def pause(self, is_paused: bool) -> None:
        """Stops deliveries while only the reserve of the disk is left, and starts them again for every session."""
        self.is_paused = is_paused
        if not is_paused:
            for session in tuple(self._sessions):
                self._deliver_in_time(session)

    # -- from the queue to the client ----------------------------------------------------------------------------------

    def deliver(self, session: ClientSession) -> None:
        """Sends waiting messages as far as window and link allow. Call it when one of the three may have changed."""
        self._deliver_own(session)
        if session.shared:
            for told in self.on_room:
                told(session)

    def _deliver_in_time(self, session: ClientSession) -> None:
        """Delivers now, or behind others in a later turn of the event loop where they have taken the time of this one.

        A session that is still waiting when more comes gets it at once. So nobody falls behind a publisher, who is not
        read meanwhile.
        """
        now_s = self.now_s()
        if not self._ends_s:
            self._ends_s = now_s + MOST_S
            self._call_soon(self._deliver_late)
        if now_s <= self._ends_s or session in self._late:
            self._late.pop(session, None)
            self.deliver(session)
        elif session.shared or session.correl_id in self._queue.lanes:
            self._late[session] = None

    def _deliver_late(self) -> None:
        """A new turn: those come first who have waited longest."""
        self._ends_s = 0.0
        if not self._late or self._engine.failed is not None:
            return
        self._ends_s = ends_s = self.now_s() + MOST_S
        self._call_soon(self._deliver_late)
        while self._late and self.now_s() <= ends_s:
            session, _ = self._late.popitem(last=False)
            self.deliver(session)

    def _deliver_own(self, session: ClientSession) -> None:
        link = session.link
        if link is None or session.pending_answers or not link.can_send or self.is_paused:
            return
        queue, correl_id = self._queue, session.correl_id
        if correl_id not in queue.lanes:
            return
        unit = self._engine.begin()
        out: list[bytes] = []
        taken_bytes, ends_s = 0, self.now_s() + MOST_S
        for _ in range(_BATCH_MESSAGES):
            if taken_bytes >= _BATCH_BYTES or not session.mqtt.window():
                break
            message = self._engine.take(queue, correl_id)
            if message is None or not self._send(unit, session, message, out):
                break
            taken_bytes += len(message.body)
            if self.now_s() > ends_s:  # headers that are read anew take 0.2 ms each
                break
        if out or unit.removals:
            self._engine.submit(unit, lambda _unit: self._sent(session, link, out))

    def _sent(self, session: ClientSession, link: Link, out: list[bytes]) -> None:
        """The unit is committed, so the packets may leave. If the link is new, the reconnect has repeated them."""
        if session.link is link:
            if out:
                link.send(b"".join(out))
            self._deliver_in_time(session)

    def _send(self, unit: UnitOfWork, session: ClientSession, message: Message, out: list[bytes]) -> bool:
        """Adds one message's packets to `out`; False when it must wait for a wider window."""
        publication = self.read(unit, message)
        if publication is None:
            return True
        wanted = _wanted(session, message, publication)
        if not wanted:
            self.drop(unit, (session.client, session.epoch), message, why_unwanted(publication))
            return True
        return self._packets.add(unit, session, message, publication, wanted, out)

    def read(self, unit: UnitOfWork, message: Message) -> Publication | None:
        """The publication in a message; None after another message, or one too long, was made a dead letter."""
        publication = self._publications.of(message)
        if publication is None or not publication.fits(message):
            self._dead_letter(unit, message)
            return None
        return publication

    def repeat(self, session: ClientSession) -> None:
        """On a new connection: PUBLISH with DUP, or PUBREL, for every unfinished flow, in order (MQTT 3.1.1, 4.4)."""
        self._repeat(session, session.mqtt.unfinished())

    def repeat_overdue(self, session: ClientSession) -> None:
        """Repeats flows that did not fit the client's receive maximum when it came back. Call it after a flow ends."""
        overdue = session.mqtt.overdue()
        if overdue and session.link is not None:
            self._repeat(session, overdue)

    def repeat_due(self, session: ClientSession, now_us: int, after_us: int) -> None:
        """Repeats the packets that the client has not answered for `after_us` on this connection."""
        if session.link is not None and session.link.can_send:
            self._repeat(session, session.mqtt.repeats_due(now_us, after_us))

    def _repeat(self, session: ClientSession, flows: Iterable[Outgoing]) -> None:
        assert session.link is not None
        unit = self._engine.begin()
        out = [self._packets.again(unit, session, outgoing) for outgoing in flows]
        if out:
            session.link.send(b"".join(out))
            self._engine.submit(unit)
            self._trail.charge_bytes(session.account, repeats_trail_bytes(unit.notes))

    # -- what the client answers ---------------------------------------------------------------------------------------

    def _widen(self, session: ClientSession) -> None:
        """A flow has its last answer. The message that takes its place in the window joins the answer's commit."""
        if session in self._widened:
            return
        if not self._widened:
            self._engine.before_commit(self._fill_windows)
        self._widened[session] = None

    def _fill_windows(self) -> None:
        widened, self._widened = self._widened, {}
        for session in widened:
            self.deliver(session)

    def acknowledged(self, unit: UnitOfWork, session: ClientSession, event: DeliveryAcknowledged, now_us: int) -> None:
        """PUBACK: the message is destroyed; after the commit call `finished`."""
        flow = flow_of(event.token)
        close_flow(unit, self._queue, flow)
        forget_flow(unit, session, flow, event.packet_identifier)
        note_acknowledgement(unit, session, flow, _PUBACK, event.packet_identifier, now_us)
        self._widen(session)

    def refused(self, unit: UnitOfWork, session: ClientSession, event: DeliveryRefused, now_us: int) -> None:
        """PUBACK or PUBREC refuses the message: it is not sent again; after the commit call `finished`."""
        flow = flow_of(event.token)
        close_flow(unit, self._queue, flow)
        forget_flow(unit, session, flow, event.packet_identifier)
        note_acknowledgement(unit, session, flow, event.packet_type, event.packet_identifier, now_us)
        self._widen(session)

    def received(self, unit: UnitOfWork, session: ClientSession, event: DeliveryReceived, now_us: int) -> None:
        """PUBREC: the message is destroyed and the release noted. After the commit call `release`; PUBREL may leave."""
        flow = flow_of(event.token)
        close_flow(unit, self._queue, flow)
        flow.order = self._engine.number()
        keep_flow(unit, session, flow, event.packet_identifier, 2, OutgoingState.AWAIT_PUBCOMP)
        note_acknowledgement(unit, session, flow, _PUBREC, event.packet_identifier, now_us)

    def completed(self, unit: UnitOfWork, session: ClientSession, event: DeliveryCompleted, now_us: int) -> None:
        """PUBCOMP: the identifier is free again; after the commit call `finished`."""
        flow = flow_of(event.token)
        forget_flow(unit, session, flow, event.packet_identifier)
        note_acknowledgement(unit, session, flow, _PUBCOMP, event.packet_identifier, now_us)
        self._widen(session)

    # -- start and end of a session ------------------------------------------------------------------------------------

    def listen(self, session: ClientSession) -> Callable[[], None]:
        """Calls `deliver` when publications arrive for a session. Call the result to stop that.

        What waits for a session that ends with its connection, and so with this process, need not be on the disk.
        """

        def arrived() -> None:
            self._deliver_in_time(session)

        def stop() -> None:
            self._late.pop(session, None)
            self._queue.unlisten(session.correl_id, arrived)
            self._queue.leave(session.correl_id)
            self._queue.memory_lanes.discard(session.correl_id)

        self._queue.listen(session.correl_id, arrived)
        self._queue.join(session.correl_id, partial(self._deliver_own, session))
        if not session.expiry_s:
            self._queue.memory_lanes.add(session.correl_id)
        return stop

    def load(self) -> None:
        """Loads the flows of every session after a restart of the gateway, in the order of sending."""
        by_epoch = self._sessions.by_epoch()
        stored = [(key, StoredFlow.unpack(row)) for key, row in self._engine.states(StateKind.SESSION_OUTGOING)]
        shared: dict[tuple[int, int], InFlight] = {}
        for key, row in sorted(stored, key=lambda each: each[1].order):
            session = by_epoch.get(int.from_bytes(key[:8], "big"))
            if session is None:
                continue
            state = OutgoingState(row.state)
            in_flight = self._take_up(shared, session, row.number) if state is not OutgoingState.AWAIT_PUBCOMP else None
            if in_flight is None and state is OutgoingState.AWAIT_PUBACK:
                self._forget_flow(key)
                continue
            if in_flight is None:  # the client may hold the message: only PUBREL frees the identifier on both sides
                state = OutgoingState.AWAIT_PUBCOMP
            flow = Flow(in_flight, row.number, row.exchange, row.granted_qos, row.topic_index)
            flow.order = row.order
            session.mqtt.restore(int.from_bytes(key[8:], "big"), flow, row.qos, state)
        self.discard_unknown()

    def discard_unknown(self) -> None:
        """Destroys publications without a session. A target may send them after the session has ended."""
        for correl_id in tuple(self._queue.lanes):
            is_known = self._sessions.of_correl_id(correl_id) is not None or self._is_other_lane(correl_id)
            if not is_known:
                self._counts.add(_UNKNOWN, len(self._queue.lanes[correl_id]))
                self._drain_behind(correl_id, ("", 0))

    def _forget_flow(self, key: bytes) -> None:
        """Forgets a flow of QoS 1 without a message: it expired, or left the queue while the gateway was away."""
        unit = self._engine.begin()
        unit.delete_state(StateKind.SESSION_OUTGOING, key)
        self._engine.submit(unit)

    def _take_up(self, shared: dict[tuple[int, int], InFlight], session: ClientSession, number: int) -> InFlight | None:
        in_flight = shared.get((session.epoch, number))
        if in_flight is None:
            message = self._engine.take_number(self._queue, number)
            if message is None:
                return None
            in_flight = shared[session.epoch, number] = InFlight(message)
        in_flight.open_flows += 1
        return in_flight

    def _is_other_lane(self, correl_id: bytes) -> bool:
        return any(is_one(correl_id) for is_one in self.other_lanes)

    def waiting(self, session: ClientSession) -> int:
        """How many messages wait in the session's lane."""
        return len(self._queue.lanes.get(session.correl_id, ()))

    def discard(self, unit: UnitOfWork, session: ClientSession) -> None:
        """A session ends. Messages in flight are destroyed with it, and waiting messages little by little afterwards.

        A message in flight from a group goes to another member, except at QoS 2 (MQTT-4.8.2-5).
        """
        for packet_identifier, outgoing in session.mqtt.outgoing.items():
            flow = flow_of(outgoing.token)
            forget_flow(unit, session, flow, packet_identifier)
            in_flight, flow.in_flight = flow.in_flight, None
            if in_flight is None:
                continue
            in_flight.open_flows -= 1
            if in_flight.open_flows:
                continue
            if outgoing.qos == 1 and self._is_other_lane(in_flight.message.descriptor.correl_id):
                self._call_soon(partial(self._give_back, in_flight.message))
                self._trail.charge_bytes(session.account, delivery_trail_bytes(USUAL_HEADER_BYTES))
            else:
                owner = (session.client, session.epoch)
                self.drop(unit, owner, in_flight.message, _SESSION_ENDED, Departure.SESSION_ENDED)
        self.drain_behind(session.correl_id, (session.client, session.epoch))

    def _give_back(self, message: Message) -> None:
        if self._engine.failed is None:
            self._engine.give_back([(self._queue, message)])

    def drain_behind(self, correl_id: bytes, owner: tuple[str, int]) -> None:
        """Destroys the messages in the lane of a subscriber that has ended; `owner`: its name and epoch."""
        self._call_soon(lambda: self._drain_behind(correl_id, owner))

    def _drain_behind(self, correl_id: bytes, owner: tuple[str, int]) -> None:
        """Drains a lane after all earlier units of work have arrived in it, for example with the session's own will."""
        if self._engine.failed is None:
            self._engine.submit(self._engine.begin(), lambda _unit: self._drain(correl_id, owner))

    def _drain(self, correl_id: bytes, owner: tuple[str, int]) -> None:
        """Destroys a batch of the messages for an ended session, and comes back for more."""
        if self._engine.failed is not None:
            return
        unit = self._engine.begin()
        taken_bytes = 0
        while len(unit.removals) < _DRAIN_MESSAGES and taken_bytes < _BATCH_BYTES:
            message = self._engine.take(self._queue, correl_id)
            if message is None:
                break
            taken_bytes += len(message.body)
            self.drop(unit, owner, message, _SESSION_ENDED, Departure.SESSION_ENDED)
        if unit.removals:
            self._engine.submit(unit, lambda _unit: self._drain(correl_id, owner))

    def takes_back(self, queue: Queue, message: Message) -> bool:
        """Whether anybody would receive a dead letter that is put back on a queue of the gateway."""
        if queue is not self._queue:
            return True
        correl_id = message.descriptor.correl_id
        session = self._sessions.of_correl_id(correl_id)
        if session is None:
            return self._is_other_lane(correl_id)
        publication = self._publications.of(message)
        return publication is not None and publication.fits(message) and bool(_wanted(session, message, publication))

    # -- inside --------------------------------------------------------------------------------------------------------

    def drop(
        self,
        unit: UnitOfWork,
        owner: tuple[str, int],
        message: Message,
        reason: str,
        departure: Departure = Departure.DROPPED,
    ) -> None:
        """Destroys a message that is sent to nobody; `owner`: client and epoch of the session that it was for."""
        unit.remove(self._queue, message, departure)
        now_us = self._engine.now_us()
        unit.notes.append((NoteKind.DROPPED, now_us, *owner, 0, self._queue.name, message.sequence, reason))

    def _dead_letter(self, unit: UnitOfWork, message: Message) -> None:
        """Makes a dead letter of a message that no packet can carry. The messages behind it go on."""
        reason_code = ReasonCode.MQRC_RFH_ERROR
        departure = self._engine.dead_letters.put(unit, message, queue_name=self._queue.name, reason_code=reason_code)
        unit.remove(self._queue, message, departure)


def _wanted(session: ClientSession, message: Message, publication: Publication) -> list[tuple[int, int]]:
    """Index and granted QoS of each topic of a publication that the session's own filters match."""
    if len(publication.topics) == 1 and not (session.options or publication.is_retained):
        alone = session.granted_qos(publication.topics[0])
        return [] if alone is None else [(0, alone)]
    granted_qos = _granted_of(session, message, publication) if session.options else session.granted_qos
    return [
        (index, granted)
        for index, topic in enumerate(publication.topics[:MAXIMUM_TOPICS])
        if (granted := granted_qos(topic)) is not None
        and (not publication.is_retained or session.retained_marks.want(topic, message.sequence))
    ]


def _granted_of(session: ClientSession, message: Message, publication: Publication) -> Callable[[str], int | None]:
    """Like `ClientSession.granted_qos`, for a session with options on its subscriptions."""
    published_itself = is_own(session, message, publication)

    def granted_qos(topic: str) -> int | None:
        entitlement = session.entitlement(topic, is_own=published_itself)
        return None if entitlement is None else entitlement.qos

    return granted_qos


def why_unwanted(publication: Publication) -> str:
    """The reason why a publication that came for a subscription is sent to nobody."""
    if not publication.topics:
        return "the topic is no topic name of MQTT"
    return "no subscription of the session matches the topic"
