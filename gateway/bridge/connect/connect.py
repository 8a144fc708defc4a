"""CONNECT: login, the client's existing session, and CONNACK after the commit of the session's row.

The session is on the disk before CONNACK leaves, so a client that has CONNACK finds it again after a crash.
Source: MQTT 3.1.1 sections 3.1 and 3.2; MQTT 5.0 sections 3.1, 3.2 and 4.1.
"""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.access.login import Admitted, Decision, Entrance, Login, Refused
from gateway.access.refused_connects import REFUSAL_OF_CODE, ConnectRefusal, RefusedConnects
from gateway.access.refused_logins import REFUSAL_CODES, LoginRefusal
from gateway.bridge.commands.replies import Replies
from gateway.bridge.connect.disconnect import DisconnectHandler
from gateway.bridge.publish.paused_publishers import PausedPublishers
from gateway.bridge.publish.publish_command import ToMq
from gateway.bridge.sessions.links import ConnectedClient, ConnectedClients, MqttLink
from gateway.bridge.sessions.session_limits import ClientLimits
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.bridge.sessions.trail_charges import TrailCharges
from gateway.limits.addresses import network_of_peer
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached
from gateway.mqtt.errors import PeerError
from gateway.mqtt.events import ConnectReceived, ConnectRefused, Event, Violated
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.properties import ConnackProperties
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork

_OF_ANOTHER_USER: Final = Refused(
    refusal=LoginRefusal.NOT_ALLOWED, reason="the session is another user's ('rfhbridge sessions expire' frees it)"
)
#: Earlier levels of MQTT have no return code for a refused will.
_WILL_NOT_TAKEN: Final = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR


