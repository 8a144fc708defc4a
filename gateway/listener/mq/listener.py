"""The listeners of MQ clients: opens their ports, bounds and checks their connections, and stops them together."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gateway.access.refused_programs import RefusedPrograms
from gateway.config.limits import Limit
from gateway.config.mq_listeners import MqListenerSettings
from gateway.config.values import Address
from gateway.limits.addresses import network_of
from gateway.limits.connection_log import ConnectionLog
from gateway.listener.certificate_files import Pair
from gateway.listener.client_certificates import Authorities, close_untrusted
from gateway.listener.handshake import HandshakePort
from gateway.listener.listeners import OpenListener, cannot_listen
from gateway.listener.mq.doorkeeper import Doorkeeper
from gateway.listener.mq.identity import Identified, ProgramLogin
from gateway.listener.mq.link import MqLink
from gateway.listener.mq.server_connections import ServerConnections
from gateway.listener.mq.turns import Turns
from gateway.listener.rules import Network
from gateway.listener.tls import Certificates
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.deferred_puts import release_what_was_left
from mq_adapters.embedded.socket.pace import ApplicationAccount, Charge
from mq_adapters.reasons import ReasonCode
from mq_adapters.system_queues import DEFAULT_MODEL_QUEUE
from spark_audit.record import LoginProof

_log = logging.getLogger(__name__)

#: Seconds that clients have to take the last bytes when the gateway stops.
_STOP_S: Final = 0.2
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class MqHouse:
    """What all connections of MQ clients use."""

    engine: Engine
    login: ProgramLogin
    channels: ServerConnections
    connection_log: ConnectionLog
    #: Counts a new connection of an address for the rates of connections. The key of the one that is passed, or "".
    passed_rate: Callable[[str], str]
    charge: Charge
    #: Seconds that an account must wait before its next program connects.
    wait_s: Callable[[ApplicationAccount], float]
    turns: Turns
    #: Programs that were refused, by the reason code, together with those of the socket.
    refusals: Counter[ReasonCode]
    refused: RefusedPrograms
    #: The queue on which publications are put.
    stream: str


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What connections did since the gateway started."""

    connections: int = 0
    calls: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0

    def add(self, link: MqLink) -> None:
        """Adds one connection."""
        self.connections += 1
        self.calls += link.calls
        self.received_bytes += link.received_bytes
        self.sent_bytes += link.sent_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _HandshakeRules:
    """The rules of handshake.HandshakeRules for a listener without PROXY headers."""

    name: str
    maximum_waiting_connections: int
    connect_timeout_s: float
    proxy_protocol: bool = False
    proxy_addresses: tuple[Network, ...] = ()


class MqListener:
    """One listener and its connections."""

    def __init__(self, settings: MqListenerSettings, house: MqHouse) -> None:
        """Raises ConfigurationError if a certificate or a key is wrong."""
        self.settings = settings
        self.house = house
        self.links: dict[MqLink, None] = {}
        #: How many of them come from each network (addresses.network_of).
        self._of_network: Counter[bytes] = Counter()
        #: Connections that are over, and what they did.
        self.past = Traffic()
        self.doorkeeper = Doorkeeper(settings, house)
        self.certificates = Certificates(settings.name, settings.tls, "") if settings.is_secure else None
        if self.certificates is not None:
            self.certificates.on_lost_authority = self._examine
        #: The check of its connections' certificates after an authority has gone.
        self._examination: asyncio.Task[None] | None = None
        self._port: HandshakePort | None = None

    async def start(self) -> OpenListener:
        """Opens the port. Raises ConfigurationError if that is not possible."""
        settings = self.settings
        self._port = port = HandshakePort(
            lambda _proxied: MqLink(self),
            rules=_HandshakeRules(
                name=settings.name,
                maximum_waiting_connections=settings.maximum_connections,
                connect_timeout_s=settings.connect_timeout_s,
            ),
            context=self.certificates.context if self.certificates is not None else None,
            may_begin=self._may_begin,
            refused=_count_elsewhere,
            connection_log=self.house.connection_log,
        )
        try:
            number = await port.open(settings.address.host, settings.address.port)
        except OSError as error:
            raise cannot_listen(f"mq_listener {settings.name}", settings.listen, error) from error
        address = Address(host=settings.address.host, port=number)
        transport = "mq over tls" if settings.is_secure else "mq"
        _log.info("listener opened name=%s host=%s port=%s transport=%s", settings.name, *_parts(address), transport)
        return OpenListener(name=settings.name, address=address, transport=transport)

    def admit(self, link: MqLink) -> bool:
        """Keeps a connection until `forget`; False if there are too many."""
        has_begun = self.settings.is_secure  # a handshake is counted before it begins
        if not (self._has_room(link.address) if has_begun else self._may_begin(link.address)):
            return False
        self.links[link] = None
        self._of_network[network_of(link.address)] += 1
        return True

    def forget(self, link: MqLink) -> None:
        if link in self.links:
            del self.links[link]
            network = network_of(link.address)
            self._of_network[network] -= 1
            if not self._of_network[network]:
                del self._of_network[network]
            self.past.add(link)

    @property
    def traffic(self) -> "Traffic":
        """What all connections did, those that are over too."""
        traffic = replace(self.past)
        for link in self.links:
            traffic.add(link)
        return traffic

    def _may_begin(self, address: str) -> bool:
        """The rates come first, so that they bound the refusals for want of room, too."""
        return self._is_within(address, self.house.passed_rate(address)) and self._has_room(address)

    def _has_room(self, address: str) -> bool:
        return self._is_within(address, self._full(address))

    def _full(self, address: str) -> str:
        """The limit of connections that one more from an address would pass, or ""."""
        settings, network = self.settings, network_of(address)
        if len(self.links) >= settings.maximum_connections:
            return "mq_listener.maximum_connections"
        is_full = self._of_network[network] >= settings.maximum_connections_per_address
        return "mq_listener.maximum_connections_per_address" if is_full else ""

    def _is_within(self, address: str, passed: str) -> bool:
        if passed:
            self.doorkeeper.refuse_connection(address, passed)
        return not passed

    def _examine(self, authorities: Authorities) -> None:
        """Checks the connections after an operator has removed an authority of clients' certificates."""
        if self._examination is not None:
            self._examination.cancel()
        on_their_way_s = 2 * self.settings.connect_timeout_s  # a handshake that began before may end a little late
        examination = close_untrusted(lambda: tuple(self.links), authorities, on_their_way_s)
        self._examination = asyncio.get_running_loop().create_task(examination)

    def close_port(self) -> None:
        if self._examination is not None:
            self._examination.cancel()
        if self._port is not None:
            self._port.close()


