"""The channel through IBM's client library as both packages use it, over the stand-in, whose calls fail at random."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from mq_adapters.channel import ChannelState, Inbound, InboundSettings, Outbound, OutboundSettings, RetrySchedule
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.ibm_mq_stand_in.control import Control
from tests.ibm_mq_stand_in.process import BINDINGS, StandInQueueManager, load, needs_stand_in, wait_until
from tests.mq_adapters.channel.conftest import (
    DEAD_LETTER_QUEUE,
    IN,
    OUT,
    STATE_QUEUE,
    STREAM,
    SUBSCRIBER,
    TRANSMISSION_QUEUE,
    World,
)

pytestmark = [needs_stand_in, pytest.mark.timeout(600)]

MESSAGES = {"short": 300, "full": 20_000}
#: A call is lost every so many calls on average; what it did, or did not do, takes effect a little later.
CALLS_BETWEEN_LOSSES = 60
LATE_S = 0.02
#: Which calls are lost depends on how many there are, and that on time; this commit is lost in every run.
NTH_COMMIT = 5
STEP_S = 300.0
RETRY = RetrySchedule(delays_s=(0.0, 0.001))
REMOTE_QUEUES = (STATE_QUEUE, STREAM, SUBSCRIBER)


@pytest.fixture(params=BINDINGS)
def settings(request: pytest.FixtureRequest) -> ConnectionSettings:
    load(request.param)
    return ConnectionSettings(package=request.param)


@pytest.fixture
def control(stand_in: StandInQueueManager) -> Iterator[Control]:
    control = stand_in.control
    control.mqsc(*(f"DEFINE QLOCAL({name}) MSGDLVSQ(FIFO)" for name in REMOTE_QUEUES))
    yield control
    control.reset()


def lose_calls(control: Control, seed: int) -> None:
    control.plant("*", 2009, "random", probability=1 / CALLS_BETWEEN_LOSSES, seed=seed, times=0, late_s=LATE_S)


@pytest.mark.proof
def test_messages_go_out_once_and_in_order_through_random_losses(
    world: World, settings: ConnectionSettings, control: Control, proof_scale: str
):
    bodies = [b"%d" % number for number in range(MESSAGES[proof_scale])]
    draw = random.Random(20261120)
    for number, body in enumerate(bodies):
        world.send(body if draw.random() < 0.98 else body.ljust(300, b"!"))
        bodies[number] = body
    control.mqsc(f"ALTER QLOCAL({STREAM}) MAXMSGL(200)")
    lose_calls(control, 1)
    control.plant("MQCMIT", 2009, "random", nth=NTH_COMMIT, seed=1, late_s=LATE_S)  # also where no other one strikes
    world.here.faults.when_empty = world._stop_when_empty
    channel = Outbound(
        OutboundSettings(
            channel=OUT,
            transmission_queue=TRANSMISSION_QUEUE,
            remote_state_queue=STATE_QUEUE,
            batch_messages=10,
            batch_idle_s=0.0,
            retry=RETRY,
        ),
        connect_local=world.here.connect,
        connect_remote=lambda: IbmMq(settings),
        listener=world.recorder,
    )
    channel.run(world.stop)
    control.clear_faults()
    assert channel.status.state is ChannelState.STOPPED, channel.status
    assert channel.status.in_doubt is None
    with IbmMq(settings) as there:
        arrived = [message.body for message in there.browse(STREAM)]
        assert len(tuple(there.browse(STATE_QUEUE))) == 1
    letters = [body[172:].rstrip(b"!") for body in world.here.bodies(DEAD_LETTER_QUEUE)]
    assert arrived == [body for body in bodies if body not in set(letters)]
    assert len(arrived) + len(letters) == len(bodies)
    assert 0 < len(letters) < len(bodies) / 10
    assert "in doubt" in world.recorder.states


@pytest.mark.proof
def test_messages_come_in_once_and_in_order_through_random_losses(
    world: World, settings: ConnectionSettings, control: Control, stand_in: StandInQueueManager, proof_scale: str
):
    bodies = [b"%d" % number for number in range(MESSAGES[proof_scale])]
    with stand_in.client() as broker:
        for body in bodies:
            broker.put(SUBSCRIBER, Message(MessageDescriptor(persistence=MQPER_PERSISTENT), body))
    lose_calls(control, 2)
    channel = Inbound(
        InboundSettings(
            channel=IN,
            remote_queue=SUBSCRIBER,
            local_queue=SUBSCRIBER,
            batch_messages=10,
            batch_idle_s=0.0,
            retry=RETRY,
        ),
        connect_local=world.here.connect,
        connect_remote=lambda: IbmMq(settings),
        listener=world.recorder,
    )
    run_until(channel, lambda: channel.status.messages >= len(bodies))
    control.clear_faults()
    with stand_in.client() as broker:
        run_until(channel, lambda: not broker.depth(SUBSCRIBER))  # what came again in the end
    assert world.here.bodies(SUBSCRIBER) == bodies
    with IbmMq(settings) as there:
        assert list(there.browse(SUBSCRIBER)) == []


def run_until(channel: Inbound, is_done: Callable[[], bool]) -> None:
    """A get of the stand-in calls nobody back when its queue is empty: another thread looks and says stop."""
    stop = threading.Event()
    thread = threading.Thread(target=channel.run, args=(stop,))
    thread.start()
    try:
        wait_until(is_done, limit_s=STEP_S)
    finally:
        stop.set()
        thread.join()
    assert channel.status.state is ChannelState.STOPPED, channel.status
