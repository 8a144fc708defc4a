"""The engine: units of work, groups, slow and failing commits, sequences, expiry. The loop is a list of calls."""

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded import expiry, group_commit, message_cache
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, StateKind, UnitOfWork
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, KnownHeader, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, StoreError

PUMP = b"pump".ljust(24, b"\0")


class Loop:
    """call_soon and offload as a test wants them: nothing runs before it is told to."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.threads: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def offload(self, call: Callable[[], None], ended: Callable[[BaseException | None], None]) -> None:
        """Runs the call in a thread of its own, and hands its end to the loop."""

        def run() -> None:
            error: BaseException | None = None

            def work() -> None:
                nonlocal error
                try:
                    call()
                except StoreError as failure:
                    error = failure

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            ended(error)

        self.threads.append(run)

    def turn(self) -> None:
        """One turn of the loop: what was due when it began."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()

    def end_commit(self) -> None:
        self.threads.pop(0)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


def open_engine(data_folder: Path, **options: object) -> Engine:
    engine = Engine.open(data_folder, **options)
    if "ORDERS" not in {queue.name for queue in engine.queues()}:
        engine.define("ORDERS")
    return engine


def message(body: bytes, **fields: object) -> Message:
    return Message(MessageDescriptor(**fields), body)


def put(engine: Engine, body: bytes, done: Callable[[UnitOfWork], None] | None = None, **fields: object) -> Message:
    put_message = message(body, **fields)
    unit = engine.begin()
    engine.put(unit, engine.queue("ORDERS"), put_message)
    engine.submit(unit, done)
    return put_message


def bodies(engine: Engine, queue: str = "ORDERS") -> list[bytes]:
    return [found.body for found in engine.browse(engine.queue(queue))]


# -- sequences -------------------------------------------------------------------------------------------------------


def test_a_sequence_is_not_used_again_after_the_queue_ran_empty(engine):
    first = put(engine, b"one")
    queue = engine.queue("ORDERS")
    unit = engine.begin()
    unit.remove(queue, engine.take(queue), Departure.TAKEN)
    engine.submit(unit)
    assert put(engine, b"two").sequence > first.sequence


def test_a_sequence_is_not_used_again_after_a_restart_with_an_empty_store(data_folder):
    used = 0
    for _ in range(3):
        engine = open_engine(data_folder)
        taken = put(engine, b"one")
        assert taken.sequence > used
        used = put(engine, b"fleeting", persistence=MQPER_NOT_PERSISTENT).sequence
        queue = engine.queue("ORDERS")
        unit = engine.begin()
        while (found := engine.take(queue)) is not None:
            unit.remove(queue, found, Departure.TAKEN)
        engine.submit(unit)
        engine.close()


def test_a_sequence_is_not_used_again_beyond_a_reserved_block(data_folder, monkeypatch):
    monkeypatch.setattr(group_commit, "SEQUENCE_BLOCK", 10)
    monkeypatch.setattr("mq_adapters.embedded.store.store.SEQUENCE_BLOCK", 10)
    engine = open_engine(data_folder)
    used = [put(engine, b"x", persistence=MQPER_NOT_PERSISTENT).sequence for _ in range(100)]
    engine.close()
    again = open_engine(data_folder)
    assert used == sorted(set(used))
    assert put(again, b"x").sequence > used[-1]
    again.close()


def test_a_number_for_other_things_is_not_a_message_s(engine):
    number = engine.number()
    assert put(engine, b"one").sequence > number


# -- groups ----------------------------------------------------------------------------------------------------------


def test_units_of_one_turn_are_one_transaction_and_complete_in_order(data_folder, loop, monkeypatch):
    engine = open_engine(data_folder, call_soon=loop.call_soon)
    commits, completed = [], []
    commit = engine._store.commit
    monkeypatch.setattr(engine._store, "commit", lambda: (commits.append(1), commit()))
    for body in (b"one", b"two", b"three"):
        put(engine, body, lambda unit: completed.append(unit.puts[0][1].body))
    assert (completed, bodies(engine)) == ([], [])
    loop.turn()
    assert completed == [b"one", b"two", b"three"] == bodies(engine)
    assert len(commits) == 1
    engine.close()


def test_a_put_that_is_refused_does_not_fail_its_neighbours_in_the_group(data_folder, loop):
    engine = open_engine(data_folder, call_soon=loop.call_soon)
    put(engine, b"one")
    for refused in ({"persistence": 7}, {"expiry": 0}):
        with pytest.raises(QueueManagerError):
            put(engine, b"refused", **refused)
    put(engine, b"two")
    loop.turn()
    assert bodies(engine) == [b"one", b"two"]
    engine.close()


