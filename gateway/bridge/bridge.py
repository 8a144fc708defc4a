"""The bridge between MQTT links and the queue manager. It hands each event to its room, and each answer to the link.

The events of one call of `receive` are carried out in one unit of work. After the commit one write sends all answers,
in the order of the packets. Units complete in the order of their submission, so PUBACK, PUBREC and PUBCOMP leave in
packet order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.access.login import Login
from gateway.access.tally import Tallies
from gateway.bridge.commands.registrations import Registrations
from gateway.bridge.commands.replies import Replies
from gateway.bridge.connect.connect import ConnectHandler
from gateway.bridge.connect.disconnect import DisconnectHandler
from gateway.bridge.counts import Counts, Traffic
from gateway.bridge.deliver.deliver import ToMqtt
from gateway.bridge.deliver.shared_deliveries import SharedSubscriptions
from gateway.bridge.deliver.shared_groups import SharedGroups
from gateway.bridge.publish.paused_publishers import FullPlaces, PausedPublishers, SlowReading, publishes_in
from gateway.bridge.publish.pauses import Pauses
from gateway.bridge.publish.publish import Intake
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.links import Confirmations, ConnectedClients, LinkWork, MqttLink
from gateway.bridge.sessions.outdated_rights import OutdatedRights
from gateway.bridge.sessions.session_limits import ClientLimits
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.bridge.subscribe.filter_pacing import (
    FILTERS_AT_ONCE,
    LINE,
    Asked,
    FilterPacing,
    LongRequest,
    Whole,
    as_they_are,
    is_long,
)
from gateway.bridge.subscribe.pending_packet import FAILURE, CodesOfAnswer
from gateway.bridge.subscribe.subscribe import Subscriptions
from gateway.bridge.sys_topics import SysTopics
from gateway.mqtt import packets
from gateway.mqtt.events import (
    DeliveryAcknowledged,
    DeliveryCompleted,
    DeliveryReceived,
    DeliveryRefused,
    DisconnectReceived,
    Event,
    PingReceived,
    PublishReceived,
    ReleaseReceived,
    SubscribeReceived,
    UnsubscribeReceived,
    Violated,
)
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import ReasonProperties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.reason_strings import reason_string_of_codes
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import PublicationCounter

_PUBREL: Final = b"\x62\x02"
#: Units of work of one link that may wait for their commit before its reading pauses.
_MAXIMUM_OUTSTANDING: Final = 4
#: Time between two searches for publications to ended sessions and for registrations that are due, microseconds.
_SWEEP_US: Final = 60_000_000
#: Events that are carried out in a unit of their own. Earlier work is submitted first.
_APART: Final = frozenset({SubscribeReceived, UnsubscribeReceived, LongRequest, DisconnectReceived, Violated})


class Bridge:
    """Everything between the links and the engine; one for the gateway."""

    def __init__(
        self,
        engine: Engine,
        *,
        sessions: Sessions,
        to_mq: ToMq,
        to_mqtt: ToMqtt,
        intake: Intake,
        replies: Replies,
        registrations: Registrations,
        groups: SharedGroups,
        shared: SharedSubscriptions,
        subscriptions: Subscriptions,
        login: Login,
        counts: Counts,
        client_limits: ClientLimits,
        traffic: Traffic,
        trail: TrailCharges,
        connected_clients: ConnectedClients,
        sys_topics: SysTopics,
        pauses: Pauses,
        call_soon: Callable[[Callable[[], None]], object],
        now_s: Callable[[], float],
    ) -> None:
        self._engine = engine
        self.pauses = pauses
        self.sessions = sessions
        self._to_mq = to_mq
        self._to_mqtt = to_mqtt
        self.pause_deliveries = to_mqtt.pause
        self._replies = replies
        self._registrations = registrations
        self._groups = groups
        self._shared = shared
        self._subscriptions = subscriptions
        self.counts = counts
        self.traffic = traffic
        self._limits = client_limits
        self.admission = client_limits.admission
        self._intake = intake
        self._call_soon = call_soon
        #: Connections that wait for room at a target, on the disk, or on the dead-letter queue for their messages.
        self.paused_publishers = PausedPublishers(engine, self._carry_out, call_soon, now_s)
        engine.counters.in_hand = lambda: self.paused_publishers.publishes
        self._trail = trail
        self.charge_application, self.application_wait_s = trail.charge_application, trail.application_wait_s
        self._slow_reading = SlowReading(sessions.budgets, trail, self.paused_publishers, now_s)
        #: Commits and answers the work of this turn of the event loop, before long work begins.
        self.commit_now = engine.commit_now
        self._outdated = OutdatedRights(sessions, deliver=to_mqtt.deliver, goes_on=self._goes_on, call_soon=call_soon)
        self._filter_pacing = FilterPacing(
            call_soon, engine.commit_now, self._next_in_line_goes_on, lambda: sum(traffic.published), now_s
        )
        self.connected_clients = connected_clients
        self._sys_topics = sys_topics
        self.disconnect_handler = DisconnectHandler(
            engine,
            sessions=sessions,
            to_mq=to_mq,
            to_mqtt=to_mqtt,
            registrations=registrations,
            shared=shared,
            replies=replies,
            trail=trail,
            call_soon=call_soon,
        )
        self._connect_handler = ConnectHandler(
            engine,
            sessions=sessions,
            login=login,
            client_limits=client_limits,
            connected_clients=self.connected_clients,
            paused=self.paused_publishers,
            disconnect_handler=self.disconnect_handler,
            replies=replies,
            to_mq=to_mq,
            trail=trail,
            goes_on=self._goes_on,
            opened=self._opened,
        )
        #: Refusals that are counted for the trail.
        self.tallies = Tallies(engine, login.refused, sessions.refused_topics, self._connect_handler.refused)
        self._confirmations = Confirmations()
        self._handlers: dict[type, Callable[[LinkWork, Event], None]] = {
            ReleaseReceived: self._intake.release,
            DeliveryAcknowledged: self._delivery_acknowledged,
            DeliveryReceived: self._delivery_received,
            DeliveryCompleted: self._delivery_completed,
            DeliveryRefused: self._delivery_refused,
            SubscribeReceived: self._subscribe,
            UnsubscribeReceived: self._unsubscribe,
            PingReceived: self._ping,
            DisconnectReceived: self._disconnect,
            Violated: self._violated,
        }
        self._has_targets = to_mq.has_targets
        self._full_places = FullPlaces(engine, intake=intake, to_mq=to_mq, pauses=pauses, paused=self.paused_publishers)
        self._sweep_us = engine.now_us() + _SWEEP_US
        self.is_stopping = False

    # -- from the listener ---------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Loads every session from the store. Connections that broke when the gateway stopped end now, with wills."""
        self._engine.dead_letters.load()
        self.tallies.load()
        self.sessions.load()
        self._groups.load()
        self._to_mq.load(self.sessions)
        self._to_mqtt.load()
        self._shared.load()
        for session in self.sessions:
            self._registrations.restore(session, session.subscriptions)
            self.disconnect_handler.restore(session)
        self._registrations.end_surplus()
        self._subscriptions.load()
        if self._limits.shapes is not None:
            self._limits.shapes.load(self.sessions)
        self._registrations.reconcile()
        self._replies.read()

    def receive(self, link: MqttLink, data: bytes) -> None:
        """Takes bytes from a link. Their work is submitted when this returns, and is answered after its commit."""
        session = link.session
        if self._engine.failed is not None or (session is None and self.is_stopping):
            self._turn_away(link, data)
            return
        events = link.connection.receive_data(data)
        self.traffic.packets_received += len(events)
        if session is None:
            self._connect_handler.receive(link, events)
            return
        if not events and not data:
            return
        publishes = publishes_in(events)
        self._engine.counters.count(PublicationCounter.RECEIVED, publishes)
        wait_s, too_fast = self._slow_reading.charge(session.account, publishes, len(data))
        if too_fast is not None:
            self._limits.too_fast(link, too_fast)
            self._engine.counters.count(PublicationCounter.GIVEN_UP, publishes)
            return
        if self.paused_publishers and self.paused_publishers.keep(link, events):
            return
        self._carry_out(link, session, events)
        if wait_s or self._limits.new_topics or self._trail.is_ahead:
            self._slow_reading.pause(link, session.account, wait_s, self._limits.take_new_topics())

    def go_on(self, link: MqttLink) -> None:
        """Goes on with the packets of a link that has waited for its turn."""
        if self._engine.failed is None:
            self._slow_reading.go_on(link, self._limits.take_new_topics)

    def _turn_away(self, link: MqttLink, data: bytes) -> None:
        """Refuses a connection because the gateway stops or the store has failed.

        It reads CONNECT first, to answer at its MQTT level.
        """
        if link.session is None:
            link.connection.receive_data(data)
        reason = "the gateway stops" if self._engine.failed is None else "the store has failed"
        link.close(reason, ReasonCode.SERVER_SHUTTING_DOWN)

    def _carry_out(self, link: MqttLink, session: ClientSession, events: Sequence[Asked]) -> None:
        self._full_places.look()
        work: LinkWork | None = None
        now_us = self._engine.now_us()
        for place, event in self.paused_publishers.in_time(link, events):
            if type(event) is PublishReceived:
                if work is None:
                    work = LinkWork(link, session, self._engine.begin())
                if self._full_places.may_be_full and event.qos and (full := self._full_places.of(session, event)):
                    self.paused_publishers.pause(link, full, list(events[place:]))
                    break
                self._intake.publish(work, event, now_us)
                continue
            if work is not None and type(event) in _APART:
                self._submit(work)
                work = None
            if isinstance(event, SubscribeReceived | UnsubscribeReceived | LongRequest):
                left = self._ask(link, session, event)
                if left is None:
                    continue
                self.paused_publishers.pause(link, LINE, [left, *events[place + 1 :]])
                break
            if work is None:
                work = LinkWork(link, session, self._engine.begin())
            self._handlers[type(event)](work, event)
        if work is not None:
            self._submit(work)

    def disk_space_changed(self, is_short: bool) -> None:
        """The free space has fallen below its mark, or is above it again. In the second case all clients go on."""
        self._limits.disk_is_short = is_short
        self._full_places.disk_space_changed(is_short)

    def lost(self, link: MqttLink) -> None:
        """The connection of a link is gone, and no DISCONNECT came."""
        self.connected_clients.end(link)
        session, link.session = link.session, None
        if session is None or not self._goes_on():
            return
        self.paused_publishers.end(link, session)
        if session.link is link or session.pending_link is link:
            self.disconnect_handler.connection_lost(session, self._engine.now_us())

    def resumed(self, link: MqttLink) -> None:
        """A link whose peer read too slowly can send again."""
        if link.session is not None:
            self._to_mqtt.deliver(link.session)

    def repeat(self, link: MqttLink, after_us: int) -> None:
        """At MQTT 3.1: sends packets again that the client has not answered for `after_us`."""
        if link.session is not None and not LEVELS[link.session.level].suback_can_refuse:
            self._to_mqtt.repeat_due(link.session, self._engine.now_us(), after_us)

    def tick(self) -> None:
        """Several times a second: handles late answers, publications for ended sessions, and notes for the audit."""
        now_us = self._engine.now_us()
        self._full_places.look()
        self._slow_reading.tick()
        self._subscriptions.tick(now_us)
        self._replies.tick(now_us)
        self.counts.tick(now_us)
        self._limits.tick(now_us)
        self.disconnect_handler.tick(now_us)
        self.connected_clients.tick(now_us)
        self._sys_topics.tick()
        is_swept = self._sweep_us - _SWEEP_US <= now_us < self._sweep_us  # a clock may be set back
        if self._has_targets and not is_swept:
            self._sweep_us = now_us + _SWEEP_US
            self._to_mqtt.discard_unknown()
            self._registrations.reconcile()
        if self._confirmations:
            unit = self._engine.begin()
            for session, note in self._confirmations.take(now_us):
                with self._trail.of_client(session, unit):
                    unit.notes.append(note)
            self._engine.submit(unit)
        self.tallies.write(now_us, is_last=self.is_stopping)

    @property
    def subscriptions(self) -> Iterator[tuple[str, str]]:
        """Client identifier and topic filter of each subscription; for a group its whole name and its filter."""
        for session in self.sessions:
            for topic_filter in session.subscriptions:
                yield session.client, topic_filter
        for group in self._groups:
            yield group.client, group.topic_filter

    # -- from access.operator_files -----------------------------------------------------------------------------------

    def users_changed(self, users: frozenset[str]) -> None:
        """Closes the connections of users who have a new password or were removed."""
        self.connected_clients.users_changed(users)

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        """Closes the connections whose tokens were signed with a key that the operator has removed."""
        self.connected_clients.keys_gone(fingerprints)

    def access_changed(self) -> None:
        """The access list has changed."""
        self._outdated.begin()

    # -- the beginning of a session ------------------------------------------------------------------------------------

    def _goes_on(self) -> bool:
        return not self.is_stopping and self._engine.failed is None

    def _opened(self, link: MqttLink, session: ClientSession, connack: bytes) -> None:
        """The session is on the disk: sends CONNACK, then repeats unfinished flows, then delivers waiting messages."""
        link.resume_reading()
        self._answer(link, connack)
        self.disconnect_handler.listen(session)
        self._sys_topics.opened(session)
        self._to_mqtt.repeat(session)
        self.receive(link, b"")
        self._to_mqtt.deliver(session)
        if self._trail.is_ahead:
            self._slow_reading.pause(link, session.account, 0.0, 0)

    # -- packets of a session ------------------------------------------------------------------------------------------

    def _delivery_acknowledged(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, DeliveryAcknowledged)
        self._to_mqtt.acknowledged(work.unit, work.session, event, self._engine.now_us())
        work.finished.append((work.session.mqtt.finish, event.packet_identifier))

    def _delivery_received(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, DeliveryReceived)
        pubrel = _PUBREL + event.packet_identifier.to_bytes(2, "big")
        work.acknowledgements.append(pubrel)
        if not event.repeated:
            self._to_mqtt.received(work.unit, work.session, event, self._engine.now_us())
            work.carried_on.append(pubrel)
            work.finished.append((work.session.mqtt.release, event.packet_identifier))

    def _delivery_completed(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, DeliveryCompleted)
        self._to_mqtt.completed(work.unit, work.session, event, self._engine.now_us())
        work.finished.append((work.session.mqtt.finish, event.packet_identifier))

    def _subscribe(self, work: LinkWork, event: Event, whole: Whole = as_they_are) -> None:
        assert isinstance(event, SubscribeReceived)
        link, asked = work.link, self._sys_topics.asked(work.session, event)

        def answered(session: ClientSession, packet_identifier: int, of_part: CodesOfAnswer) -> None:
            answer = whole(of_part)
            if session.link is link and answer is not None:
                if FAILURE in answer.codes and not LEVELS[session.level].suback_can_refuse:
                    link.close("a subscription was refused, and MQTT 3.1 has no code to say so")
                    return
                explanation = ReasonProperties(reason_string=reason_string_of_codes(*answer)) if answer.told else None
                self._answer(link, link.connection.writer.suback(packet_identifier, answer.codes, explanation))
            if asked and session.link is link:
                self._sys_topics.subscribed(link, session, asked)
            self._to_mqtt.deliver(session)

        self._subscriptions.subscribe(work.unit, work.session, event, answered, self._engine.now_us())

    def _unsubscribe(self, work: LinkWork, event: Event, whole: Whole = as_they_are) -> None:
        assert isinstance(event, UnsubscribeReceived)
        link = work.link

        def answered(session: ClientSession, packet_identifier: int, of_part: CodesOfAnswer) -> None:
            answer = whole(of_part)
            if session.link is link and answer is not None:
                self._answer(link, link.connection.writer.unsuback(packet_identifier, answer.codes))
            self._to_mqtt.deliver(session)

        self._subscriptions.unsubscribe(work.unit, work.session, event, answered, self._engine.now_us())

    def _ask(
        self, link: MqttLink, session: ClientSession, asked: SubscribeReceived | UnsubscribeReceived | LongRequest
    ) -> Asked | None:
        """Carries out as many filters of a request as it may now. Returns the rest of the request, if any."""
        if self.sessions.get(session.client) is not session:
            return None  # it has ended: nobody hears an answer, and a registration would outlive it
        if not isinstance(asked, LongRequest):
            if not is_long(asked):
                if not self._filter_pacing.take(len(asked.entries)):
                    return asked
                work = LinkWork(link, session, self._engine.begin())
                self._handlers[type(asked)](work, asked)
                self._trail.charge(session.account, work.unit)
                return None
            asked = LongRequest(asked)
        while not asked.is_over:
            if not self._filter_pacing.take(FILTERS_AT_ONCE):
                return asked
            if (part := asked.next_part(session)) is not None:
                carry_out = self._subscribe if isinstance(part.event, SubscribeReceived) else self._unsubscribe
                work = LinkWork(link, session, self._engine.begin())
                carry_out(work, part.event, part.whole)
                self._trail.charge(session.account, work.unit)
        return None

    def _next_in_line_goes_on(self) -> bool:
        return self._goes_on() and self.paused_publishers.first_goes_on(LINE)

    def _ping(self, work: LinkWork, _event: Event) -> None:
        self._answer(work.link, packets.PINGRESP)

    def _delivery_refused(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, DeliveryRefused)
        self._to_mqtt.refused(work.unit, work.session, event, self._engine.now_us())
        work.finished.append((work.session.mqtt.finish, event.packet_identifier))

    def _disconnect(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, DisconnectReceived)
        session, link = work.session, work.link
        if not link.is_open:
            return  # the connection was closed for an earlier packet: this end is not clean, so the will is due
        session.take_leave(event)
        link.session = None
        self.disconnect_handler.disconnected(session, self._engine.now_us(), lambda: link.close(""))

    def _violated(self, work: LinkWork, event: Event) -> None:
        assert isinstance(event, Violated)
        self._limits.violated(event.error)
        work.link.close(str(event.error), event.error.reason_code, event.error.reason)

    # -- commit --------------------------------------------------------------------------------------------------------

    def _submit(self, work: LinkWork) -> None:
        unit, link = work.unit, work.link
        if not (unit.puts or unit.states or unit.removals or unit.notes or unit.counts or work.acknowledgements):
            return
        link.outstanding += 1
        if link.outstanding >= _MAXIMUM_OUTSTANDING:
            link.pause_reading()
        self._engine.submit(unit, lambda _unit: self._committed(work))
        self._trail.charge(work.session.account, unit)

    def _committed(self, work: LinkWork) -> None:
        """The unit of work is on the disk, so the acknowledgements may leave now."""
        session, link = work.session, work.link
        link.outstanding -= 1
        if link.outstanding == _MAXIMUM_OUTSTANDING - 1:
            link.resume_reading()
        for finish, packet_identifier in work.finished:
            finish(packet_identifier)
        if work.unit.answered:
            self._replies.refused.update(work.unit.answered)
        if link.is_open:  # the session's link, or a link that the client's DISCONNECT closes right after this
            if work.acknowledgements:
                link.send(b"".join(work.acknowledgements))
                self.traffic.answers += len(work.acknowledgements)
                self._confirmations.add(work)
                if work.answered:
                    link.connection.answered(work.answered)
            if work.finished:
                self._to_mqtt.repeat_overdue(session)
                self._to_mqtt.deliver(session)
        elif session.link is not None and work.carried_on:
            session.link.send(b"".join(work.carried_on))

    def _answer(self, link: MqttLink, packet: bytes) -> None:
        if not packet:
            link.close("the answer is longer than the client's Maximum Packet Size", ReasonCode.PACKET_TOO_LARGE)
            return
        self.traffic.answers += 1
        link.send(packet)
