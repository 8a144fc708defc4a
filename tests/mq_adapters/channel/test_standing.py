"""Who may go on: one gateway, at one queue manager, from a state that fits."""

from pathlib import Path

import apsw
import pytest

from mq_adapters.channel import ChannelState
from mq_adapters.channel.state_message import Batch, RemoteState, restated
from mq_adapters.embedded.store.backup import back_up
from mq_adapters.embedded.store.rollback import accept_rollback
from mq_adapters.embedded.store.rollback_guard import RollbackGuard
from mq_adapters.message import Message
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE
from tests.mq_adapters.channel.conftest import (
    OUT,
    STATE_QUEUE,
    STREAM,
    TRANSMISSION_QUEUE,
    World,
)


def test_the_queue_manager_that_it_begins_at_is_told_first(world: World):
    world.run(world.outbound())
    assert world.recorder.pins == [("", world.there.hand.identifier)]
    world.run(world.outbound())
    assert len(world.recorder.pins) == 1
    assert world.state().queue_manager == world.there.hand.identifier


def test_another_queue_manager_is_accepted_when_nothing_is_in_doubt(world: World):
    other = world.another_queue_manager()
    world.send(b"one")
    world.run(world.outbound())
    world.send(b"two")
    world.run(world.outbound(there=other))
    world.send(b"three")
    world.run(world.outbound())
    assert (world.there.bodies(STREAM), other.bodies(STREAM)) == ([b"one", b"three"], [b"two"])
    ours, others = world.there.hand.identifier, other.hand.identifier
    assert world.recorder.pins == [("", ours), (ours, others), (others, ours)]


def test_another_queue_manager_is_refused_while_a_batch_is_in_doubt(world: World):
    other = world.another_queue_manager()
    world.send(b"one")
    world.there.faults.plan("commit", 1, when="after", reason_code=0)
    world.run(world.outbound())
    assert world.state().doubtful is not None
    turns = iter((other, other, world.there))
    channel = world.outbound()
    channel._connect_remote = lambda: next(turns).connect()
    status = world.run(channel)
    assert world.there.bodies(STREAM) == [b"one"]
    assert other.bodies(STREAM) == []
    refused = next(status for status in world.recorder.statuses if status.problem and not status.problem.reason_code)
    assert refused.state is ChannelState.IN_DOUBT
    assert refused.in_doubt is not None
    assert other.hand.identifier in refused.problem.text
    assert status.state is ChannelState.STOPPED
    assert world.waits_s == [10]


def test_a_second_gateway_is_refused(world: World, tmp_path: Path):
    world.send(b"one")
    world.run(world.outbound())
    second = World(tmp_path / "second")
    try:
        second.send(b"two")
        status = second.run(second.outbound(there=world.there))
    finally:
        second.close()
    assert status.state is ChannelState.FAILED
    assert status.problem is not None
    assert "a second gateway" in status.problem.text
    assert world.here.hand.incarnation.hex() in status.problem.text
    assert world.there.bodies(STREAM) == [b"one"]


def test_a_second_gateway_waits_while_the_first_one_runs(world: World, tmp_path: Path):
    world.run(world.outbound())
    second = World(tmp_path / "second")
    first = world.there.connect()
    fence = first.open_exclusively(STATE_QUEUE)
    asked = 0

    def give_up(verb: str) -> None:
        nonlocal asked
        asked += verb == "open_exclusively"
        if asked == 5:
            fence.close()

    world.there.faults.draw = give_up
    try:
        second.run(second.outbound(there=world.there))
        assert second.recorder.states[:2] == ["connecting", "fencing"]
        assert asked == 5
    finally:
        second.close()


def test_a_store_restored_from_a_backup_is_refused(world: World, tmp_path: Path):
    world.send(b"one")
    world.run(world.outbound())
    world.send(b"two")
    restored = tmp_path / "restored"
    restored.mkdir()
    back_up(world.here.folder, restored / "queue_manager.sqlite")
    begin_marker(restored)
    world.run(world.outbound())
    world.here.close()
    world.here.folder = restored
    world.here.open()
    status = world.run(world.outbound())
    assert status.state is ChannelState.FAILED
    assert status.problem is not None
    assert "a store restored from a backup" in status.problem.text
    assert f"rfhbridge channel resolve {OUT} --action reset" in status.problem.text
    assert world.there.bodies(STREAM) == [b"one", b"two"]


