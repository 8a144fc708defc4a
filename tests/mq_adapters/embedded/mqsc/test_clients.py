"""The operator's commands for MQTT clients: what the command server makes of them, with somebody who serves clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.clients import CLIENT_KEYWORDS, MAXIMUM_SHOWN
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.mqsc import quoted

ODD = "it's\nodd, (really)"


class Clients:
    """Three clients, of which the first is connected, and what they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.names = ["pump", "Pump", ODD]

    def clients(self) -> Iterator[str]:
        return iter(self.names)

    def has(self, client: str) -> bool:
        return client in self.names

    def shown(self, client: str, *, subscriptions: bool) -> dict[str, str]:
        values = {"CHSTATUS": "MQTT", "CHLTYPE": "MQTT", "CLIENTID": quoted(client)}
        values |= {"SUBS": quoted("qos=1 a/#") if subscriptions else " "}
        return {keyword: values.get(keyword, "7") for keyword in CLIENT_KEYWORDS}

    def disconnect(self, client: str, act: OperatorsAct) -> bool:
        assert (act.command, act.subject) == ("STOP CHANNEL", client)
        self.told.append(("disconnect", client))
        return client == "pump"

    def expire(self, client: str, act: OperatorsAct) -> None:
        assert (act.command, act.subject) == ("PURGE CHANNEL", client)
        self.told.append(("expire", client))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine.open(tmp_path)
    yield engine
    engine.close()


@pytest.fixture
def clients(engine: Engine) -> Clients:
    engine.objects.clients = clients = Clients()
    return clients


def execute(engine: Engine, command: str) -> tuple[bool, tuple[str, ...]]:
    answer = CommandServer(engine).execute(command)
    return answer.succeeded, answer.lines


def test_display_shows_one_client_with_its_subscriptions(engine: Engine, clients: Clients) -> None:
    succeeded, lines = execute(engine, "DISPLAY CHSTATUS(*) CHLTYPE(MQTT) CLIENTID('pump') SUBS KAINT")
    assert succeeded
    assert lines == (
        "AMQ8417I: Display Channel Status details.",
        "   CHSTATUS(MQTT)                          CHLTYPE(MQTT)",
        "   CLIENTID('pump')                        KAINT(7)",
        "   SUBS('qos=1 a/#')",
    )


def test_display_shows_every_client_where_none_is_named_and_those_that_where_lets_through(
    engine: Engine, clients: Clients
) -> None:
    _, lines = execute(engine, "DISPLAY CHSTATUS(MQTT) CHLTYPE(MQTT) PENDING")
    assert [line.split()[0] for line in lines if "CLIENTID" in line][1:] == ["CLIENTID('it''s", "CLIENTID('pump')"]
    assert len([line for line in lines if line.startswith("AMQ8417I")]) == 3
    assert execute(engine, "DISPLAY CHSTATUS(*) CHLTYPE(MQTT) WHERE(PENDING GT 8)")[0] is False


def test_more_clients_than_may_be_shown_are_asked_for_by_name(engine: Engine, clients: Clients) -> None:
    clients.names = [f"c{number}" for number in range(MAXIMUM_SHOWN + 1)]
    assert execute(engine, "DISPLAY CHSTATUS(*) CHLTYPE(MQTT)") == (
        False,
        ("AMQ8405E: there are 1001 clients: name one by CLIENTID('...').",),
    )
    assert execute(engine, "DISPLAY CHSTATUS(*) CHLTYPE(MQTT) CLIENTID('c7')")[0]


@pytest.mark.parametrize(
    ("command", "told", "answer"),
    [
        (
            "STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')",
            "disconnect",
            "AMQ8019I: Stop of client 'pump' accepted.",
        ),
        (
            "PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')",
            "expire",
            "AMQ8019I: End of the session of client 'pump' accepted.",
        ),
    ],
)
def test_stop_and_purge_are_handed_on(engine: Engine, clients: Clients, command: str, told: str, answer: str) -> None:
    assert execute(engine, command) == (True, (answer,))
    assert clients.told == [(told, "pump")]


def test_a_client_is_named_exactly_whatever_is_in_its_identifier(engine: Engine, clients: Clients) -> None:
    assert execute(engine, f"PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID({quoted(ODD)})")[0]
    assert execute(engine, "PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('Pump')")[0]
    assert clients.told == [("expire", ODD), ("expire", "Pump")]
    assert execute(engine, "PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID(pump)")[1] == (
        "AMQ8420I: MQTT client 'PUMP' not found: a running gateway has one for each session.",
    )


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('Pump')", "AMQ9533W: Client 'Pump' is not connected."),
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT)", "needs CLIENTID('...')"),
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('a','b')", "CLIENTID names one client"),
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('a') CLIENTID('b')", "CLIENTID names one client"),
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID", "CLIENTID names one client"),
        ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump') MODE(FORCE)", "MODE is not supported here"),
        ("STOP CHANNEL(OTHER) CHLTYPE(MQTT) CLIENTID('pump')", "MQTT client 'pump' not found"),
        ("START CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')", "START CHANNEL with CHLTYPE(MQTT) is not supported"),
        ("DISPLAY CHSTATUS(*) CHLTYPE(MQTT) CLIENTID('none')", "MQTT client 'none' not found"),
        ("DISPLAY CHSTATUS(*) CHLTYPE(MQTT) BATCHES", "attribute BATCHES is not supported here"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(
    engine: Engine, clients: Clients, command: str, answer: str
) -> None:
    succeeded, (line,) = execute(engine, command)
    assert not succeeded
    assert answer in line
    assert clients.told in ([], [("disconnect", "Pump")])


def test_a_queue_manager_without_a_gateway_has_no_clients(engine: Engine) -> None:
    for command in ("DISPLAY CHSTATUS(*) CHLTYPE(MQTT)", "PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')"):
        succeeded, (line,) = execute(engine, command)
        assert not succeeded
        assert line.endswith("not found: no gateway runs here, and only a running one can be asked.")
