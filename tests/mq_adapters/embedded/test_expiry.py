"""Expired messages that a get meets: it passes by all of them, and each turn of the event loop destroys its share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded import expiry, queue_administration
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.message_cache import MessageCache
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import Message, MessageDescriptor

PUMP, VALVE = (name.ljust(24, b"\0") for name in (b"pump", b"valve"))
ACT = OperatorsAct(operator="admin", command="CLEAR QLOCAL(ORDERS)")
SHARE = 20


class World:
    """An engine whose loop turns when the test says so, with a share of SHARE messages a turn and no bound of time."""

    def __init__(self, data_folder: Path) -> None:
        self.data_folder = data_folder
        self.now_us = 1_000_000
        self.soon: list[object] = []
        #: Bodies of the messages that were recorded as expired, in all and in each turn.
        self.expired: list[bytes] = []
        self.open()
        self.queue = self.engine.define("ORDERS")

    def open(self) -> None:
        self.soon.clear()
        self.engine = Engine.open(self.data_folder, call_soon=self.soon.append, now_us=lambda: self.now_us)
        self.engine.on_expired = lambda _unit, _queue, message: self.expired.append(message.body)

    def put(self, *bodies: bytes, queue: Queue | None = None, **fields: object) -> None:
        unit = self.engine.begin()
        for body in bodies:
            self.engine.put(unit, queue or self.queue, Message(MessageDescriptor(**fields), body))
        self.engine.submit(unit)
        self.turn()

    def put_expired(self, count: int, **fields: object) -> list[bytes]:
        """Puts messages, and lets them expire."""
        bodies = [b"%d" % number for number in range(count)]
        self.put(*bodies, **{"expiry": 1, "persistence": 1} | fields)
        self.now_us += 200_000
        return bodies

    def turn(self) -> int:
        """One turn of the loop; returns how many messages it recorded as expired."""
        before, due = len(self.expired), self.soon[:]
        self.soon.clear()
        for callback in due:
            callback()
        return len(self.expired) - before

    def turns(self) -> list[int]:
        """All turns until nothing is due any more."""
        shares = []
        while self.soon:
            shares.append(self.turn())
        return shares

    def take(self, **match: bytes) -> bytes | None:
        """What a get destroys, and its body."""
        message = self.engine.take(self.queue, **match)
        if message is None:
            return None
        unit = self.engine.begin()
        unit.remove(self.queue, message, Departure.TAKEN)
        self.engine.submit(unit)
        return message.body

    def count(self, departure: Departure) -> int:
        return sum(counts[departure] for counts in self.queue.account.counts)


@pytest.fixture
def world(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(expiry, "_AT_ONCE", SHARE)
    monkeypatch.setattr(expiry, "_MOST_S", 60.0)
    world = World(data_folder)
    yield world
    world.engine.close()


@pytest.mark.parametrize("match", [{}, {"correl_id": PUMP}], ids=["any message", "by CorrelId"])
@pytest.mark.parametrize("sequence", ["FIFO", "PRIORITY"])
@pytest.mark.parametrize("persistence", [0, 1])
def test_a_get_passes_by_all_expired_messages_and_each_turn_destroys_its_share(
    world: World, persistence: int, sequence: str, match: dict[str, bytes]
) -> None:
    said = {"MSGDLVSQ": sequence}
    world.engine.objects.alter(Definition(object_type=ObjectType.QLOCAL, name="ORDERS", said=said))
    bodies = world.put_expired(5 * SHARE, persistence=persistence, correl_id=PUMP)
    world.put(b"alive", b"alive too", correl_id=PUMP)
    assert [world.take(**match), len(world.expired)] == [b"alive", SHARE]
    assert [world.take(**match), len(world.expired)] == [b"alive too", SHARE]
    assert [world.take(**match), len(world.expired)] == [None, SHARE]
    assert max(world.turns()) == SHARE
    assert world.expired == bodies
    assert (world.count(Departure.EXPIRED), world.count(Departure.TAKEN), world.queue.depth) == (len(bodies), 2, 0)
    assert not world.engine.waiting()["ORDERS"]


@pytest.mark.parametrize("is_by_correl_id", [False, True])
def test_gets_from_many_lanes_share_what_a_turn_destroys(world: World, is_by_correl_id: bool) -> None:
    lanes = [bytes([lane]) * 24 for lane in range(1, 11)]
    for lane in lanes:
        world.put(*(b"late",) * SHARE, correl_id=lane, expiry=1)
    world.now_us += 200_000
    matches = [{"correl_id": lane} if is_by_correl_id else {} for lane in lanes]
    assert [world.take(**match) for match in matches] == [None] * 10
    assert (len(world.expired), world.queue.lanes) == (SHARE, {})
    assert world.turns()[: len(lanes) - 1] == [SHARE] * 9
    assert world.count(Departure.EXPIRED) == 10 * SHARE


def test_each_turn_has_a_share_of_time_as_well(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "_MOST_S", -1.0)
    bodies = world.put_expired(SHARE)
    assert world.take() is None
    assert len(world.expired) == 1
    assert set(world.turns()) <= {0, 1}
    assert world.expired == bodies


def test_a_get_reads_no_expired_message_that_it_passes_by(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put_expired(5 * SHARE)
    world.put(b"alive")
    world.engine.close()
    world.open()
    world.queue = world.engine.queue("ORDERS")
    read: list[int] = []
    on_disk = MessageCache.on_disk
    monkeypatch.setattr(MessageCache, "on_disk", lambda cache, number: read.append(number) or on_disk(cache, number))
    assert world.take() == b"alive"
    assert len(read) == SHARE  # those that it has destroyed


def test_a_browse_reads_no_expired_message(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put_expired(SHARE)
    world.put(b"alive")
    looked_at: list[int] = []
    in_memory = MessageCache.in_memory
    monkeypatch.setattr(
        MessageCache, "in_memory", lambda cache, number: looked_at.append(number) or in_memory(cache, number)
    )
    assert [message.body for message in world.engine.browse(world.queue)] == [b"alive"]
    assert len(looked_at) == 1


def test_a_get_by_msg_id_passes_by_expired_messages_with_that_msg_id(world: World) -> None:
    world.put_expired(3 * SHARE, msg_id=VALVE)
    world.put(b"alive", msg_id=VALVE)
    assert (world.take(msg_id=VALVE), len(world.expired)) == (b"alive", SHARE)
    assert max(world.turns()) == SHARE
    assert (len(world.expired), world.queue.depth) == (3 * SHARE, 0)


def test_a_get_of_a_command_destroys_those_alone_that_it_has_met(world: World) -> None:
    """Each is a commit of its own there. The gateway destroys the others when it starts."""
    other = world.engine.define("OTHER")
    world.put(*(b"other",) * 3, queue=other, expiry=1)
    bodies = world.put_expired(3)
    world.put(b"alive")
    world.engine.close()
    world.engine = Engine.open(world.data_folder, now_us=lambda: world.now_us)
    world.engine.on_expired = lambda _unit, _queue, message: world.expired.append(message.body)
    world.queue = world.engine.queue("ORDERS")
    assert (world.take(), world.expired) == (b"alive", bodies)
    assert (world.queue.depth, world.engine.queue("OTHER").depth) == (0, 3)


def test_what_arrives_behind_expired_messages_wakes_a_get_that_waits(world: World) -> None:
    world.put_expired(3 * SHARE)
    got: list[bytes | None] = [world.take()]
    world.queue.listen(None, lambda: got.append(world.take()))
    world.put(b"alive")
    assert got == [None, b"alive"]


def test_the_head_of_another_priority_is_got_behind_expired_ones(world: World) -> None:
    world.put(b"low", priority=1)
    world.put_expired(3, priority=5)
    world.put(b"high", priority=9)
    assert [world.take(), world.take(), world.take()] == [b"high", b"low", None]
    world.turns()
    assert (len(world.expired), world.queue.depth) == (3, 0)


def test_messages_that_were_met_and_not_destroyed_expire_once_after_a_crash(world: World) -> None:
    bodies = world.put_expired(3 * SHARE)
    world.turns()
    assert world.take() is None
    recorded = len(world.expired)
    world.turn()  # commits the first share, and records the second
    world.engine._store.close()  # a crash
    world.expired = bodies[:recorded]
    world.open()
    world.queue = world.engine.queue("ORDERS")
    assert world.take() is None
    world.turns()
    assert world.expired == bodies
    assert (world.count(Departure.EXPIRED), world.queue.depth) == (3 * SHARE, 0)


@pytest.mark.parametrize("act", [queue_administration.clear, queue_administration.delete])
def test_an_operator_empties_a_queue_of_the_messages_that_a_get_has_met(world: World, act: object) -> None:
    bodies = world.put_expired(5 * SHARE)
    world.put(b"alive")
    if act is queue_administration.clear:
        assert queue_administration.clear(world.engine, world.queue, ACT) == 1
        assert world.queue.depth == 0
    else:
        queue_administration.delete(world.engine, world.queue, ACT, purge=True)
        assert world.queue.is_deleted
    world.turns()
    assert sorted(world.expired) == sorted(bodies)
    assert not world.engine.waiting()["ORDERS"]


def test_a_temporary_queue_ends_with_the_messages_that_a_get_has_met(world: World) -> None:
    world.engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="MODEL", said={}))
    application = Application(world.engine)
    queue = world.engine.queue(application.create_dynamic("MODEL", "REPLY.*"))
    world.put(*(b"late",) * (3 * SHARE), queue=queue, expiry=1)
    world.now_us += 200_000
    assert world.engine.take(queue) is None
    application.close()
    world.turns()
    assert len(world.expired) < 3 * SHARE
    assert not world.engine._available.taken()
    former = world.engine.counters.former.counts[1]
    assert former[0] == former[Departure.EXPIRED] + former[Departure.CLEARED] == 3 * SHARE
