"""SUBSCRIBE and UNSUBSCRIBE: each filter is registered at its destinations, and both packets are answered.

There is one RegSub for each filter and destination. SUBACK waits for all of their answers. The embedded broker answers
first and then sends what is retained, so most copies follow the SUBACK (mq_adapters/broker/updates.py). If one
destination refuses a filter, or does not answer in time, the gateway refuses the filter and deregisters it everywhere.
If a target is away, `subscribe_in_outage` may let the gateway grant the filter; the target gets the RegSub when it is
back. UNSUBACK waits for the embedded broker alone.

The embedded broker answers before the unit of work is submitted, so its answers are taken out of that unit, and the
filters are decided in it: one SUBSCRIBE is one unit of work and one commit. An answer that comes later is decided in a
unit of its own. No answer leaves before its commit.

A client of MQTT 5 shares a subscription by a filter `$share/GROUP/FILTER`, which is registered for its group
(shared_deliveries.py). For earlier clients it is a filter like any other, because MQTT 3.1.1 knows no shared
subscriptions.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from gateway.access.refused_topics import Asked
from gateway.bridge.commands.mq_refusals import name_of_refusal, refused_subscription
from gateway.bridge.commands.registrations import Registrations
from gateway.bridge.commands.replies import Replies
from gateway.bridge.deliver.shared_deliveries import SharedSubscriptions
from gateway.bridge.deliver.shared_groups import SharedGroup
from gateway.bridge.sessions.session_limits import ClientLimits
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.subscriber import Subscriber
from gateway.bridge.sessions.subscription import GrantedOptions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.bridge.subscribe.pending_packet import (
    NO_ANSWER,
    NOT_CARRIED,
    TARGET_IS_FULL,
    Answered,
    FilterRefused,
    PendingPacket,
)
from gateway.channels.target import Target
from gateway.config.routes import Destination, Registration
from gateway.limits.log_rate import LogRate
from gateway.mqtt.events import (
    SubscribeReceived,
    SubscriptionOptions,
    UnsubscribeReceived,
    with_retain_handling,
)
from gateway.mqtt.levels import LEVELS, PacketType
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import Share, share_of
from mappings.commands.command import Completion, Response
from mappings.errors import MappingError
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reasons import ReasonCode as MqReasonCode

_log = logging.getLogger(__name__)

_GRANT: Final = "grant"
#: A broker refuses so when it has registered the filter, and may not send all that is retained (broker/updates.py).
_TOO_MANY_COPIES: Final = MqReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE


class CommandsUnderWay(Protocol):
    """The embedded broker's commands that send what is retained. Their names are MsgIds, or its own after a restart."""

    def is_unanswered(self, msg_id: bytes) -> bool:
        """Whether a command is under way and is answered at its end."""
        ...

    def is_under_way(self, msg_id: bytes) -> bool:
        """Whether a command, answered or not, has more to send."""
        ...

    def commands_under_way(self) -> Iterable[tuple[bytes | None, bytes]]:
        """CorrelId and name of each command that has more to send."""
        ...

    def on_retained_sent(self, told: Callable[[bytes | None, bytes], None]) -> None:
        """From now on `told` gets CorrelId and name of each such command with its last copy."""
        ...


class NoCommands:
    """There is no embedded broker."""

    def is_unanswered(self, msg_id: bytes) -> bool:
        return False

    def is_under_way(self, msg_id: bytes) -> bool:
        return False

    def commands_under_way(self) -> Iterable[tuple[bytes | None, bytes]]:
        return ()

    def on_retained_sent(self, told: Callable[[bytes | None, bytes], None]) -> None:
        pass


