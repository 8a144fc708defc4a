"""SUBSCRIBE and UNSUBSCRIBE: commands to the broker, and its answers back.

One RegSub for each topic filter, so that each gets its own answer; SUBACK waits for all of them. Several filters may
stand behind one registered pattern (MQRFH has coarser wildcards), so patterns are counted, and DeregSub goes out for
the last one. An answer that comes after SUBACK was given up is undone by a DeregSub. What the broker refuses of a
publication comes back as a negative notification and goes to the dead-letter queue with the message it speaks of.
"""

import logging
from collections.abc import Callable
from typing import Final

from gateway.audit_trail.notes import NoteKind
from gateway.bridge.dead_letters import put_dead_letter
from gateway.bridge.sessions import ClientSession, Sessions
from gateway.bridge.to_mq import ToMq, exchange_of
from gateway.mqtt.events import SubscribeReceived, UnsubscribeReceived
from gateway.mqtt.packets import PacketType
from mappings.command import Completion, Response, read_response
from mappings.errors import MappingError
from mappings.header_chain import read_header_chain
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import ReasonCode

_log = logging.getLogger(__name__)

#: SUBACK return code for a subscription that failed (MQTT 3.1.1 section 3.9.3).
FAILURE: Final = 0x80
#: A level costs about 300 bytes of index, for as long as the subscription lives; real topics have ten.
MAXIMUM_LEVELS: Final = 200
#: Deregistering what is not registered is as good as done.
_NOT_REGISTERED: Final = 3073

Answered = Callable[[ClientSession, int, bytes], None]


class _Packet:
    """A SUBSCRIBE or UNSUBSCRIBE that waits for the broker: its filters, and the answers so far."""

    __slots__ = (
        "answered",
        "deadline_us",
        "failed",
        "packet_identifier",
        "session",
        "subscriptions",
        "waiting",
        "wanted",
        "withdrawn",
    )

    def __init__(
        self,
        session: ClientSession,
        packet_identifier: int,
        subscriptions: tuple[tuple[str, int], ...],
        answered: Answered,
        deadline_us: int,
    ) -> None:
        self.session = session
        self.packet_identifier = packet_identifier
        self.subscriptions = subscriptions
        #: QoS by filter; of a filter that stands there several times the last entry counts.
        self.wanted = dict(subscriptions)
        self.answered = answered
        self.deadline_us = deadline_us
        #: Filter by MsgId of the command that is under way for it.
        self.waiting: dict[bytes, str] = {}
        #: Filters that were refused.
        self.failed: set[str] = set()
        #: Filters that an UNSUBSCRIBE took back before the broker's answer was there.
        self.withdrawn: set[str] = set()

    @property
    def return_codes(self) -> bytes:
        """One for each entry of the SUBSCRIBE: the granted QoS, or failure."""
        return bytes(FAILURE if topic_filter in self.failed else qos for topic_filter, qos in self.subscriptions)