def test_a_unit_that_the_broker_refuses_does_not_fail_its_neighbours_in_the_group(data_folder, loop):
    engine = open_engine(data_folder, call_soon=loop.call_soon)
    served = engine.define("SERVED")

    def refuse(_unit: UnitOfWork, queue: Queue, _message: Message) -> None:
        raise QueueManagerError(2053, f"put on {queue.name}")

    engine.serve(served, refuse)
    put(engine, b"one")
    unit = engine.begin()
    engine.put(unit, served, message(b"refused"))
    with pytest.raises(QueueManagerError, match="2053"):
        engine.submit(unit)
    put(engine, b"two")
    loop.turn()
    assert bodies(engine) == [b"one", b"two"]
    engine.close()


def test_those_who_wait_are_woken_in_the_order_of_their_messages(engine):
    queue = engine.queue("ORDERS")
    lanes = [bytes((number,)) * 24 for number in (7, 3, 9, 1, 8, 2, 6, 4)]
    woken: list[bytes] = []
    unit = engine.begin()
    for lane in lanes:
        queue.listen(lane, lambda lane=lane: woken.append(lane))
        engine.put(unit, queue, Message(MessageDescriptor(correl_id=lane), b""))
    engine.submit(unit)
    assert woken == lanes
    engine.give_back([(queue, engine.take(queue, lane)) for lane in reversed(lanes)])
    assert woken == lanes + lanes[::-1]


def test_a_slow_commit_runs_elsewhere_and_the_next_group_gathers(data_folder, loop, monkeypatch):
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    engine = open_engine(data_folder, call_soon=loop.call_soon, offload=loop.offload)
    completed = []

    def done(unit: UnitOfWork) -> None:
        completed.append(unit.puts[0][1].body)

    put(engine, b"one", done)
    loop.turn()
    put(engine, b"two", done)
    put(engine, b"fleeting", done, persistence=MQPER_NOT_PERSISTENT)
    loop.turn()
    assert completed == [] == bodies(engine)
    assert not engine.is_idle
    loop.end_commit()
    assert completed == [b"one"] == bodies(engine)
    loop.end_commit()
    assert completed == [b"one", b"two", b"fleeting"] == bodies(engine)
    assert engine.is_idle
    engine.close()


def test_a_message_that_a_thread_is_committing_is_nobodys_yet(data_folder, loop, monkeypatch):
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    told: list[Callable[[BaseException | None], None]] = []

    def commit_now_and_tell_later(call: Callable[[], None], ended: Callable[[BaseException | None], None]) -> None:
        call()
        told.append(ended)

    engine = open_engine(data_folder, call_soon=loop.call_soon, offload=commit_now_and_tell_later)
    queue = engine.queue("ORDERS")
    sent = put(engine, b"one", msg_id=b"m" * 24)
    loop.turn()  # it is on the disk now, and the engine has not been told
    assert engine.take(queue, msg_id=sent.msg_id) is None
    assert engine.take_number(queue, sent.sequence) is None
    told.pop()(None)
    assert engine.take(queue, msg_id=sent.msg_id) is sent
    engine.close()


def test_an_error_that_nobody_expected_stops_the_engine_too(data_folder):
    engine = open_engine(data_folder)
    failures: list[StoreError] = []
    engine.on_failure = failures.append

    def seal(_batch: int, _notes: list[tuple[object, ...]]) -> bytes:
        raise TypeError("a note that cannot be packed")

    engine.seal_notes = seal
    unit = engine.begin()
    unit.notes.append((1,))
    committed: list[UnitOfWork] = []
    engine.put(unit, engine.queue("ORDERS"), Message(MessageDescriptor(), b"one"))
    engine.submit(unit, committed.append)
    assert committed == []
    assert "a note that cannot be packed" in str(failures[0])
    with pytest.raises(StoreError):
        engine.submit(engine.begin())


def test_a_queue_may_be_defined_while_a_thread_commits(data_folder, loop, monkeypatch):
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0)
    engine = open_engine(data_folder, call_soon=loop.call_soon, offload=loop.offload)
    is_in_commit, may_go_on = threading.Event(), threading.Event()
    commit = engine._store.commit

    def slow_commit() -> None:
        is_in_commit.set()
        assert may_go_on.wait(10)
        commit()

    monkeypatch.setattr(engine._store, "commit", slow_commit)
    put(engine, b"one")
    loop.turn()
    committing = threading.Thread(target=loop.end_commit)
    committing.start()
    assert is_in_commit.wait(10)
    threading.Timer(0.01, may_go_on.set).start()
    engine.define("NEXT")
    committing.join()
    engine.close()
    again = open_engine(data_folder)
    assert again.queue("NEXT").depth == 0
    assert bodies(again) == [b"one"]
    again.close()


