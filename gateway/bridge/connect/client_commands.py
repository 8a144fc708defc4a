"""The MQTT clients as their operator sees them: DISPLAY CHSTATUS, STOP and PURGE CHANNEL with CHLTYPE(MQTT).

The commands are read by mq_adapters/embedded/mqsc/clients.py, also for `rfhbridge sessions show|disconnect|expire`.
"""

import logging
from collections.abc import Iterator
from typing import Final

from gateway.bridge.connect.disconnect import DisconnectHandler
from gateway.bridge.deliver.outgoing_messages import bytes_in_flight
from gateway.bridge.publish.paused_publishers import PausedPublishers
from gateway.bridge.sessions.link import Link
from gateway.bridge.sessions.links import ConnectedClient, ConnectedClients
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.mqtt.events import Will
from gateway.mqtt.levels import LEVELS
from gateway.mqtt.reason_codes import ReasonCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.clients import CHANNEL_NAME
from mq_adapters.embedded.mqsc.display import Shown, time_text
from mq_adapters.embedded.operators_act import OperatorsAct, tell_alone
from mq_adapters.embedded.queue import Queue
from mq_adapters.mqsc import quoted

_log = logging.getLogger(__name__)

_US: Final = 1_000_000
#: Characters that are shown of a session's subscriptions: 2,000 subscriptions may have 130 MB.
_LONGEST_LIST_CHARACTERS: Final = 100_000
_NOT_THERE: Final = ConnectedClient()


class ClientCommands:
    """mq_adapters.embedded.mqsc.clients.ClientAdministration of a gateway."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        queue: Queue,
        *,
        connected_clients: ConnectedClients,
        disconnect_handler: DisconnectHandler,
        paused: PausedPublishers,
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._queue = queue
        self._connected_clients = connected_clients
        self._disconnect_handler = disconnect_handler
        self._paused = paused

    def clients(self) -> Iterator[str]:
        return (session.client for session in self._sessions)

    def has(self, client: str) -> bool:
        return self._sessions.get(client) is not None

    def is_idle(self, client: str, for_s: int) -> bool:
        session = self._sessions.get(client)
        if session is None or session.connected or not session.parted_us:
            return False
        return session.parted_us + for_s * _US <= self._engine.now_us()

    def disconnect(self, client: str, act: OperatorsAct) -> bool:
        """Closes the connection. Its will is due when the bridge notices the loss; the session stays."""
        session = self._sessions.get(client)
        link = _link_of(session)
        if link is None or not link.is_open:
            return False
        tell_alone(self._engine, act)
        link.close("the operator has disconnected the client", ReasonCode.ADMINISTRATIVE_ACTION)
        return True

    def expire(self, client: str, act: OperatorsAct) -> None:
        """Ends the session as if its expiry time were over."""
        session = self._sessions.get(client)
        if session is None:
            return
        link = _link_of(session)
        if link is not None:
            self._paused.end(link, session)
            link.close("the operator has ended the session", ReasonCode.ADMINISTRATIVE_ACTION)
        self._disconnect_handler.expire(session, act, self._engine.now_us())
        _log.info("session ended by the operator client=%s", client)

    def shown(self, client: str, *, subscriptions: bool) -> Shown:
        session = self._sessions.get(client)
        assert session is not None, "has() said so in this turn"
        link = session.link if session.link is not None and session.link.is_open else None
        connected = self._connected_clients.of(link) if link is not None else None
        here = connected or _NOT_THERE
        return {
            "CHSTATUS": CHANNEL_NAME,
            "CHLTYPE": "MQTT",
            "CLIENTID": quoted(client),
            "STATUS": "RUNNING" if link is not None else "DISCONNECTED",
            "PROTOCOL": quoted(LEVELS[session.level].version),
            "CLIENTUSER": quoted(session.user or ""),
            "LISTENER": quoted(here.listener),
            "CONNAME": quoted(here.peer),
            "SINCE": quoted(time_text(here.since_us)),
            "AUTHEND": quoted(time_text(here.until_us)),
            "KAINT": str(link.connection.keep_alive_s if link is not None else 0),
            "EXPIRY": str(session.expiry_s),
            "EXPIRES": quoted(time_text(session.expires_us)),
            "INDOUBTIN": str(len(session.held)),
            "INDOUBTOUT": str(len(session.mqtt.outgoing)),
            "PENDING": str(len(self._queue.lanes.get(session.correl_id, ()))),
            "PENDBYTE": str(self._waiting_bytes(session)),
            "SUBCOUNT": str(len(session.subscriptions) + len(session.shared)),
            "SUBS": listed(_subscriptions(session)) if subscriptions else " ",
            **_shown_will(session.will),
        }

    def _waiting_bytes(self, session: ClientSession) -> int:
        """Bytes that wait in the session's lane. The lane's own count includes bytes on their way to the client."""
        measured = (self._queue.lane_bytes or {}).get(session.correl_id, 0)
        return max(0, measured - bytes_in_flight(session, session.correl_id))


def _link_of(session: ClientSession | None) -> Link | None:
    return None if session is None else session.link or session.pending_link


def _subscriptions(session: ClientSession) -> Iterator[str]:
    """For each subscription its options, joined by commas, then a blank and the topic filter."""
    for topic_filter, qos in session.subscriptions.items():
        options = session.options.get(topic_filter)
        yield f"{_options(qos, *(options or ()))} {topic_filter}"
    for shared in session.shared.values():
        yield f"{_options(shared.qos, *shared.options)} {shared.topic_filter}"


def _options(qos: int, no_local: bool = False, retain_as_published: bool = False, identifier: int = 0) -> str:
    said = [f"qos={qos}"]
    said += ["no_local"] if no_local else []
    said += ["retain_as_published"] if retain_as_published else []
    said += [f"identifier={identifier}"] if identifier else []
    return ",".join(said)


def listed(items: Iterator[str]) -> str:
    """The values joined by commas, as many as fit into the limit."""
    shown: list[str] = []
    left = _LONGEST_LIST_CHARACTERS
    for item in items:
        value = quoted(item)
        left -= len(value) + 1
        if left < 0:
            break
        shown.append(value)
    return ",".join(shown) or " "


def _shown_will(will: Will | None) -> Shown:
    """A will without its payload, which an operator is not shown."""
    properties = will.properties if will is not None else None
    return {
        "WILL": "NO" if will is None else "YES",
        "WILLTOPIC": quoted("" if will is None else will.topic),
        "WILLQOS": str(0 if will is None else will.qos),
        "WILLRETN": "YES" if will is not None and will.retain else "NO",
        "WILLBYTE": str(0 if will is None else len(will.payload)),
        "WILLDLAY": str(0 if properties is None else properties.will_delay_s),
    }
