"""Every verb of the socket and every command tells the trail of what it changes, or it changes nothing.

They are walked where they are registered. Each is carried out, and the store before it is compared with the one behind.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import ormsgpack
import pytest

from gateway.audit_trail.notes.acts import note_acts
from gateway.audit_trail.notes.notes import NoteKind, pack_batch
from gateway.audit_trail.notes.orders import COMMANDS, MQSC, VERBS, OrderRecords
from gateway.cli.commands import application
from mq_adapters import connect
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.mqsc import command_server
from mq_adapters.embedded.socket import connection
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.frames import Verb
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import DEAD_LETTER_QUEUE
from spark_audit.record.notes import NOTES
from tests.command_line import command as run_command
from tests.gateway.bridge.conftest import World
from tests.mq_adapters.channel.faults import Connection
from tests.mq_adapters.embedded.mqsc.test_channels import Channels
from tests.mq_adapters.embedded.mqsc.test_server_connections import Connections
from tests.mq_adapters.gateway_thread import GatewayThread

RECORDS: Final = {row.kind: {record.kind for record in row.records} for row in NOTES}
#: What the queue manager keeps for itself: counters, its clock, back-out counts, and the end of the trail.
_OWN: Final = (StateKind.BALANCE, StateKind.CLOCK, StateKind.BACK_OUT_COUNT, StateKind.TRAIL)
_STORED: Final = (
    "SELECT type, name, hex(attributes) FROM object",
    "SELECT sequence, name FROM message JOIN queue ON queue.id = message.queue WHERE name != 'SYSTEM.RFHBRIDGE.AUDIT'",
    f"SELECT space, hex(key), hex(value) FROM state WHERE space NOT IN ({', '.join(str(int(each)) for each in _OWN)})",
)


def stored(folder: Path) -> set[tuple[object, ...]]:
    """The objects, messages and states in a store."""
    if not (folder / "queue_manager.sqlite").exists():
        return set()
    with closing(sqlite3.connect(f"file:{folder}/queue_manager.sqlite?mode=ro", uri=True)) as store:
        return {row for statement in _STORED for row in store.execute(statement)}


def notes_of(batches: Sequence[bytes]) -> list[list[Any]]:
    return [note for batch in batches for note in ormsgpack.unpackb(ormsgpack.unpackb(batch)[2])]


def check(told: OrderRecords, notes: Sequence[Sequence[Any]], *, has_changed: bool) -> None:
    """Holds what an order did against its row."""
    acts = {note[3] for note in notes if note[0] == NoteKind.OPERATED}
    kinds = {kind for note in notes for kind in RECORDS[NoteKind(note[0])]}
    assert acts <= set(told.acts) or not told.acts
    if not (told.acts or told.kinds):
        assert (notes, has_changed) == ([], False)
    else:
        assert acts or kinds & set(told.kinds), "it changes something, and no record tells"


# -- the verbs of the socket -------------------------------------------------------------------------------------------

MESSAGE: Final = Message(MessageDescriptor(persistence=1), b"words")
Client = SocketClient


def _taken(client: Client, take: Callable[[], object]) -> None:
    client.begin()
    take()


def _read(client: Client) -> Message:
    return next(iter(client.browse("ORDERS")))


def _browsed(client: Client) -> Callable[[], object]:
    cursor = client.browse("ORDERS")
    next(iter(cursor))
    return cursor.take


def _held(client: Client) -> Callable[[], object]:
    return client.open_exclusively("ORDERS").close


def _unread(client: Client) -> None:
    iterator = iter(client.browse("ORDERS"))
    next(iterator)
    del iterator
    client.browse("ORDERS")


def _begun(client: Client, call: Callable[[], object]) -> Callable[[], object]:
    client.begin()
    client.get("ORDERS")
    return call


def _nothing() -> None:
    """A verb that every connection sends, or that has come with another one."""


#: What is sent before each verb, and then the verb. ORDERS has two messages.
SENT: Final[dict[Verb, Callable[[Client], Callable[[], object]]]] = {
    Verb.HELLO: lambda client: _nothing,
    Verb.PUT: lambda client: partial(client.put, "ORDERS", MESSAGE),
    Verb.GET: lambda client: partial(client.get, "ORDERS"),
    Verb.BROWSE_OPEN: lambda client: partial(_read, client),
    Verb.BROWSE_NEXT: lambda client: partial(_read, client),
    Verb.BROWSE_CLOSE: lambda client: partial(_unread, client),
    Verb.BEGIN: lambda client: client.begin,
    Verb.COMMIT: lambda client: _begun(client, client.commit),
    Verb.BACK_OUT: lambda client: _begun(client, client.back_out),
    Verb.DEFINE: lambda client: partial(client.define, "NEW"),
    Verb.CLEAR: lambda client: partial(client.clear, "ORDERS"),
    Verb.DEPTH: lambda client: partial(client.depth, "ORDERS"),
    Verb.QUEUES: lambda client: client.queues,
    Verb.TAKE_BATCH: lambda client: partial(
        _taken, client, partial(client.take_batch, "ORDERS", most_messages=2, most_bytes=100)
    ),
    Verb.TAKE_BROWSED: _browsed,
    Verb.CREATE: lambda client: partial(client.create_dynamic, "MODEL"),
    Verb.INQUIRE: lambda client: partial(client.inquire, "ORDERS"),
    Verb.MQSC: lambda client: partial(client.mqsc, "DISPLAY QMGR"),
    Verb.HOLD: lambda client: partial(client.open_exclusively, "ORDERS"),
    Verb.RELEASE: _held,
    Verb.OPERATE: lambda client: partial(_taken, client, partial(client.operate, "an order")),
    Verb.COMPACT: lambda client: client.compact_some,
    Verb.KEEP_TRAIL_HEAD: lambda client: _nothing,  # others than the trail's writer are refused
    Verb.TRAIL_HEAD: lambda client: _nothing,
    Verb.SUBSCRIBE: lambda client: _nothing,  # there is no broker
    Verb.UNSUBSCRIBE: lambda client: _nothing,
    Verb.REQUEST_PUBLICATIONS: lambda client: _nothing,
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayThread]:
    """An engine behind its socket, with two messages on ORDERS."""
    gateway = GatewayThread(tmp_path / "data")
    yield gateway
    gateway.stop()


def test_each_verb_of_the_socket_is_in_the_table() -> None:
    assert set(connection._REQUESTS) == set(Verb) == set(VERBS) == set(SENT)


@pytest.mark.parametrize("verb", Verb, ids=lambda verb: verb.name)
def test_each_verb_of_the_socket_tells_of_what_it_changes(gateway: GatewayThread, verb: Verb) -> None:
    batches: list[bytes] = []

    def seal(number: int, notes: list[Any]) -> bytes:
        batches.append(pack_batch(number, notes))
        return batches[-1]

    def prepare() -> None:
        engine = gateway.engine
        engine.define("ORDERS")
        engine.objects.define(Definition(object_type=ObjectType.QMODEL, name="MODEL"))
        for _ in range(2):
            unit = engine.begin()
            engine.put(unit, engine.queue("ORDERS"), Message(MESSAGE.descriptor, b"words"))
            engine.submit(unit)
        engine.seal_notes = seal
        note_acts(engine)

    gateway.call(prepare)
    with SocketClient(gateway.data_dir) as client:
        call = SENT[verb](client)
        gateway.call(gateway.engine.tick)
        batches.clear()
        before = stored(gateway.data_dir)
        call()
        gateway.call(gateway.engine.tick)
        gateway.call(gateway.engine.commit_now)
        check(VERBS[verb], notes_of(batches), has_changed=stored(gateway.data_dir) != before)


# -- MQSC --------------------------------------------------------------------------------------------------------------

#: What must be there before each command, and the command.
SAID: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    **{("DEFINE", noun): (f"DEFINE {noun}(N)",) for noun in ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "NAMELIST")},
    **{
        ("ALTER", noun): (f"DEFINE {noun}(N)", f"ALTER {noun}(N) DESCR('x')")
        for noun in ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "NAMELIST")
    },
    **{
        ("DELETE", noun): (f"DEFINE {noun}(N)", f"DELETE {noun}(N)")
        for noun in ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "NAMELIST")
    },
    **{
        ("DISPLAY", noun): (f"DEFINE {noun}(N)", f"DISPLAY {noun}(N)")
        for noun in ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "NAMELIST")
    },
    ("DEFINE", "TOPIC"): ("DEFINE TOPIC(N) TOPICSTR('a')",),
    ("ALTER", "TOPIC"): ("DEFINE TOPIC(N) TOPICSTR('a')", "ALTER TOPIC(N) PUB(DISABLED)"),
    ("DELETE", "TOPIC"): ("DEFINE TOPIC(N) TOPICSTR('a')", "DELETE TOPIC(N)"),
    ("DISPLAY", "TOPIC"): ("DEFINE TOPIC(N) TOPICSTR('a')", "DISPLAY TOPIC(N)"),
    ("DISPLAY", "QUEUE"): ("DISPLAY QUEUE(*)",),
    ("DISPLAY", "QMGR"): ("DISPLAY QMGR",),
    ("ALTER", "QMGR"): ("ALTER QMGR MAXUMSGS(77)",),
    ("RESET", "QMGR"): ("RESET QMGR TYPE(CLOCK)",),
    ("CLEAR", "QLOCAL"): ("CLEAR QLOCAL(ORDERS)",),
    ("CLEAR", "TOPICSTR"): ("CLEAR TOPICSTR('a/b') CLRTYPE(RETAINED)",),
    ("DEFINE", "SUB"): ("DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS)",),
    ("ALTER", "SUB"): ("DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS)", "ALTER SUB(S) USERDATA('x')"),
    ("DELETE", "SUB"): ("DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS)", "DELETE SUB(S)"),
    ("DISPLAY", "SUB"): ("DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS)", "DISPLAY SUB(*)"),
    ("DEFINE", "CHANNEL"): ("DEFINE CHANNEL(N) CHLTYPE(SVRCONN)",),
    ("ALTER", "CHANNEL"): ("DEFINE CHANNEL(N) CHLTYPE(SVRCONN)", "ALTER CHANNEL(N) MAXINST(5)"),
    ("DELETE", "CHANNEL"): ("DEFINE CHANNEL(N) CHLTYPE(SVRCONN)", "DELETE CHANNEL(N)"),
    ("DISPLAY", "CHANNEL"): ("DEFINE CHANNEL(N) CHLTYPE(SVRCONN)", "DISPLAY CHANNEL(N)"),
    ("START", "CHANNEL"): ("START CHANNEL(CENTRAL.OUT.0)",),
    ("STOP", "CHANNEL"): ("STOP CHANNEL(CENTRAL.OUT.0)",),
    ("RESOLVE", "CHANNEL"): ("RESOLVE CHANNEL(CENTRAL.OUT.0) ACTION(COMMIT)",),
    ("PURGE", "CHANNEL"): ("PURGE CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')",),
    ("DISPLAY", "CHSTATUS"): ("DISPLAY CHSTATUS(*)",),
    ("DISPLAY", "CONN"): ("DISPLAY CONN(*)",),
}
#: Further ways to say some of them.
ALSO_SAID: Final = (
    (("DEFINE", "QLOCAL"), ("DEFINE QL(N)", "DEFINE QL(N) MAXDEPTH(7) REPLACE")),
    (("DEFINE", "SUB"), ("DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS)", "DEFINE SUB(S) REPLACE USERDATA('x')")),
    (("DELETE", "QLOCAL"), ("DELETE QLOCAL(ORDERS) PURGE",)),
    (("STOP", "CHANNEL"), ("STOP CHANNEL(MQTT) CHLTYPE(MQTT) CLIENTID('pump')",)),
    (("DISPLAY", "CHSTATUS"), ("DISPLAY CHS(MQTT) CHLTYPE(MQTT)",)),
)


@pytest.fixture
def world(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A gateway without its process, whose trail tells of orders. It has a client, a retained message and ORDERS."""
    monkeypatch.setattr("mq_adapters.embedded.group_commit.SLOW_COMMIT_S", -1.0)
    world = World(data_folder)
    note_acts(world.engine)
    world.engine.objects.channels = Channels()
    world.engine.objects.server_connections = Connections()
    world.connect("pump")
    world.receive(world.connect("shop"), "31 09 0003 'a/b' 'kept'")
    yield world
    world.close()


