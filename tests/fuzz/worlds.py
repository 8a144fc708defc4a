"""Subjects of `two_builds.py` that need a whole gateway: its bridge, its broker, and its store when that is damaged.

Both builds see the same time and the same random numbers, and each commit seems to take a second, so that it is made
in a thread, as the world has it: what a commit holds back is held back in both. All that the gateway keeps is compared
as it lies on the disk.
"""

import hashlib
import itertools
import random
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Final

import apsw

from gateway.audit_trail.notes.charges import CHARGES
from gateway.audit_trail.notes.notes import pack_batch
from gateway.config import RouteSettings, TargetSettings
from gateway.config.mqtt_limits import MqttLimits
from mappings.table import Dialect
from mq_adapters.embedded.store.checksums import descriptor_checksum, message_checksum, object_checksum, state_checksum
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.system_queues import AUDIT_QUEUE, CONTROL_QUEUE, DEAD_LETTER_QUEUE
from tests.fuzz.canonical import Outcome, attempted, canonical
from tests.fuzz.choices import COLUMN_VALUES, Choices
from tests.fuzz.clients import NAMES, Client, Play
from tests.fuzz.header_vectors import pick
from tests.gateway.bridge.conftest import DEFAULT_STREAM, NOW_US, REPLY_QUEUE, World, written
from tests.memory_folder import place_for_commits

Reader = Callable[[bytes], object]
#: Of a target's first shard.
_TRANSMISSION_QUEUE: Final = "RFHBRIDGE.XMIT.{}.0"
#: Of `meta` the reach has the time of the wall clock.
_TABLES: Final = {
    "queue": "SELECT * FROM queue ORDER BY id",
    "object": "SELECT * FROM object ORDER BY type, name",
    "message": "SELECT * FROM message ORDER BY sequence",
    "damaged": "SELECT * FROM damaged ORDER BY sequence",
    "state": "SELECT * FROM state ORDER BY space, key",
    "meta": "SELECT * FROM meta WHERE key <> 'reach' ORDER BY key",
}


@contextmanager
def same_circumstances() -> Iterator[None]:
    """Random numbers from a seed, and clocks that show how often they were asked."""
    chance, asked = random.Random(1), iter(range(10**12))
    before = secrets.token_bytes, time.perf_counter, time.monotonic, time.time_ns, time.clock_gettime_ns
    secrets.token_bytes = lambda nbytes=32: chance.randbytes(nbytes)
    time.perf_counter = lambda: float(next(asked))
    time.monotonic = lambda: 0.0
    time.time_ns, time.clock_gettime_ns = lambda: NOW_US * 1_000, lambda _clock: 10**12
    try:
        yield
    finally:
        secrets.token_bytes, time.perf_counter, time.monotonic, time.time_ns, time.clock_gettime_ns = before


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="rfhbridge-fuzz-", dir=place_for_commits()))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def _world(**options: object) -> Iterator[tuple[World, Path]]:
    with same_circumstances(), folder() as data:
        world = World(data, **options)
        try:
            yield world, data
        finally:
            world.close()


