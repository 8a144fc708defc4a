"""The channels as their operator sees them, without a process: what is shown, what is refused, what survives."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from gateway.channels.channel_commands import ChannelCommands
from gateway.channels.names import channel_names
from gateway.channels.protocol import Order
from gateway.channels.supervisor import TargetProcess
from gateway.channels.target import Target
from gateway.config import TargetSettings
from mq_adapters.channel import ChannelStatus
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.channels import CHANNEL_KEYWORDS, ChannelCommandRefused
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor

OUT, SUBSCRIBER, REPLY = "CENTRAL.OUT.0", "CENTRAL.IN.SUBSCRIBER", "CENTRAL.IN.REPLY"


class Process:
    """A target's process that keeps what it is told."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.names = channel_names(target.name, target.shards)
        self.statuses: dict[str, dict[str, object]] = {}
        self.resolutions: dict[str, str] = {}
        self.told: list[tuple[object, ...]] = []

    def order(self, order: Order, channel: str, **values: object) -> bool:
        self.told.append((order, channel, *values.values()))
        return True


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine.open(tmp_path)
    yield engine
    engine.close()


@pytest.fixture
def process(engine: Engine) -> Process:
    return Process(Target(engine, TargetSettings.model_validate({"name": "CENTRAL"})))


@pytest.fixture
def commands(engine: Engine, process: Process) -> ChannelCommands:
    queues = (engine.ensure(name, "") for name in ("RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY"))
    subscriber_queue, reply_queue = queues
    return ChannelCommands((cast(TargetProcess, process),), subscriber_queue=subscriber_queue, reply_queue=reply_queue)


def test_a_channel_is_shown_before_its_process_has_told_anything(commands, engine, process):
    unit = engine.begin()
    message = Message(MessageDescriptor(persistence=MQPER_PERSISTENT), b"12345")
    engine.put(unit, process.target.transmission_queue("pump"), message)
    engine.submit(unit)
    shown = commands.shown(OUT)
    assert tuple(shown) == CHANNEL_KEYWORDS
    assert (shown["STATUS"], shown["CHLTYPE"], shown["INDOUBT"]) == ("STARTING", "SDR", "NO")
    assert (shown["QUEUE"], shown["CURDEPTH"], shown["CURBYTES"]) == ("RFHBRIDGE.XMIT.CENTRAL.0", "1", "5")
    assert [commands.shown(name)["QUEUE"] for name in (SUBSCRIBER, REPLY)] == [
        "RFHBRIDGE.SUBSCRIBER",
        "RFHBRIDGE.REPLY",
    ]
    assert commands.shown(REPLY)["CHLTYPE"] == "RCVR"


def test_what_a_channel_says_of_itself_is_shown(commands, process):
    status = ChannelStatus(channel=OUT, batch=7, messages=300, message_bytes=4_096, dead_letters=2, dropped=1)
    process.statuses[OUT] = status.as_dict()
    shown = commands.shown(OUT)
    numbers = ("BATCHES", "MSGS", "BYTES", "DEADMSGS", "DUPMSGS")
    assert [shown[keyword] for keyword in numbers] == ["7", "300", "4096", "2", "1"]


@pytest.mark.parametrize(
    ("messages", "shown"),
    [
        ([], " "),
        ([7], "7"),
        ([7, 8, 9], "'7-9'"),
        ([3, 7, 8, 1], "'1 3 7-8'"),
        ([5, "414d51"], "'5 414d51'"),
    ],
)
def test_messages_in_doubt_are_shown_as_ranges_of_their_numbers(commands, process, messages, shown):
    process.statuses[OUT] = {"state": "in doubt", "in_doubt": {"batch": 4, "messages": messages}}
    told = commands.shown(OUT)
    assert told["DOUBTMSGS"] == shown
    assert (told["INDOUBT"], told["STATUS"]) == ("YES", "'IN DOUBT'")


def test_ten_thousand_messages_in_doubt_make_no_endless_line(commands, process):
    messages = list(range(1, 20_000, 2))
    process.statuses[OUT] = {"state": "in doubt", "in_doubt": {"batch": 4, "messages": messages}}
    assert len(commands.shown(OUT)["DOUBTMSGS"]) < 1_100


def test_a_stopped_channel_is_known_without_its_process(commands, process):
    commands.stop(OUT)
    assert commands.shown(OUT)["STATUS"] == "STOPPED"
    commands.start(OUT)
    assert commands.shown(OUT)["STATUS"] == "STARTING"
    assert process.told == [(Order.STOP, OUT), (Order.START, OUT)]


@pytest.mark.parametrize("state", [None, "running", "waiting", "in doubt", "connecting", "fencing"])
def test_only_a_channel_at_rest_is_resolved(commands, process, state):
    if state is not None:
        process.statuses[OUT] = {"state": state}
    with pytest.raises(ChannelCommandRefused):
        commands.resolve(OUT, "COMMIT")
    assert process.told == []


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_a_resolution_reaches_the_process_and_the_one_before_is_forgotten(commands, process, state):
    process.statuses[OUT] = {"state": state}
    process.resolutions[OUT] = "refused: before"
    commands.resolve(OUT, "BACKOUT")
    assert process.told == [(Order.RESOLVE, OUT, "backout")]
    assert commands.shown(OUT)["RESOLVED"] == " "


def test_a_problem_is_shown_on_one_line(commands, process):
    process.statuses[OUT] = {"state": "waiting", "problem": {"reason_code": 2059, "text": "connect:\n 2059 (wait)"}}
    shown = commands.shown(OUT)
    assert (shown["REASON"], shown["PROBLEM"]) == ("2059", "'connect: 2059 (wait)'")