def _settled(world: World) -> None:
    world.run()
    world.engine.tick()
    world.run()


def test_each_command_of_mqsc_is_in_the_table() -> None:
    assert set(command_server.COMMANDS) == set(MQSC) == set(SAID)


@pytest.mark.parametrize(
    ("key", "commands"), [*SAID.items(), *ALSO_SAID], ids=lambda part: "-".join(part)[-40:].replace(" ", "_")
)
def test_each_command_of_mqsc_tells_of_what_it_changes(
    world: World, data_folder: Path, key: tuple[str, str], commands: tuple[str, ...]
) -> None:
    hand = Connection(world.engine, "a test")
    hand.mqsc("DEFINE QLOCAL(ORDERS)")
    hand.put("ORDERS", MESSAGE)
    if key == ("RESET", "QMGR"):  # it is refused while the clock is trusted
        world.engine.clock.not_before(world.engine.clock.now_us() + 10**12)
    for command in commands[:-1]:
        assert hand.mqsc(command).succeeded, command
    _settled(world)
    world.notes.clear()
    before = stored(data_folder)
    answer = hand.mqsc(commands[-1])
    assert answer.succeeded, answer
    _settled(world)
    check(MQSC[key], world.notes, has_changed=stored(data_folder) != before)
    hand.close()


