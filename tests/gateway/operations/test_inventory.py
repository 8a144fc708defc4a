"""Inventories: all that lasts is told, each entry as it is at its place in the trail, while the loop goes on."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gateway.audit_trail.disclosure import UnderKey
from gateway.audit_trail.notes.acts import note_acts
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.records import Chain
from gateway.audit_trail.retention import ORDER
from gateway.bridge.sessions.session_store import SessionRow
from gateway.operations.inventory import INTERVAL_US, PAGE_ROWS, Inventory
from mq_adapters.embedded.unit_of_work import Note, StateKind
from spark_audit.personal import PersonalKey
from spark_audit.record.expansion import Expander
from tests.gateway.bridge.conftest import World
from tests.mq_adapters.channel.faults import Connection

ROW = SessionRow(1, 4, False, False, None, {}, "anna", {}, 0, 0, 0, {}, b"", 0)


@pytest.fixture
def world(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    world = World(data_folder)
    yield world
    world.close()


@pytest.fixture
def inventory(world: World) -> Inventory:
    inventory = Inventory(world.engine, world.broker.read_subscription)
    world.run()
    world.now_us += INTERVAL_US
    world.notes.clear()
    return inventory


def _pages(world: World, inventory: Inventory, ticks: int = 1_000) -> list[Note]:
    """The notes of an inventory, until it is complete or for so many ticks."""
    for _ in range(ticks):
        inventory.tick()
        world.run()
        notes = [note for note in world.notes if note[0] == NoteKind.INVENTORY]
        if notes and notes[-1][2] == "complete":
            break
    return [note for note in world.notes if note[0] == NoteKind.INVENTORY]


def _records(notes: list[Note], **options: UnderKey) -> list[dict[str, object]]:
    lines = Chain(sequence=0, head="0" * 64).seal(Expander("0a" * 12, **options).expand(pack_batch(1, notes))[1])
    return [orjson.loads(line) for line in lines.splitlines()]


def _fill(world: World) -> None:
    pump = world.connect("pump", flags="00")
    world.receive(pump, "82 08 0001 0003 'a/+' 01")
    world.receive(world.connect("shop"), "31 09 0003 'a/b' 'kept'")
    hand = Connection(world.engine, "an application")
    assert hand.mqsc("DEFINE QLOCAL(ORDERS)").succeeded
    assert hand.mqsc("DEFINE SUB(S) TOPICSTR('a/b') DEST(ORDERS)").succeeded
    hand.close()
    world.run()


def test_everything_that_lasts_is_told_once_a_day(world: World, inventory: Inventory) -> None:
    _fill(world)
    notes = _pages(world, inventory)
    records = _records(notes)
    assert [(each["event"], each["entries"]) for each in records] == [
        ("begun", 0),
        ("sessions", 2),
        ("filters", 1),
        ("registrations", 2),
        ("retained", 1),
        ("complete", 6),
    ]
    told = {str(each["event"]): each for each in records}
    sessions = {row[0]: row[2:] for row in told["sessions"]["sessions"]}  # type: ignore[attr-defined]
    assert sessions == {"pump": ["", "4", "connected"], "shop": ["", "4", "connected"]}
    epoch = world.sessions.get("pump").epoch  # type: ignore[union-attr]
    assert told["filters"]["filters"] == [[str(epoch), "a/+", "1"]]
    (kept,) = told["retained"]["retained_publications"]  # type: ignore[misc]
    assert (kept[1], kept[4:]) == ("a/b", ["4", hashlib.sha256(b"kept").hexdigest()])
    registered = {row[0]: row[3] for row in told["registrations"]["registrations"]}  # type: ignore[attr-defined]
    assert registered == {"RFHBRIDGE.SUBSCRIBER": "a/+", "ORDERS": "a/b"}
    assert _pages(world, inventory, ticks=20) == notes, "the next one is due in a day"
    again = Inventory(world.engine, world.broker.read_subscription)
    assert _pages(world, again, ticks=20) == notes, "also for the next gateway"


def test_the_first_record_of_each_names_the_gateway(world: World) -> None:
    named = Inventory(world.engine, world.broker.read_subscription, "north")
    world.now_us += INTERVAL_US
    records = _records(_pages(world, named))
    assert [each["event"] for each in records if each.get("gateway_name") == "north"] == ["begun"]


def test_names_of_clients_and_topics_are_keyed_where_personal_data_is(world: World, inventory: Inventory) -> None:
    _fill(world)
    shown = orjson.dumps(_records(_pages(world, inventory), shown=UnderKey(PersonalKey(bytes(32)))))
    assert b'"kept"' not in shown
    assert not any(name in shown for name in (b"pump", b"shop", b"a/b", b"a/+"))


def test_what_retention_removes_makes_an_inventory_due(world: World, inventory: Inventory) -> None:
    world.now_us -= INTERVAL_US
    note_acts(world.engine)
    assert _pages(world, inventory, ticks=3) == []
    keeper = Connection(world.engine, "the keeper")
    keeper.begin()
    keeper.operate(ORDER, "a reason")
    keeper.commit()
    keeper.close()
    world.run()
    after_a_kill = Inventory(world.engine, world.broker.read_subscription)
    assert [note[2] for note in _pages(world, after_a_kill)] == ["begun", "complete"]


def test_an_entry_is_true_at_its_place_in_the_trail(world: World, inventory: Inventory) -> None:
    _fill(world)
    assert _pages(world, inventory, ticks=1)[-1][2] == "begun"
    world.commits_are_held = True
    unit = world.engine.begin()
    unit.delete_state(StateKind.SESSION, b"shop")
    unit.notes.append((int(NoteKind.LOST), 1, "the end of shop", 1, ""))
    world.engine.submit(unit)
    world.turn()
    inventory.tick()
    world.turn()
    world.commits_are_held = False
    world.run()
    assert [note[0] for note in world.notes[-2:]] == [NoteKind.LOST, NoteKind.INVENTORY]
    assert [row[0] for row in world.notes[-1][4]] == ["pump"]  # type: ignore[attr-defined]


def test_ten_thousand_sessions_are_told_a_page_in_a_tick(world: World, inventory: Inventory) -> None:
    unit = world.engine.begin()
    for number in range(10_000):
        unit.set_state(StateKind.SESSION, b"sensor-%05d" % number, ROW.pack())
    world.engine.submit(unit)
    world.run()
    notes = _pages(world, inventory, ticks=60)
    pages = [note[3] for note in notes if note[2] == "sessions"]
    assert pages == [PAGE_ROWS] * 50
    told = [row[0] for note in notes for row in note[4]]  # type: ignore[attr-defined]
    assert told == [f"sensor-{number:05d}" for number in range(10_000)]
    largest = max(len(orjson.dumps(record)) for record in _records(notes))
    assert largest < 32 * 1024
