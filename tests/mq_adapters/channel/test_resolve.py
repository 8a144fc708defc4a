"""The operator's word, where a channel cannot find out by itself."""

import pytest

from mq_adapters.channel import ChannelState, LocalStates, Resolution, ResolutionRefused, resolve
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.mq_adapters.channel.conftest import IN, OUT, STATE_QUEUE, STREAM, SUBSCRIBER, TRANSMISSION_QUEUE, World


def leave_in_doubt(world: World, *, delivered: bool) -> None:
    """A batch of two whose outcome nobody here knows; one message waits behind it."""
    world.send(b"one", b"two", b"three")
    world.there.faults.plan("commit", 1, when="after" if delivered else "before", reason_code=0)
    world.run(world.outbound(batch_messages=2))
    assert world.state().doubtful is not None


def resolve_out(world: World, resolution: Resolution):
    return resolve(world.here.hand, resolution, channel=OUT, transmission_queue=TRANSMISSION_QUEUE)


def test_commit_removes_what_was_in_doubt(world: World):
    leave_in_doubt(world, delivered=True)
    state, removed = resolve_out(world, Resolution.COMMIT)
    assert (state.doubtful, state.batch, len(removed)) == (None, 1, 2)
    assert world.waiting() == 1
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"one", b"two", b"three"]


def test_backout_lets_it_be_delivered_again(world: World):
    leave_in_doubt(world, delivered=False)
    state, removed = resolve_out(world, Resolution.BACKOUT)
    assert (state.doubtful, state.batch, removed) == (None, 0, ())
    assert world.waiting() == 3
    other = world.another_queue_manager()
    world.run(world.outbound(there=other))
    assert other.bodies(STREAM) == [b"one", b"two", b"three"]


@pytest.mark.parametrize(("delivered", "said"), [(True, Resolution.BACKOUT), (False, Resolution.COMMIT)])
def test_a_wrong_word_is_found_out_at_the_same_queue_manager(world: World, delivered: bool, said: Resolution):
    leave_in_doubt(world, delivered=delivered)
    resolve_out(world, said)
    assert world.run(world.outbound()).state is ChannelState.FAILED
    assert world.there.bodies(STREAM) == ([b"one", b"two"] if delivered else [])


def test_reset_begins_anew_whatever_the_state_queue_holds(world: World):
    world.send(b"one")
    world.run(world.outbound())
    for _ in range(3):
        world.there.hand.put(STATE_QUEUE, Message(MessageDescriptor(), b"garbage"))
    world.send(b"two")
    assert world.run(world.outbound()).state is ChannelState.FAILED
    state, _ = resolve_out(world, Resolution.RESET)
    assert state.reset
    status = world.run(world.outbound())
    assert status.state is ChannelState.STOPPED
    assert world.there.bodies(STREAM) == [b"one", b"two"]
    assert len(world.there.bodies(STATE_QUEUE)) == 1
    assert not world.state().reset


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_reset_survives_a_kill(world: World, nth: int, when: str):
    world.send(b"one")
    world.run(world.outbound())
    world.there.hand.clear(STATE_QUEUE)
    resolve_out(world, Resolution.RESET)
    world.send(b"two")
    world.there.faults.plan("commit", nth, when=when, reason_code=0)
    world.run(world.outbound())
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"one", b"two"]


def test_reset_is_refused_while_a_batch_is_in_doubt(world: World):
    leave_in_doubt(world, delivered=True)
    with pytest.raises(ResolutionRefused, match="commit or backout"):
        resolve_out(world, Resolution.RESET)


def test_where_nothing_is_in_doubt_there_is_nothing_to_say(world: World):
    world.run(world.outbound())
    for resolution in (Resolution.COMMIT, Resolution.BACKOUT):
        with pytest.raises(ResolutionRefused, match="has no batch in doubt"):
            resolve_out(world, resolution)


def test_a_channel_that_runs_cannot_be_resolved(world: World):
    leave_in_doubt(world, delivered=True)
    with (
        world.here.connect().open_exclusively(TRANSMISSION_QUEUE),
        pytest.raises(QueueManagerError, match="2042"),
    ):
        resolve_out(world, Resolution.COMMIT)
    assert world.waiting() == 3


def test_the_way_in_is_resolved_too(world: World):
    world.there.hand.put(SUBSCRIBER, Message(MessageDescriptor(), b"one"))
    world.there.faults.plan("commit", 1, when="after", reason_code=0)
    world.run(world.inbound())
    other = world.another_queue_manager()
    other.hand.put(SUBSCRIBER, Message(MessageDescriptor(), b"two"))
    resolve(world.here.hand, Resolution.COMMIT, channel=IN)
    world.run(world.inbound(there=other))
    assert world.here.bodies(SUBSCRIBER) == [b"one", b"two"]


def test_the_states_of_all_channels_can_be_looked_at(world: World):
    world.run(world.outbound())
    world.run(world.inbound())
    states = LocalStates(world.here.hand)
    assert [state.channel for state in states.all()] == [IN, OUT]
    assert states.of("NO.SUCH") is None


def test_nothing_takes_what_is_in_doubt_before_it_is_resolved(world: World):
    leave_in_doubt(world, delivered=True)
    hand = world.here.hand
    with pytest.raises(QueueManagerError, match="2042"):
        hand.clear(TRANSMISSION_QUEUE)
    with pytest.raises(QueueManagerError, match="channel resolve"):
        hand.get(TRANSMISSION_QUEUE)
    hand.begin()
    with pytest.raises(QueueManagerError, match="2042"):
        hand.take_batch(TRANSMISSION_QUEUE, most_messages=10, most_bytes=1_000_000)
    hand.back_out()
    for command in ("CLEAR", "DELETE"):
        assert not hand.mqsc(f"{command} QLOCAL('{TRANSMISSION_QUEUE}'){' PURGE' * (command == 'DELETE')}").succeeded
    assert world.waiting() == 3
    resolve_out(world, Resolution.COMMIT)
    assert hand.clear(TRANSMISSION_QUEUE) == 1
