"""The end of a connection and of a session: the will, what stays for how long, and what nothing stays of.

A session ends with its connection (expiry 0, a clean session before level 5), never, or so many seconds after its
connection; both that time and the delay of a will stand in the session's row, so a restart of the gateway changes
neither. Source: MQTT 3.1.1 section 3.1.2.4; MQTT 5.0 sections 3.1.2.11.2, 3.1.3.2.2 and 4.1.
"""

import logging
from collections.abc import Callable
from itertools import islice
from typing import Final

from gateway.audit_trail.notes import NoteKind
from gateway.bridge.due_times import DueTimes
from gateway.bridge.registrations import Registrations
from gateway.bridge.replies import Replies
from gateway.bridge.sessions import ClientSession, Sessions
from gateway.bridge.shared_subscriptions import SharedSubscriptions
from gateway.bridge.to_mq import ToMq
from gateway.bridge.to_mqtt import ToMqtt
from gateway.mqtt.packets import PacketType
from gateway.mqtt.properties import NEVER_EXPIRES_S
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork

_log = logging.getLogger(__name__)

_SECOND_US: Final = 1_000_000
#: Sessions whose time is over that one unit of work ends, at some 0.2 ms each: a fleet that is lost at once expires at
#: once.
_ENDED_AT_ONCE: Final = 3


class Endings:
    """Carries out what becomes of a session whose connection has ended, at once and later."""

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
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._to_mq = to_mq
        self._to_mqtt = to_mqtt
        self._registrations = registrations
        self._shared = shared
        self._replies = replies
        self._stop_listening: dict[ClientSession, Callable[[], None]] = {}
        #: Sessions without a connection for which something falls due.
        self._due = DueTimes()
        self._is_ending = False
        self._look_us = 0

    def listen(self, session: ClientSession) -> None:
        """What arrives for the session is delivered, until `detach`."""
        self._stop_listening[session] = self._to_mqtt.listen(session)

    def restore(self, session: ClientSession) -> None:
        """A session of the store: its connection, if it had one, died with the gateway, and ends now."""
        if session.connected or session.expiry_s == 0:
            self.connection_lost(session, self._engine.now_us())
        else:
            self._set_due(session)

    def connection_lost(self, session: ClientSession, now_us: int) -> None:
        """The connection is gone without a DISCONNECT that takes the will back."""
        unit = self._engine.begin()
        self.detach(session)
        self._part(unit, session, "lost", now_us)
        self._engine.submit(unit, lambda done: self._replies.refused.update(done.answered))

    def disconnected(self, session: ClientSession, now_us: int, after: Callable[[], None]) -> None:
        """The client has taken its leave by DISCONNECT; `after` is called behind the commit."""
        unit = self._engine.begin()
        self.detach(session)
        self._part(unit, session, "disconnected", now_us)

        def committed(done: UnitOfWork) -> None:
            self._replies.refused.update(done.answered)
            after()

        self._engine.submit(unit, committed)

    def take_over(
        self, unit: UnitOfWork, session: ClientSession, clean_start: bool, now_us: int
    ) -> ClientSession | None:
        """A new connection for a session that exists and whose time is not over; what remains of it, if anything.

        Its will is due if its connection ends now, or the session itself; one that is delayed is not, where the
        session goes on (MQTT-3.1.3-9).
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

    def expire(self, session: ClientSession, now_us: int) -> None:
        """The operator ends the session, whose link is closed: its will is due, and nothing of it stays."""
        unit = self._engine.begin()
        self.detach(session)
        self._leave_will(unit, session, now_us)  # its session ends (MQTT-3.1.2-8)
        self._end(unit, session, PacketType.DISCONNECT, now_us)
        self._engine.submit(unit, lambda done: self._replies.refused.update(done.answered))

    def tick(self, now_us: int) -> None:
        """Once a second: wills whose delay is over, and sessions whose time is."""
        if self._look_us - _SECOND_US <= now_us < self._look_us:  # a clock may be set back
            return
        self._look_us = now_us + _SECOND_US
        if not self._is_ending:
            self._end_some()

    def _end_some(self) -> None:
        """Some of what is due in a unit of work; the next after its commit."""
        now_us = self._engine.now_us()
        due = list(islice(iter(lambda: self._due.take(now_us), None), _ENDED_AT_ONCE))
        self._is_ending = bool(due) and self._engine.failed is None
        if not self._is_ending:
            return
        unit = self._engine.begin()
        for session in due:
            self._fall_due(unit, session, now_us)

        def committed(done: UnitOfWork) -> None:
            self._replies.refused.update(done.answered)
            self._end_some()

        self._engine.submit(unit, committed)

    def detach(self, session: ClientSession) -> None:
        """The session has no link any more."""
        session.link = None
        session.pending_link = None
        stop = self._stop_listening.pop(session, None)
        if stop is not None:
            stop()

    @staticmethod
    def note(unit: UnitOfWork, session: ClientSession, event: str, now_us: int) -> None:
        """The audit's note of a change of the session."""
        _log.debug("session changed client=%s change=%s level=%s", session.client, event, session.level)
        ends_with_connection = session.expiry_s == 0
        unit.notes.append(
            (NoteKind.SESSION, now_us, session.client, session.epoch, event, session.level, ends_with_connection)
        )

    # -- inside --------------------------------------------------------------------------------------------------------

    def _part(self, unit: UnitOfWork, session: ClientSession, change: str, now_us: int) -> None:
        """The connection has ended: what is due now, and what falls due later."""
        session.connected = False
        delay_s = min(session.will_delay_s, session.expiry_s)
        if not delay_s:
            self._leave_will(unit, session, now_us)
        if session.expiry_s == 0:
            self._end(unit, session, PacketType.DISCONNECT, now_us)
            return
        session.will_due_us = now_us + delay_s * _SECOND_US if delay_s else 0
        session.expires_us = 0 if session.expiry_s == NEVER_EXPIRES_S else now_us + session.expiry_s * _SECOND_US
        self._set_due(session)
        self._sessions.save(unit, session)
        self.note(unit, session, change, now_us)

    def _fall_due(self, unit: UnitOfWork, session: ClientSession, now_us: int) -> None:
        self._leave_will(unit, session, now_us)  # that of a session that ends is due too (MQTT-3.1.2-8)
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
            if session.rights.may_publish(session.will.topic):
                self._to_mq.publish_will(unit, session, session.will, now_us)
            else:
                _log.warning("will not allowed client=%s topic=%s", session.client, session.will.topic)
            session.will = None

    def _end(self, unit: UnitOfWork, session: ClientSession, packet_type: int, now_us: int) -> None:
        """DeregSub with DeregAll, and nothing of the session stays."""
        self._due.discard(session)
        self._registrations.end(unit, session, packet_type, now_us)
        self._shared.end_session(unit, session, packet_type, now_us)
        self._to_mqtt.discard(unit, session)
        self._sessions.end(unit, session)
        self.note(unit, session, "ended", now_us)
