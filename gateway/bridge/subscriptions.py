"""SUBSCRIBE and UNSUBSCRIBE: each filter registered at every destination that it concerns, and the answers to both.

One RegSub for each topic filter and destination, so that each gets its own answer; SUBACK waits for all of them. A
filter that one destination refuses, or does not answer in time, is refused, and taken back where it was registered. A
target that is away may be answered for (`subscribe_in_outage`): then the filter is granted, and registered when the
target is back. UNSUBACK waits for the embedded broker alone, and says nothing that an answer could change.
"""

import logging
from collections.abc import Callable
from typing import Final

from gateway.audit_trail.notes import NoteKind
from gateway.bridge.registrations import Registrations
from gateway.bridge.replies import Replies
from gateway.bridge.routes import Destination, Registration
from gateway.bridge.sessions import ClientSession, Sessions
from gateway.channels.target import Target
from gateway.mqtt.events import SubscribeReceived, UnsubscribeReceived
from gateway.mqtt.packets import PacketType
from mappings.command import Completion, Response
from mappings.errors import MappingError
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.reasons import QueueManagerError

_log = logging.getLogger(__name__)

#: SUBACK return code for a subscription that failed (MQTT 3.1.1 section 3.9.3).
FAILURE: Final = 0x80
#: A level costs about 300 bytes of index, for as long as the subscription lives; real topics have ten.
MAXIMUM_LEVELS: Final = 200
_GRANT: Final = "grant"

Answered = Callable[[ClientSession, int, bytes], None]


