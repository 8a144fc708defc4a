"""Groups at their edges: audit batches that are divided, call-backs that fail, a close behind slow commits."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters.embedded import engine as engine_module
from mq_adapters.embedded import group_commit
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note, StateKind, UnitOfWork
from mq_adapters.message import Message, MessageDescriptor

AUDIT_QUEUE = "SYSTEM.RFHBRIDGE.AUDIT"


def _seal(batch: int, notes: list[Note]) -> bytes:
    """A batch as text: its number, then its notes."""
    return " ".join(map(str, (batch, *(note[0] for note in notes)))).encode()


def _submit(engine: Engine, *notes: int, on_committed: Callable[[UnitOfWork], None] | None = None) -> None:
    unit = engine.begin()
    engine.put(unit, engine.queue("ORDERS"), Message(MessageDescriptor(), b"one"))
    unit.notes += [(note,) for note in notes]
    engine.submit(unit, on_committed)


def _batches(engine: Engine) -> list[bytes]:
    return [message.body for message in engine.browse(engine.queue(AUDIT_QUEUE))]


def test_a_batch_of_audit_notes_that_is_too_long_is_divided_and_numbered_on(engine, data_folder, monkeypatch):
    monkeypatch.setattr(engine_module, "AUDIT_MESSAGE_BYTES", 10)
    engine.seal_notes = _seal
    _submit(engine, 11, 12)
    _submit(engine, *range(21, 29))
    assert _batches(engine) == [b"1 11 12", b"2 21 22", b"3 23 24", b"4 25 26", b"5 27 28"]
    engine.close()
    again = Engine.open(data_folder)
    again.seal_notes = _seal
    _submit(again, 31)
    assert _batches(again)[-2:] == [b"5 27 28", b"6 31"]
    again.close()


def test_a_single_audit_note_is_not_divided_however_long_it_is(engine, monkeypatch):
    monkeypatch.setattr(engine_module, "AUDIT_MESSAGE_BYTES", 1)
    engine.seal_notes = _seal
    _submit(engine, 1_000_000, 2_000_000, 3_000_000)
    assert _batches(engine) == [b"1 1000000", b"2 2000000", b"3 3000000"]
    assert engine.failed is None


def _note_alone(engine: Engine, *notes: int) -> None:
    """A unit of work that has nothing durable."""
    unit = engine.begin()
    unit.notes += [(note,) for note in notes]
    engine.submit(unit)


def test_notes_that_wait_are_packed_a_few_at_a_time_and_written_before_those_of_the_group_that_they_join(
    engine: Engine, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "NOTES_AT_ONCE", 3)
    engine.seal_notes = lambda batch, notes: (packed.append(len(notes)), _seal(batch, notes))[1]
    packed: list[int] = []
    for number in range(1, 9):
        _note_alone(engine, number)
    assert packed == [3, 3]
    assert _batches(engine) == []
    _submit(engine, 9)
    assert _batches(engine) == [b"1 1 2 3", b"2 4 5 6", b"3 7 8 9"]
    assert packed == [3, 3, 3]
    _note_alone(engine, 10, 11, 12)
    engine.close()
    again = Engine.open(data_folder)
    again.seal_notes = _seal
    _submit(again, 13)
    assert _batches(again)[3:] == [b"4 10 11 12", b"5 13"]
    assert again.failed is None
    again.close()


def test_a_crash_before_packed_notes_are_written_leaves_no_gap_among_the_batches(
    engine: Engine, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "NOTES_AT_ONCE", 1)
    engine.seal_notes = _seal
    _submit(engine, 1)
    _note_alone(engine, 2)
    assert _batches(engine) == [b"1 1"]
    crashed = tmp_path / "crashed"
    shutil.copytree(data_folder, crashed)
    again = Engine.open(crashed)
    again.seal_notes = _seal
    _submit(again, 3)
    assert _batches(again) == [b"1 1", b"2 3"]
    again.close()


def test_packed_notes_are_written_without_a_group_to_join_when_they_are_long_together(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "NOTES_AT_ONCE", 1)
    monkeypatch.setattr(group_commit, "MAXIMUM_LATER_BYTES", 8)
    engine.seal_notes = _seal
    for number in range(1, 6):
        _note_alone(engine, number)
        assert _batches(engine) == ([b"1 1", b"2 2", b"3 3", b"4 4"] if number > 3 else [])
    engine.tick()
    assert _batches(engine)[4:] == [b"5 5"]


def test_notes_are_dropped_where_nobody_packs_them(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "NOTES_AT_ONCE", 1)
    _note_alone(engine, 1)
    _submit(engine, 2)
    assert _batches(engine) == []


class Loop:
    """An event loop of two lists: what is due, and the commits that threads were given."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.commits: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def offload(self, call: Callable[[], None], ended: Callable[[BaseException | None], None]) -> None:
        self.commits.append((call, ended))

    def run(self) -> None:
        while self.soon or self.commits:
            if self.soon:
                self.soon.pop(0)()
            else:
                call, ended = self.commits.pop(0)
                call()
                ended(None)