class ConnectHandler:
    """Begins sessions and resumes them."""

    def __init__(
        self,
        engine: Engine,
        *,
        sessions: Sessions,
        login: Login,
        client_limits: ClientLimits,
        connected_clients: ConnectedClients,
        paused: PausedPublishers,
        disconnect_handler: DisconnectHandler,
        replies: Replies,
        to_mq: ToMq,
        trail: TrailCharges,
        goes_on: Callable[[], bool],
        opened: Callable[[MqttLink, ClientSession, bytes], None],
    ) -> None:
        """`goes_on` returns False once the gateway stops. `opened` is called with CONNACK, which may leave then."""
        self._engine = engine
        self._sessions = sessions
        self._login = login
        #: CONNECTs that were refused for another reason than their login.
        self.refused = RefusedConnects()
        self._limits = client_limits
        self._connected_clients = connected_clients
        self._paused = paused
        self._disconnect_handler = disconnect_handler
        self._replies = replies
        self._to_mq = to_mq
        self._trail = trail
        self._goes_on = goes_on
        self._opened = opened

    def receive(self, link: MqttLink, events: Sequence[Event]) -> None:
        """Takes the events of a connection without a session: CONNECT, or an error that ends the connection."""
        for event in events:
            if isinstance(event, ConnectReceived):
                if (reached := self._limits.admission.connect_received(link)) is not None:
                    self._refuse_for_limit(link, event.client_identifier, reached)
                    return
                self._log_in(link, event)
            elif isinstance(event, ConnectRefused):
                if event.answer:
                    link.send(event.answer)
                link.close(event.reason)
                self._count(REFUSAL_OF_CODE[event.return_code], link, reason=event.reason)
            elif isinstance(event, Violated):
                self._refuse_violated(link, event.error)

    def _log_in(self, link: MqttLink, event: ConnectReceived) -> None:
        """Decides whether the client may connect. The link is not read until then."""
        link.pause_reading()

        def decided(decision: Decision) -> None:
            if not link.is_open or not self._goes_on():
                return
            if isinstance(decision, Admitted):
                connected = self._connected_clients.begin(link, decision, self._engine.now_us())
                self._connect(link, event, connected)
            else:
                self._refuse_connect(link, event.client_identifier, decision)

        self._login.decide(event, lambda: link.is_open, decided, _entrance(link))

    @staticmethod
    def _refuse_connect(link: MqttLink, client: str, refused: Refused) -> None:
        link.close(f"client {client!r} may not connect: {refused.reason}", REFUSAL_CODES[refused.refusal], refused.told)

    def _refuse_for_limit(self, link: MqttLink, client: str, reached: LimitReached) -> None:
        link.close(f"client {client!r} may not connect: {reached.text}", reached.reason_code, reached.told)
        self._count(ConnectRefusal.LIMIT, link, rule=reached.limit.label, client=client)

    def _refuse_violated(self, link: MqttLink, error: PeerError) -> None:
        limit = self._limits.violated(error)
        link.close(str(error), error.reason_code, error.reason)
        if limit is not None:
            self._count(ConnectRefusal.LIMIT, link, rule=limit.label)
        else:
            self._count(ConnectRefusal.MALFORMED, link, reason=error.reason)

    def _count(self, refusal: ConnectRefusal, link: MqttLink, **told: str) -> None:
        self.refused.count(refusal, link.connection, peer=link.peer, now_us=self._engine.now_us(), **told)

    def _connect(self, link: MqttLink, event: ConnectReceived, connected: ConnectedClient) -> None:
        now_us, user = self._engine.now_us(), connected.user
        client = event.client_identifier or self._sessions.unused_client()
        existing = self._disconnect_handler.settled(self._sessions.get(client))
        if existing is not None and not self._login.may_have_session(user, existing.user):
            self._login.count_refusal(LoginRefusal.NOT_ALLOWED, event, _entrance(link))
            self._refuse_connect(link, client, _OF_ANOTHER_USER)
            return
        if event.will is not None and not self._sessions.may_leave(event.will, user, client):
            self._login.count_refusal(LoginRefusal.NOT_ALLOWED, event, _entrance(link))
            reason = f"a will on {event.will.topic!r} is not allowed"
            self._refuse_connect(link, client, Refused(refusal=LoginRefusal.NOT_ALLOWED, reason=reason))
            return
        if event.will is not None and (problem := self._to_mq.problem_of_will(event.will, client, user)):
            link.close(f"the will of client {client!r} cannot be kept: {problem}", _WILL_NOT_TAKEN)
            self._count(ConnectRefusal.WILL, link, client=client, reason=problem)
            return
        expiry_s = self._sessions.longest_expiry_s(event.session_expiry_s)
        owner = Owner(user, network_of_peer(link.peer))
        if reached := self._limits.of_connect(link, event, owner, existing, expiry_s):
            self._refuse_for_limit(link, client, reached)
            return
        unit = self._engine.begin()
        if existing is not None:
            existing = self._take_over(unit, existing, event.clean_session, now_us)
        session = existing or self._sessions.create(client, level=event.level, clean_session=expiry_s == 0, owner=owner)
        session.expire_after(expiry_s)
        self._sessions.give(session, owner)
        session.level, session.will, session.connected, session.parted_us = event.level, event.will, True, 0
        session.pending_link, session.who = link, connected.told
        link.session = session
        self._sessions.save(unit, session)
        session_present = existing is not None and LEVELS[event.level].has_session_present
        connack = event.clean_session, bytes((session_present, ReasonCode.SUCCESS))
        with self._trail.of_client(session, unit):
            self._disconnect_handler.note(unit, session, "opened" if existing is None else "resumed", now_us, *connack)
        told = ConnackProperties()
        if not event.client_identifier and LEVELS[event.level].has_properties:
            told = told._replace(assigned_client_identifier=client)
        if expiry_s < event.session_expiry_s and LEVELS[event.level].has_properties:
            told = told._replace(session_expiry_s=expiry_s)
        self._engine.submit(unit, lambda done: self._accepted(done, link, session, session_present, told))

    def _take_over(
        self, unit: UnitOfWork, session: ClientSession, clean_session: bool, now_us: int
    ) -> ClientSession | None:
        """Closes the old link of the client's session. Returns the session, or None if it ends."""
        old = session.link or session.pending_link
        if old is not None:
            self._paused.end(old, session)
            old.close("the client connected again", ReasonCode.SESSION_TAKEN_OVER)
        with self._trail.of_client(session, unit):
            return self._disconnect_handler.take_over(unit, session, clean_session, now_us)

    def _accepted(
        self, unit: UnitOfWork, link: MqttLink, session: ClientSession, session_present: bool, told: ConnackProperties
    ) -> None:
        """The session's row is on the disk: CONNACK may leave."""
        self._replies.refused.update(unit.answered)
        if session.pending_link is not link or not link.is_open:
            return
        session.pending_link = None
        session.link = link
        link.connection.attach(session.mqtt)
        connack = link.connection.connack(session_present, told)
        if not connack:
            link.close("CONNACK is longer than the client's Maximum Packet Size", ReasonCode.PACKET_TOO_LARGE)
            return
        self._opened(link, session, connack)


def _entrance(link: MqttLink) -> Entrance:
    return Entrance(
        certificate_user=link.certificate_user, allows_anonymous=link.rules.allows_anonymous, peer=link.peer
    )