class MqListeners:
    """All listeners of MQ clients. Without any, nothing is opened and no channel is served."""

    def __init__(self, settings: Iterable[MqListenerSettings], house: MqHouse) -> None:
        """Raises ConfigurationError if a certificate or a key is wrong."""
        self._engine = house.engine
        self.refused = house.refused
        self._listeners = tuple(MqListener(each, house) for each in settings)
        self.watched_files = [each.certificates.watched for each in self._listeners if each.certificates is not None]
        if self._listeners:
            house.engine.objects.server_connections = house.channels
            _make_model(house.engine)

    def pairs(self) -> Iterator[tuple[str, Pair]]:
        """Each certificate with its key that is in use, with the name of its listener."""
        for each in self._listeners:
            if each.certificates is not None:
                yield from ((each.settings.name, pair) for pair in each.certificates.pairs)

    def __len__(self) -> int:
        """The number of connections."""
        return sum(len(each.links) for each in self._listeners)

    def __iter__(self) -> Iterator[MqListener]:
        return iter(self._listeners)

    async def start(self) -> tuple[OpenListener, ...]:
        """Releases what programs had deferred when the gateway ended, and opens the ports. ConfigurationError."""
        release_what_was_left(self._engine)
        return tuple([await each.start() for each in self._listeners])

    def _links(self) -> Iterator[MqLink]:
        for listener in self._listeners:
            yield from tuple(listener.links)

    def token_changed(self, roles: frozenset[str]) -> None:
        """Ends the connections of programs whose tokens have changed or gone."""
        self._end(
            lambda who: who.proof is LoginProof.APPLICATION_TOKEN and who.user in roles, "token", "changed or gone"
        )

    def users_changed(self, users: frozenset[str]) -> None:
        """See gateway.access.operator_files.UsersFollower."""
        self._end(lambda who: who.proof is LoginProof.PASSWORD and who.user in users, "password", "changed or gone")

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        """See gateway.access.operator_files.UsersFollower."""
        self._end(lambda who: who.fingerprint in fingerprints, "key of its token", "gone")

    def _end(self, is_over: Callable[[Identified], bool], what: str, has: str) -> None:
        for listener in self._listeners:
            listener.doorkeeper.waiting_room.doubt(is_over)
        for link in self._links():
            link.end_programs(is_over, f"the {what} of its user has {has}")

    def tick(self) -> None:
        """Once a second: ends connections that are too slow to connect, silent or unused."""
        now_s = time.monotonic()
        for link in self._links():
            link.tick(now_s)

    async def stop(self) -> None:
        """Closes the ports, answers waiting gets, and ends every connection. Open units of work are backed out."""
        for listener in self._listeners:
            listener.close_port()
        for link in self._links():
            link.end_with_gateway()
        for _ in range(round(_STOP_S / _LOOK_S)):
            if not len(self):
                return
            await asyncio.sleep(_LOOK_S)
        for link in self._links():
            link.abort()


def _make_model(engine: Engine) -> None:
    """Defines the model queue that programs expect, unless there is a queue of that name."""
    if engine.objects.find_queue(DEFAULT_MODEL_QUEUE) is None:
        engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=DEFAULT_MODEL_QUEUE))


def _parts(address: Address) -> tuple[str, int]:
    return address.host, address.port


def _count_elsewhere(_limit: Limit) -> None:
    """The table of limits is for MQTT clients."""
