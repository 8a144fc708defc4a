"""The operator's commands for channels: what the command server makes of them, with somebody who runs channels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.channels import CHANNEL_KEYWORDS, ChannelCommandRefused
from mq_adapters.embedded.mqsc.command_server import CommandServer


class Channels:
    """Two channels, which remember what they are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def names(self) -> tuple[str, ...]:
        return ("CENTRAL.OUT.0", "CENTRAL.IN.REPLY")

    def shown(self, name: str) -> dict[str, str]:
        values = {"CHSTATUS": name, "CHLTYPE": "RCVR" if ".IN." in name else "SDR", "STATUS": "RUNNING"}
        return {keyword: values.get(keyword, "7") for keyword in CHANNEL_KEYWORDS}

    def start(self, name: str) -> None:
        self.told.append(("start", name))

    def stop(self, name: str) -> None:
        self.told.append(("stop", name))

    def resolve(self, name: str, resolution: str) -> None:
        if name.endswith("REPLY"):
            raise ChannelCommandRefused("it runs: stop it first")
        self.told.append(("resolve", name, resolution))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine.open(tmp_path)
    yield engine
    engine.close()


@pytest.fixture
def channels(engine: Engine) -> Channels:
    engine.objects.channels = channels = Channels()
    return channels


def test_display_chstatus_shows_the_channels_of_a_generic_name(engine, channels):
    answer = CommandServer(engine).execute("DISPLAY CHSTATUS(CENTRAL.OUT.*) BATCHES")
    assert answer.succeeded
    assert answer.lines == (
        "AMQ8417I: Display Channel Status details.",
        "   CHSTATUS(CENTRAL.OUT.0)                 CHLTYPE(SDR)",
        "   STATUS(RUNNING)                         BATCHES(7)",
    )


def test_display_chstatus_takes_a_condition(engine, channels):
    answer = CommandServer(engine).execute("DIS CHS(*) WHERE(CHLTYPE EQ RCVR) STATUS")
    assert [line for line in answer.lines if "CHSTATUS(" in line] == [
        "   CHSTATUS(CENTRAL.IN.REPLY)              CHLTYPE(RCVR)"
    ]


@pytest.mark.parametrize(
    ("command", "told", "begin"),
    [
        ("STOP CHANNEL(CENTRAL.OUT.0)", ("stop", "CENTRAL.OUT.0"), "AMQ8019I"),
        ("start chl(central.out.0)", ("start", "CENTRAL.OUT.0"), "AMQ8018I"),
        ("RESOLVE CHANNEL(CENTRAL.OUT.0) ACTION(COMMIT)", ("resolve", "CENTRAL.OUT.0", "COMMIT"), "AMQ8025I"),
        ("RESOLVE CHANNEL(CENTRAL.OUT.0) ACTION(backout)", ("resolve", "CENTRAL.OUT.0", "BACKOUT"), "AMQ8025I"),
    ],
)
def test_a_command_reaches_who_runs_the_channel(engine, channels, command, told, begin):
    answer = CommandServer(engine).execute(command)
    assert answer.succeeded
    assert answer.lines[0].startswith(begin)
    assert channels.told == [told]


@pytest.mark.parametrize(
    "command",
    [
        "STOP CHANNEL(OTHER)",
        "STOP CHANNEL(CENTRAL.OUT.0) MODE(FORCE)",
        "STOP CHANNEL",
        "DEFINE CHANNEL(CENTRAL.OUT.0) CHLTYPE(SDR)",
        "DISPLAY CHSTATUS(OTHER)",
        "DISPLAY CHSTATUS(*) NONSENSE",
        "RESOLVE CHANNEL(CENTRAL.OUT.0)",
        "RESOLVE CHANNEL(CENTRAL.OUT.0) ACTION(PERHAPS)",
        "RESOLVE CHANNEL(CENTRAL.IN.REPLY) ACTION(COMMIT)",
    ],
)
def test_what_cannot_be_done_is_refused_and_told_nobody(engine, channels, command):
    answer = CommandServer(engine).execute(command)
    assert not answer.succeeded
    assert channels.told == []


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("DISPLAY CHSTATUS(*)", "AMQ8420I: Channel status of * not found: no gateway runs here"),
        ("START CHANNEL(A.B)", "AMQ8405E: START CHANNEL(A.B) needs a running gateway, and none runs here."),
    ],
)
def test_without_a_gateway_there_are_no_channels(engine, command, complaint):
    answer = CommandServer(engine).execute(command)
    assert not answer.succeeded
    assert answer.lines == (complaint,)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("DISPLAY CHSTATUS(NONE.OUT.0)", "there is no such channel"),
        ("DISPLAY CHSTATUS(NONE.*)", "no target has a channel of such a name"),
        ("START CHANNEL(NONE.OUT.0)", "AMQ8147E: There is no channel NONE.OUT.0."),
        ("STOP CHANNEL(NONE.OUT.0)", "AMQ8147E: There is no channel NONE.OUT.0."),
    ],
)
def test_a_channel_that_does_not_exist_is_said_to_be_none(engine, channels, command, complaint):
    answer = CommandServer(engine).execute(command)
    assert not answer.succeeded
    assert complaint in answer.lines[0]


def test_a_gateway_without_targets_and_programs_says_so(engine, channels):
    channels.names = lambda: ()
    (line,) = CommandServer(engine).execute("DISPLAY CHSTATUS(*)").lines
    assert line.endswith("not found: the configuration names no target, and no program is connected")


def test_the_verbs_of_channels_are_named(engine):
    (line,) = CommandServer(engine).execute("PING QMGR").lines
    assert line.endswith("RESET, START, STOP, RESOLVE and PURGE are.")
    (line,) = CommandServer(engine).execute("START QLOCAL(A)").lines
    assert line.endswith("START QLOCAL is not supported: START CHANNEL is.")
