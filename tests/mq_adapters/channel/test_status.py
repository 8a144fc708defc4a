"""What a channel tells of itself."""

import json

from mq_adapters.channel import ChannelState
from mq_adapters.channel.state_message import Batch
from mq_adapters.channel.status import ChannelProblem, ChannelStatus
from tests.mq_adapters.channel.conftest import OUT, World

GATEWAY = b"g" * 12


def test_a_status_is_one_line_of_json():
    status = ChannelStatus(
        channel=OUT,
        state=ChannelState.IN_DOUBT,
        since_us=1,
        queue_manager="PLANT",
        identifier="PLANT_2026",
        batch=6,
        messages=5,
        message_bytes=4,
        dead_letters=3,
        dropped=2,
        in_doubt=Batch(number=7, messages=(b"RFHB" + GATEWAY + (9).to_bytes(8, "big"), b"f" * 24)),
        problem=ChannelProblem(reason_code=2009, text="commit: 2009"),
        next_retry_us=8,
    )
    assert json.loads(json.dumps(status.as_dict(GATEWAY))) == {
        "channel": OUT,
        "state": "in doubt",
        "since_us": 1,
        "queue_manager": "PLANT",
        "identifier": "PLANT_2026",
        "batch": 6,
        "messages": 5,
        "message_bytes": 4,
        "dead_letters": 3,
        "dropped": 2,
        "in_doubt": {"batch": 7, "messages": [9, "66" * 24]},
        "problem": {"reason_code": 2009, "text": "commit: 2009", "cause": ""},
        "next_retry_us": 8,
    }


def test_a_channel_that_never_ran_is_stopped():
    status = ChannelStatus(channel=OUT)
    assert (status.state, status.as_dict()["in_doubt"], status.as_dict()["problem"]) == ("stopped", None, None)


def test_each_run_counts_from_nothing(world: World):
    channel = world.outbound()
    world.send(b"one", b"two")
    assert world.run(channel).messages == 2
    world.send(b"three")
    status = world.run(channel)
    assert (status.messages, status.batch) == (1, 2)


def test_the_status_names_what_is_in_doubt(world: World):
    world.send(b"one", b"two")
    world.there.faults.plan("commit", 1, when="later")
    world.run(world.outbound())
    doubts = [status for status in world.recorder.statuses if status.state is ChannelState.IN_DOUBT]
    assert doubts[0].in_doubt is not None
    assert (doubts[0].in_doubt.number, len(doubts[0].in_doubt.messages)) == (1, 2)
    assert world.recorder.statuses[-1].in_doubt is None
