"""A store that is older than it was, or lost commits that were synced: found when it is opened and by verify.

What is refused stays byte for byte as it was, for whoever restores it.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store import store as store_module
from mq_adapters.embedded.store.journal_end import wal_path
from mq_adapters.embedded.store.layout import prepare
from mq_adapters.embedded.store.reach import read_marker
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME, StoreWentBack
from mq_adapters.embedded.store.store import FILE_NAME, Store
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError

#: So few that the WAL still has them all when the owner is killed: no check-point has copied them back.
ACKNOWLEDGED = 100
PUT_MANY = """
import sys
from pathlib import Path
from mq_adapters.embedded.direct import Direct
from mq_adapters.message import Message, MessageDescriptor
queue_manager = Direct(Path(sys.argv[1]))
queue_manager.define("ORDERS")
for number in range(int(sys.argv[2])):
    print(queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(500))).hex(), flush=True)
sys.stdin.read()
"""


def put(folder: Path, count: int = 1) -> None:
    with Direct(folder) as queue_manager:
        for _ in range(count):
            queue_manager.put("ORDERS", Message(MessageDescriptor(), bytes(500)))


def depth(folder: Path) -> int:
    with Direct(folder) as queue_manager:
        return queue_manager.depth("ORDERS")


def files(folder: Path) -> dict[str, bytes]:
    """What is evidence: everything but the lock, SQLite's index of the WAL, and a WAL without anything in it."""
    kept = (path for path in folder.iterdir() if not path.name.endswith((".lock", "-shm")))
    return {path.name: data for path in kept if (data := path.read_bytes())}


