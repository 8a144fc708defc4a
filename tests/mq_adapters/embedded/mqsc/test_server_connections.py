"""SVRCONN channels for their operator: DEFINE, ALTER, DISPLAY, START, STOP, DISPLAY CHSTATUS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.attributes import ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.mqsc.server_connections import CONNECTION_KEYWORDS, StopMode
from tests.mq_adapters.embedded.mqsc.test_channels import Channels


class Connections:
    """Listeners with one connection of APP.SVRCONN, which remember what they are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def shown(self, name: str) -> list[dict[str, str]]:
        return [{"CHSTATUS": name, "CHLTYPE": "SVRCONN", **dict.fromkeys(CONNECTION_KEYWORDS[2:], "7")}]

    def programs(self) -> list[dict[str, str]]:
        return [{"CONN": "0000000000000001", "TYPE": "CONN", "USERID": "billing", "UOWSTATE": "ACTIVE"}]

    def start(self, name: str) -> None:
        self.told.append(("start", name))

    def stop(self, name: str, mode: StopMode) -> None:
        self.told.append(("stop", name, mode))


@pytest.fixture
def engine(data_folder: Path) -> Iterator[Engine]:
    engine = Engine.open(data_folder)
    yield engine
    engine.close()


@pytest.fixture
def server(engine: Engine) -> CommandServer:
    server = CommandServer(engine)
    assert server.execute("DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) MAXINST(5)").succeeded
    return server


@pytest.fixture
def connections(engine: Engine) -> Connections:
    engine.objects.server_connections = made = Connections()
    return made


def test_a_channel_is_defined_altered_displayed_and_deleted(server: CommandServer) -> None:
    assert server.execute("ALTER CHANNEL(APP.SVRCONN) MCAUSER('billing') SSLCIPH(ANY_TLS12_OR_HIGHER)").succeeded
    shown = "\n".join(server.execute("DISPLAY CHANNEL(APP.*) ALL").lines)
    assert shown.startswith("AMQ8414I: Display Channel details.\n   CHANNEL(APP.SVRCONN)")
    for each in (
        "CHLTYPE(SVRCONN)",
        "MAXINST(5)",
        "MCAUSER('billing')",
        "SSLCIPH(ANY_TLS12_OR_HIGHER)",
        "SHARECNV(10)",
    ):
        assert each in shown
    assert server.execute("DELETE CHANNEL(APP.SVRCONN)").lines == ("AMQ8015I: Channel deleted.",)
    assert not server.execute("DISPLAY CHANNEL(APP.SVRCONN)").succeeded


def test_a_channel_outlives_the_queue_manager(data_folder: Path) -> None:
    first = Engine.open(data_folder)
    assert CommandServer(first).execute("DEFINE CHANNEL(A) CHLTYPE(SVRCONN) MAXINSTC(3)").succeeded
    first.close()
    second = Engine.open(data_folder)
    found = second.objects.find(ObjectType.CHANNEL, "A")
    assert found is not None
    assert (found.number("MAXINSTC"), found["MAXINST"]) == (3, 999_999_999)
    second.close()


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("DEFINE CHANNEL(B)", "needs CHLTYPE(SVRCONN)"),
        ("DEFINE CHANNEL(B) CHLTYPE(SDR)", "CHLTYPE(SDR): the value must be SVRCONN"),
        ("DEFINE CHANNEL(B) CHLTYPE(SVRCONN) SSLCIPH(TLS_RSA)", "ANY_TLS12_OR_HIGHER"),
        ("DEFINE CHANNEL(B) CHLTYPE(SVRCONN) SCYEXIT(X)", "SCYEXIT"),
        ("DEFINE CHANNEL(B) CHLTYPE(SVRCONN) SSLPEER('FAX=1')", "a distinguished name"),
        ("DEFINE CHANNEL(A.NAME.OF.21.LETTERSX) CHLTYPE(SVRCONN)", "AMQ8140E: The name of a channel has at most 20"),
        ("DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN)", "AMQ8150E"),
        ("DEFINE CHANNEL(CENTRAL.OUT.0) CHLTYPE(SVRCONN)", "AMQ8150E"),
        ("ALTER CHANNEL(APP.SVRCONN) MCAUSER('thirteen-long')", "at most 12"),
        ("STOP CHANNEL(APP.SVRCONN) MODE(GENTLY)", "QUIESCE|FORCE|TERMINATE"),
        ("STOP CHANNEL(APP.SVRCONN) STATUS(INACTIVE)", "STATUS"),
        ("RESOLVE CHANNEL(APP.SVRCONN) ACTION(COMMIT)", "START and STOP are"),
    ],
)
def test_a_wrong_command_is_refused(
    server: CommandServer, engine: Engine, connections: Connections, command: str, complaint: str
) -> None:
    engine.objects.channels = Channels()
    answer = server.execute(command)
    assert not answer.succeeded
    assert complaint in "\n".join(answer.lines)
    assert connections.told == []


def test_start_and_stop_reach_the_listeners(server: CommandServer, connections: Connections) -> None:
    for command in ("STOP CHANNEL(APP.SVRCONN)", "START CHL(APP.SVRCONN)", "STOP CHANNEL(APP.SVRCONN) MODE(FORCE)"):
        assert server.execute(command).succeeded
    assert connections.told == [
        ("stop", "APP.SVRCONN", StopMode.QUIESCE),
        ("start", "APP.SVRCONN"),
        ("stop", "APP.SVRCONN", StopMode.FORCE),
    ]


def test_without_a_listener_a_stop_says_so(server: CommandServer, engine: Engine) -> None:
    answer = server.execute("STOP CHANNEL(APP.SVRCONN)")
    assert not answer.succeeded
    assert answer.lines[0].endswith("STOP CHANNEL(APP.SVRCONN) needs a running gateway, and none runs here.")
    engine.objects.channels = Channels()
    answer = server.execute("STOP CHANNEL(APP.SVRCONN)")
    assert not answer.succeeded
    assert "[[mq_listener]]" in answer.lines[0]


def test_a_channel_that_no_program_uses_has_no_status(server: CommandServer, engine: Engine) -> None:
    engine.objects.channels = Channels()
    (line,) = server.execute("DISPLAY CHSTATUS(APP.SVRCONN)").lines
    assert line.endswith("not found: no program is connected through it")


def test_status_shows_connections_and_channels_to_targets(
    server: CommandServer, engine: Engine, connections: Connections
) -> None:
    engine.objects.channels = Channels()
    assert server.execute("DISPLAY CHSTATUS(APP.SVRCONN) CONNAME").lines[1:] == (
        "   CHSTATUS(APP.SVRCONN)                   CHLTYPE(SVRCONN)",
        "   STATUS(7)                               CONNAME(7)",
    )
    everything = "\n".join(server.execute("DISPLAY CHSTATUS(*)").lines)
    assert [name for name in ("APP.SVRCONN", "CENTRAL.OUT.0", "CENTRAL.IN.REPLY") if name in everything] == [
        "APP.SVRCONN",
        "CENTRAL.OUT.0",
        "CENTRAL.IN.REPLY",
    ]


def test_connections_are_shown_by_program(server: CommandServer, connections: Connections) -> None:
    shown = server.execute("DISPLAY CONN(*) UOWSTATE USERID")
    assert shown.lines[1:] == (
        "   CONN(0000000000000001)                  TYPE(CONN)",
        "   UOWSTATE(ACTIVE)                        USERID(billing)",
    )
    assert not server.execute("DISPLAY CONN(0000000000000002)").succeeded
