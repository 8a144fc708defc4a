"""The way out, call by call: whatever fails, and wherever, each message arrives once and in order."""

from mq_adapters.channel import ChannelState, StartAction
from tests.mq_adapters.channel.conftest import STATE_QUEUE, STREAM, World

TEN = [b"message %d" % number for number in range(10)]


def test_what_waits_is_delivered_in_order(world: World):
    world.send(*TEN)
    status = world.run(world.outbound(batch_messages=3))
    assert world.there.bodies(STREAM) == TEN
    assert world.waiting() == 0
    assert (status.state, status.messages, status.batch) == (ChannelState.STOPPED, 10, 4)
    assert world.recorder.states == ["connecting", "running", "stopped"]
    assert world.recorder.actions == [(StartAction.NOTHING_IN_DOUBT, 0)]
    assert len(world.there.bodies(STATE_QUEUE)) == 1
