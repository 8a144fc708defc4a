"""The end of a connection and of a session: the will, and how long the session stays.

When a network is cut, thousands of connections end in one turn of the event loop. So ended connections wait in line: a
few are carried out in a unit of work, the next ones after its commit. A client that comes back sooner does not wait for
the line (`settled`). Until its end is carried out, the session's row says that it is connected; a restart then ends the
connection.

A session ends with its connection (expiry 0, a clean session before level 5), some seconds after it, or never. The
session's row has this time and the delay of the will, so both outlast a restart of the gateway. `DueTimes` has them in
memory. Source: MQTT 3.1.1 section 3.1.2.4; MQTT 5.0 sections 3.1.2.11.2, 3.1.3.2.2 and 4.1.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from gateway.access.refused_topics import Asked
from gateway.audit_trail.notes.notes import NoteKind
from gateway.bridge.commands.registrations import Registrations
from gateway.bridge.commands.replies import Replies
from gateway.bridge.deliver.deliver import ToMqtt
from gateway.bridge.deliver.shared_deliveries import SharedSubscriptions
from gateway.bridge.deliver.shared_groups import SharedGroup
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.mqtt.levels import PacketType
from gateway.mqtt.properties import NEVER_EXPIRES_S
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.operators_act import OperatorsAct, tell, tell_alone
from mq_adapters.embedded.unit_of_work import PublicationCounter, UnitOfWork

#: The heap is rebuilt when it has twice as many entries as sessions, and this many more.
_STALE_ENTRIES: Final = 64


class DueTimes:
    """A heap of one due time for each session, microseconds since 1970. Outdated entries are removed at the top."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, ClientSession]] = []
        self._moments: dict[ClientSession, int] = {}
        self._tie_breaker = count()

    def __len__(self) -> int:
        """Sessions that have a due time."""
        return len(self._moments)

    def set(self, session: ClientSession, due_us: int) -> None:
        """Sets or replaces the due time of a session."""
        self._moments[session] = due_us
        heappush(self._heap, (due_us, next(self._tie_breaker), session))
        if len(self._heap) > 2 * len(self._moments) + _STALE_ENTRIES:
            self._heap = [entry for entry in self._heap if self._counts(entry)]
            heapify(self._heap)

    def discard(self, session: ClientSession) -> None:
        """Removes the due time of a session."""
        self._moments.pop(session, None)

    def take(self, now_us: int) -> ClientSession | None:
        """Removes and returns the session that has been due for longest; None if none is due."""
        while self._heap and self._heap[0][0] <= now_us:
            entry = heappop(self._heap)
            if self._counts(entry):
                self.discard(entry[2])
                return entry[2]
        return None

    def _counts(self, entry: tuple[int, int, ClientSession]) -> bool:
        return self._moments.get(entry[2]) == entry[0]


_log = logging.getLogger(__name__)

_SECOND_US: Final = 1_000_000
#: Ends of connections, sessions and groups in one unit of work, at up to 0.2 ms each.
_AT_ONCE: Final = 5
#: Topic filters of an ending session that cost as much as one end.
_FILTERS_OF_ONE: Final = 30


class _Parting(NamedTuple):
    """The end of a session's connection that waits in line; `after` is called after its commit."""

    change: str
    at_us: int
    after: Callable[[], None] = lambda: None


