"""What a channel process tells: states at once, counts once a second, and one queue manager for all channels."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.channels.reports import FoundQueueManager, Reports
from mq_adapters.channel import ChannelState, ChannelStatus
from mq_adapters.channel.state_message import Batch
from mq_adapters.channel.status import ChannelProblem

OUT, REPLY = "CENTRAL.OUT.0", "CENTRAL.IN.REPLY"
GATEWAY = bytes(range(12))
RUNNING = ChannelStatus(channel=OUT, state=ChannelState.RUNNING, identifier="QM1_2026")


class Told:
    """The reports that were written."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.reports = Reports(lambda line: self.lines.append(json.loads(line)))
        self.reports.gateway = GATEWAY

    def take(self) -> list[dict[str, object]]:
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def told() -> Told:
    return Told()


def found(identifier: str = "QM1_2026") -> FoundQueueManager:
    return FoundQueueManager(name="QM1", identifier=identifier, maximum_message_bytes={"STOCK": 1_000})


def test_a_change_of_state_is_told_at_once_and_counts_once_a_second(told):
    told.reports.status_changed(RUNNING)
    assert [line["state"] for line in told.take()] == ["running"]
    for batch in (1, 2, 3):
        told.reports.status_changed(replace(RUNNING, batch=batch))
    assert told.take() == []
    told.reports.flush()
    (line,) = told.take()
    assert (line["report"], line["channel"], line["batch"]) == ("status", OUT, 3)
    told.reports.flush()
    assert told.take() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda: {"state": ChannelState.WAITING},
        lambda: {"problem": ChannelProblem(reason_code=2059, text="not there")},
        lambda: {"in_doubt": Batch(number=7)},
    ],
)
def test_what_an_operator_must_know_is_told_at_once(told, change: Callable[[], dict[str, object]]):
    told.reports.status_changed(RUNNING)
    told.take()
    told.reports.status_changed(replace(RUNNING, **change()))
    assert len(told.take()) == 1


def test_messages_in_doubt_are_told_by_their_numbers_in_the_store(told):
    own = b"RFHB" + GATEWAY + (4_711).to_bytes(8, "big")
    told.reports.status_changed(replace(RUNNING, in_doubt=Batch(number=7, messages=(own, b"X" * 24))))
    (line,) = told.take()
    assert line["in_doubt"] == {"batch": 7, "messages": [4_711, "58" * 24]}


def test_the_queue_manager_is_told_when_the_channel_runs_and_not_before(told):
    assert told.reports.found(OUT, found())
    assert told.take() == []
    told.reports.status_changed(RUNNING)
    queue_manager, status = told.take()
    assert queue_manager == {
        "report": "queue_manager",
        "name": "QM1",
        "identifier": "QM1_2026",
        "maximum_message_bytes": {"STOCK": 1_000},
    }
    assert status["report"] == "status"


def test_all_channels_of_a_target_are_at_one_queue_manager(told):
    assert told.reports.found(OUT, found("QM1_2026"))
    assert not told.reports.found(REPLY, found("QM2_2026"))
    assert told.reports.found(REPLY, found("QM1_2026"))
    for channel in (OUT, REPLY):
        told.reports.status_changed(ChannelStatus(channel=channel, state=ChannelState.WAITING))
    assert told.reports.found(REPLY, found("QM2_2026"))


def test_a_lone_channel_may_go_to_another_queue_manager(told):
    assert told.reports.found(OUT, found("QM1_2026"))
    assert told.reports.found(OUT, found("QM2_2026"))


def test_a_resolution_ends_the_doubt_that_is_told(told):
    told.reports.stands(OUT, ChannelStatus(channel=OUT), Batch(number=7))
    told.take()
    told.reports.resolved(OUT, succeeded=False, text="no")
    assert told.take() == [{"report": "resolved", "channel": OUT, "succeeded": False, "text": "no"}]
    told.reports.resolved(OUT, succeeded=True, text="commit")
    status, resolved = told.take()
    assert (status["in_doubt"], resolved["succeeded"]) == (None, True)