def test_a_group_without_anything_durable_completes_without_a_commit(data_folder, loop, monkeypatch):
    engine = open_engine(data_folder, call_soon=loop.call_soon)
    monkeypatch.setattr(engine._store, "commit", lambda: pytest.fail("nothing is durable here"))
    put(engine, b"fleeting", persistence=MQPER_NOT_PERSISTENT)
    loop.turn()
    assert bodies(engine) == [b"fleeting"]


def test_states_are_committed_with_the_messages_of_their_unit(data_folder):
    engine = open_engine(data_folder)
    unit = engine.begin()
    unit.set_state(StateKind.SESSION, b"one", b"1")
    unit.set_state(StateKind.SESSION, b"two", b"2")
    unit.set_state(StateKind.SESSION_INCOMING, b"one", b"3")
    engine.submit(unit)
    unit = engine.begin()
    unit.set_state(StateKind.SESSION, b"one", b"4")
    unit.delete_state(StateKind.SESSION, b"two")
    engine.submit(unit)
    engine.close()
    again = open_engine(data_folder)
    assert again.states(StateKind.SESSION) == [(b"one", b"4")]
    assert again.states(StateKind.SESSION_INCOMING) == [(b"one", b"3")]
    again.close()


def test_the_bytes_of_a_queue_are_those_of_its_messages_also_after_a_restart(data_folder):
    engine = open_engine(data_folder)
    for body in (b"12345", b"123"):
        put(engine, body)
    put(engine, b"12", persistence=MQPER_NOT_PERSISTENT)
    queue = engine.queue("ORDERS")
    assert queue.waiting_bytes == 10
    taken = engine.take(queue)
    assert queue.waiting_bytes == 10
    unit = engine.begin()
    unit.remove(queue, taken, Departure.TAKEN)
    engine.submit(unit)
    assert queue.waiting_bytes == 5
    engine.close()
    again = open_engine(data_folder, measured_queues=("ORDERS", "NOT.THERE"))
    measured = again.queue("ORDERS")
    assert (measured.waiting_bytes, measured.lane_bytes) == (3, {bytes(24): 3})
    again.close()


# -- taking and giving back --------------------------------------------------------------------------------------------


def test_the_back_out_count_stays_when_the_message_leaves_the_cache(data_folder, monkeypatch):
    monkeypatch.setattr(message_cache, "BODY_CACHE_BYTES", 0)
    engine = open_engine(data_folder)
    put(engine, b"one")
    queue = engine.queue("ORDERS")
    for count in (0, 1, 2):
        unit = engine.begin()
        taken = engine.take(queue)
        assert taken.backout_count == count
        unit.remove(queue, taken, Departure.TAKEN)
        engine.back_out(unit)
    engine.close()


def test_a_back_out_of_many_messages_is_not_quadratic(engine):
    queue = engine.queue("ORDERS")
    unit = engine.begin()
    for _ in range(20_000):
        engine.put(unit, queue, message(b"", persistence=MQPER_NOT_PERSISTENT))
    engine.submit(unit)
    unit = engine.begin()
    while (taken := engine.take(queue)) is not None:
        unit.remove(queue, taken, Departure.TAKEN)
    engine.back_out(unit)
    assert len(bodies(engine)) == queue.depth == 20_000


@pytest.mark.parametrize("others", [0, 1])
def test_an_expired_message_is_looked_for_by_msg_id_before_its_removal_is_committed(data_folder, loop, others):
    engine = open_engine(data_folder, call_soon=loop.call_soon, now_us=lambda: now_us)
    queue = engine.queue("ORDERS")
    now_us = 1_000_000
    for _ in range(others):
        put(engine, b"lasting")
    expired = put(engine, b"expired", expiry=1)
    loop.turn()
    now_us += 200_000
    assert engine.take(queue, msg_id=expired.msg_id) is None
    assert engine.take(queue, msg_id=expired.msg_id) is None
    engine.tick()
    loop.turn()
    assert queue.depth == others == len(bodies(engine))
    engine.close()


def test_a_message_that_expired_while_it_was_taken_is_destroyed_after_the_back_out(data_folder):
    expired = []
    engine = open_engine(data_folder, now_us=lambda: now_us)
    engine.on_expired = lambda _unit, queue, message: expired.append((queue.name, message.body))
    now_us = 1_000_000
    put(engine, b"one", expiry=1)
    queue = engine.queue("ORDERS")
    unit = engine.begin()
    unit.remove(queue, engine.take(queue), Departure.TAKEN)
    now_us += 200_000
    engine.tick()
    assert expired == []
    engine.back_out(unit)
    engine.tick()
    assert (expired, queue.depth) == ([("ORDERS", b"one")], 0)
    engine.close()


