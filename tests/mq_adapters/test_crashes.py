"""The queue manager against a plain model, with restarts, crashes, expiry and full disks; and kill -9 under load."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.balance import read_balance, running_queues
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.queue_administration import delete
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError
from tests.memory_folder import place_for_commits

QUEUES = ("ORDERS", "REPLIES")
#: One queue orders by priority, the other by arrival alone.
FIFO = "REPLIES"
CORREL_IDS = tuple(name.ljust(24, b"\0") for name in (b"", b"pump", b"valve"))
CHOSEN_MSG_IDS = (bytes(24), bytes(24), b"m" * 24)


@dataclass(slots=True, kw_only=True)
class Kept:
    """A committed message, as a plain model keeps it."""

    sequence: int
    queue: str
    body: bytes
    msg_id: bytes
    correl_id: bytes
    is_persistent: bool
    priority: int = 0
    expires_us: int = 0
    backout_count: int = 0
    taker: int | None = None


class QueueManagerModel(RuleBasedStateMachine):
    """Two applications with a unit of work each, on one engine, and a list of what must be there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="rfh", dir=place_for_commits()))
        self.restarts = 0
        self.kept: list[Kept] = []
        self.puts: dict[int, list[Kept]] = {0: [], 1: []}
        self.is_open = {0: False, 1: False}
        self.highest_sequence = 0
        self.bodies = 0
        self.now_us = 1_000_000_000

    @initialize()
    def start(self) -> None:
        self.open()
        self.engine.define("ORDERS")
        self.engine.ensure(FIFO, "first in, first out")

    def open(self) -> None:
        self.engine = Engine.open(self.folder / str(self.restarts), now_us=lambda: self.now_us)
        self.applications = [Application(self.engine), Application(self.engine)]

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)

    # -- what applications do ------------------------------------------------------------------------------------------

    @rule(
        who=st.integers(0, 1),
        queue=st.sampled_from(QUEUES),
        correl_id=st.sampled_from(CORREL_IDS),
        msg_id=st.sampled_from(CHOSEN_MSG_IDS),
        persistence=st.integers(0, 2),
        priority=st.sampled_from((0, 0, 4, 9)),
        expiry=st.sampled_from((-1, -1, -1, 5)),
    )
    def put(
        self, who: int, queue: str, correl_id: bytes, msg_id: bytes, persistence: int, priority: int, expiry: int
    ) -> None:
        self.bodies += 1
        body = b"%d" % self.bodies
        descriptor = MessageDescriptor(
            msg_id=msg_id, correl_id=correl_id, persistence=persistence, priority=priority, expiry=expiry
        )
        message = Message(descriptor, body)
        self.applications[who].put(queue, message, lambda: None)
        assert message.sequence > self.highest_sequence
        self.highest_sequence = message.sequence
        kept = Kept(
            sequence=message.sequence,
            queue=queue,
            body=body,
            msg_id=message.msg_id,
            correl_id=correl_id,
            is_persistent=persistence != 0,
            priority=0 if queue == FIFO else priority,
            expires_us=0 if expiry == -1 else self.now_us + expiry * 100_000,
        )
        if self.is_open[who]:
            self.puts[who].append(kept)
        else:
            self.keep(kept)

    @rule(
        who=st.integers(0, 1),
        name=st.sampled_from(QUEUES),
        matched=st.tuples(st.booleans(), st.booleans()),
        pick=st.integers(0, 1000),
    )
    def get(self, who: int, name: str, matched: tuple[bool, bool], pick: int) -> None:
        wanted = self.kept[pick % len(self.kept)] if self.kept else None
        msg_id = wanted.msg_id if wanted is not None and matched[0] else None
        correl_id = wanted.correl_id if wanted is not None and matched[1] else None
        queue = self.engine.queue(name)
        expected = next(iter(self.available(name, msg_id, correl_id)), None)
        message = self.applications[who].take(queue, correl_id, msg_id)
        assert (message and message.body) == (expected and expected.body)
        if message is None or expected is None:
            return
        assert (message.msg_id, message.backout_count) == (expected.msg_id, expected.backout_count)
        self.applications[who].remove(queue, message, lambda: None)
        if self.is_open[who]:
            expected.taker = who
        else:
            self.kept.remove(expected)

    @rule(who=st.integers(0, 1))
    def begin(self, who: int) -> None:
        if not self.is_open[who]:
            self.applications[who].begin()
            self.is_open[who] = True

    @precondition(lambda self: any(self.is_open.values()))
    @rule(who=st.integers(0, 1))
    def commit(self, who: int) -> None:
        self.applications[who].commit(lambda: None)
        self.kept = [kept for kept in self.kept if kept.taker != who]
        for kept in self.puts[who]:
            self.keep(kept)
        self.puts[who].clear()
        self.is_open[who] = False

    @precondition(lambda self: any(self.is_open.values()))
    @rule(who=st.integers(0, 1))
    def back_out(self, who: int) -> None:
        self.applications[who].back_out()
        for kept in self.kept:
            if kept.taker == who:
                kept.taker = None
                kept.backout_count += 1
        self.puts[who].clear()
        self.is_open[who] = False

    @rule(who=st.integers(0, 1), name=st.sampled_from(QUEUES), pick=st.integers(0, 20))
    def take_what_a_cursor_stands_on(self, who: int, name: str, pick: int) -> None:
        shown = self.available(name)
        if not shown:
            return
        expected = shown[pick % len(shown)]
        message = self.applications[who].take_number(self.engine.queue(name), expected.sequence)
        assert (message.body, message.backout_count) == (expected.body, expected.backout_count)
        self.applications[who].remove(self.engine.queue(name), message, lambda: None)
        if self.is_open[who]:
            expected.taker = who
        else:
            self.kept.remove(expected)

    # -- what the world does -------------------------------------------------------------------------------------------

    @rule()
    def clear(self) -> None:
        """An operator clears a queue: what nobody has taken goes."""
        self.applications[0].clear_some("ORDERS", lambda _count: None)
        self.kept = [kept for kept in self.kept if kept.queue != "ORDERS" or kept.taker is not None]

    @rule()
    def delete_a_queue_with_what_is_on_it(self) -> None:
        queue = self.engine.define("SCRATCH")
        application = Application(self.engine)
        for persistence in (0, 1, 1):
            message = Message(MessageDescriptor(persistence=persistence), b"scratch")
            application.put("SCRATCH", message, lambda: None)
            self.highest_sequence = message.sequence
        application.remove(queue, application.take(queue, None, None), lambda: None)
        delete(self.engine, queue, OperatorsAct(operator="admin", command="DELETE"), purge=True)

    @rule()
    def use_a_temporary_queue(self) -> None:
        if self.engine.objects.find_queue("MODEL") is None:
            self.engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="MODEL"))
        application = Application(self.engine)
        name = application.create_dynamic("MODEL", "TEMPORARY.*")
        for _ in range(2):
            message = Message(MessageDescriptor(persistence=0), b"temporary")
            application.put(name, message, lambda: None)
            self.highest_sequence = message.sequence
        queue = self.engine.queue(name)
        application.remove(queue, application.take(queue, None, None), lambda: None)
        application.close()

    @rule()
    def restart(self) -> None:
        for application in self.applications:
            application.back_out()
        for kept in self.kept:
            kept.backout_count += kept.taker is not None
        self.engine.close()
        self.forget_what_is_in_memory()
        self.open()

    @rule()
    def crash(self) -> None:
        """Nothing is closed: what is on the disk at this moment is all there is."""
        before, after = self.folder / str(self.restarts), self.folder / str(self.restarts + 1)
        after.mkdir()
        for name in ("queue_manager.sqlite", "queue_manager.sqlite-wal", "queue_manager.marker"):
            if (before / name).exists():
                shutil.copy(before / name, after / name)
        self.engine.close()
        self.restarts += 1
        self.forget_what_is_in_memory()
        self.open()

    @rule(tenths=st.integers(1, 9))
    def pass_time(self, tenths: int) -> None:
        self.now_us += tenths * 100_000
        self.engine.tick()
        self.expire()

    @rule(pages=st.integers(0, 3))
    def fill_the_disk(self, pages: int) -> None:
        """From here on there is room for few pages: the queue manager stops, with all that it had acknowledged."""
        self.back_out(0)
        writer = self.engine._store._writer
        writer.pragma("max_page_count", writer.pragma("page_count") + pages)
        acknowledged: list[Message] = []
        while self.engine.failed is None:
            message = Message(MessageDescriptor(persistence=1), bytes(5_000))
            with suppress(StoreError):
                self.applications[0].put("ORDERS", message, partial(acknowledged.append, message))
        for message in acknowledged:
            self.highest_sequence = message.sequence
            self.keep(kept_of(message))
        self.engine.close()
        self.forget_what_is_in_memory()
        self.open()

    # -- the model -----------------------------------------------------------------------------------------------------

    def keep(self, kept: Kept) -> None:
        self.kept.append(kept)
        self.kept.sort(key=lambda each: (-each.priority, each.sequence))

    def expire(self) -> None:
        """What is due is destroyed, unless somebody has taken it."""
        self.kept = [kept for kept in self.kept if kept.taker is not None or not self.is_due(kept)]

    def is_due(self, kept: Kept) -> bool:
        return 0 < kept.expires_us <= self.now_us

    def available(self, queue: str, msg_id: bytes | None = None, correl_id: bytes | None = None) -> list[Kept]:
        return [
            kept
            for kept in self.kept
            if kept.queue == queue
            and kept.taker is None
            and not self.is_due(kept)
            and msg_id in (None, kept.msg_id)
            and correl_id in (None, kept.correl_id)
        ]

    def forget_what_is_in_memory(self) -> None:
        self.kept = [kept for kept in self.kept if kept.is_persistent]
        for kept in self.kept:
            kept.taker = None
        self.puts = {0: [], 1: []}
        self.is_open = {0: False, 1: False}

    @invariant()
    def the_balance_adds_up(self) -> None:
        """That of the store, whose messages are counted by their rows, and that of the index in memory."""
        if hasattr(self, "engine"):
            folder = self.folder / str(self.restarts)
            found = read_balance(folder)
            assert found is not None
            assert found.adds_up, found
            by_name = {queue.name: queue for queue in found.queues}
            for name in QUEUES:
                waiting = sum(kept.queue == name and kept.is_persistent for kept in self.kept)
                assert by_name[name].persistent.waiting == waiting
            in_memory = {name: queue.difference for name, queue in running_queues(self.engine).items()}
            assert set(in_memory.values()) == {0}, in_memory

    @invariant()
    def every_queue_shows_what_the_model_has(self) -> None:
        if hasattr(self, "engine"):
            self.engine.tick()
            self.expire()
        for name in QUEUES if hasattr(self, "engine") else ():
            queue = self.engine.queue(name)
            assert [found.body for found in self.engine.browse(queue)] == [kept.body for kept in self.available(name)]
            assert queue.depth == sum(kept.queue == name for kept in self.kept)
            for correl_id in CORREL_IDS:
                found = [message.body for message in self.engine.browse(queue, correl_id)]
                assert found == [kept.body for kept in self.available(name, correl_id=correl_id)]