def _counted_commits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    commits: list[int] = []
    commit = engine._store.commit
    monkeypatch.setattr(engine._store, "commit", lambda: (commits.append(1), commit()))
    return commits


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def slow_engine(data_folder: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine all of whose commits are given to a thread, with the queue ORDERS; the test closes it."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    engine = Engine.open(data_folder, call_soon=loop.soon.append, offload=loop.offload)
    engine.define("ORDERS")
    engine.seal_notes = _seal
    return engine


def test_a_close_behind_slow_commits_writes_the_last_notes_itself(slow_engine, loop, data_folder):
    """There is no event loop any more that could end a commit in a thread."""
    unit = slow_engine.begin()
    unit.notes.append((7,))
    slow_engine.submit(unit)
    loop.run()
    assert _batches(slow_engine) == []
    slow_engine.close()
    assert loop.commits == []
    with_notes = Engine.open(data_folder)
    assert _batches(with_notes) == [b"1 7"]
    with_notes.close()


def test_a_close_commits_what_was_submitted_in_its_turn_of_the_loop(slow_engine, loop, data_folder):
    told: list[str] = []
    _submit(slow_engine, 7, on_committed=lambda _unit: told.append("committed"))
    slow_engine.close()
    assert (told, loop.commits) == (["committed"], [])
    again = Engine.open(data_folder)
    assert [message.body for message in again.browse(again.queue("ORDERS"))] == [b"one"]
    assert _batches(again) == [b"1 7"]
    again.close()


def test_a_close_waits_for_a_commit_that_a_thread_is_making(slow_engine, loop, data_folder):
    is_in_commit, may_end = threading.Event(), threading.Event()

    def hold_up(*_of_the_wal: object) -> int:
        is_in_commit.set()
        assert may_end.wait(60)
        return 0

    slow_engine._store._writer.set_wal_hook(hold_up)
    _submit(slow_engine)
    loop.soon.pop(0)()
    commit, _ended = loop.commits.pop()
    thread = threading.Thread(target=commit)
    thread.start()
    assert is_in_commit.wait(60)
    _submit(slow_engine, on_committed=lambda _unit: pytest.fail("it waits behind the other, which nobody heard of"))
    threading.Timer(0.05, may_end.set).start()
    slow_engine.close()
    thread.join()
    again = Engine.open(data_folder)
    assert again.queue("ORDERS").depth == 1
    again.close()


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_call_back_that_fails_does_not_starve_the_others_of_its_group(data_folder, loop, monkeypatch, is_slow):
    """Their units are committed too; a client that never heard of it would wait for ever."""
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0 if is_slow else 60.0)
    engine = Engine.open(data_folder, call_soon=loop.soon.append, offload=loop.offload)
    called: list[str] = []

    def fail(_unit: UnitOfWork) -> None:
        called.append("the one that fails")
        _submit(engine, 1, on_committed=lambda _unit: called.append("the next group"))
        raise RuntimeError("a defect")

    engine.define("ORDERS").listen(None, lambda: called.append("the listener"))
    _submit(engine, 1, on_committed=lambda _unit: called.append("before it"))
    _submit(engine, 1, on_committed=fail)
    _submit(engine, 1, on_committed=lambda _unit: called.append("behind it"))
    with pytest.raises(RuntimeError, match="a defect"):
        loop.run()
    assert called == ["before it", "the one that fails", "behind it", "the listener"]
    loop.run()
    assert called[4:] == ["the next group", "the listener"]
    assert engine.failed is None
    engine.close()


def test_a_listener_that_fails_does_not_starve_the_others(engine):
    heard: list[str] = []

    def fail() -> None:
        raise RuntimeError("a defect")

    queue = engine.queue("ORDERS")
    queue.listen(None, fail)
    queue.listen(None, lambda: heard.append("called all the same"))
    with pytest.raises(RuntimeError, match="a defect"):
        _submit(engine, 1)
    assert heard == ["called all the same"]
    assert queue.depth == 1


def test_what_is_submitted_before_a_commit_is_committed_with_it(data_folder, loop, monkeypatch):
    engine = Engine.open(data_folder, call_soon=loop.soon.append)
    engine.define("ORDERS")
    commits, done = _counted_commits(engine, monkeypatch), list[str]()

    def join() -> None:
        _submit(engine, on_committed=lambda _unit: done.append("joined"))

    _submit(engine, on_committed=lambda _unit: done.append("first"))
    engine.before_commit(join)
    _submit(engine, on_committed=lambda _unit: done.append("second"))
    loop.run()
    assert (len(commits), done) == (1, ["first", "second", "joined"])
    _submit(engine)
    loop.run()
    assert (len(commits), done) == (2, ["first", "second", "joined"])
    engine.close()


def test_a_call_before_a_commit_that_fails_keeps_nobody_from_it(data_folder, loop):
    engine = Engine.open(data_folder, call_soon=loop.soon.append)
    engine.define("ORDERS")
    done: list[str] = []

    def fail() -> None:
        raise RuntimeError("a defect")

    engine.before_commit(fail)
    _submit(engine, on_committed=lambda _unit: done.append("first"))
    with pytest.raises(RuntimeError, match="a defect"):
        loop.run()
    assert done == ["first"]
    _submit(engine, on_committed=lambda _unit: done.append("second"))
    loop.run()
    assert done == ["first", "second"]
    engine.close()


def test_a_call_before_a_commit_that_fails_keeps_no_other_call_from_it(data_folder, loop):
    """What another call adds may be what is acknowledged after this very commit."""
    engine = Engine.open(data_folder, call_soon=loop.soon.append)
    unit = engine.begin()

    def fail() -> None:
        raise RuntimeError("a defect")

    engine.before_commit(fail)
    engine.before_commit(lambda: unit.set_state(StateKind.SESSION, b"client", b"row"))
    engine.submit(unit)
    with pytest.raises(RuntimeError, match="a defect"):
        loop.run()
    assert engine.state(StateKind.SESSION, b"client") == b"row"
    engine.close()