def stored(data: Path) -> object:
    """Every row of a store."""
    connection = apsw.Connection(str(data / FILE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {table: list(connection.execute(statement)) for table, statement in _TABLES.items()}
    finally:
        connection.close()


def _noted(world: World) -> object:
    """The notes since the last call, each context once, their charges, and the batch that they make."""
    notes, world.notes = world.notes, []
    charges = [attempted(lambda note=note: CHARGES[note[0]].size(note)) for note in notes]
    contexts = {id(item): item for note in notes for item in note if is_dataclass(item)}
    places = {each: place for place, each in enumerate(contexts)}
    shown = [tuple(places.get(id(item), item) for item in note) for note in notes]
    batch = attempted(lambda: hashlib.sha256(pack_batch(1, notes)).hexdigest())
    return shown, list(contexts.values()), charges, batch


# -- the bridge --------------------------------------------------------------------------------------------------------


#: The gateways that are compared, by subject.
GATEWAYS: Final[dict[str, dict[str, object]]] = {
    "bridge": {},
    "bridge_of_mqrfh": {"dialect": Dialect.MQRFH, "user_properties": "each"},
    "bridge_to_target": {
        "targets": (TargetSettings(name="QM1"),),
        "routes": (RouteSettings(target="QM1", topics=("t/u",)),),
        "user_properties": "each",
    },
    "bridge_within_limits": {
        "limits": MqttLimits(
            maximum_in_flight=1,
            maximum_subscriptions=2,
            maximum_sessions=3,
            maximum_session_expiry_s=1,
            maximum_queued_messages=2,
            maximum_retained_messages=1,
            maximum_dead_letters=1,
            message_rate=2,
            trail_byte_rate=4_000,
        ),
        "sys_topics_interval_s": 1,
    },
}


@contextmanager
def bridge(**options: object) -> Iterator[Reader]:
    """Four clients, as `bridge.py` has them. The outcome is what each is sent, what is noted, and what is stored."""
    with _world(**options) as (world, data):
        if "limits" in options:  # a turn of the event loop has time for two packets
            world.bridge.paused_publishers._now_s = itertools.count(step=0.0008).__next__

        def read(given: bytes) -> object:
            heard: list[tuple[str, object]] = []
            clients = [Client(number, heard) for number in range(len(NAMES))]
            for client in clients:
                client.connect(world, 1)
            ended = attempted(Play(world, clients, given).act)
            kept = stored(data)
            world.commits_are_held = False
            world.run()
            for client in clients:
                client.connect(world, 1)
                client.leave(world)
            for queue in (
                AUDIT_QUEUE,
                DEAD_LETTER_QUEUE,
                *(_TRANSMISSION_QUEUE.format(name) for name in world.targets),
            ):
                _clear(world, queue)
            return ended, heard, kept, _noted(world)

        yield read


# -- the broker --------------------------------------------------------------------------------------------------------

#: Subscriptions of the clients, by their number: everything, some topics, a share, and patterns.
_SUBSCRIPTIONS: Final = (
    "82 06 000A 0001 '#' 00",
    "82 06 000A 0001 '#' 02",
    "82 07 000A 00 0001 '#' 2A",
    "82 10 000A 00 000A '$share/g/#' 01",
)


@contextmanager
def applications(dialect: Dialect) -> Iterator[Reader]:
    """Applications that put messages with headers of any kind on the queues of the broker.

    The first two bytes say what the MQMD has, the others are the body.
    """
    with _world(dialect=dialect) as (world, data):

        def read(given: bytes) -> object:
            heard: list[tuple[str, object]] = []
            clients = [Client(number, heard) for number in range(len(NAMES))]
            for client, subscription in zip(clients, _SUBSCRIPTIONS, strict=True):
                client.connect(world, 1)
                client.send(world, written(subscription))
            choices = Choices(given)
            described = pick(choices.byte())
            flags = choices.byte()
            ended = attempted(lambda: _put(world, described, flags, choices.rest()))
            for client in clients:
                with suppress(AssertionError):
                    client.look()
            kept = stored(data)
            for client in clients:
                client.leave(world)
                client.connect(world, 1)
                client.leave(world)
            for name in (REPLY_QUEUE, DEAD_LETTER_QUEUE, AUDIT_QUEUE):
                _clear(world, name)
            return ended, heard, kept, _noted(world)

        yield read


def _put(world: World, described: dict[str, object], flags: int, body: bytes) -> None:
    descriptor = MessageDescriptor(
        persistence=flags & 1,
        msg_type=1 if flags & 2 else 8,
        report=3 if flags & 4 else 0,
        expiry=100 if flags & 8 else -1,
        priority=flags >> 4 & 7,
        reply_to_q=REPLY_QUEUE,
        correl_id=bytes(23) + bytes((flags,)),
        **described,
    )
    unit = world.engine.begin()
    queue = world.engine.queue(CONTROL_QUEUE if flags & 128 else DEFAULT_STREAM)
    world.engine.put(unit, queue, Message(descriptor, body))
    world.engine.submit(unit)
    world.run()


def _clear(world: World, name: str) -> None:
    """Takes all that is on a queue, as an application or the exporter does."""
    queue = world.engine.queue(name)
    unit = world.engine.begin()
    while (message := world.engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.TAKEN)
    world.engine.submit(unit)
    world.run()


# -- the store ---------------------------------------------------------------------------------------------------------

#: The columns of each table, which are changed.
_COLUMNS: Final = {
    "message": (
        *("queue", "correl_id", "msg_id", "put_us", "expires_us"),
        *("descriptor", "origin", "body", "priority", "checksum", "sequence"),
    ),
    "state": ("value", "checksum", "key", "space"),
    "object": ("attributes", "checksum", "name", "type"),
    "queue": ("name", "description", "id"),
    "meta": ("value", "key"),
}
_TOLD: Final = (
    "32 08 0003 't/u' 0001 'x'",
    "34 06 0001 't' 0002 'x'",
    "35 06 0001 't' 0003 'r'",
    "31 04 0001 't' 'r'",
    "82 0E 000C 0003 't/u' 01 0003 't/+' 02",
)


def _fill(world: World) -> None:
    """Sessions of each level with subscriptions, messages on their way, and others that wait for their PUBREL."""
    for name, level, expiry in (("a", 3, ""), ("b", 4, ""), ("c", 5, "05 11 FFFFFFFF"), ("d", 5, "05 11 00000100")):
        client = Client(NAMES.index(name))
        client.connect(world, 0)
        if expiry:
            client.send(world, written("82 07 000A 00 0001 '#' 02"))
            client.send(world, written("82 10 000D 00 000A '$share/g/t' 02"))
            client.send(world, written("34 07 0001 't' 0004 00 'y'"))
        for packet in _TOLD if level < 5 else ():
            client.send(world, written(packet))
        if name != "d":
            client.leave(world)
    queue = world.engine.define("ORDERS")
    for number in range(4):
        unit = world.engine.begin()
        descriptor = MessageDescriptor(
            persistence=MQPER_PERSISTENT,
            priority=number,
            expiry=-1 if number else 50_000,
            msg_id=bytes((number,)) * 24,
            correl_id=bytes((number & 1,)) * 24,
        )
        world.engine.put(unit, queue, Message(descriptor, b"order %d" % number, b"origin" if number else b""))
        world.engine.submit(unit)
    world.run()


@contextmanager
def store() -> Iterator[Reader]:
    """A store in which values were changed, perhaps with a checksum that fits, is opened and read in every way."""
    with folder() as root:
        with same_circumstances():
            world = World(root / "sound")
            _fill(world)
            world.close()

        def read(given: bytes) -> object:
            data = root / "damaged"
            shutil.copytree(root / "sound", data)
            try:
                choices = Choices(given)
                changed = attempted(lambda: _damage(data, choices))
                with same_circumstances():
                    told = canonical((changed, attempted(lambda: verify_store(data)), _opened(data)))
                return Outcome(told.replace(str(root), "ROOT"))
            finally:
                shutil.rmtree(data)

        yield read


def _damage(data: Path, choices: Choices) -> None:
    connection = apsw.Connection(str(data / FILE_NAME))
    try:
        for _ in range(3):
            with suppress(apsw.ConstraintError, apsw.MismatchError):
                _change(connection, choices)
            if choices.is_over:
                return
    finally:
        connection.close()


def _change(connection: apsw.Connection, choices: Choices) -> None:
    """One column of one row: another value, or its own with bytes changed; a checksum that fits may follow."""
    table = choices.of(("message", "message", "state", "state", "state", "object", "queue", "meta"))
    rows = list(connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2"))
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    row = dict(zip(names, rows[choices.byte() % len(rows)], strict=True))
    where, found = " AND ".join(f"{name} IS ?" for name in names), tuple(row.values())
    column, way = choices.of(_COLUMNS[table]), choices.byte()
    if way & 1:
        row[column] = choices.of(COLUMN_VALUES)
    else:
        row[column] = _altered(row[column], choices)
    if way & 2:
        with suppress(Exception):
            row["checksum"] = _CHECKSUMS[table](row)
    changes = ", ".join(f"{name} = ?" for name in names)
    connection.execute(f"UPDATE {table} SET {changes} WHERE {where}", (*row.values(), *found))


def _altered(value: object, choices: Choices) -> object:
    if isinstance(value, int):
        return value ^ 1 << choices.byte() % 63
    data = bytearray(value.encode() if isinstance(value, str) else value or b"\0")
    for _ in range(1 + choices.byte() % 3):
        if data:
            data[choices.byte() % len(data)] = choices.byte()
    if choices.byte() & 1:
        del data[choices.byte() % max(1, len(data)) :]
    return data.decode(errors="replace") if isinstance(value, str) else bytes(data)


_CHECKSUMS: Final[dict[str, Callable[[dict[str, object]], int]]] = {
    "message": lambda row: message_checksum(
        descriptor_checksum(row["descriptor"]),
        row["sequence"] ^ row["queue"] ^ row["put_us"] ^ row["expires_us"],
        row["origin"],
        row["body"],
    ),
    "state": lambda row: state_checksum(row["space"], row["key"], row["value"]),
    "object": lambda row: object_checksum(row["type"], row["name"], row["attributes"]),
}


def _opened(data: Path) -> object:
    """What a gateway on these files does: its queues, what clients that come back are sent, and how it ends."""
    world, heard = World.__new__(World), list[tuple[str, object]]()
    try:
        begun = attempted(lambda: world.__init__(data))
        if begun != "None":
            return begun
        browsed = [attempted(lambda queue=queue: list(world.engine.browse(queue))) for queue in world.engine.queues()]
        clients = [attempted(lambda number=number: _come_back(world, number, heard)) for number in range(len(NAMES))]
        taken = [attempted(lambda queue=queue: world.engine.take(queue)) for queue in world.engine.queues()]
        return browsed, clients, heard, taken, world.engine.failed, _noted(world), attempted(world.close)
    finally:
        with suppress(Exception):  # a fault of the store may have ended the world before its engine
            world.engine.close()


def _come_back(world: World, number: int, heard: list[tuple[str, object]]) -> None:
    """A client goes on with its session, and acknowledges what it gets."""
    client = Client(number, heard)
    client.connect(world, 0)
    for packet in ("40 02 0001", "50 02 0002", "62 02 0002", "62 02 0004", "70 02 0002"):
        client.send(world, written(packet))
    client.leave(world)