def put_back(folder: Path, kept: dict[str, bytes], *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
        if name in kept:
            (folder / name).write_bytes(kept[name])


def refused(folder: Path) -> str:
    """Why the store is not opened; opening and verifying change nothing."""
    before = files(folder)
    with pytest.raises(StoreWentBack) as caught:
        Direct(folder)
    assert not verify_store(folder).is_sound
    with pytest.raises(StoreWentBack):
        Direct(folder)
    assert files(folder) == before
    return str(caught.value)


@pytest.fixture
def killed(data_folder: Path) -> Path:
    """A data folder whose owner was killed when it had acknowledged ACKNOWLEDGED messages."""
    command = [sys.executable, "-c", PUT_MANY, str(data_folder), str(ACKNOWLEDGED)]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with owner:
        assert len([owner.stdout.readline() for _ in range(ACKNOWLEDGED)][-1]) == 49
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
    return data_folder


def test_a_store_whose_owner_was_killed_is_whole(killed):
    assert verify_store(killed).is_sound
    assert depth(killed) == ACKNOWLEDGED
    assert verify_store(killed).is_sound


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_one_flipped_bit_in_the_wal_is_told_with_what_it_hides(killed, share):
    wal = wal_path(killed / FILE_NAME)
    data = bytearray(wal.read_bytes())
    data[int(len(data) * share)] ^= 1
    wal.write_bytes(data)
    told = refused(killed)
    assert "is damaged at byte" in told
    assert "had been synced" in told
    assert "rfhbridge queue accept-rollback" in told


def test_a_flipped_bit_in_the_last_commit_is_known_by_the_marker(killed):
    wal = wal_path(killed / FILE_NAME)
    data = bytearray(wal.read_bytes())
    data[-100] ^= 1
    wal.write_bytes(data)
    assert "1 commits are missing" in refused(killed)


def test_a_torn_last_commit_that_no_marker_speaks_of_is_passed_over_and_told(killed, caplog):
    """As a loss of power leaves it: the marker was synced before."""
    wal, marker = wal_path(killed / FILE_NAME), killed / MARKER_NAME
    marker.write_bytes(marker.read_bytes()[:4_096])
    data = bytearray(wal.read_bytes())
    data[-100] ^= 1
    wal.write_bytes(data)
    assert depth(killed) == ACKNOWLEDGED - 1
    assert "store recovered torn_commits=1" in caplog.text
    assert verify_store(killed).is_sound
    put(killed)
    assert depth(killed) == ACKNOWLEDGED


@pytest.fixture
def grown(killed: Path) -> tuple[Path, dict[str, bytes]]:
    """A data folder that was used on, and what it held before."""
    put(killed)
    kept = files(killed)
    put(killed, 10)
    return killed, kept


def test_an_older_store_is_told_by_number_and_time(grown):
    folder, kept = grown
    put_back(folder, kept, FILE_NAME)
    told = refused(folder)
    assert "commits are missing" in told
    assert "numbers up to" in told


def test_an_older_store_of_the_same_run_is_told_after_a_kill(data_folder):
    """Numbers are reserved by the million: the marker knows every commit."""
    store = Store.open(data_folder)
    write(store, 1)
    kept = {name: (data_folder / name).read_bytes() for name in (FILE_NAME, f"{FILE_NAME}-wal")}
    for number in range(2, 6):
        write(store, number)
    newer = data_folder.with_name("newer")
    shutil.copytree(data_folder, newer)
    store.close()
    put_back(newer, kept, FILE_NAME, f"{FILE_NAME}-wal")
    assert "4 commits are missing" in refused(newer)


def write(store: Store, number: int) -> None:
    store.write(puts=[], removals=[], states=[(7, b"%d" % number, b"")], next_sequence=1, next_batch=number)
    store.commit()


def test_an_older_wal_is_told(killed):
    wal = wal_path(killed / FILE_NAME)
    older = wal.read_bytes()
    put(killed, 5)
    wal.write_bytes(older)
    assert "commits are missing" in refused(killed)


def test_a_store_without_its_marker_is_told(killed):
    (killed / MARKER_NAME).unlink()
    assert f"its marker {MARKER_NAME} is missing" in refused(killed)


def test_a_marker_that_is_damaged_in_both_places_is_told_and_in_one_is_not(killed):
    marker = killed / MARKER_NAME
    data = bytearray(marker.read_bytes())
    data[20] ^= 1
    marker.write_bytes(data)
    assert verify_store(killed).is_sound
    data[4_096 + 20] ^= 1
    marker.write_bytes(data)
    assert "queue_manager.marker is damaged" in refused(killed)


def test_a_store_that_is_gone_is_told_and_not_made_anew(killed):
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        (killed / name).unlink(missing_ok=True)
    with pytest.raises(StoreWentBack, match="is missing or empty, and its marker says commit"):
        Direct(killed)
    with pytest.raises(StoreError, match="is missing or empty"):
        verify_store(killed)
    assert not (killed / FILE_NAME).exists()


def test_another_store_beside_a_marker_is_told(killed, tmp_path):
    put_other = tmp_path / "other"
    with Direct(put_other) as queue_manager:
        queue_manager.define("ORDERS")
    put_back(killed, files(put_other), FILE_NAME, f"{FILE_NAME}-wal")
    assert "the store is of incarnation" in refused(killed)


def test_a_store_of_an_earlier_layout_gets_a_marker_and_is_held_against_one_that_is_there(data_folder):
    old = (Path(__file__).parent / "embedded" / "stores" / "version_3.sqlite").read_bytes()
    data_folder.mkdir()
    (data_folder / FILE_NAME).write_bytes(old)
    put(data_folder, 2)
    assert read_marker(data_folder / MARKER_NAME).commits
    (data_folder / FILE_NAME).write_bytes(old)
    assert "numbers up to" in refused(data_folder)


@pytest.mark.parametrize("version", ["", "version_3.sqlite"])
def test_a_crash_between_the_tables_and_the_marker_is_no_contradiction(data_folder, monkeypatch, version):
    data_folder.mkdir()
    if version:
        shutil.copy(Path(__file__).parent / "embedded" / "stores" / version, data_folder / FILE_NAME)

    def crash_behind(connection: apsw.Connection, path: Path) -> None:
        prepare(connection, path)
        raise OSError("the power failed")

    monkeypatch.setattr(store_module, "prepare", crash_behind)
    with pytest.raises(StoreError, match="the power failed"):
        Direct(data_folder)
    monkeypatch.undo()
    Direct(data_folder).close()
    assert verify_store(data_folder).is_sound


def test_the_marker_is_no_more_than_the_store_at_any_kill(data_folder):
    """It is written behind each commit: a copy that has the marker first and the store last always agrees."""
    store = Store.open(data_folder)
    for number in range(1, 20):
        write(store, number)
        seen = data_folder.with_name(f"seen-{number}")
        seen.mkdir()
        for name in (MARKER_NAME, f"{FILE_NAME}-wal", FILE_NAME):
            shutil.copy(data_folder / name, seen / name)
        assert read_marker(seen / MARKER_NAME).batch == number - 1
        Store.open(seen).close()
    store.close()


def test_a_marker_that_cannot_be_written_stops_the_store(data_folder, monkeypatch):
    store = Store.open(data_folder)
    write(store, 1)

    def fails(*_arguments: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwrite", fails)
    with pytest.raises(StoreError, match="Input/output error"):
        write(store, 2)
    monkeypatch.undo()
    store.close()
