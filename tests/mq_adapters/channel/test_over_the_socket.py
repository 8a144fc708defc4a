"""A channel as it runs beside a gateway: the store over its socket, the other queue manager over another one."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters.channel import (
    ChannelState,
    Inbound,
    InboundSettings,
    Outbound,
    OutboundSettings,
    RetrySchedule,
)
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import Message, MessageDescriptor
from tests.mq_adapters.channel.conftest import CHANNEL_STATES, STATE_QUEUE, STREAM, Recorder, transmitted
from tests.mq_adapters.gateway_thread import STEP_S, GatewayThread

QUEUE = "RFHBRIDGE.XMIT.PLANT.0"
SUBSCRIBER = "RFHBRIDGE.SUBSCRIBER"
#: A channel that shall stop waits out a get of one second, and finishes a batch, on a machine that may be busy.
STOP_S = 30.0
BATCHES = 20


class Running:
    """A channel in a thread of its own."""

    def __init__(self, channel: Outbound | Inbound) -> None:
        self.channel = channel
        self.stop = threading.Event()
        self.thread = threading.Thread(target=channel.run, args=(self.stop,))
        self.thread.start()

    def end(self) -> float:
        """Stops it; returns how long that took, in seconds."""
        started = time.monotonic()
        self.stop.set()
        self.thread.join(STEP_S)
        assert not self.thread.is_alive()
        return time.monotonic() - started


@pytest.fixture
def sides(socket_folder: Path) -> Iterator[tuple[GatewayThread, GatewayThread]]:
    here, there = GatewayThread(socket_folder / "here"), GatewayThread(socket_folder / "there")
    for name in (QUEUE, CHANNEL_STATES, SUBSCRIBER):
        here.call(lambda name=name: here.engine.ensure(name, ""))
    for name in (STREAM, STATE_QUEUE, SUBSCRIBER):
        there.call(lambda name=name: there.engine.ensure(name, ""))
    yield here, there
    here.stop()
    there.stop()


def outbound(here: GatewayThread, there: GatewayThread, *, delay_s: float = 0.01) -> Outbound:
    return Outbound(
        OutboundSettings(
            channel="PLANT.OUT.0",
            transmission_queue=QUEUE,
            remote_state_queue=STATE_QUEUE,
            retry=RetrySchedule(delays_s=(delay_s,)),
        ),
        connect_local=lambda: SocketClient(here.data_dir),
        connect_remote=lambda: SocketClient(there.data_dir),
        listener=Recorder(),
    )


def inbound(here: GatewayThread, there: GatewayThread) -> Inbound:
    return Inbound(
        InboundSettings(
            channel="PLANT.IN.RFHBRIDGE.SUBSCRIBER",
            remote_queue=SUBSCRIBER,
            local_queue=SUBSCRIBER,
            retry=RetrySchedule(delays_s=(0.01,)),
        ),
        connect_local=lambda: SocketClient(here.data_dir),
        connect_remote=lambda: SocketClient(there.data_dir),
        listener=Recorder(),
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STEP_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def drop_applications(gateway: GatewayThread) -> None:
    """Closes the socket to every application of a gateway, as when the network or the gateway fails."""
    gateway.call(lambda: [connection.close() for connection in tuple(gateway.server.connections)])


def test_messages_go_out_while_they_come_and_connections_break(sides):
    here, there = sides
    running = Running(outbound(here, there))
    sent = []
    with SocketClient(here.data_dir) as gateway:
        for number in range(BATCHES):
            bodies = [b"%d:%d" % (number, each) for each in range(10)]
            gateway.begin()
            for body in bodies:
                gateway.put(QUEUE, transmitted(body))
            gateway.commit()
            sent += bodies
            if number % 5 == 3:
                drop_applications(there)
        wait_until(lambda: gateway.depth(QUEUE) == 0)
    assert running.end() < STOP_S
    assert running.channel.status.state is ChannelState.STOPPED
    assert running.channel.status.in_doubt is None
    with SocketClient(there.data_dir) as other:
        assert [message.body for message in other.browse(STREAM)] == sent


def test_messages_come_in_while_they_arrive_and_connections_break(sides):
    here, there = sides
    running = Running(inbound(here, there))
    put = []
    for number in range(BATCHES):
        with SocketClient(there.data_dir) as broker:
            for each in range(10):
                put.append(b"%d:%d" % (number, each))
                broker.put(SUBSCRIBER, Message(MessageDescriptor(), put[-1]))
        if number % 5 == 3:
            drop_applications(there)
    with SocketClient(here.data_dir) as gateway:
        wait_until(lambda: gateway.depth(SUBSCRIBER) >= len(put))
        assert running.end() < STOP_S
        assert [message.body for message in gateway.browse(SUBSCRIBER)] == put
    assert running.channel.status.in_doubt is None


def test_a_channel_ends_with_the_gateway_and_another_one_goes_on(sides):
    here, there = sides
    with SocketClient(here.data_dir) as gateway:
        for number in range(1_000):
            gateway.put(QUEUE, transmitted(b"%d" % number))
    running = Running(outbound(here, there))
    with SocketClient(there.data_dir) as other:
        wait_until(lambda: other.depth(STREAM) > 0)
        drop_applications(here)
        running.thread.join(STEP_S)
        assert not running.thread.is_alive()
        assert running.channel.status.problem is not None
        assert running.channel.status.problem.reason_code == 2009
        again = Running(outbound(here, there))
        wait_until(lambda: other.depth(STREAM) >= 1_000)
        again.end()
        assert [message.body for message in other.browse(STREAM)] == [b"%d" % number for number in range(1_000)]


def test_an_idle_channel_stops_soon(sides):
    for make in (outbound, inbound):
        running = Running(make(*sides))
        wait_until(lambda running=running: running.channel.status.state is ChannelState.RUNNING)
        assert running.end() < STOP_S


def test_a_channel_that_waits_to_try_again_stops_at_once(sides):
    here, there = sides
    channel = outbound(here, there, delay_s=600.0)
    channel._connect_remote = lambda: SocketClient(here.data_dir / "nobody")
    running = Running(channel)
    wait_until(lambda: channel.status.problem is not None)
    assert running.end() < STOP_S