class Subscriptions:
    """Answers SUBSCRIBE and UNSUBSCRIBE when all their filters are decided."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        registrations: Registrations,
        shared: SharedSubscriptions,
        replies: Replies,
        *,
        answer_timeout_s: float,
        commands: CommandsUnderWay,
        client_limits: ClientLimits,
        trail: TrailCharges,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._registrations = registrations
        self._shared = shared
        self._replies = replies
        self._limits = client_limits
        self._trail = trail
        self._answer_timeout_us = int(answer_timeout_s * 1_000_000)
        self._commands = commands
        commands.on_retained_sent(self._all_sent)
        self._ticked_us = 0
        self._refused_lines = LogRate(_log, "subscriptions refused client=%s count=%s")
        #: Packets that wait, by session, in the order of arrival.
        self._under_way: dict[ClientSession, list[PendingPacket]] = {}
        #: Sessions whose row must be written before the next commit, each with the unit of its last packet.
        self._changed: dict[ClientSession, UnitOfWork] = {}
        #: Sessions whose row an error of ours kept from being written: nobody is told that their filters are kept.
        self._unsaved: set[ClientSession] = set()
        #: Packets that have got their last answer; they are finished in the next turn of the event loop.
        self._decided: list[PendingPacket] = []
        self._call_soon = call_soon

    def load(self) -> None:
        """Notes the sessions to which the broker still sends what was retained. Call it once, when they are loaded."""
        for correl_id, name in self._commands.commands_under_way():
            session = self._sessions.of_correl_id(correl_id) if correl_id is not None else None
            if session is not None:
                mark = session.retained_marks.begin(0, None)
                mark.is_answered, mark.under_way = True, {name}

    def _all_sent(self, correl_id: bytes | None, name: bytes) -> None:
        """The broker has sent all that a command brings."""
        session = self._sessions.of_correl_id(correl_id) if correl_id is not None else None
        if session is not None:
            session.retained_marks.all_sent(name, self._engine.number())

    # -- packets -------------------------------------------------------------------------------------------------------

    def subscribe(
        self, unit: UnitOfWork, session: ClientSession, event: SubscribeReceived, answered: Answered, now_us: int
    ) -> None:
        """Registers each filter, and submits the unit of work; `answered` follows, when SUBACK may leave."""
        packet = PendingPacket(
            session, event.packet_identifier, event.subscriptions, answered, now_us + self._answer_timeout_us
        )
        session.may_be_registered = True
        wanting_retained = self._note_options(packet, event)
        packet.mark = session.retained_marks.begin(self._engine.number(), frozenset(wanting_retained))
        entries = {
            topic_filter: entry for (topic_filter, _), entry in zip(event.subscriptions, event.entries, strict=True)
        }  # the last one counts, but for retained messages
        for topic_filter, entry in wanting_retained.items():
            entries[topic_filter] = with_retain_handling(entries[topic_filter], entry)
        known = self._known_filters(session)
        for topic_filter, entry in entries.items():
            refused = self._refused(packet, topic_filter, known)
            refused = refused or self._register(unit, packet, topic_filter, entry, now_us)
            if refused is not None:
                self._fail(packet, topic_filter, refused, now_us)
        self._submit(unit, packet)

    def _fail(self, packet: PendingPacket, topic_filter: str, refused: FilterRefused, now_us: int) -> None:
        """A filter is refused. The trail counts it once."""
        if topic_filter not in packet.failed:
            code = packet.code_of(refused)
            packet.session.rights.count_refusal(Asked.SUBSCRIBE, topic_filter, refused.rule, now_us, code)
        packet.fail(topic_filter, refused)

    def _note_options(self, packet: PendingPacket, event: SubscribeReceived) -> dict[str, bytes]:
        """Notes the options of each filter (the last entry counts). Returns the filters that want retained messages.

        Retain handling: 0 always, 1 only for a new subscription, 2 never (MQTT 5.0 section 3.8.3.1). If a filter has
        several entries, any of them may want retained messages (MQTT-3.8.4-5); the first that does is returned.
        """
        identifier = (event.properties.subscription_identifier or 0) if event.properties is not None else 0
        wanting: dict[str, bytes] = {}
        options = event.options or (SubscriptionOptions(),) * len(event.subscriptions)
        for (topic_filter, _), asked, entry in zip(event.subscriptions, options, event.entries, strict=True):
            is_new = topic_filter not in packet.options and not self._exists(packet.session, topic_filter)
            packet.options[topic_filter] = GrantedOptions(asked.no_local, asked.retain_as_published, identifier)
            if asked.retain_handling == 0 or (asked.retain_handling == 1 and is_new):
                wanting.setdefault(topic_filter, entry)
        return wanting

    def _register(
        self, unit: UnitOfWork, packet: PendingPacket, topic_filter: str, entry: bytes, now_us: int
    ) -> FilterRefused | None:
        """Puts a RegSub for every destination of a filter. Returns a reason if MQ cannot express it or has no room."""
        session = packet.session
        share = _share(session, topic_filter)
        wanted = self._registrations.of(topic_filter if share is None else share.topic_filter)
        if not wanted:
            return FilterRefused.at_limit(self._limits.of_filter_that_mq_cannot_carry())
        full = self._full_target(wanted)
        if full is not None:
            self._tell(session, "subscription refused client=%s filter=%s full_target=%s", topic_filter, full.name)
            return FilterRefused(ReasonCode.QUOTA_EXCEEDED, TARGET_IS_FULL)
        if (past := self._limits.of_shapes(session, wanted)) is not None:
            self._tell(session, "subscription refused client=%s filter=%s reason=%s", topic_filter, past.text)
            return FilterRefused.at_limit(past)
        part = (int(PacketType.SUBSCRIBE), packet.packet_identifier, entry)
        if share is not None:
            packet.groups[topic_filter] = self._shared.group(topic_filter)
        subscriber = packet.subscriber(topic_filter)
        try:
            asked = self._registrations.register(
                unit, subscriber, wanted, part, now_us, new_only=packet.wants_nothing_retained(topic_filter)
            )
        except (MappingError, QueueManagerError) as error:
            self._settle(unit, packet, topic_filter)
            self._tell(session, "subscription refused client=%s filter=%s reason=%s", topic_filter, error)
            if isinstance(error, MappingError):
                return FilterRefused(ReasonCode.TOPIC_FILTER_INVALID, NOT_CARRIED)
            return FilterRefused(refused_subscription(error.reason_code), name_of_refusal(error.reason_code))
        packet.registered[topic_filter] = wanted
        if share is not None:
            self._shared.save(unit, packet.groups[topic_filter])
        for msg_id, destination in asked:
            target = self._registrations.target_of(destination)
            if target is not None and not target.is_connected and target.settings.subscribe_in_outage == _GRANT:
                self._replies.expect(msg_id, self._registrations.late_refusal(subscriber, topic_filter))
            else:
                self._await(packet, msg_id, topic_filter, destination)
        return None

    def _full_target(self, wanted: tuple[Registration, ...]) -> Target | None:
        """The first target with a full queue. Clients that ask again and again do not fill it further."""
        targets = (self._registrations.target_of(each.destination) for each in wanted)
        return next((target for target in targets if target is not None and target.is_full), None)

    def _known_filters(self, session: ClientSession) -> set[str]:
        """The filters that count against the session's limit: granted, and asked for but not answered or refused."""
        under_way = (packet.wanted.keys() - packet.failed for packet in self._under_way.get(session, ()))
        shared = (each.topic_filter for each in session.shared.values())
        return set(session.subscriptions).union(shared, *under_way)

    def _refused(self, packet: PendingPacket, topic_filter: str, known: set[str]) -> FilterRefused | None:
        """Why a filter may not go to a broker; None if it may. Then it counts as known."""
        session = packet.session
        share = _share(session, topic_filter)
        asked = topic_filter if share is None else share.topic_filter
        if (reached := self._limits.of_filter(session, topic_filter, asked, known)) is not None:
            self._tell(session, "subscription refused client=%s reason=%s", reached.text)
            return FilterRefused.at_limit(reached)
        if rule := session.rights.subscribe_refused_by(asked):
            self._tell(session, "subscription not allowed client=%s filter=%s", topic_filter)
            return FilterRefused(ReasonCode.NOT_AUTHORIZED, rule)
        known.add(topic_filter)
        return None

    def unsubscribe(
        self, unit: UnitOfWork, session: ClientSession, event: UnsubscribeReceived, answered: Answered, now_us: int
    ) -> None:
        """Deregisters each filter that the session has, and submits the unit; `answered` follows with UNSUBACK."""
        packet = PendingPacket(session, event.packet_identifier, (), answered, now_us + self._answer_timeout_us)
        packet.topic_filters = event.topic_filters
        for topic_filter, entry in zip(event.topic_filters, event.entries, strict=True):
            existed = self._exists(session, topic_filter)
            packet.unsubscribed.append(ReasonCode.SUCCESS if existed else ReasonCode.NO_SUBSCRIPTION_EXISTED)
            part = (int(PacketType.UNSUBSCRIBE), event.packet_identifier, entry)
            for subscriber, unneeded in self._give_up(unit, session, topic_filter):
                for msg_id, destination in self._registrations.deregister(unit, subscriber, unneeded, part, now_us):
                    if destination.target is None:
                        self._await(packet, msg_id, topic_filter, destination)
                if isinstance(subscriber, SharedGroup):
                    self._shared.settle(unit, subscriber)
        self._submit(unit, packet)

    def _exists(self, session: ClientSession, topic_filter: str) -> bool:
        """Whether the session has a subscription with that filter, or one under way."""
        if topic_filter in session.subscriptions or self._shared.group_of(session, topic_filter) is not None:
            return True
        return any(topic_filter in each.registered for each in self._under_way.get(session, ()))

    def _give_up(
        self, unit: UnitOfWork, session: ClientSession, topic_filter: str
    ) -> list[tuple[Subscriber, list[Registration]]]:
        """Gives up a filter, granted or under way. Returns its subscribers, with the registrations to end."""
        given_up: list[tuple[Subscriber, list[Registration]]] = []
        if topic_filter in session.subscriptions:
            session.revoke(topic_filter)
            wanted = self._registrations.of(topic_filter)
            given_up.append((session, self._registrations.let_go(session, wanted)))
        group = self._shared.group_of(session, topic_filter)
        if group is not None:
            given_up.append((group, self._shared.leave(unit, session, group)))
        for packet in self._under_way.get(session, ()):
            subscriber = packet.subscriber(topic_filter)
            wanted = packet.registered.pop(topic_filter, ())
            given_up.append((subscriber, self._registrations.let_go(subscriber, wanted)))
        return given_up

    def tick(self, now_us: int) -> None:
        """Gives up packets that waited too long for an answer. A clock that is set back makes none wait longer.

        A packet without a command to a broker waits only for its commit, however long that takes.
        """
        self._refused_lines.tick()
        set_back_us, self._ticked_us = max(0, self._ticked_us - now_us), now_us
        under_way = [each for packets in self._under_way.values() for each in packets]
        for packet in under_way:
            packet.deadline_us -= set_back_us
        late = [packet for packet in under_way if packet.waiting and packet.deadline_us <= now_us]
        for packet in late:
            if any(map(self._commands.is_unanswered, packet.waiting)):
                continue
            for msg_id, (topic_filter, destination) in packet.waiting.items():
                self._time_out(packet, msg_id, topic_filter, destination, now_us)
            packet.waiting.clear()
            _log.warning("broker answer timed out client=%s", packet.session.client)
            self._finish(packet)

    def _time_out(
        self, packet: PendingPacket, msg_id: bytes, topic_filter: str, destination: Destination, now_us: int
    ) -> None:
        target = self._registrations.target_of(destination)
        if target is not None and target.settings.subscribe_in_outage == _GRANT:
            subscriber = packet.subscriber(topic_filter)
            self._replies.expect(msg_id, self._registrations.late_refusal(subscriber, topic_filter))
            return
        self._replies.expect(msg_id, _ignore)
        if packet.wanted:
            self._fail(packet, topic_filter, FilterRefused(ReasonCode.UNSPECIFIED_ERROR, NO_ANSWER), now_us)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _await(self, packet: PendingPacket, msg_id: bytes, topic_filter: str, destination: Destination) -> None:
        packet.waiting[msg_id] = (topic_filter, destination)
        self._replies.expect(msg_id, lambda response: self._answer(packet, msg_id, response))

    def _submit(self, unit: UnitOfWork, packet: PendingPacket) -> None:
        """Submits the commands of a packet. Filters that the embedded broker answers at once are decided in that unit.

        The session's rows are written just before the commit, once for all packets that are committed together.
        """
        session = packet.session
        session.pending_answers += 1
        self._under_way.setdefault(session, []).append(packet)
        packet.unit = unit
        self._engine.carry_out(unit)
        self._replies.take_from(unit)
        packet.unit = None
        if not packet.waiting:
            self._leave(packet)
            self._decide_all(unit, packet)
            unit.notes.append(packet.note(self._engine.now_us()))
            if not self._changed:
                self._engine.before_commit(self._save_rows)
            self._changed[session] = unit
            self._engine.submit(unit, lambda _unit: self._acknowledge(packet))
            return
        # The row has the registrations at targets, and it must lose the filters of an UNSUBSCRIBE.
        if session.generations or packet.unsubscribed:
            self._sessions.save(unit, session)
        self._engine.submit(unit)

    def _save_rows(self) -> None:
        """Writes the row of each session whose filters have changed into a unit that is about to be committed."""
        changed, self._changed = self._changed, {}
        self._unsaved.update(changed)
        for session, unit in changed.items():
            self._sessions.save(unit, session)
            self._unsaved.remove(session)

    def _acknowledge(self, packet: PendingPacket) -> None:
        """Answers a packet after its commit. Without the session's row in that commit there is no answer."""
        packet.session.pending_answers -= 1
        if packet.session in self._unsaved:
            return
        packet.answered(packet.session, packet.packet_identifier, packet.answer)

    def _answer(self, packet: PendingPacket, msg_id: bytes, response: Response | None) -> None:
        topic_filter, destination = packet.waiting.pop(msg_id)
        if packet.mark is not None and self._commands.is_under_way(msg_id):
            packet.mark.under_way.add(msg_id)
        if packet.wanted and (response is None or response.completion is Completion.FAILED):
            reason_code = response.reasons[0].reason_code if response is not None and response.reasons else 0
            if reason_code != _TOO_MANY_COPIES:  # then it is registered
                packet.refused_at.add((topic_filter, destination))
            refused = FilterRefused(refused_subscription(reason_code), name_of_refusal(reason_code))
            self._fail(packet, topic_filter, refused, self._engine.now_us())
            event = "subscription refused client=%s filter=%s reason_code=%s"
            self._tell(packet.session, event, topic_filter, reason_code)
        if not packet.waiting and packet.unit is None:
            self._finish(packet)

    def _finish(self, packet: PendingPacket) -> None:
        """All filters of a packet are decided. Packets of one turn of the event loop are finished together.

        A session's rows are written once for many parts of a request (filter_pacing.py).
        """
        if not self._decided:
            self._call_soon(self._finish_decided)
        self._decided.append(packet)

    def _finish_decided(self) -> None:
        """Writes the rows of the sessions, and answers the packets after the commit."""
        decided, self._decided = self._decided, []
        if self._engine.failed is not None:
            return
        unit = self._engine.begin()
        changed: dict[ClientSession, None] = {}
        for packet in decided:
            self._leave(packet)
            with self._trail.of_client(packet.session, unit):
                if self._sessions.get(packet.session.client) is packet.session:
                    changed[packet.session] = None
                    self._decide_all(unit, packet)
                    unit.notes.append(packet.note(self._engine.now_us()))
                else:
                    self._abandon(unit, packet)
        for session in changed:
            self._sessions.save(unit, session)
            self._unsaved.discard(session)

        def committed(_unit: UnitOfWork) -> None:
            for packet in decided:
                self._acknowledge(packet)

        self._engine.submit(unit, committed)

    def _leave(self, packet: PendingPacket) -> None:
        under_way = self._under_way[packet.session]
        under_way.remove(packet)
        if not under_way:
            del self._under_way[packet.session]

    def _decide_all(self, unit: UnitOfWork, packet: PendingPacket) -> None:
        """Grants or gives up each filter of a packet that has all its answers."""
        if packet.mark is not None:
            packet.mark.answer(self._engine.number())
        for topic_filter, wanted in packet.registered.items():
            self._decide(unit, packet, topic_filter, wanted)

    def _decide(
        self, unit: UnitOfWork, packet: PendingPacket, topic_filter: str, wanted: tuple[Registration, ...]
    ) -> None:
        """Grants a filter that was registered everywhere; gives up any other."""
        session, subscriber = packet.session, packet.subscriber(topic_filter)
        if topic_filter in packet.failed:
            unneeded = self._registrations.let_go(subscriber, wanted)
            told = [each for each in unneeded if (topic_filter, each.destination) not in packet.refused_at]
            self._registrations.undo(unit, subscriber, told)
            self._settle(unit, packet, topic_filter)
        elif topic_filter in packet.groups:
            group = packet.groups[topic_filter]
            qos, options = packet.wanted[topic_filter], packet.options[topic_filter]
            self._shared.grant(unit, group, session, qos, options, wanted)
        else:
            if topic_filter in session.subscriptions:
                self._registrations.let_go(session, wanted)  # it counts once, however often it was asked for
            session.grant(topic_filter, packet.wanted[topic_filter], packet.options[topic_filter])

    def _abandon(self, unit: UnitOfWork, packet: PendingPacket) -> None:
        """The session and its registrations have ended meanwhile. Gives up only its shared filters."""
        for topic_filter, group in packet.groups.items():
            unneeded = self._registrations.let_go(group, packet.registered.get(topic_filter, ()))
            self._registrations.undo(unit, group, unneeded)
            self._shared.settle(unit, group)

    def _settle(self, unit: UnitOfWork, packet: PendingPacket, topic_filter: str) -> None:
        """A filter was refused. If it was the first of its group, the group ends."""
        group = packet.groups.get(topic_filter)
        if group is not None:
            self._shared.settle(unit, group)

    def _tell(self, session: ClientSession, event: str, *values: object) -> None:
        """Logs a refused filter; the number of lines for one client is limited."""
        self._refused_lines.tell(session.client, session.client, event, session.client, *values)


def _share(session: ClientSession, topic_filter: str) -> Share | None:
    """The parts of a filter that is a shared subscription at the session's level; None for any other filter."""
    return share_of(topic_filter) if LEVELS[session.level].has_shared_subscriptions else None


def _ignore(_response: Response | None) -> None:
    """Ignores the answer to a command that was given up meanwhile."""
