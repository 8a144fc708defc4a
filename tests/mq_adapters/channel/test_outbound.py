"""The way out, call by call: whatever fails, and wherever, each message arrives once and in order."""

import logging

import pytest

from mq_adapters.channel import ChannelState, StartAction
from mq_adapters.message import MQPER_NOT_PERSISTENT, MessageDescriptor
from tests.mq_adapters.channel.conftest import (
    STATE_QUEUE,
    STREAM,
    TRANSMISSION_QUEUE,
    World,
)

TEN = [b"message %d" % number for number in range(10)]
#: The store's own sockets close with the process; a queue manager across a network may notice later.
LOSSES = (("here", "before"), ("here", "after"), ("there", "before"), ("there", "after"), ("there", "later"))
VERBS = ("begin", "put", "get", "take_batch", "browse", "commit", "open_exclusively", "inquire")


# -- the ordinary way --------------------------------------------------------------------------------------------------


def test_what_waits_is_delivered_in_order(world: World):
    world.send(*TEN)
    status = world.run(world.outbound(batch_messages=3))
    assert world.there.bodies(STREAM) == TEN
    assert world.waiting() == 0
    assert (status.state, status.messages, status.batch) == (ChannelState.STOPPED, 10, 4)
    assert (status.queue_manager, status.identifier) == ("PLANT", world.there.hand.identifier)
    assert world.recorder.states == ["connecting", "running", "stopped"]
    assert world.recorder.actions == [(StartAction.NOTHING_IN_DOUBT, 0)]


def test_a_batch_is_one_unit_of_work_with_one_state_message(world: World):
    world.send(*TEN)
    world.run(world.outbound(batch_messages=4))
    sizes = [len(unit) - 1 for unit in world.there.faults.units]
    assert sizes == [4, 4, 2]
    assert len(world.there.bodies(STATE_QUEUE)) == 1


def test_a_batch_ends_at_its_bytes(world: World):
    world.send(*(b"x" * 1_000 for _ in range(9)))
    # MQXQH and body: three are more than 4,000 bytes
    world.run(world.outbound(batch_bytes=4_000))
    assert [len(unit) - 1 for unit in world.there.faults.units] == [3, 3, 3]


def test_a_message_keeps_its_descriptor(world: World):
    descriptor = MessageDescriptor(
        report=2,
        format=b"MQHRF2  ",
        persistence=MQPER_NOT_PERSISTENT,
        msg_id=b"m" * 24,
        correl_id=b"c" * 24,
        reply_to_q="RFHBRIDGE.REPLY",
        reply_to_q_mgr="GATEWAY",
        user_identifier="pump",
        put_appl_name="rfhbridge",
        appl_identity_data="identity",
    )
    world.send(b"body", descriptor=descriptor)
    world.run(world.outbound())
    assert world.there.hand.get(STREAM).descriptor == descriptor


def test_messages_for_several_queues_keep_their_order_in_each(world: World):
    world.there.engine.ensure("OTHER", "")
    for number, body in enumerate(TEN):
        world.send(body, queue_name=("OTHER", STREAM)[number % 2])
    world.run(world.outbound(batch_messages=3))
    assert world.there.bodies("OTHER") == TEN[::2]
    assert world.there.bodies(STREAM) == TEN[1::2]


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after", "later"])
def test_a_commit_whose_answer_is_lost_is_looked_up(world: World, when: str):
    world.send(*TEN)
    world.there.faults.plan("commit", 2, when=when)
    status = world.run(world.outbound(batch_messages=4))
    assert world.there.bodies(STREAM) == TEN
    assert (status.state, status.messages) == (ChannelState.STOPPED, 10)
    action = StartAction.DELIVER_THE_REST if when == "before" else StartAction.REMOVE_DELIVERED
    assert world.recorder.actions[1:] == [(action, 0 if when == "before" else 4)]
    assert "in doubt" in world.recorder.states


