"""Which connections a channel admits, and what its operator sees and does."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.listener.client_certificates import ShownCertificate
from gateway.listener.mq.server_connections import ChannelRefused, ServerConnections
from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.mqsc.server_connections import StopMode


@dataclass(eq=False)
class Connection:
    channel_name: str = "APP"
    address: str = "192.0.2.1"
    tls_version: str = ""
    certificate: ShownCertificate | None = None
    stops: list[StopMode] = field(default_factory=list)

    def shown(self) -> dict[str, str]:
        return {"STATUS": "RUNNING", "CONNAME": self.address}

    def programs(self) -> list[dict[str, str]]:
        return [{"CONN": f"{number:016X}", "TYPE": "CONN", "USERID": self.address} for number in (1, 2)]

    def stop(self, mode: StopMode) -> None:
        self.stops.append(mode)


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    engine = Engine.open(data_folder)
    yield engine
    engine.close()


@pytest.fixture
def channels(engine: Engine) -> ServerConnections:
    engine.objects.server_connections = made = ServerConnections(engine)
    return made


def define(engine: Engine, attributes: str = "") -> None:
    assert CommandServer(engine).execute(f"DEFINE CHANNEL(APP) CHLTYPE(SVRCONN) {attributes} REPLACE").succeeded


def refusal(channels: ServerConnections, connection: Connection) -> StatusCode:
    with pytest.raises(ChannelRefused) as error:
        channels.admit("APP", connection)
    return error.value.status_code


def test_only_a_defined_channel_admits(engine: Engine, channels: ServerConnections) -> None:
    assert refusal(channels, Connection()) == StatusCode.NO_CHANNEL
    define(engine)
    assert channels.admit("APP", Connection()).name == "APP"
    assert len(channels) == 1


def test_instances_are_bounded_in_all_and_by_client(engine: Engine, channels: ServerConnections) -> None:
    define(engine, "MAXINST(3) MAXINSTC(2)")
    first = Connection()
    for each in (first, Connection()):
        channels.admit("APP", each)
    assert refusal(channels, Connection()) == StatusCode.CHANNEL_UNAVAILABLE
    channels.admit("APP", Connection(address="192.0.2.2"))
    assert refusal(channels, Connection(address="192.0.2.3")) == StatusCode.CHANNEL_UNAVAILABLE
    channels.forget(first)
    channels.admit("APP", Connection())


@pytest.mark.parametrize(
    ("attributes", "version", "subject", "status_code"),
    [
        ("SSLCIPH(ANY_TLS12_OR_HIGHER) SSLCAUTH(OPTIONAL)", "", "", StatusCode.CIPHER_SPEC),
        ("SSLCIPH(ANY_TLS13_OR_HIGHER) SSLCAUTH(OPTIONAL)", "TLSv1.2", "", StatusCode.CIPHER_SPEC),
        ("SSLCIPH(ANY_TLS12_OR_HIGHER)", "TLSv1.3", "", StatusCode.SSL_CLIENT_CERTIFICATE),
        ("SSLCIPH(ANY_TLS12_OR_HIGHER)", "TLSv1.2", "billing", None),
        ("SSLCIPH(ANY_TLS13_OR_HIGHER) SSLCAUTH(OPTIONAL)", "TLSv1.3", "", None),
        ("SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=bill*,O=Plant')", "TLSv1.3", "billing", None),
        ("SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('CN=pump')", "TLSv1.3", "billing", StatusCode.PEER_NAME),
        (
            "SSLCIPH(ANY_TLS12_OR_HIGHER) SSLCAUTH(OPTIONAL) SSLPEER('CN=*')",
            "TLSv1.3",
            "",
            StatusCode.SSL_CLIENT_CERTIFICATE,
        ),
        ("", "", "", None),
    ],
)
def test_tls_is_as_the_channel_says(
    engine: Engine,
    channels: ServerConnections,
    attributes: str,
    version: str,
    subject: str,
    status_code: StatusCode | None,
) -> None:
    define(engine, attributes)
    attributes = (("CN", subject), ("O", "Plant"))
    certificate = ShownCertificate(ends_s=math.inf, subject=f"O=Plant,CN={subject}", user="", attributes=attributes)
    connection = Connection(tls_version=version, certificate=certificate if subject else None)
    if status_code is None:
        channels.admit("APP", connection)
    else:
        assert refusal(channels, connection) == status_code
        assert len(channels) == 0


def test_a_stopped_channel_ends_its_connections_and_admits_none_until_it_starts(
    engine: Engine, channels: ServerConnections
) -> None:
    define(engine)
    connection = Connection()
    channels.admit("APP", connection)
    shown = "\n".join(CommandServer(engine).execute("DISPLAY CHSTATUS(APP) CONNAME").lines)
    assert "CHSTATUS(APP)" in shown
    assert "CONNAME(192.0.2.1)" in shown
    assert CommandServer(engine).execute("STOP CHANNEL(APP) MODE(FORCE)").succeeded
    assert connection.stops == [StopMode.FORCE]
    assert refusal(channels, Connection()) == StatusCode.CHANNEL_UNAVAILABLE
    assert CommandServer(engine).execute("START CHANNEL(APP)").succeeded
    channels.admit("APP", Connection())


def test_a_stopped_channel_is_shown_when_its_connections_have_ended(
    engine: Engine, channels: ServerConnections
) -> None:
    define(engine)
    connection = Connection()
    channels.admit("APP", connection)
    server = CommandServer(engine)
    server.execute("STOP CHANNEL(APP)")
    assert "STATUS(STOPPED)" not in "\n".join(server.execute("DISPLAY CHSTATUS(APP)").lines)
    channels.forget(connection)
    assert server.execute("DISPLAY CHSTATUS(*)").lines == (
        "AMQ8417I: Display Channel Status details.",
        "   CHSTATUS(APP)                           CHLTYPE(SVRCONN)",
        "   STATUS(STOPPED)",
    )
    server.execute("START CHANNEL(APP)")
    assert not server.execute("DISPLAY CHSTATUS(APP)").succeeded


def test_programs_of_all_connections_are_shown(engine: Engine, channels: ServerConnections) -> None:
    assert not CommandServer(engine).execute("DISPLAY CONN(*)").succeeded
    define(engine)
    channels.admit("APP", Connection())
    assert CommandServer(engine).execute("DISPLAY CONN(*) WHERE(CONN LK 0000000000000002)").lines == (
        "AMQ8276I: Display Connection details.",
        "   CONN(0000000000000002)                  TYPE(CONN)",
        "   USERID(192.0.2.1)",
    )