class _Packet:
    """A SUBSCRIBE or UNSUBSCRIBE that waits for answers: its filters, and what became of them so far."""

    __slots__ = (
        "answered",
        "deadline_us",
        "failed",
        "packet_identifier",
        "refused_at",
        "registered",
        "session",
        "subscriptions",
        "waiting",
        "wanted",
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
        #: Filter and destination by MsgId of the command that is under way for them.
        self.waiting: dict[bytes, tuple[str, Destination]] = {}
        #: What counts as registered for each filter, until it is granted or taken back.
        self.registered: dict[str, tuple[Registration, ...]] = {}
        #: Filters that were refused, and where.
        self.failed: set[str] = set()
        self.refused_at: set[tuple[str, Destination]] = set()

    @property
    def return_codes(self) -> bytes:
        """One for each entry of the SUBSCRIBE: the granted QoS, or failure."""
        return bytes(FAILURE if topic_filter in self.failed else qos for topic_filter, qos in self.subscriptions)


class Subscriptions:
    """Answers SUBSCRIBE and UNSUBSCRIBE when all that they ask for is decided."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        registrations: Registrations,
        replies: Replies,
        *,
        answer_timeout_s: float,
        maximum_subscriptions: int,
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._registrations = registrations
        self._replies = replies
        self._maximum_subscriptions = maximum_subscriptions
        self._answer_timeout_us = int(answer_timeout_s * 1_000_000)
        self._ticked_us = 0
        #: Packets that wait, by session and in the order of arrival.
        self._under_way: dict[ClientSession, list[_Packet]] = {}

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
            is_allowed = self._may_register(unit, session, topic_filter, known, now_us)
            if not (is_allowed and self._register(unit, packet, topic_filter, entry, now_us)):
                packet.failed.add(topic_filter)
        if session.generations:  # what is registered at targets stands in the session's row
            self._sessions.save(unit, session)
        self._wait(unit, packet)

    def _register(self, unit: UnitOfWork, packet: _Packet, topic_filter: str, entry: bytes, now_us: int) -> bool:
        """RegSub at every destination of a filter; False where it cannot be said, or there is no room for it."""
        session = packet.session
        wanted = self._registrations.of(topic_filter)
        full = self._full_target(wanted)
        if full is not None:
            _log.warning(
                "subscription refused client=%s filter=%s full_target=%s", session.client, topic_filter, full.name
            )
            return False
        part = (int(PacketType.SUBSCRIBE), packet.packet_identifier, entry)
        try:
            asked = self._registrations.register(unit, session, wanted, part, now_us)
        except (MappingError, QueueManagerError) as error:
            _log.warning("subscription refused client=%s filter=%s reason=%s", session.client, topic_filter, error)
            return False
        packet.registered[topic_filter] = wanted
        for msg_id, destination in asked:
            target = self._registrations.target_of(destination)
            if target is not None and not target.is_connected and target.settings.subscribe_in_outage == _GRANT:
                self._replies.expect(msg_id, self._registrations.late_refusal(session, topic_filter))
            else:
                self._await(packet, msg_id, topic_filter, destination)
        return bool(wanted)

    def _full_target(self, wanted: tuple[Registration, ...]) -> Target | None:
        """The first target for which as much waits as may: clients that ask again and again do not add to that."""
        targets = (self._registrations.target_of(each.destination) for each in wanted)
        return next((target for target in targets if target is not None and target.is_full), None)

    def _known_filters(self, session: ClientSession) -> set[str]:
        """The filters that count against the session's limit: granted, and asked for but not answered."""
        under_way = (packet.wanted for packet in self._under_way.get(session, ()))
        return set(session.subscriptions).union(*under_way)

    def _may_register(
        self, unit: UnitOfWork, session: ClientSession, topic_filter: str, known: set[str], now_us: int
    ) -> bool:
        """Whether a filter may go to a broker; it then counts as known."""
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
        return True

    def unsubscribe(self, session: ClientSession, event: UnsubscribeReceived, answered: Answered, now_us: int) -> None:
        """Deregisters each filter that the session has; `answered` follows, when UNSUBACK may leave."""
        unit = self._engine.begin()
        packet = _Packet(session, event.packet_identifier, (), answered, now_us + self._answer_timeout_us)
        for topic_filter, entry in zip(event.topic_filters, event.entries, strict=True):
            unneeded = self._give_up(session, topic_filter)
            part = (int(PacketType.UNSUBSCRIBE), event.packet_identifier, entry)
            for msg_id, destination in self._registrations.deregister(unit, session, unneeded, part, now_us):
                if destination.target is None:
                    self._await(packet, msg_id, topic_filter, destination)
        self._sessions.save(unit, session)
        self._wait(unit, packet)

    def _give_up(self, session: ClientSession, topic_filter: str) -> list[Registration]:
        """Takes a filter back, granted or still under way; what nobody of the session needs any more."""
        unneeded: list[Registration] = []
        if topic_filter in session.subscriptions:
            session.revoke(topic_filter)
            unneeded += self._registrations.let_go(session, self._registrations.of(topic_filter))
        for packet in self._under_way.get(session, ()):
            unneeded += self._registrations.let_go(session, packet.registered.pop(topic_filter, ()))
        return unneeded

    def tick(self, now_us: int) -> None:
        """Gives up packets that waited too long for an answer. A clock that is set back makes none wait longer."""
        set_back_us, self._ticked_us = max(0, self._ticked_us - now_us), now_us
        under_way = [each for packets in self._under_way.values() for each in packets]
        for packet in under_way:
            packet.deadline_us -= set_back_us
        late = [packet for packet in under_way if packet.deadline_us <= now_us]
        for packet in late:
            for msg_id, (topic_filter, destination) in packet.waiting.items():
                self._time_out(packet, msg_id, topic_filter, destination)
            packet.waiting.clear()
            _log.warning("broker answer timed out client=%s", packet.session.client)
            self._finish(packet)

    def _time_out(self, packet: _Packet, msg_id: bytes, topic_filter: str, destination: Destination) -> None:
        target = self._registrations.target_of(destination)
        if target is not None and target.settings.subscribe_in_outage == _GRANT:
            self._replies.expect(msg_id, self._registrations.late_refusal(packet.session, topic_filter))
            return
        self._replies.expect(msg_id, _ignore)
        if packet.wanted:
            packet.failed.add(topic_filter)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _await(self, packet: _Packet, msg_id: bytes, topic_filter: str, destination: Destination) -> None:
        packet.waiting[msg_id] = (topic_filter, destination)
        self._replies.expect(msg_id, lambda response: self._answer(packet, msg_id, response))

    def _wait(self, unit: UnitOfWork, packet: _Packet) -> None:
        packet.session.pending_answers += 1
        self._under_way.setdefault(packet.session, []).append(packet)
        if packet.waiting:
            self._engine.submit(unit)
        else:
            self._engine.submit(unit, lambda _unit: self._finish(packet))

    def _answer(self, packet: _Packet, msg_id: bytes, response: Response | None) -> None:
        topic_filter, destination = packet.waiting.pop(msg_id)
        if packet.wanted and (response is None or response.completion is Completion.FAILED):
            packet.failed.add(topic_filter)
            packet.refused_at.add((topic_filter, destination))
            reason_code = response.reasons[0].reason_code if response is not None and response.reasons else 0
            _log.warning(
                "subscription refused client=%s filter=%s reason_code=%s",
                packet.session.client,
                topic_filter,
                reason_code,
            )
        if not packet.waiting:
            self._finish(packet)

    def _finish(self, packet: _Packet) -> None:
        """All is decided: the session's row is written, and after that the packet is answered."""
        session = packet.session
        unit = self._engine.begin()
        self._leave(packet)
        if self._sessions.get(session.client) is session:
            for topic_filter, wanted in packet.registered.items():
                self._decide(unit, packet, topic_filter, wanted)
            self._sessions.save(unit, session)

        def committed(_unit: UnitOfWork) -> None:
            session.pending_answers -= 1
            packet.answered(session, packet.packet_identifier, packet.return_codes)

        self._engine.submit(unit, committed)

    def _leave(self, packet: _Packet) -> None:
        under_way = self._under_way[packet.session]
        under_way.remove(packet)
        if not under_way:
            del self._under_way[packet.session]

    def _decide(self, unit: UnitOfWork, packet: _Packet, topic_filter: str, wanted: tuple[Registration, ...]) -> None:
        """Grants a filter that was registered everywhere; takes back one that was not."""
        session = packet.session
        if topic_filter in packet.failed:
            unneeded = self._registrations.let_go(session, wanted)
            told = [each for each in unneeded if (topic_filter, each.destination) not in packet.refused_at]
            self._registrations.undo(unit, session, told)
            return
        if topic_filter in session.subscriptions:
            self._registrations.let_go(session, wanted)  # it counts once, however often it was asked for
        session.grant(topic_filter, packet.wanted[topic_filter])

    @staticmethod
    def _note_refused(unit: UnitOfWork, session: ClientSession, topic_filter: str, now_us: int) -> None:
        _log.warning("subscription not allowed client=%s filter=%s", session.client, topic_filter)
        unit.notes.append(
            (NoteKind.REFUSED, now_us, session.client, session.epoch, 0, "RegSub", 0, 2035, "access list")
        )


def _ignore(_response: Response | None) -> None:
    """The answer to what was taken back meanwhile."""