def kept_of(message: Message) -> Kept:
    return Kept(
        sequence=message.sequence,
        queue="ORDERS",
        body=message.body,
        msg_id=message.msg_id,
        correl_id=message.descriptor.correl_id,
        is_persistent=True,
    )


TestQueueManagerAgainstAModel = QueueManagerModel.TestCase
#: In full 150 machines of up to 60 steps are some 8,000 steps.
TestQueueManagerAgainstAModel.settings = settings(
    stateful_step_count=60, max_examples=150 if os.environ.get("RFHBRIDGE_PROOF") == "full" else 40
)
TestQueueManagerAgainstAModel = pytest.mark.proof(TestQueueManagerAgainstAModel)
#: Each step is a commit or more, on a disk that may be slow and busy.
TestQueueManagerAgainstAModel = pytest.mark.timeout(1_800)(TestQueueManagerAgainstAModel)


# -- kill -9 -----------------------------------------------------------------------------------------------------------

PUT_UNTIL_KILLED = """
import sys
from pathlib import Path
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import Message, MessageDescriptor
queue_manager = Direct(Path(sys.argv[1]), wait_s=10)
if "ORDERS" not in {status.name for status in queue_manager.queues()}:
    queue_manager.define("ORDERS")
while True:
    queue_manager.begin()
    put = [queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(200))).hex() for _ in range(3)]
    queue_manager.commit()
    print(*put, flush=True)
"""
KILLS = {"short": 3, "full": 40}
#: The process is killed after it said so many units of work were committed; chosen by a seeded draw.
MOST_UNITS = 200


