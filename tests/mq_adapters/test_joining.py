"""Who joins a commit takes messages while they are committed: what becomes of them is committed together with them."""

import shutil
from collections.abc import Callable

import pytest

from mq_adapters.embedded import engine as engine_module
from mq_adapters.embedded import group_commit, message_cache
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure, StateKind, UnitOfWork
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import StoreError

LANE, OTHER = b"L" * 24, b"O" * 24


class Loop:
    """An event loop of two lists: what is due, and the commits that threads were given."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.commits: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def offload(self, call: Callable[[], None], ended: Callable[[BaseException | None], None]) -> None:
        self.commits.append((call, ended))

    def run(self) -> None:
        while self.soon:
            self.soon.pop(0)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def engine(data_folder, loop, monkeypatch):
    """An engine whose commits are quick, with the queue ORDERS."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", 60.0)
    engine = Engine.open(data_folder, call_soon=loop.soon.append, offload=loop.offload)
    engine.define("ORDERS")
    yield engine
    engine.close()


def put(engine: Engine, *bodies: bytes, correl_id: bytes = LANE, persistence: int = MQPER_PERSISTENT) -> None:
    unit = engine.begin()
    for body in bodies:
        descriptor = MessageDescriptor(persistence=persistence, correl_id=correl_id)
        engine.put(unit, engine.queue("ORDERS"), Message(descriptor, body))
    engine.submit(unit)


class Joiner:
    """Takes what its lane has, up to `most`, and destroys it, with a row of state for each message."""

    def __init__(self, engine: Engine, correl_id: bytes = LANE, most: int = 100) -> None:
        self._engine = engine
        self._correl_id = correl_id
        self.most = most
        self.taken: list[bytes] = []
        self.committed: list[int] = []
        engine.queue("ORDERS").join(correl_id, self)

    def __call__(self) -> None:
        unit, queue = self._engine.begin(), self._engine.queue("ORDERS")
        for _ in range(self.most):
            message = self._engine.take(queue, self._correl_id)
            if message is None:
                break
            self.taken.append(message.body)
            unit.remove(queue, message, Departure.TAKEN)
            unit.set_state(StateKind.GATEWAY, message.body, b"taken")
        self._engine.submit(unit, lambda done: self.committed.append(len(done.removals)))


def counted_commits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    commits: list[int] = []
    commit = engine._store.commit
    monkeypatch.setattr(engine._store, "commit", lambda: (commits.append(1), commit()))
    return commits


def test_messages_and_what_is_made_of_them_are_one_commit(engine, loop, data_folder, tmp_path, monkeypatch):
    commits, joiner = counted_commits(engine, monkeypatch), Joiner(engine)
    put(engine, b"one", b"two")
    put(engine, b"three")
    assert joiner.taken == []
    loop.run()
    assert (joiner.taken, joiner.committed, len(commits)) == ([b"one", b"two", b"three"], [3], 1)
    assert engine.queue("ORDERS").depth == 0
    shutil.copytree(data_folder, tmp_path / "killed")
    killed = Engine.open(tmp_path / "killed")
    assert killed.queue("ORDERS").depth == 0
    assert [key for key, _ in killed.states(StateKind.GATEWAY)] == [b"one", b"three", b"two"]
    killed.close()


def test_nothing_is_told_when_the_commit_fails(engine, loop, monkeypatch):
    joiner = Joiner(engine)
    put(engine, b"one")

    def fail() -> None:
        raise StoreError("commit", "the disk is gone", "look at it")

    monkeypatch.setattr(engine._store, "commit", fail)
    loop.run()
    assert (joiner.taken, joiner.committed) == ([b"one"], [])
    assert engine.failed is not None


def test_what_is_not_taken_waits_as_ever_and_is_taken_in_order(engine, loop, data_folder, tmp_path):
    joiner = Joiner(engine, most=1)
    put(engine, b"one", b"two")
    put(engine, b"three", correl_id=OTHER)
    loop.run()
    put(engine, b"four")
    loop.run()
    assert joiner.taken == [b"one", b"two"]
    assert [message.body for message in engine.browse(engine.queue("ORDERS"))] == [b"three", b"four"]
    engine.queue("ORDERS").leave(LANE)
    put(engine, b"five")
    loop.run()
    assert joiner.taken == [b"one", b"two"]
    shutil.copytree(data_folder, tmp_path / "killed")
    again = Engine.open(tmp_path / "killed")
    assert [message.body for message in again.browse(again.queue("ORDERS"))] == [b"three", b"four", b"five"]
    again.close()


def test_a_message_that_memory_has_no_room_for_is_taken_before_it_is_on_the_disk(engine, loop, monkeypatch):
    monkeypatch.setattr(message_cache, "BODY_CACHE_BYTES", 0)
    joiner = Joiner(engine)
    put(engine, b"one")
    loop.run()
    assert (joiner.taken, joiner.committed, engine.failed) == ([b"one"], [1], None)


def test_a_message_that_is_not_persistent_is_taken_without_any_commit(engine, loop, monkeypatch):
    engine.queue("ORDERS").join(LANE, lambda: take_all(engine))
    monkeypatch.setattr(engine._store, "commit", lambda: pytest.fail("nothing is durable here"))
    put(engine, b"one", persistence=MQPER_NOT_PERSISTENT)
    loop.run()
    assert engine.queue("ORDERS").depth == 0
    monkeypatch.undo()


def take_all(engine: Engine) -> UnitOfWork:
    unit, queue = engine.begin(), engine.queue("ORDERS")
    while (message := engine.take(queue, LANE)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    engine.submit(unit)
    return unit


def test_nobody_joins_a_commit_that_a_thread_makes(engine, loop, monkeypatch):
    """Others go on meanwhile, and would see what is not on the disk."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    joiner, queue = Joiner(engine), engine.queue("ORDERS")
    queue.listen(LANE, joiner)
    put(engine, b"one")
    loop.run()
    assert (joiner.taken, queue.depth, list(engine.browse(queue))) == ([], 0, [])
    call, ended = loop.commits.pop()
    call()
    ended(None)
    assert joiner.taken == [b"one"]
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", 60.0)
    loop.run()
    assert queue.depth == 0


def test_of_many_lanes_some_are_joined_and_all_are_told_after_the_commit(engine, loop, monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_JOINED_LANES", 2)
    lanes, joined, told = [bytes([number]) * 24 for number in range(1, 5)], list[bytes](), list[bytes]()
    queue = engine.queue("ORDERS")
    for lane in lanes:
        queue.join(lane, lambda lane=lane: joined.append(lane))
        queue.listen(lane, lambda lane=lane: told.append(lane))
        put(engine, b"one", correl_id=lane)
    loop.run()
    assert joined == lanes[:2]
    assert sorted(told) == lanes
    assert queue.depth == 4


def test_a_joiner_that_fails_keeps_nobody_from_the_commit(engine, loop):
    def fail() -> None:
        raise RuntimeError("a defect")

    queue = engine.queue("ORDERS")
    queue.join(LANE, fail)
    put(engine, b"one")
    with pytest.raises(RuntimeError, match="a defect"):
        loop.run()
    assert [message.body for message in engine.browse(queue)] == [b"one"]
    assert engine.failed is None
