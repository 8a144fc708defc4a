"""All listeners of the gateway: opens them together, checks their connections in one tick, and stops them together."""

import asyncio
import errno
import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from gateway.access.login import Login
from gateway.access.reloading import Reloading
from gateway.bridge.bridge import Bridge
from gateway.config.error import ConfigurationError
from gateway.config.listeners import DEFAULT_LISTENER, ListenerSettings
from gateway.config.settings import Settings
from gateway.config.values import Address
from gateway.limits.slow_clients import SlowReaders, SlowSenders
from gateway.listener.certificate_files import Pair
from gateway.listener.listener import Listener
from gateway.listener.long_reads import LongReads
from gateway.listener.rules import ListenerRules
from gateway.listener.tls import ALPN, Certificates
from mq_adapters.embedded.socket.server import Server

if TYPE_CHECKING:
    from gateway.listener.mq.listener import MqListeners

_log = logging.getLogger(__name__)

#: Seconds that connections have to send their written bytes when the gateway stops, and seconds between two checks.
_STOP_S: Final = 0.2
_LOOK_S: Final = 0.02
#: Steps in one turn of the event loop, at up to a microsecond each; and the steps that closing a connection counts as.
_LOOKED_AT_ONCE: Final = 500
_LOOKS_OF_A_CLOSING: Final = 50
#: Hints for an address that the system does not open, by the system's number. An unknown host name has no number.
_HINTS: Final = {
    errno.EADDRINUSE: "another program has it: another gateway?",
    errno.EACCES: "ports below 1024 need a right of their own, CAP_NET_BIND_SERVICE",
}
_NOT_OURS: Final = "HOST must be an address of this machine; 0.0.0.0 and [::] are all of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenListener:
    """An open port. `transport` is the word of the configuration, with TLS named."""

    name: str
    address: Address
    transport: str

    @property
    def announcement(self) -> str:
        """The line that announces the port at the start. The listener of the key `listen` needs no name."""
        if self.name == DEFAULT_LISTENER:
            return f"rfhbridge listens on {self.address}"
        return f"rfhbridge listens on {self.address} ({self.transport}, listener {self.name})"


class Listeners:
    """The listeners of a configuration. Raises ConfigurationError if a certificate or a key is wrong."""

    def __init__(self, bridge: Bridge, settings: Settings, *, mq: "MqListeners | None" = None) -> None:
        """`mq`: the listeners of MQ clients, which open, are checked and stop with these."""
        #: Those of MQ clients, if there are any.
        self.mq = mq
        self._slow_readers = SlowReaders(settings.mqtt, bridge.admission.refusals)
        self._unfinished = SlowSenders(settings.mqtt, bridge.admission.refusals)
        self._settings = settings.listeners
        long_reads = LongReads(bridge.commit_now)
        self._listeners = tuple(
            Listener(
                bridge,
                ListenerRules.of(each, settings),
                long_reads=long_reads,
                certificates=Certificates(each.name, each.tls, ALPN[each.transport]) if each.is_secure else None,
            )
            for each in settings.listeners
        )
        self.reloading = Reloading(
            [listener.certificates.watched for listener in self._listeners if listener.certificates is not None]
            + (mq.watched_files if mq is not None else [])
        )

    def __len__(self) -> int:
        """The number of connections."""
        return sum(map(len, self._listeners))

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._listeners)

    async def start(self) -> tuple[OpenListener, ...]:
        """Opens every port, in the order of the configuration. Raises ConfigurationError if one cannot be opened."""
        opened = []
        for settings, listener in zip(self._settings, self._listeners, strict=True):
            try:
                port = await listener.start(settings.address.host, settings.address.port)
            except OSError as error:
                raise cannot_listen(_key(settings), settings.listen, error) from error
            address = Address(host=settings.address.host, port=port)
            opened.append(OpenListener(name=settings.name, address=address, transport=_transport(settings)))
            _log.info(
                "listener opened name=%s host=%s port=%s transport=%s",
                settings.name,
                address.host,
                port,
                opened[-1].transport,
            )
        return (*opened, *(await self.mq.start() if self.mq is not None else ()))

    def pairs(self) -> Iterator[tuple[str, Pair]]:
        """Each certificate with its key that is in use, with the name of its listener."""
        for listener in self._listeners:
            if listener.certificates is not None:
                yield from ((listener.rules.name, pair) for pair in listener.certificates.pairs)
        if self.mq is not None:
            yield from self.mq.pairs()

    def ask(self) -> None:
        """Reads the certificates again now, because the operator asks for it (SIGHUP)."""
        self.reloading.ask()

    async def watch(self) -> None:
        """Takes up changed certificates, until it is cancelled."""
        await self.reloading.run()

    async def tick(self) -> None:
        """Once a second; some connections in each turn of the event loop.

        A busy gateway may be late to read a client, so it reads the client before it judges the client's silence.
        """
        await asyncio.sleep(0)
        links, now_s = tuple(chain.from_iterable(self._listeners)), time.monotonic()
        ticks = (listener.tick() for listener in self._listeners)
        await _look(chain(*ticks, self._slow_readers.look(links, now_s), self._unfinished.look(links)))
        if self.mq is not None:
            self.mq.tick()

    async def end_silence(self) -> None:
        """Some times a second: reads clients that are late, and closes them as soon as their silence is too long."""
        if any(listener.has_silence_to_end for listener in self._listeners):
            await asyncio.sleep(0)
            await _look(chain.from_iterable(listener.end_silence() for listener in self._listeners))

    async def stop(self) -> None:
        """Closes the ports and every connection. Written bytes are still sent.

        A connection that has just been made gets two turns of the event loop, so that its CONNECT is answered.
        """
        for listener in self._listeners:
            listener.close_port()
        for _ in range(2):
            await asyncio.sleep(0)
        for listener in self._listeners:
            listener.close_links()
        for _ in range(round(_STOP_S / _LOOK_S)):
            if not len(self):
                break
            await asyncio.sleep(_LOOK_S)
        for listener in self._listeners:
            await listener.abort_links()
        if self.mq is not None:
            await self.mq.stop()