@pytest.mark.proof
def test_what_was_acknowledged_before_a_kill_is_there_once_and_in_order(data_folder, proof_scale):
    draw = random.Random(20261120)
    acknowledged: list[str] = []
    for _ in range(KILLS[proof_scale]):
        acknowledged += put_until_killed(data_folder, units=draw.randint(1, MOST_UNITS))
    balance = read_balance(data_folder)
    assert balance is not None
    assert balance.adds_up
    engine = Engine.open(data_folder)
    found = [message.msg_id.hex() for message in engine.browse(engine.queue("ORDERS"))]
    engine.close()
    assert len(found) == len(set(found))
    assert len(found) % 3 == 0
    assert [msg_id for msg_id in found if msg_id in set(acknowledged)] == acknowledged
    # After each kill at most one unit of work may be there whose commit was not heard of.
    assert len(found) - len(acknowledged) <= 3 * KILLS[proof_scale]
    assert balance.in_all.persistent.waiting == balance.in_all.persistent.put == len(found)


def put_until_killed(data_folder: Path, *, units: int) -> list[str]:
    """The MsgIds that the program said were committed, until it was killed at some instant after `units` of them."""
    program = subprocess.Popen(
        [sys.executable, "-c", PUT_UNTIL_KILLED, str(data_folder)], stdout=subprocess.PIPE, text=True
    )
    with program:
        said = [program.stdout.readline() for _ in range(units)]
        program.send_signal(signal.SIGKILL)
        said += program.stdout.readlines()
    return [msg_id for line in said if line.endswith("\n") for msg_id in line.split()]