class DisconnectHandler:
    """Carries out the ends of connections, and later those of their sessions."""

    def __init__(
        self,
        engine: Engine,
        *,
        sessions: Sessions,
        to_mq: ToMq,
        to_mqtt: ToMqtt,
        registrations: Registrations,
        shared: SharedSubscriptions,
        replies: Replies,
        trail: TrailCharges,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._engine = engine
        self._call_soon = call_soon
        self._sessions = sessions
        self._to_mq = to_mq
        self._to_mqtt = to_mqtt
        self._registrations = registrations
        self._shared = shared
        self._replies = replies
        self._trail = trail
        self._stop_listening: dict[ClientSession, Callable[[], None]] = {}
        #: The line: sessions whose connection has ended; and groups without members, with the packet and the session
        #: that left them so.
        self._parting: OrderedDict[ClientSession, _Parting] = OrderedDict()
        self._left: deque[tuple[SharedGroup, int, ClientSession]] = deque()
        #: Sessions without a connection, with the time when their will or their end is due.
        self._due = DueTimes()
        self._is_at_work = False
        self._look_us = 0

    def listen(self, session: ClientSession) -> None:
        """Starts to deliver messages for the session to its link, until `detach`."""
        self._stop_listening[session] = self._to_mqtt.listen(session)

    def restore(self, session: ClientSession) -> None:
        """Loads a session of the store. If it was connected when the gateway stopped, its connection ends now."""
        if session.connected or session.expiry_s == 0:
            self._part_now(session, _Parting("lost", self._engine.now_us()))
            return
        if self._settle_times(session):
            unit = self._engine.begin()
            self._sessions.save(unit, session)
            self._engine.submit(unit)
        self._set_due(session)

    def _settle_times(self, session: ClientSession) -> bool:
        """Gives a session without a connection the times that it lacks; returns whether its row must be written.

        A row of an earlier version does not say when the connection ended: its time begins now. The operator may have
        lowered `maximum_session_expiry_s`.
        """
        is_new = not session.parted_us
        session.parted_us = session.parted_us or self._engine.now_us()
        longest_s = self._sessions.longest_expiry_s(session.expiry_s)
        if longest_s < session.expiry_s:
            session.expire_after(longest_s)
            ends_us = session.parted_us + longest_s * _SECOND_US
            session.expires_us = min(session.expires_us or ends_us, ends_us)
            return True
        return is_new

    def connection_lost(self, session: ClientSession, now_us: int) -> None:
        """The connection is gone without a DISCONNECT."""
        self._stand_in_line(session, _Parting("lost", now_us))

    def disconnected(self, session: ClientSession, now_us: int, after: Callable[[], None]) -> None:
        """The client has sent DISCONNECT; `after` is called after the commit."""
        self._stand_in_line(session, _Parting("disconnected", now_us, after))

    def settled(self, session: ClientSession | None) -> ClientSession | None:
        """Carries out the end of a session's last connection at once. Returns the session; None if it has ended."""
        if session is None or session not in self._parting:
            return session
        self._part_now(session, self._parting.pop(session))
        return self._sessions.get(session.client)

    def take_over(
        self, unit: UnitOfWork, session: ClientSession, clean_start: bool, now_us: int
    ) -> ClientSession | None:
        """Gives an existing session to a new connection. Returns the session; None if it ends now.

        Its will is due if its connection or the session itself ends now. A delayed will is not due if the session goes
        on (MQTT-3.1.3-9).
        """
        is_connected = session.link is not None or session.pending_link is not None
        if is_connected:
            self.detach(session)
        ends = clean_start or session.expiry_s == 0 or 0 < session.expires_us <= now_us
        if ends or 0 < session.will_due_us <= now_us or (is_connected and not session.will_delay_s):
            self._leave_will(unit, session, now_us)
        if is_connected:
            self.note(unit, session, "taken_over", now_us)
        session.will, session.expires_us, session.will_due_us = None, 0, 0
        self._due.discard(session)
        if ends:
            self._end(unit, session, PacketType.CONNECT, now_us)
            return None
        return session

    def expire(self, session: ClientSession, act: OperatorsAct, now_us: int) -> None:
        """An operator ends a session whose link is closed. Its will is due, and nothing of the session stays."""
        if self.settled(session) is None:
            tell_alone(self._engine, act)
            return
        unit = self._engine.begin()
        self.detach(session)
        self._leave_will(unit, session, now_us)  # it is due, because the session ends (MQTT-3.1.2-8)
        waiting = self._to_mqtt.waiting(session)
        self._end(unit, session, PacketType.DISCONNECT, now_us)
        tell(self._engine, unit, act, messages=len(unit.removals) + waiting)
        self._engine.submit(unit, lambda done: self._replies.refused.update(done.answered))

    def tick(self, now_us: int) -> None:
        """Once a second: publishes delayed wills that are due, and ends sessions that have expired."""
        if self._look_us - _SECOND_US <= now_us < self._look_us:  # a clock may be set back
            return
        self._look_us = now_us + _SECOND_US
        self._want_work()

    def detach(self, session: ClientSession) -> None:
        """The session no longer has a link."""
        session.link = None
        session.pending_link = None
        stop = self._stop_listening.pop(session, None)
        if stop is not None:
            stop()

    @staticmethod
    def note(
        unit: UnitOfWork,
        session: ClientSession,
        event: str,
        now_us: int,
        clean_start: bool = False,
        connack: bytes = b"",
    ) -> None:
        """Notes a change of the session for the audit; of a connection also the CONNECT's flag and CONNACK's bytes."""
        _log.debug("session changed client=%s change=%s level=%s", session.client, event, session.level)
        change = (session.client, session.epoch, event, session.level, session.expiry_s == 0)
        note = (NoteKind.SESSION, now_us, *change, *(session.who or (session.user,)))
        unit.notes.append((*note, clean_start, connack) if connack else note)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _stand_in_line(self, session: ClientSession, parting: _Parting) -> None:
        self.detach(session)
        self._parting[session] = parting
        self._want_work()

    def _want_work(self) -> None:
        if not self._is_at_work:
            self._is_at_work = True
            self._call_soon(self._work)

    def _work(self) -> None:
        """Carries out some of the waiting ends in a unit of work, and the next ones after its commit.

        The event loop logs an error in one of them. The others go on when the next connection ends.
        """
        unit, now_us = self._engine.begin(), self._engine.now_us()
        left, afters = _AT_ONCE, list[Callable[[], None]]()
        try:
            while left > 0 and self._engine.failed is None and (cost := self._end_one(unit, now_us, afters)):
                left -= cost
        except Exception:
            self._is_at_work = False
            raise
        self._is_at_work = left < _AT_ONCE
        if not self._is_at_work:
            return

        def committed(done: UnitOfWork) -> None:
            self._replies.refused.update(done.answered)
            for after in afters:
                after()
            self._work()

        self._engine.submit(unit, committed)

    def _end_one(self, unit: UnitOfWork, now_us: int, afters: list[Callable[[], None]]) -> int:
        """Carries out the end that has waited longest, connections first. Returns its cost; 0 if none waits."""
        if self._parting:
            session, parting = self._parting.popitem(last=False)
            with self._trail.of_client(session, unit):
                self._part(unit, session, parting, now_us)
            afters.append(parting.after)
        elif self._left:
            group, packet_type, session = self._left.popleft()
            with self._trail.of_client(session, unit):
                self._shared.end_unheld(unit, group, packet_type, now_us)
            return 1
        elif (due := self._due.take(now_us)) is not None:
            session = due
            with self._trail.of_client(session, unit):
                self._fall_due(unit, session, now_us)
        else:
            return 0
        has_ended = self._sessions.get(session.client) is not session
        return 1 + (len(session.subscriptions) // _FILTERS_OF_ONE if has_ended else 0)

    def _part_now(self, session: ClientSession, parting: _Parting) -> None:
        unit = self._engine.begin()
        with self._trail.of_client(session, unit):
            self._part(unit, session, parting, self._engine.now_us())

        def committed(done: UnitOfWork) -> None:
            self._replies.refused.update(done.answered)
            parting.after()

        self._engine.submit(unit, committed)

    def _part(self, unit: UnitOfWork, session: ClientSession, parting: _Parting, now_us: int) -> None:
        """The connection has ended: carries out what is due now, and notes what is due later."""
        session.connected, session.parted_us = False, parting.at_us
        session.expire_after(self._sessions.longest_expiry_s(session.expiry_s))
        delay_s = min(session.will_delay_s, session.expiry_s)
        if not delay_s:
            self._leave_will(unit, session, now_us)
        if session.expiry_s == 0:
            self._end(unit, session, PacketType.DISCONNECT, now_us)
            return
        ended_us, expiry_s = parting.at_us, session.expiry_s
        session.will_due_us = ended_us + delay_s * _SECOND_US if delay_s else 0
        session.expires_us = 0 if expiry_s == NEVER_EXPIRES_S else ended_us + expiry_s * _SECOND_US
        self._set_due(session)
        self._sessions.save(unit, session)
        self.note(unit, session, parting.change, now_us)
        session.who = ()

    def _fall_due(self, unit: UnitOfWork, session: ClientSession, now_us: int) -> None:
        self._leave_will(unit, session, now_us)  # it is due, because the session ends (MQTT-3.1.2-8)
        session.will_due_us = 0
        if session.expires_us and session.expires_us <= now_us:
            self._end(unit, session, PacketType.DISCONNECT, now_us)
            return
        self._set_due(session)
        self._sessions.save(unit, session)

    def _set_due(self, session: ClientSession) -> None:
        moments = [moment for moment in (session.will_due_us, session.expires_us) if moment]
        if moments:
            self._due.set(session, min(moments))

    def _leave_will(self, unit: UnitOfWork, session: ClientSession, now_us: int) -> None:
        if session.will is not None:
            unit.count(PublicationCounter.WILLS)
            if not (rule := session.rights.publish_refused_by(session.will.topic)):
                self._to_mq.publish_will(unit, session, session.will, now_us)
            else:
                unit.count(PublicationCounter.REFUSED)
                session.rights.count_refusal(Asked.WILL, session.will.topic, rule, now_us)
                _log.warning("will not allowed client=%s topic=%s", session.client, session.will.topic)
            session.will = None

    def _end(self, unit: UnitOfWork, session: ClientSession, packet_type: int, now_us: int) -> None:
        """Ends a session with DeregSub and DeregAll; nothing of it stays. Groups without members end after it."""
        self._due.discard(session)
        self._registrations.end(unit, session, packet_type, now_us)
        self._left.extend((group, packet_type, session) for group in self._shared.end_session(unit, session))
        if self._left:
            self._want_work()
        self._to_mqtt.discard(unit, session)
        self._sessions.end(unit, session)
        self.note(unit, session, "ended", now_us)
