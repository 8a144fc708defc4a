"""What a real queue manager does with queues, replayed: by chance, with no alarm; and each planted fault is found."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.audit_trail.notes.acts import note_acts
from gateway.audit_trail.notes.notes import pack_batch
from gateway.audit_trail.notes.stock_takes import StockTakes, lost_notes, stock_notes
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Note
from mq_adapters.message import Message, MessageDescriptor
from spark_audit.custody.commands import row_of
from spark_audit.custody.findings import Custody
from spark_audit.custody.replay import replayed
from spark_audit.record.disclosure import InClear
from spark_audit.record.expansion import Expander

Record = dict[str, Any]
_QUEUES = ("ORDERS", "STORE", "PLANT")
_STEPS = {"short": 400, "full": 3_000}
_SEEDS = {"short": 4, "full": 40}
_STARTED = {"kind": "started", "code_version": "1", "table_version": "1", "configuration_sha256": "0"}


class _Manager:
    """A queue manager with one application. `waiting`: the model, MsgIds by queue and whether each is persistent."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder, self._chance, self._expander = folder, chance, Expander("g", InClear())
        self._now_us = 1_795_000_000_000_000
        self.commits: list[list[Record]] = []
        self.waiting: dict[str, dict[str, bool]] = {queue: {} for queue in _QUEUES}
        self._open(is_first=True)

    def _open(self, *, is_first: bool = False) -> None:
        engine = self.engine = Engine.open(self._folder, now_us=lambda: self._now_us)
        if is_first:
            for queue in _QUEUES:
                engine.define(queue)
        self.commits.append([_STARTED, *self._expanded([*lost_notes(engine), *stock_notes(engine)])])
        engine.seal_notes = self._seal
        note_acts(engine)
        self._application = Application(engine, "orders", user="ANN", operator="ann")

    def _expanded(self, notes: list[Note]) -> list[Record]:
        return self._expander.expand(pack_batch(1, notes))[1]

    def _seal(self, _number: int, notes: list[Note]) -> bytes:
        self.commits.append(self._expanded(list(notes)))
        return b"notes"

    def records(self) -> list[Record]:
        told = [(number, record) for number, records in enumerate(self.commits, start=1) for record in records]
        return [
            {"version": 1, "gateway": "g"} | record | {"batch": number, "sequence": place}
            for place, (number, record) in enumerate(told, start=1)
        ]

    # -- what may happen -----------------------------------------------------------------------------------------------

    def put(self) -> None:
        queue, persistence = self._chance.choice(_QUEUES), self._chance.randrange(2)
        expiry = self._chance.choice((-1, -1, -1, 5))
        message = Message(MessageDescriptor(persistence=persistence, expiry=expiry), b"x")
        self._application.put(queue, message, lambda: None)
        if expiry < 0:
            self._changes.append((queue, message.msg_id.hex(), bool(persistence)))

    def get(self) -> None:
        name = self._chance.choice(_QUEUES)
        queue = self.engine.queue(name)
        message = self._application.take(queue, None, None)
        if message is not None:
            self._application.remove(queue, message, lambda: None)
            self._changes.append((name, message.msg_id.hex(), None))

    def act(self) -> None:
        """A put or a get, or several in a unit of work, which may be backed out."""
        self._changes: list[tuple[str, str, bool | None]] = []
        number = self._chance.choice((1, 1, 1, 4))
        is_kept = True
        if number > 1:
            self._application.begin()
        for _ in range(number):
            self._chance.choice((self.put, self.get))()
        if number > 1:
            is_kept = self._chance.random() < 0.7
            if is_kept:
                self._application.commit(lambda: None)
            else:
                self._application.back_out()
        for queue, message_id, is_persistent in self._changes if is_kept else ():
            if is_persistent is None:
                self.waiting[queue].pop(message_id, None)
            else:
                self.waiting[queue][message_id] = is_persistent
        self.engine.tick()

    def clear(self) -> None:
        queue = self._chance.choice(_QUEUES)
        while self.engine.queue(queue).depth:
            self._application.clear_some(queue, lambda _number: None)
            self.engine.tick()
        self.waiting[queue].clear()

    def pass_time(self) -> None:
        """What may expire does."""
        self._now_us += 2_000_000
        self.engine.tick()

    def take_stock(self) -> None:
        StockTakes(self.engine, 0, lambda: 0).take()
        self.engine.tick()

    def restart(self) -> None:
        self.take_stock()
        self.engine.close()
        for queue, messages in self.waiting.items():
            self.waiting[queue] = {message_id: True for message_id, is_persistent in messages.items() if is_persistent}
        self._open()

    def end(self) -> None:
        self.pass_time()
        self.take_stock()
        self.engine.close()


_ACTS: tuple[tuple[Callable[[_Manager], None], int], ...] = (
    (_Manager.act, 40),
    (_Manager.pass_time, 4),
    (_Manager.take_stock, 3),
    (_Manager.clear, 1),
    (_Manager.restart, 1),
)


def _lived(folder: Path, patch: pytest.MonkeyPatch, seed: int, steps: int) -> _Manager:
    patch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    chance = random.Random(seed)
    manager = _Manager(folder, chance)
    acts, weights = zip(*_ACTS, strict=True)
    for act in chance.choices(acts, weights, k=steps):
        act(manager)
    manager.end()
    return manager


def _found(records: list[Record]) -> set[Custody]:
    numbered = [record | {"sequence": place} for place, record in enumerate(records, start=1)]
    return {each.control for each in replayed(map(row_of, numbered))}


@pytest.mark.proof
def test_what_a_queue_manager_does_raises_no_alarm_and_each_planted_fault_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof_scale: str
) -> None:
    chance = random.Random(18)
    for seed in range(_SEEDS[proof_scale]):
        manager = _lived(tmp_path / str(seed), monkeypatch, seed, _STEPS[proof_scale])
        records = manager.records()
        assert {"mqput", "mqget", "dropped", "operated", "stock"} <= {each["kind"] for each in records}
        assert _found(records) == set(), seed
        left = {each for messages in manager.waiting.values() for each in messages}
        assert _counted_last(records) == {queue: len(each) for queue, each in manager.waiting.items() if each}
        faults = _faults(records, left)
        for place, wrong in chance.sample(faults, min(len(faults), 12)):
            planted = [*records[:place], *wrong, *records[place + 1 :]]
            assert Custody.QUEUES in _found(planted), (seed, records[place])


def _counted_last(records: list[Record]) -> dict[str, int]:
    """What the last stock-take counted on the queues of the model."""
    last = max(each["batch"] for each in records if each["kind"] == "stock")
    rows = [each for each in records if each["batch"] == last and each.get("event") == "queue"]
    return {each["queue"]: each["messages"] for each in rows if each["queue"] in _QUEUES}


def _faults(records: list[Record], left: set[str]) -> list[tuple[int, list[Record]]]:
    """Places of records, and the records that stand there instead: a put or a get is gone, or a get is told twice.

    Of a message that waits at the end, or that an application has got, both put and get show in a sum or in the other.
    """
    got = {each["message_id"] for each in records if each["kind"] == "mqget"}
    faults: list[tuple[int, list[Record]]] = []
    for place, each in enumerate(records):
        if each["kind"] == "mqput" and each["message_id"] in got | left and each["persistent"]:
            faults.append((place, []))
        elif each["kind"] == "mqget":
            faults += [(place, [each, each])]
            if each["persistent"]:
                faults.append((place, []))
    return faults