class Subscriptions:
    """Registers and deregisters at the broker, and reads the reply queue."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        to_mq: ToMq,
        *,
        reply_queue: Queue,
        answer_timeout_s: float,
        maximum_subscriptions: int,
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._to_mq = to_mq
        self._reply_queue = reply_queue
        self._maximum_subscriptions = maximum_subscriptions
        self._answer_timeout_us = int(answer_timeout_s * 1_000_000)
        self._packets: dict[bytes, _Packet] = {}
        #: Sessions whose RegSub was given up: an answer that comes later is undone.
        self._given_up: dict[bytes, tuple[ClientSession, str]] = {}
        #: Publications that the broker refused, until the notification about them has been read.
        self.refused: dict[bytes, Message] = {}
        reply_queue.listen(None, self._replies_arrived)

    # -- packets -------------------------------------------------------------------------------------------------------

    def subscribe(self, session: ClientSession, event: SubscribeReceived, answered: Answered, now_us: int) -> None:
        """Registers each filter; `answered` follows, when SUBACK may leave."""
        unit = self._engine.begin()
        packet = _Packet(
            session, event.packet_identifier, event.subscriptions, answered, now_us + self._answer_timeout_us
        )
        session.may_be_registered = True
        session.newest_filters = frozenset(packet.wanted)
        session.newest_number = self._engine.number()
        entries = {
            topic_filter: entry for (topic_filter, _), entry in zip(event.subscriptions, event.entries, strict=True)
        }
        known = self._known_filters(session)
        for topic_filter, entry in entries.items():
            if not self._may_register(unit, session, topic_filter, known, now_us):
                packet.failed.add(topic_filter)
                continue
            message = (PacketType.SUBSCRIBE, event.packet_identifier, entry)
            try:
                msg_id = self._to_mq.register(unit, session, self._patterns(topic_filter), message, now_us)
            except MappingError as error:
                _log.warning("subscription refused client=%s filter=%s reason=%s", session.client, topic_filter, error)
                packet.failed.add(topic_filter)
                continue
            packet.waiting[msg_id] = topic_filter
        self._wait(unit, packet)

    def _known_filters(self, session: ClientSession) -> set[str]:
        """The filters that count against the session's limit: granted, and asked for but not answered."""
        under_way = (packet.wanted for packet in self._packets.values() if packet.session is session)
        return set(session.subscriptions).union(*under_way)

    def _may_register(
        self, unit: UnitOfWork, session: ClientSession, topic_filter: str, known: set[str], now_us: int
    ) -> bool:
        """Whether a filter may go to the broker; it then counts as known."""
        if topic_filter not in known and len(known) >= self._maximum_subscriptions:
            _log.warning("subscription limit reached client=%s limit=%s", session.client, self._maximum_subscriptions)
            return False
        if topic_filter.count("/") >= MAXIMUM_LEVELS:
            _log.warning("subscription too deep client=%s limit=%s", session.client, MAXIMUM_LEVELS)
            return False
        if not session.rights.may_subscribe(topic_filter):
            self._note_refused(unit, session, topic_filter, now_us)
            return False
        known.add(topic_filter)
        return bool(self._patterns(topic_filter))

    def unsubscribe(self, session: ClientSession, event: UnsubscribeReceived, answered: Answered, now_us: int) -> None:
        """Deregisters each filter that the session has; `answered` follows, when UNSUBACK may leave."""
        unit = self._engine.begin()
        packet = _Packet(session, event.packet_identifier, (), answered, now_us + self._answer_timeout_us)
        for topic_filter, entry in zip(event.topic_filters, event.entries, strict=True):
            under_way = self._withdraw(session, topic_filter)
            if topic_filter in session.subscriptions:
                session.revoke(topic_filter)
                patterns = self._last_of(session, topic_filter)
            elif under_way:
                patterns = tuple(found for found in self._patterns(topic_filter) if found not in session.emitted)
            else:
                continue
            if patterns:
                message = (PacketType.UNSUBSCRIBE, event.packet_identifier, entry)
                packet.waiting[self._to_mq.deregister(unit, session, patterns, message, now_us)] = topic_filter
        self._sessions.save(unit, session)
        self._wait(unit, packet)

    def _withdraw(self, session: ClientSession, topic_filter: str) -> bool:
        """Takes back a filter whose RegSub is not answered yet; False where there is none."""
        found = False
        for packet in self._packets.values():
            if packet.session is session and topic_filter in packet.wanted:
                packet.withdrawn.add(topic_filter)
                found = True
        return found

    def restore(self, session: ClientSession) -> None:
        """Counts the patterns behind the subscriptions of a session that was loaded."""
        for topic_filter in session.subscriptions:
            for pattern in self._patterns(topic_filter):
                session.emitted[pattern] = session.emitted.get(pattern, 0) + 1

    def tick(self, now_us: int) -> None:
        """Gives up packets that waited too long for the broker."""
        for packet in {id(p): p for p in self._packets.values() if p.deadline_us <= now_us}.values():
            for msg_id, topic_filter in packet.waiting.items():
                del self._packets[msg_id]
                if packet.wanted:
                    packet.failed.add(topic_filter)
                    self._given_up[msg_id] = (packet.session, topic_filter)
            packet.waiting.clear()
            _log.warning("broker answer timed out client=%s", packet.session.client)
            self._finish(packet)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _wait(self, unit: UnitOfWork, packet: _Packet) -> None:
        packet.session.pending_answers += 1
        for msg_id in packet.waiting:
            self._packets[msg_id] = packet
        if packet.waiting:
            self._engine.submit(unit)
        else:
            self._engine.submit(unit, lambda _unit: self._finish(packet))

    def _replies_arrived(self) -> None:
        while (message := self._engine.take(self._reply_queue)) is not None:
            unit = self._engine.begin()
            unit.remove(self._reply_queue, message)
            self._reply(unit, message)
            self._engine.submit(unit)

    def _reply(self, unit: UnitOfWork, message: Message) -> None:
        answered_msg_id = message.descriptor.correl_id
        response = _read(message)
        packet = self._packets.pop(answered_msg_id, None)
        refused = self.refused.pop(answered_msg_id, None)
        if packet is not None:
            topic_filter = packet.waiting.pop(answered_msg_id)
            if packet.wanted:
                self._registered(packet, topic_filter, response)
            if not packet.waiting:
                self._finish(packet)
        elif answered_msg_id in self._given_up:
            self._undo(unit, *self._given_up.pop(answered_msg_id), response)
        elif response is None or response.completion is not Completion.OK:
            self._negative_notification(unit, message, response, refused)

    def _registered(self, packet: _Packet, topic_filter: str, response: Response | None) -> None:
        session = packet.session
        if response is None or response.completion is Completion.FAILED:
            packet.failed.add(topic_filter)
            reason_code = response.reasons[0].reason_code if response is not None and response.reasons else 0
            _log.warning(
                "subscription refused client=%s filter=%s reason_code=%s", session.client, topic_filter, reason_code
            )
            return
        if topic_filter in packet.withdrawn:
            return
        if topic_filter not in session.subscriptions:
            for pattern in self._patterns(topic_filter):
                session.emitted[pattern] = session.emitted.get(pattern, 0) + 1
        session.grant(topic_filter, packet.wanted[topic_filter])

    def _finish(self, packet: _Packet) -> None:
        """All answers are there: the session's row is written, and after that the packet is answered."""
        session = packet.session
        unit = self._engine.begin()
        if self._sessions.get(session.client) is session:
            self._sessions.save(unit, session)

        def committed(_unit: UnitOfWork) -> None:
            session.pending_answers -= 1
            packet.answered(session, packet.packet_identifier, packet.return_codes)

        self._engine.submit(unit, committed)

    def _undo(self, unit: UnitOfWork, session: ClientSession, topic_filter: str, response: Response | None) -> None:
        """SUBACK already said failure: a registration that came about all the same is taken back."""
        if response is None or response.completion is Completion.FAILED or topic_filter in session.subscriptions:
            return
        patterns = tuple(pattern for pattern in self._patterns(topic_filter) if pattern not in session.emitted)
        if patterns:
            now_us = self._engine.now_us()
            self._to_mq.deregister(unit, session, patterns, (PacketType.UNSUBSCRIBE, 0, b""), now_us)

    def _negative_notification(
        self, unit: UnitOfWork, message: Message, response: Response | None, refused: Message | None
    ) -> None:
        """Nothing that was acknowledged is refused in silence: the publication, or at least the notice, is kept."""
        reasons = response.reasons if response is not None else ()
        reason_code = reasons[0].reason_code if reasons else int(ReasonCode.MQRC_UNEXPECTED_ERROR)
        if reason_code == _NOT_REGISTERED:
            return
        exchange = exchange_of(message.origin)
        _log.warning("message refused client=%s exchange=%s reason_code=%s", exchange[0], exchange[2], reason_code)
        put_dead_letter(
            self._engine,
            unit,
            refused if refused is not None else message,
            queue_name=self._to_mq.stream_name if refused is not None else self._reply_queue.name,
            reason_code=reason_code,
            exchange=exchange,
        )

    # -- inside --------------------------------------------------------------------------------------------------------

    def _patterns(self, topic_filter: str) -> tuple[str, ...]:
        try:
            return self._to_mq.patterns(topic_filter)
        except MappingError as error:
            _log.warning("topic filter not expressible filter=%s reason=%s", topic_filter, str(error))
            return ()

    def _last_of(self, session: ClientSession, topic_filter: str) -> tuple[str, ...]:
        """Takes one count off each pattern of a filter; those that nobody needs any more."""
        last = []
        for pattern in self._patterns(topic_filter):
            session.emitted[pattern] = session.emitted.get(pattern, 1) - 1
            if session.emitted[pattern] <= 0:
                del session.emitted[pattern]
                last.append(pattern)
        return tuple(last)

    def _note_refused(self, unit: UnitOfWork, session: ClientSession, topic_filter: str, now_us: int) -> None:
        _log.warning("subscription not allowed client=%s filter=%s", session.client, topic_filter)
        unit.notes.append(
            (NoteKind.REFUSED, now_us, session.client, session.epoch, 0, "RegSub", 0, 2035, "access list")
        )


def _read(message: Message) -> Response | None:
    descriptor = message.descriptor
    try:
        return read_response(
            read_header_chain(
                message.body,
                format=descriptor.format,
                coded_char_set_id=descriptor.coded_char_set_id,
                encoding=descriptor.encoding,
            )
        )
    except MappingError:
        return None
