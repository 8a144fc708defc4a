"""The file: who owns it, what is refused, and what a damaged, foreign or newer one comes to."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue_administration import alter
from mq_adapters.embedded.store.layout import APPLICATION_ID, USER_VERSION
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME, StoreWentBack
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME, Store
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message, MessageDescriptor, unpack_descriptor
from mq_adapters.reasons import QueueManagerError, StoreError
from tests.sleeping import when_this_thread_sleeps

STORES = Path(__file__).parents[1] / "stores"
HOLD_THE_STORE = """
import sys
from pathlib import Path
from mq_adapters.embedded.store.store import Store
store = Store.open(Path(sys.argv[1]))
print("owned", flush=True)
sys.stdin.read()
"""
FILL_THE_DISK = """
import resource, sys
from pathlib import Path
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import Message, MessageDescriptor, unpack_descriptor
from mq_adapters.reasons import StoreError
queue_manager = Direct(Path(sys.argv[1]))
queue_manager.define("ORDERS")
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
try:
    while True:
        print(queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(3_000))).hex(), flush=True)
except StoreError as error:
    print(error, file=sys.stderr)
"""


@pytest.fixture
def filled(data_folder: Path) -> Path:
    """A data folder with 200 messages on the queue ORDERS, closed."""
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        queue_manager.begin()
        for number in range(200):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number + bytes(500)))
        queue_manager.commit()
    return data_folder


def change(data_folder: Path, statement: str) -> None:
    connection = apsw.Connection(str(data_folder / FILE_NAME))
    connection.execute(statement)
    connection.close()


def test_the_file_and_the_folder_are_their_owners_alone(data_folder):
    Store.open(data_folder).close()
    assert stat.S_IMODE(data_folder.stat().st_mode) == 0o700
    for name in (FILE_NAME, LOCK_NAME):
        assert stat.S_IMODE((data_folder / name).stat().st_mode) == 0o600


def test_the_file_says_whose_it_is_and_which_layout_it_has(filled):
    connection = apsw.Connection(str(filled / FILE_NAME))
    assert connection.pragma("application_id") == APPLICATION_ID == int.from_bytes(b"RFHB", "big")
    assert connection.pragma("user_version") == USER_VERSION == 4
    connection.close()


def test_two_stores_have_different_incarnations_and_one_keeps_its_own(tmp_path):
    seen = []
    for name in ("one", "two", "one"):
        store = Store.open(tmp_path / name)
        seen.append(store.incarnation)
        store.close()
    assert seen[0] == seen[2] != seen[1]


def test_a_second_owner_is_refused_with_2042(data_folder):
    with Direct(data_folder), pytest.raises(QueueManagerError, match="2042"):
        Direct(data_folder)
    Direct(data_folder).close()


def test_a_second_owner_may_wait(data_folder, monkeypatch):
    first = Direct(data_folder)
    when_this_thread_sleeps(monkeypatch, first.close)
    with Direct(data_folder, wait_s=10) as second:
        assert second.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0


def test_the_lock_goes_with_its_process_however_it_ends(data_folder):
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_STORE, str(data_folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout.readline() == b"owned\n"
        with pytest.raises(QueueManagerError, match="2042"):
            Direct(data_folder)
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
        Direct(data_folder).close()


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 5", "PRAGMA application_id = 1"])
def test_a_newer_or_foreign_file_is_refused_and_left_alone(filled, statement):
    change(filled, statement)
    before = (filled / FILE_NAME).read_bytes()
    with pytest.raises(StoreError, match="use the program that wrote it"):
        Direct(filled)
    assert (filled / FILE_NAME).read_bytes() == before


def test_a_refused_file_is_not_locked_any_more(filled):
    change(filled, "PRAGMA user_version = 5")
    for _ in range(2):
        with pytest.raises(StoreError):
            Direct(filled)
    change(filled, "PRAGMA user_version = 4")
    with Direct(filled) as queue_manager:
        assert queue_manager.depth("ORDERS") == 200


@pytest.mark.parametrize("content", [b"not a database" * 1000, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_that_is_no_database_is_refused(data_folder, content):
    data_folder.mkdir()
    (data_folder / FILE_NAME).write_bytes(content)
    with pytest.raises(StoreError):
        Direct(data_folder)
    assert (data_folder / FILE_NAME).read_bytes() == content


@pytest.mark.parametrize("page", range(1, 8))
def test_a_damaged_page_ends_in_a_store_error_or_is_never_read(filled, page):
    path = filled / FILE_NAME
    data = bytearray(path.read_bytes())
    data[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    read: list[bytes] = []
    with contextlib.suppress(StoreError), Direct(filled) as queue_manager:
        read += [message.body for message in queue_manager.browse("ORDERS")]
    assert set(read) <= {b"%d" % number + bytes(500) for number in range(200)}


def test_a_file_that_was_cut_is_refused(filled):
    with (filled / FILE_NAME).open("r+b") as file:
        file.truncate(20_000)
    with pytest.raises(StoreError, match="damaged"), Direct(filled) as queue_manager:
        list(queue_manager.browse("ORDERS"))


@pytest.mark.parametrize("damage", ["x'02'", "x'01c1'", "x'0193'", "x'0181ff01'", "x'018105c3'", "x''"])
def test_a_damaged_descriptor_ends_in_a_store_error(filled, damage):
    change(filled, f"UPDATE message SET descriptor = {damage}")
    with pytest.raises(StoreError, match="read message 1 on queue ORDERS"), Direct(filled) as queue_manager:
        list(queue_manager.browse("ORDERS"))


def test_a_truth_is_no_number_of_a_stored_descriptor():
    assert unpack_descriptor(b"\x01\x81\x05\x01").coded_char_set_id == 1
    with pytest.raises(ValueError, match="no field 5 with a value such as True"):
        unpack_descriptor(b"\x01\x81\x05\xc3")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((column, "'text'") for column in ("correl_id", "msg_id", "descriptor", "origin", "body", "priority")),
        *((column, "'text'") for column in ("put_us", "expires_us", "checksum")),
        *((column, "1.5") for column in ("correl_id", "put_us", "expires_us", "priority", "body")),
        ("origin", "''"),
        ("msg_id", "7"),
    ],
)
def test_a_column_of_another_type_is_told_to_whoever_gets_its_message(filled, column, value):
    change(filled, f"UPDATE message SET {column} = {value} WHERE sequence = 2")
    assert any("message 2 on queue ORDERS" in finding for finding in verify_store(filled).findings)
    engine = Engine.open(filled)
    try:
        queue = engine.queue("ORDERS")
        assert queue.depth == 200
        assert len(engine.origins([1, 2, 3])) == 3
        with pytest.raises(StoreError, match="read message 2 on queue ORDERS"):
            list(engine.browse(queue))
    finally:
        engine.close()


@pytest.mark.parametrize("key", ["incarnation", "next_sequence", "next_batch"])
@pytest.mark.parametrize(
    "change_of", ["DELETE FROM meta", "UPDATE meta SET value = 1.5", "UPDATE meta SET value = 'x'"]
)
def test_a_store_without_its_incarnation_or_a_number_is_refused(filled, key, change_of):
    change(filled, f"{change_of} WHERE key = '{key}'")
    with pytest.raises(StoreError):
        Direct(filled)


def test_an_incarnation_that_became_a_number_is_refused_and_takes_no_memory(filled):
    change(filled, "UPDATE meta SET value = 1000000000000 WHERE key = 'incarnation'")
    for use in (Direct, verify_store):
        with pytest.raises(StoreError, match="incarnation"):
            use(filled)


@pytest.mark.parametrize("change_of", ["name = x'FF'", "description = x'00'"])
def test_a_queue_whose_name_is_no_text_is_a_store_error(filled, change_of):
    change(filled, f"UPDATE queue SET {change_of} WHERE name = 'ORDERS'")
    with pytest.raises(StoreError):
        Direct(filled)


@pytest.mark.parametrize("table", ["state", "object"])
@pytest.mark.parametrize("value", ["7", "'text'"])
def test_a_value_of_another_type_is_a_finding_of_a_check(filled, table, value):
    change(filled, "INSERT INTO state VALUES(7, x'01', x'02', 3)")
    column = "value" if table == "state" else "attributes"
    change(filled, f"UPDATE {table} SET {column} = {value}")
    assert not verify_store(filled).is_sound
    with pytest.raises(StoreError):
        Direct(filled)


def test_a_data_folder_that_cannot_be_made_is_a_store_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="open the data folder"):
        Direct(tmp_path / "file" / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_folder_is_refused(filled):
    for path in (filled / FILE_NAME, filled):
        path.chmod(0o500)
    try:
        with pytest.raises(StoreError):
            Direct(filled)
    finally:
        filled.chmod(0o700)


def test_a_disk_that_is_full_stops_the_program_and_every_put_that_returned_is_there(data_folder):
    program = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(data_folder)], capture_output=True, text=True, check=True, timeout=60
    )
    put = program.stdout.split()
    assert "nothing acknowledged was lost" in program.stderr
    with Direct(data_folder) as queue_manager:
        found = [message.msg_id.hex() for message in queue_manager.browse("ORDERS")]
    assert len(put) > 10
    assert found == put


# -- a file of the version before --------------------------------------------------------------------------------------


@pytest.fixture
def of_version_1(data_folder: Path) -> Path:
    """A data folder that the program wrote before it knew priorities and attributes."""
    data_folder.mkdir()
    (data_folder / FILE_NAME).write_bytes((STORES / "version_1.sqlite").read_bytes())
    return data_folder


@pytest.fixture
def of_version_2(data_folder: Path) -> Path:
    """A data folder that the program wrote before it knew checksums."""
    data_folder.mkdir()
    (data_folder / FILE_NAME).write_bytes((STORES / "version_2.sqlite").read_bytes())
    return data_folder


def test_a_file_of_version_1_is_read_with_all_that_is_in_it(of_version_1):
    with Direct(of_version_1) as queue_manager:
        found = list(queue_manager.browse("ORDERS"))
        described = {status.name: status.description for status in queue_manager.queues()}
    assert [(message.body, message.descriptor.priority) for message in found] == [
        (b"one", 0),
        (b"two", 9),
        (b"three", 5),
    ]
    assert found[1].descriptor.correl_id == b"pump".ljust(24, b"\0")
    assert found[2].msg_id == b"m" * 24
    assert described["ORDERS"] == "orders of the shop"
    store = Store.open(of_version_1)
    assert store.states(StateKind.SESSION) == [(b"client", b"value")]
    assert store.priorities(5) == {1: 0, 2: 9, 3: 5}
    store.close()


def test_an_upgraded_file_is_of_this_version_and_its_queues_stay_first_in_first_out(of_version_1):
    engine = Engine.open(of_version_1)
    assert engine.queue("ORDERS").definition["MSGDLVSQ"] == "FIFO"
    alter(engine, engine.queue("ORDERS").definition.altered({"MSGDLVSQ": "PRIORITY"}))
    assert [message.body for message in engine.browse(engine.queue("ORDERS"))] == [b"two", b"three", b"one"]
    engine.close()
    connection = apsw.Connection(str(of_version_1 / FILE_NAME))
    assert connection.pragma("user_version") == USER_VERSION
    connection.close()


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(of_version_1):
    change(of_version_1, "UPDATE message SET descriptor = x'02' WHERE sequence = 2")
    with pytest.raises(StoreError):
        Direct(of_version_1)
    connection = apsw.Connection(str(of_version_1 / FILE_NAME))
    assert connection.pragma("user_version") == 1
    assert "priority" not in str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'message'").get)
    connection.close()


def test_a_file_of_version_2_is_read_with_all_that_is_in_it_and_has_checksums_then(of_version_2):
    with Direct(of_version_2) as queue_manager:
        found = list(queue_manager.browse("WANTED"))
        assert queue_manager.name == "SHOP"
        assert queue_manager.inquire("ORDERS").number("MAXDEPTH") == 500
    assert [message.body for message in found] == [b"two", bytes(range(256)) * 40, b"one"]
    assert (found[0].descriptor.correl_id, found[0].backout_count) == (b"pump".ljust(24, b"\0"), 1)
    assert found[1].msg_id == b"m" * 24
    store = Store.open(of_version_2)
    assert store.states(StateKind.SESSION) == [(b"client", b"value")]
    assert [message.origin for _, message in store.messages((2,), 0)] == [b"origin"]
    store.close()
    assert verify_store(of_version_2).is_sound


def test_a_file_of_version_3_is_read_with_all_that_is_in_it_and_has_a_marker_then(data_folder):
    data_folder.mkdir()
    (data_folder / FILE_NAME).write_bytes((STORES / "version_3.sqlite").read_bytes())
    with Direct(data_folder) as queue_manager:
        found = list(queue_manager.browse("ORDERS"))
        assert queue_manager.name == "SHOP"
        assert queue_manager.inquire("ORDERS").number("MAXDEPTH") == 500
    assert [message.body for message in found] == [b"two", b"one", bytes(range(256)) * 40]
    assert (found[0].descriptor.correl_id, found[0].backout_count) == (b"pump".ljust(24, b"\0"), 1)
    (data_folder / MARKER_NAME).unlink()
    with pytest.raises(StoreWentBack, match="is missing"):
        Direct(data_folder)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_upgraded_file_has_the_tables_of_a_new_one(tmp_path, version):
    columns = []
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / FILE_NAME).write_bytes((STORES / f"version_{version}.sqlite").read_bytes())
    for name in ("new", "old"):
        Store.open(tmp_path / name).close()
        connection = apsw.Connection(str(tmp_path / name / FILE_NAME))
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns.append({table: list(connection.execute(f"PRAGMA table_info({table})")) for table in tables})
        connection.close()
    assert columns[0] == columns[1]


def test_nobody_else_can_read_the_store_nor_its_wal_in_a_folder_that_was_there_before(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    engine = Engine.open(folder)
    queue = engine.define("ORDERS")
    unit = engine.begin()
    engine.put(unit, queue, Message(MessageDescriptor(), b"secret"))
    engine.submit(unit)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    engine.close()
    assert "queue_manager.sqlite-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_wal_that_goes_while_the_store_is_opened_does_no_harm(filled, monkeypatch):
    """Who checked the store while nobody owned it takes the WAL along at the end."""
    wal, chmod = filled / f"{FILE_NAME}-wal", Path.chmod
    wal.touch()

    def go_before(path: Path, mode: int) -> None:
        if path == wal:
            path.unlink()
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", go_before)
    with Direct(filled) as queue_manager:
        assert queue_manager.depth("ORDERS") == 200


def test_a_file_in_the_place_of_the_data_folder_is_named(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match="not a folder"):
        Store.open(tmp_path / "data")