async def _look(steps: Iterable[bool]) -> None:
    """Takes steps, some in each turn of the event loop; True: a connection was closed."""
    left = _LOOKED_AT_ONCE
    for was_closed in steps:
        left -= _LOOKS_OF_A_CLOSING if was_closed else 1
        if left <= 0:
            left = _LOOKED_AT_ONCE
            await asyncio.sleep(0)


def _key(settings: ListenerSettings) -> str:
    return "listen" if settings.name == DEFAULT_LISTENER else f"listener {settings.name}"


def _transport(settings: ListenerSettings) -> str:
    if settings.transport == "tcp":
        return "tls" if settings.is_secure else "tcp"
    return "secure websocket" if settings.is_secure else "websocket"


def cannot_listen(key: str, address: str, error: OSError) -> ConfigurationError:
    """The error of an address that the system does not open."""
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror or str(error)
    hint = _HINTS.get(number, _NOT_OURS)
    if key == "listen":
        hint += "; --listen HOST:PORT names another address"
    return ConfigurationError(key, (f"{address} cannot be opened: {reason.lower()}",), hint)


def mq_listeners(settings: Settings, bridge: Bridge, server: Server, login: Login) -> "MqListeners | None":
    """The listeners of MQ clients, if the configuration has any. `server` serves the programs on this machine.

    Raises ConfigurationError if a certificate or a key is wrong.
    """
    if not settings.mq_listener:
        return None
    from gateway.access.refused_programs import RefusedPrograms
    from gateway.listener.mq.identity import ProgramLogin
    from gateway.listener.mq.listener import MqHouse, MqListeners  # a gateway without MQ clients does not load it
    from gateway.listener.mq.server_connections import ServerConnections
    from gateway.listener.mq.turns import Turns

    house = MqHouse(
        engine=server.engine,
        login=ProgramLogin(server.applications, login),
        channels=ServerConnections(server.engine),
        connection_log=bridge.admission.connection_log,
        passed_rate=lambda address: _rate_that_refuses(bridge, address),
        charge=server.charge,
        wait_s=bridge.application_wait_s,
        turns=Turns(),
        refusals=server.refusals,
        refused=RefusedPrograms(),
        stream=settings.publish.stream,
    )
    made = MqListeners(settings.mq_listener, house)
    bridge.tallies.add(made.refused)
    server.on_token_changed = made.token_changed
    return made


def _rate_that_refuses(bridge: Bridge, address: str) -> str:
    """The key of the rate of connections that a connection of an MQ client has passed; "": none."""
    refusal = bridge.admission.before_handshake(address)
    return "" if refusal is None else f"mqtt.{refusal.limit.key}"