@pytest.mark.parametrize(("side", "when"), LOSSES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_loss_at_any_call_costs_nothing(world: World, side: str, verb: str, when: str):
    faults = (world.here if side == "here" else world.there).faults
    for nth in range(1, 9):
        world.send(b"%s %d" % (verb.encode(), nth))
        world.send_pair(b"first %d" % nth, b"second %d" % nth)
        faults.plan(verb, nth, when=when)
        world.run(world.outbound(batch_messages=2))
        world.run(world.outbound(batch_messages=2))
    faults.heal()
    world.run(world.outbound())
    expected = [
        body for nth in range(1, 9) for body in (b"%s %d" % (verb.encode(), nth), b"first %d" % nth, b"second %d" % nth)
    ]
    assert world.there.bodies(STREAM) == expected
    assert world.waiting() == 0


def test_the_channel_waits_longer_and_longer_and_for_ever(world: World, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, logger="mq_adapters.channel")
    world.send(b"one")
    for nth in range(1, 101):
        world.there.faults.plan("open_exclusively", nth, when="before")
    world.run(world.outbound())
    assert world.waits_s == [10] + [60] * 98
    assert world.there.bodies(STREAM) == [b"one"]
    assert len(caplog.records) == 1, "an outage is logged once, not a hundred times"


def test_an_outage_shows_in_the_status(world: World):
    world.send(b"one")
    world.there.faults.plan("open_exclusively", 1, when="before")
    world.there.faults.plan("open_exclusively", 2, when="before")
    world.run(world.outbound())
    waiting = next(status for status in world.recorder.statuses if status.next_retry_us)
    assert waiting.state is ChannelState.WAITING
    assert waiting.problem is not None
    assert waiting.problem.reason_code == 2009
    assert waiting.next_retry_us == waiting.since_us + 10_000_000


def test_the_channel_ends_when_the_store_has_gone(world: World):
    world.send(b"one")
    world.here.faults.plan("take_batch", 1, when="before")
    status = world.run(world.outbound())
    assert status.state is ChannelState.STOPPED
    assert status.problem is not None
    assert (status.problem.reason_code, "the store" in status.problem.text) == (2009, True)
    assert not world.stop.is_set()


# -- pairs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_messages", range(1, 8))
def test_what_must_go_together_is_never_split_at_the_border_of_a_batch(world: World, batch_messages: int):
    expected = []
    for number in range(6):
        world.send(b"alone %d" % number)
        world.send_pair(b"first %d" % number, b"second %d" % number)
        expected += [b"alone %d" % number, b"first %d" % number, b"second %d" % number]
    world.run(world.outbound(batch_messages=batch_messages))
    assert world.there.bodies(STREAM) == expected
    for number in range(6):
        with_first = [unit for unit in world.there.faults.units if b"first %d" % number in unit]
        assert len(with_first) == 1
        assert b"second %d" % number in with_first[0]


def test_a_message_whose_partner_is_gone_goes_alone(world: World):
    world.send_pair(b"first", b"second")
    cursor = world.here.hand.browse(TRANSMISSION_QUEUE)
    next(cursor)
    next(cursor)
    cursor.take()
    world.run(world.outbound())
    assert world.there.bodies(STREAM) == [b"first"]


# -- stopping ----------------------------------------------------------------------------------------------------------


def test_a_stop_in_the_middle_of_a_batch_leaves_nothing_in_doubt(world: World):
    world.send(*TEN)
    channel = world.outbound()
    world.there.faults.draw = lambda verb: world.stop.set() if verb == "put" else None
    status = world.run(channel)
    assert (status.state, status.in_doubt) == (ChannelState.STOPPED, None)
    assert world.state().doubtful is None
    assert world.there.bodies(STREAM) == []
    assert world.waiting() == 10


def test_a_channel_that_was_stopped_goes_on(world: World):
    world.send(*TEN)
    channel = world.outbound()
    world.there.faults.draw = lambda verb: world.stop.set() if verb == "put" else None
    world.run(channel)
    world.there.faults.heal()
    world.run(channel)
    assert world.there.bodies(STREAM) == TEN


# -- a network that breaks often ---------------------------------------------------------------------------------------


def test_a_channel_gets_on_although_every_connection_breaks_before_a_whole_batch_is_through(world: World):
    """Every 60th put breaks the connection, and a batch is 500 messages: it becomes smaller until it gets through."""
    bodies = [b"message %d" % number for number in range(1_000)]
    world.send(*bodies)
    world.there.faults.draw = lambda verb: (
        (2009, "before") if verb == "put" and world.there.faults.calls["put"] % 60 == 0 else None
    )
    world.run(world.outbound(batch_messages=500))
    assert world.there.bodies(STREAM) == bodies
    assert sum(world.waits_s) < 600
