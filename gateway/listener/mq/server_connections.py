"""The server-connection channels of a gateway: which connections they admit, and which ones run.

The definitions are objects of the queue manager (DEFINE CHANNEL). A change of a definition counts for connections that
are made later. This is what DISPLAY CHSTATUS, START and STOP CHANNEL ask for.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from gateway.listener.client_certificates import ShownCertificate
from mq_adapters.attributes import Definition, ObjectType, queue_manager_identifier
from mq_adapters.client_channel import initial_data
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.display import Shown
from mq_adapters.embedded.mqsc.server_connections import StopMode
from mq_adapters.peer_name import PeerName

#: The lowest version of TLS, by SSLCIPH, in the words of OpenSSL.
_VERSIONS: Final = {
    "ANY_TLS12_OR_HIGHER": ("TLSv1.2", "TLSv1.3"),
    "ANY_TLS13_OR_HIGHER": ("TLSv1.3",),
}

#: The most conversations on one socket, whatever SHARECNV says: IBM's clients ask for ten.
MAXIMUM_CONVERSATIONS: Final = 10
_PRODUCT: Final = "MQMM09040500"


class ChannelRefused(Exception):
    """A connection that a channel does not admit. `status_code` is for the client, and the text for the log."""

    def __init__(self, status_code: StatusCode, why: str) -> None:
        super().__init__(why)
        self.status_code = status_code


class RunningConnection(Protocol):
    """A connection of a client, as its channel sees it."""

    @property
    def channel_name(self) -> str:
        """The channel that admitted it; "" before that."""
        ...

    @property
    def address(self) -> str:
        """The client's address without a port."""
        ...

    @property
    def tls_version(self) -> str:
        """TLSv1.2 or TLSv1.3; "" without TLS."""
        ...

    @property
    def certificate(self) -> ShownCertificate | None:
        """The client's certificate; None without one."""
        ...

    def shown(self) -> Shown:
        """Every keyword of CONNECTION_KEYWORDS but the channel's name and type."""
        ...

    def programs(self) -> list[Shown]:
        """Every keyword of PROGRAM_KEYWORDS for each of its programs."""
        ...

    def stop(self, mode: StopMode) -> None:
        """Ends the connection."""
        ...


class ServerConnections:
    """The channels and the connections that they run, for all listeners of MQ clients."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[RunningConnection, None] = {}
        self._stopped: set[str] = set()

    def __len__(self) -> int:
        return len(self._running)

    def admit(self, name: str, connection: RunningConnection) -> Definition:
        """The channel of that name, which runs for this connection until `forget`. Raises ChannelRefused."""
        channel = self._engine.objects.find(ObjectType.CHANNEL, name)
        if channel is None:
            raise ChannelRefused(StatusCode.NO_CHANNEL, f"there is no channel {name!r}: DEFINE CHANNEL makes one")
        if name in self._stopped:
            raise ChannelRefused(StatusCode.CHANNEL_UNAVAILABLE, f"channel {name} is stopped")
        self._check_instances(channel, connection)
        _check_tls(channel, connection)
        self._running[connection] = None
        return channel

    def forget(self, connection: RunningConnection) -> None:
        """The connection has ended."""
        self._running.pop(connection, None)

    def _check_instances(self, channel: Definition, connection: RunningConnection) -> None:
        running = list(self._of(channel.name))
        of_client = sum(each.address == connection.address for each in running)
        for keyword, count in (("MAXINST", len(running)), ("MAXINSTC", of_client)):
            if count >= channel.number(keyword):
                why = f"channel {channel.name} runs {count} times already, and {keyword} allows no more"
                raise ChannelRefused(StatusCode.CHANNEL_UNAVAILABLE, why)

    def _of(self, name: str) -> Iterator[RunningConnection]:
        return (each for each in self._running if each.channel_name == name)

    # -- ServerConnectionAdministration --------------------------------------------------------------------------------

    def shown(self, name: str) -> list[Shown]:
        """See ServerConnectionAdministration."""
        rows = [{"CHSTATUS": name, "CHLTYPE": "SVRCONN", **each.shown()} for each in self._of(name)]
        if not rows and name in self._stopped:
            rows.append({"CHSTATUS": name, "CHLTYPE": "SVRCONN", "STATUS": "STOPPED"})
        return rows

    def programs(self) -> list[Shown]:
        """See ServerConnectionAdministration."""
        return [program for each in self._running for program in each.programs()]

    def start(self, name: str) -> None:
        """See ServerConnectionAdministration."""
        self._stopped.discard(name)

    def stop(self, name: str, mode: StopMode) -> None:
        """See ServerConnectionAdministration."""
        self._stopped.add(name)
        for each in tuple(self._of(name)):
            each.stop(mode)


def asks_for_certificate(channel: Definition) -> bool:
    """Whether a channel lets in nobody without a certificate."""
    return bool(channel.text("SSLCIPH")) and (channel["SSLCAUTH"] == "REQUIRED" or bool(channel["SSLPEER"]))


def _check_tls(channel: Definition, connection: RunningConnection) -> None:
    wanted = channel.text("SSLCIPH")
    if not wanted:
        return
    if connection.tls_version not in _VERSIONS[wanted]:
        why = f"channel {channel.name} wants {wanted}, and the connection has {connection.tls_version or 'no TLS'}"
        raise ChannelRefused(StatusCode.CIPHER_SPEC, why)
    certificate = connection.certificate
    if certificate is None and asks_for_certificate(channel):
        why = f"channel {channel.name} wants a client certificate (SSLCAUTH, SSLPEER)"
        raise ChannelRefused(StatusCode.SSL_CLIENT_CERTIFICATE, why)
    if certificate is not None and not PeerName.parse(channel.text("SSLPEER")).matches(certificate.attributes):
        why = f"channel {channel.name} wants another certificate than that of {certificate.subject!r} (SSLPEER)"
        raise ChannelRefused(StatusCode.PEER_NAME, why)


def offered(engine: Engine, channel: Definition, *, is_secure: bool) -> initial_data.InitialData:
    """What the gateway offers to a client of a channel."""
    return initial_data.InitialData(
        level=initial_data.HIGHEST_LEVEL if is_secure else initial_data.CLEAR_PASSWORD_LEVEL,
        maximum_message_length=channel.number("MAXMSGL"),
        queue_manager_name=engine.name,
        heartbeat_interval_s=channel.number("HBINT"),
        conversations_per_socket=min(channel.number("SHARECNV"), MAXIMUM_CONVERSATIONS),
        capabilities_2=initial_data.Capability2.SPI_REQUEST,
        product_identifier=_PRODUCT,
        queue_manager_identifier=queue_manager_identifier(engine.incarnation),
    )