def test_expired_messages_are_destroyed_after_a_restart(data_folder):
    engine = open_engine(data_folder, now_us=lambda: 1_000_000)
    put(engine, b"one", expiry=1)
    engine.close()
    again = open_engine(data_folder, now_us=lambda: 2_000_000)
    again.tick()
    assert again.queue("ORDERS").depth == 0
    again.close()


@pytest.mark.parametrize(("most_s", "at_once"), [(60.0, 200), (-1.0, 1)], ids=["quick ones", "slow ones"])
def test_messages_that_expire_together_are_destroyed_some_in_a_turn_of_the_loop(
    data_folder, loop, monkeypatch, most_s, at_once
):
    monkeypatch.setattr(expiry, "_MOST_S", most_s)
    now_us = 1_000_000
    engine = open_engine(data_folder, call_soon=loop.call_soon, now_us=lambda: now_us)
    for _ in range(5 * at_once):
        put(engine, b"x", expiry=1)
    loop.turn()
    now_us += 200_000
    depths = [engine.queue("ORDERS").depth]
    for _ in range(12):
        engine.tick()
        loop.turn()
        depths.append(engine.queue("ORDERS").depth)
    assert depths[0] == 5 * at_once
    assert depths[-1] == 0
    assert max(before - after for before, after in pairwise(depths)) == at_once
    engine.close()


def test_messages_that_expire_together_are_destroyed_at_once_where_there_is_no_loop(data_folder):
    now_us = 1_000_000
    engine = open_engine(data_folder, now_us=lambda: now_us)
    for _ in range(1_000):
        put(engine, b"x", expiry=1, persistence=MQPER_NOT_PERSISTENT)  # otherwise each is a commit, and its end another
    now_us += 200_000
    engine.tick()
    assert engine.queue("ORDERS").depth == 0
    engine.close()


def test_each_put_of_a_unit_on_a_temporary_queue_is_looked_at_once(engine):
    """A publication to ten thousand subscribers on temporary queues took two seconds."""

    class Puts(list):
        looked_at = 0

        def __getitem__(self, place):
            Puts.looked_at += 1
            return super().__getitem__(place)

        def __iter__(self):
            Puts.looked_at += len(self)
            return super().__iter__()

    queues = []
    for name in ("TEMPORARY.1", "TEMPORARY.2"):
        engine.objects.define(Definition(object_type=ObjectType.QMODEL, name=f"MODEL.{name}", said={"MAXDEPTH": 30}))
        queues.append(engine.queue(engine.objects.create_dynamic(f"MODEL.{name}", name).name))
    unit = engine.begin()
    unit.puts = Puts()
    for _ in range(30):
        for queue in queues:
            engine.put(unit, queue, message(b"x", persistence=MQPER_NOT_PERSISTENT))
    assert Puts.looked_at <= 60
    for queue in queues:
        with pytest.raises(QueueManagerError, match="2053"):
            engine.put(unit, queue, message(b"one too many", persistence=MQPER_NOT_PERSISTENT))
    unit.puts = []
    engine.put(unit, queues[0], message(b"x", persistence=MQPER_NOT_PERSISTENT))
    assert (unit.puts_on(queues[0]), unit.puts_on(queues[1])) == (1, 0)


def test_serving_a_queue_drains_what_waited_on_it(data_folder):
    engine = open_engine(data_folder)
    put(engine, b"one")
    put(engine, b"two")
    served = []
    engine.serve(engine.queue("ORDERS"), lambda _unit, _queue, message: served.append(message.body))
    put(engine, b"three")
    assert (served, engine.queue("ORDERS").depth) == ([b"one", b"two", b"three"], 0)
    engine.close()


# -- failures ----------------------------------------------------------------------------------------------------------


def fail_at(engine: Engine, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_fields: object) -> None:
        raise StoreError("write", "the disk is full", "make room")

    monkeypatch.setattr(engine._store, step, fail)