# -- the command line --------------------------------------------------------------------------------------------------


def _leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield " ".join(path)
        return
    for name, inner in command.commands.items():
        yield from _leaves(inner, (*path, name))


#: Arguments and standard input of commands on a store that no gateway has open. Commands without a row need a gateway,
#: or touch no store; tests/end_to_end/test_operators_acts.py gives the orders that need one.
TYPED: Final[dict[str, tuple[tuple[str, ...], bytes]]] = {
    "balance": ((), b""),
    "mqsc": ((), b"DISPLAY QMGR\n"),
    "queue list": ((), b""),
    "queue define": (("NEW",), b""),
    "queue depth": (("ORDERS",), b""),
    "queue browse": (("ORDERS",), b""),
    "queue get": (("ORDERS",), b""),
    "queue put": (("ORDERS", "-"), b"words"),
    "queue clear": (("ORDERS",), b""),
    "queue verify": ((), b""),
    "queue compact": ((), b""),
    "queue redrive": ((), b""),
    "queue accept-rollback": (("--force", "--yes"), b""),
    "sessions list": ((), b""),
    "sessions sweep": ((), b""),
}
#: `queue verify` and `sessions sweep` change nothing where nothing is damaged or left.
NOTHING_TO_DO: Final = ("queue verify", "sessions sweep")