@pytest.mark.parametrize("more", [(), (b"three", b"four")])
def test_a_store_that_went_back_and_was_accepted_sends_nothing_again(world: World, tmp_path: Path, more):
    """What waited when it was copied was taken since; what comes later is delivered, and in its order."""
    world.send(b"one")
    world.run(world.outbound())
    world.send(b"two", b"also two")
    restored = tmp_path / "restored"
    restored.mkdir()
    back_up(world.here.folder, restored / "queue_manager.sqlite")
    world.run(world.outbound())
    for body in more:
        world.send(body)
        world.run(world.outbound())
    world.here.close()
    delivered = world.there.bodies(STREAM)
    accept_rollback(restored, state_queue=CHANNEL_STATE_QUEUE, restated=restated)
    world.here.folder = restored
    world.here.open()
    world.send(b"later")
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [*delivered, b"later"]
    assert world.waiting() == 0
    world.send(b"last")
    assert world.run(world.outbound()).state is not ChannelState.FAILED
    assert world.there.bodies(STREAM) == [*delivered, b"later", b"last"]


def test_what_came_after_the_copy_was_not_taken_and_is_still_sent(world: World, tmp_path: Path):
    """Nothing was delivered between copy and loss: all that waits is still to be sent."""
    world.send(b"one")
    world.run(world.outbound())
    world.send(b"two")
    restored = tmp_path / "restored"
    restored.mkdir()
    back_up(world.here.folder, restored / "queue_manager.sqlite")
    world.here.close()
    accept_rollback(restored, state_queue=CHANNEL_STATE_QUEUE, restated=restated)
    world.here.folder = restored
    world.here.open()
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"one", b"two"]


def test_what_a_store_that_went_back_unseen_took_since_is_sent(world: World, tmp_path: Path):
    """Its numbers are those of messages that were delivered before; its times are not."""
    world.send(b"one")
    world.run(world.outbound())
    restored, accepted = tmp_path / "restored", tmp_path / "accepted"
    for folder in (restored, accepted):
        folder.mkdir()
    back_up(world.here.folder, restored / "queue_manager.sqlite")
    begin_marker(restored)
    for body in (b"two", b"three", b"four"):
        world.send(body)
        world.run(world.outbound())
    world.here.close()
    world.here.folder = restored
    world.here.open()
    world.send(b"acknowledged since")
    assert world.run(world.outbound()).state is ChannelState.FAILED
    world.here.close()
    accept_rollback(restored, state_queue=CHANNEL_STATE_QUEUE, restated=restated)
    world.here.open()
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"one", b"two", b"three", b"four", b"acknowledged since"]
    assert world.waiting() == 0


def begin_marker(folder: Path) -> None:
    """As if the whole folder had gone back: the marker agrees with the store."""
    connection = apsw.Connection(str(folder / "queue_manager.sqlite"))
    RollbackGuard(folder / "queue_manager.sqlite").begin(connection)
    connection.close()


def test_two_state_messages_are_refused(world: World):
    state = RemoteState(
        channel=OUT,
        gateway=world.here.hand.incarnation,
        queue_manager=world.there.hand.identifier,
        batch=Batch(number=1),
    )
    for _ in range(2):
        world.there.hand.put(STATE_QUEUE, state.to_message())
    status = world.run(world.outbound())
    assert status.state is ChannelState.FAILED
    assert status.problem is not None
    assert "more than one state message" in status.problem.text


def test_a_local_state_that_cannot_be_read_ends_the_channel(world: World):
    world.run(world.outbound())
    message = world.here.hand.get("RFHBRIDGE.CHANNEL.STATE")
    world.here.hand.put("RFHBRIDGE.CHANNEL.STATE", Message(message.descriptor, b"{}"))
    status = world.run(world.outbound())
    assert status.state is ChannelState.FAILED
    assert status.problem is not None
    assert "cannot be read" in status.problem.text


def test_a_state_that_somebody_takes_away_is_noticed_while_the_channel_is_idle(world: World):
    world.send(b"one")

    def take_it_away(queue_name: str) -> None:
        world.now_s += 31
        if queue_name == TRANSMISSION_QUEUE:
            world.there.lose(STATE_QUEUE)

    channel = world.outbound()
    world.here.faults.when_empty = take_it_away
    status = world.run(channel)
    assert status.state is ChannelState.FAILED
    assert status.problem is not None
    assert "no state message" in status.problem.text
