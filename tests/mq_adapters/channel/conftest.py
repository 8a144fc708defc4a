"""Two embedded queue managers and a channel between them, which fails as a test says, in a time that the test keeps."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.channel import (
    ChannelStatus,
    Inbound,
    InboundSettings,
    Outbound,
    OutboundSettings,
    StartAction,
)
from mq_adapters.channel.clock import Clock
from mq_adapters.channel.local_state import LocalStates
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.transmission import kept_with_next, transmission_message
from tests.mq_adapters.channel.faults import Connection, Faults, FaultyConnection, Killed

TRANSMISSION_QUEUE = "RFHBRIDGE.XMIT.PLANT.0"
STATE_QUEUE = "RFHBRIDGE.STATE.0"
CHANNEL_STATES = "RFHBRIDGE.CHANNEL.STATE"
DEAD_LETTER_QUEUE = "SYSTEM.DEAD.LETTER.QUEUE"
STREAM = "STREAM"
SUBSCRIBER = "RFHBRIDGE.SUBSCRIBER"
OUT = "PLANT.OUT.0"
IN = "PLANT.IN.RFHBRIDGE.SUBSCRIBER"
START_US = 1_800_000_000_000_000
#: More waits than this in one run: the channel does not get on.
MOST_WAITS = 2_000


class Recorder:
    """Remembers what a channel told."""

    def __init__(self) -> None:
        self.statuses: list[ChannelStatus] = []
        self.pins: list[tuple[str, str]] = []
        self.actions: list[tuple[StartAction, int]] = []

    def status_changed(self, status: ChannelStatus) -> None:
        self.statuses.append(status)

    def queue_manager_changed(self, channel: str, *, before: str, now: str) -> None:
        self.pins.append((before, now))

    def action_taken(self, channel: str, action: StartAction, *, batch: int, messages: int) -> None:
        self.actions.append((action, messages))

    @property
    def states(self) -> list[str]:
        """Each state that was entered, in order."""
        names = [status.state.value for status in self.statuses]
        return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


class Side:
    """A queue manager, and what goes wrong with the connections of the channel to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.faults = Faults()
        self.open()

    def open(self) -> None:
        self.engine = Engine.open(self.folder, name=self.name)
        self.hand = Connection(self.engine, "a test")
        self.connections: list[FaultyConnection] = []

    def restart(self) -> None:
        """The queue manager ends, and is opened anew."""
        self.close()
        self.open()

    def connect(self) -> FaultyConnection:
        connection = FaultyConnection(self.engine, self.faults)
        self.connections.append(connection)
        return connection

    def drop_connections(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def bodies(self, queue_name: str) -> list[bytes]:
        return [message.body for message in self.hand.browse(queue_name)]

    def lose(self, queue_name: str) -> None:
        """What is on a queue goes, whoever holds it."""
        unit, queue = self.engine.begin(), self.engine.queue(queue_name)
        while (message := self.engine.take(queue)) is not None:
            unit.remove(queue, message, Departure.CLEARED)
        self.engine.submit(unit)

    def mqsc(self, command: str) -> None:
        assert self.hand.mqsc(command).succeeded, command

    def close(self) -> None:
        self.drop_connections()
        self.hand.close()
        self.engine.close()


class World:
    """The store (`here`), the other queue manager (`there`), and the channels between them."""

    def __init__(self, folder: Path) -> None:
        self.here = Side(folder / "here", "GATEWAY")
        self.there = Side(folder / "there", "PLANT")
        self.more_sides: list[Side] = []
        self._folder = folder
        for name in (TRANSMISSION_QUEUE, CHANNEL_STATES, SUBSCRIBER):
            self.here.engine.ensure(name, "")
        self.here.mqsc(f"ALTER QLOCAL('{TRANSMISSION_QUEUE}') USAGE(XMITQ)")
        self.prepare(self.there)
        self.recorder = Recorder()
        self.waits_s: list[float] = []
        self.now_s = 0.0
        self.stop = threading.Event()
        self.channel: Outbound | Inbound

    def prepare(self, side: Side) -> None:
        for name in (STATE_QUEUE, STREAM, SUBSCRIBER, "DEAD.HERE", "ASIDE"):
            side.engine.ensure(name, "")
        side.mqsc("ALTER QMGR DEADQ(DEAD.HERE)")

    def another_queue_manager(self) -> Side:
        """What the connection names lead to next time; the first one is kept."""
        side = Side(self._folder / f"there-{len(self.more_sides)}", "PLANT")
        self.prepare(side)
        self.more_sides.append(side)
        return side

    # -- the channels -------------------------------------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        return Clock(now_us=lambda: START_US + int(self.now_s * 1e6), monotonic_s=lambda: self.now_s, wait=self._wait)

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        self.waits_s.append(seconds)
        self.now_s += seconds
        assert len(self.waits_s) < MOST_WAITS, self.recorder.statuses[-1]

    def _stop_when_empty(self, queue_name: str) -> None:
        if queue_name != CHANNEL_STATES:
            self.stop.set()

    def outbound(self, *, there: Side | None = None, name: str = OUT, **options: object) -> Outbound:
        settings = OutboundSettings(
            channel=name,
            transmission_queue=TRANSMISSION_QUEUE,
            remote_state_queue=STATE_QUEUE,
            **{"batch_messages": 10, "batch_idle_s": 0.0, **options},
        )
        self.here.faults.when_empty = self._stop_when_empty
        return Outbound(
            settings,
            connect_local=self.here.connect,
            connect_remote=(there or self.there).connect,
            listener=self.recorder,
            clock=self.clock,
        )

    def inbound(self, *, there: Side | None = None, **options: object) -> Inbound:
        settings = InboundSettings(
            channel=IN,
            remote_queue=SUBSCRIBER,
            local_queue=SUBSCRIBER,
            **{"batch_messages": 10, "batch_idle_s": 0.0, **options},
        )
        (there or self.there).faults.when_empty = self._stop_when_empty
        return Inbound(
            settings,
            connect_local=self.here.connect,
            connect_remote=(there or self.there).connect,
            listener=self.recorder,
            clock=self.clock,
        )

    def run(self, channel: Outbound | Inbound) -> ChannelStatus:
        """Until nothing is left to do, or the channel ends by itself, or its process is killed."""
        self.stop.clear()
        self.waits_s.clear()
        try:
            channel.run(self.stop)
        except Killed:
            pass
        finally:
            self.here.drop_connections()
            for side in (self.there, *self.more_sides):
                side.drop_connections()
        return channel.status

    # -- messages -----------------------------------------------------------------------------------------------------

    def send(self, *bodies: bytes, queue_name: str = STREAM, descriptor: MessageDescriptor | None = None) -> None:
        """Puts messages for the other side on the transmission queue, in one unit of work."""
        self.here.hand.begin()
        for body in bodies:
            self.here.hand.put(TRANSMISSION_QUEUE, transmitted(body, queue_name, descriptor))
        self.here.hand.commit()

    def send_pair(self, first: bytes, second: bytes) -> None:
        """Two messages that must go in one unit of work."""
        self.here.hand.begin()
        self.here.hand.put(TRANSMISSION_QUEUE, kept_with_next(transmitted(first)))
        self.here.hand.put(TRANSMISSION_QUEUE, transmitted(second))
        self.here.hand.commit()

    def waiting(self) -> int:
        return self.here.hand.depth(TRANSMISSION_QUEUE)

    def state(self, channel: str = OUT):
        state = LocalStates(self.here.hand).of(channel)
        assert state is not None
        return state

    def close(self) -> None:
        for side in (self.here, self.there, *self.more_sides):
            side.close()


def transmitted(body: bytes, queue_name: str = STREAM, descriptor: MessageDescriptor | None = None) -> Message:
    """A message for the other side, as the gateway puts it on the transmission queue."""
    own = descriptor or MessageDescriptor(persistence=MQPER_PERSISTENT, msg_id=b"RFHB" + body.ljust(20, b"\0")[:20])
    return transmission_message(
        Message(own, body), queue_name=queue_name, queue_manager_name="PLANT", own_name="GATEWAY", now_us=START_US
    )


@pytest.fixture
def world(memory_folder: Path) -> Iterator[World]:
    world = World(memory_folder)
    yield world
    world.close()