@pytest.mark.parametrize("step", ["write", "commit"])
@pytest.mark.parametrize("offloaded", [False, True])
def test_a_failed_write_stops_the_engine_and_acknowledges_nothing(data_folder, loop, monkeypatch, step, offloaded):
    monkeypatch.setattr(group_commit, "SLOW_COMMIT_S", -1.0 if offloaded else 60.0)
    engine = open_engine(data_folder, call_soon=loop.call_soon, offload=loop.offload)
    failures, completed = [], []
    engine.on_failure = failures.append
    put(engine, b"kept")
    loop.turn()
    if offloaded:
        loop.end_commit()
    fail_at(engine, step, monkeypatch)
    put(engine, b"lost", completed.append)
    loop.turn()
    if offloaded and step == "commit":
        put(engine, b"behind it", completed.append)
        loop.end_commit()
    loop.turn()
    assert [str(error) for error in failures] == ["write: the disk is full (make room)"]
    assert engine.failed is failures[0]
    assert completed == []
    with pytest.raises(StoreError):
        put(engine, b"later")
    with pytest.raises(StoreError):
        engine.define("NEXT")
    engine.close()
    again = open_engine(data_folder)
    assert bodies(again) == [b"kept"]
    again.close()


def test_a_full_disk_stops_the_engine_and_loses_nothing_acknowledged(data_folder):
    engine = open_engine(data_folder)
    engine._store._writer.pragma("max_page_count", 60)
    acknowledged: list[bytes] = []
    number = 0
    while engine.failed is None:
        number += 1
        put(engine, b"%d" % number + bytes(5_000), lambda unit: acknowledged.append(unit.puts[0][1].body))
    assert "the disk is full" in str(engine.failed)
    assert 0 < len(acknowledged) < 100
    engine.close()
    again = open_engine(data_folder)
    assert bodies(again) == acknowledged
    again.close()


def test_a_store_that_turns_read_only_stops_the_engine(data_folder):
    engine = open_engine(data_folder)
    put(engine, b"kept")
    engine._store._writer.pragma("query_only", True)
    put(engine, b"lost")
    assert engine.failed is not None
    assert "own the data folder" in str(engine.failed)
    engine.close()
    again = open_engine(data_folder)
    assert bodies(again) == [b"kept"]
    again.close()


def test_an_index_that_names_a_missing_message_stops_the_engine(data_folder):
    engine = open_engine(data_folder)
    put(engine, b"one")
    engine.close()
    engine = open_engine(data_folder)
    with apsw.Connection(str(data_folder / "queue_manager.sqlite")) as other:
        other.execute("DELETE FROM message")
    with pytest.raises(StoreError, match="changed by another program"):
        engine.take(engine.queue("ORDERS"))
    assert engine.failed is not None
    engine.close()


@pytest.mark.parametrize(
    ("read", "column"),
    [
        (lambda engine: engine.take(engine.queue("ORDERS")), "message RENAME COLUMN body"),
        (bodies, "message RENAME COLUMN body"),
        (lambda engine: engine.state(StateKind.BROKER_RETAINED, b"a/b"), "state RENAME COLUMN value"),
    ],
    ids=["take", "browse", "state"],
)
def test_a_store_that_cannot_be_read_stops_the_engine(data_folder, read, column):
    """It is as bad as one that cannot be written: who would go on would answer that there is nothing."""
    engine = open_engine(data_folder)
    put(engine, b"one")
    engine.close()
    engine = open_engine(data_folder)
    failures: list[StoreError] = []
    engine.on_failure = failures.append
    with apsw.Connection(str(data_folder / "queue_manager.sqlite")) as other:
        other.execute(f"ALTER TABLE {column} TO torn")
    with pytest.raises(StoreError):
        read(engine)
    assert failures == [engine.failed]
    with pytest.raises(StoreError):
        put(engine, b"later")
    engine.close()


@pytest.mark.parametrize("name", [b"", b"MQSTR", b"MQSTRING "])
def test_a_format_that_has_not_eight_bytes_is_refused_before_anything_is_kept(engine, name):
    unit = engine.begin()
    with pytest.raises(QueueManagerError, match="has not 8 bytes; pad it with blanks: 2026"):
        engine.put(unit, engine.queue("ORDERS"), Message(MessageDescriptor(format=name), b"x"))
    assert unit.puts == []


def test_the_command_that_travels_with_a_message_counts_as_memory(engine, monkeypatch):
    """Each message takes about 1,900 bytes with its command, and 1,100 without."""
    monkeypatch.setattr(message_cache, "BODY_CACHE_BYTES", 10_000)
    queue = engine.queue("ORDERS")
    unit = engine.begin()
    for number in range(9):
        sent = message(f"{number}".encode() * 600, persistence=MQPER_PERSISTENT)
        sent.written = KnownHeader(sent.body[:500], format=bytes(8), coded_char_set_id=1208, encoding=546)
        engine.put(unit, queue, sent)
    engine.submit(unit)
    assert [found.written is not None for found in engine.browse(queue)] == [False] * 4 + [True] * 5