def test_each_command_of_the_command_line_is_in_the_table() -> None:
    assert set(_leaves(application)) == set(COMMANDS)
    assert {act for told in COMMANDS.values() for act in told.acts if act.isupper()} <= {
        act for told in MQSC.values() for act in told.acts
    }


@pytest.mark.parametrize("command", TYPED)
def test_each_command_on_a_store_without_a_gateway_tells_of_what_it_changes(data_folder: Path, command: str) -> None:
    letter = dead_letter(MESSAGE, queue_name="ORDERS", queue_manager_name="", reason_code=2053, now_us=0)
    for typed, given in (("queue define ORDERS", b""), ("queue put ORDERS -", b"one")):
        _rfhbridge(data_folder, *typed.split(), given=given)
    with connect(data_folder) as queue_manager:
        queue_manager.put(DEAD_LETTER_QUEUE, letter)
    before, waiting = stored(data_folder), len(_waiting(data_folder))
    arguments, given = TYPED[command]
    _rfhbridge(data_folder, *command.split(), *arguments, given=given)
    told = OrderRecords() if command in NOTHING_TO_DO else COMMANDS[command]
    batches = _waiting(data_folder)
    new = batches if command == "queue accept-rollback" else batches[waiting:]  # it begins the trail anew
    check(told, notes_of(new), has_changed=stored(data_folder) != before)


def _rfhbridge(data: Path, *arguments: str, given: bytes) -> None:
    result = run_command(*arguments, "--data", data, stdin=given)
    assert result.exit_code == 0, result.stderr


def _waiting(data: Path) -> list[bytes]:
    with connect(data) as queue_manager:
        return [message.body for message in queue_manager.browse("SYSTEM.RFHBRIDGE.AUDIT")]
