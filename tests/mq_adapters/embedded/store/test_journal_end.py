"""The end of the WAL: what SQLite will read of it, and what it would hide behind a damaged frame."""

import shutil
from pathlib import Path
from random import Random

import apsw
import pytest

from mq_adapters.embedded.store.journal_end import JournalEnd, journal_end, synced_commits, wal_path

COMMITS = 40
HEADER_BYTES = 32
FRAME_BYTES = 24 + 4_096


def connection_to(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A database in whose WAL stand a table and COMMITS rows, each a commit; its copy, as a kill leaves it."""
    path, copy = tmp_path / "open.sqlite", tmp_path / "killed.sqlite"
    connection = connection_to(path)
    connection.execute("CREATE TABLE message(number, body)")
    for number in range(COMMITS - 1):
        connection.execute("INSERT INTO message VALUES(?, zeroblob(3000))", (number,))
    for before, after in ((path, copy), (wal_path(path), wal_path(copy))):
        shutil.copy(before, after)
    connection.close()
    return copy


def flip(path: Path, offset: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


def rows(path: Path) -> int:
    """What SQLite reads."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    has_table = connection.execute("SELECT count(*) FROM sqlite_schema").get
    found = connection.execute("SELECT count(*) FROM message").get if has_table else -1
    connection.close()
    return found


def test_a_sound_wal_has_its_commits_and_no_damage(store):
    assert journal_end(store) == JournalEnd(commits=COMMITS)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_ends_it_where_it_ends_for_sqlite_and_what_is_hidden_is_counted(store, seed):
    wal, random = wal_path(store), Random(seed)
    flip(wal, random.randrange(HEADER_BYTES, wal.stat().st_size), random.randrange(8))
    end = journal_end(store)
    assert end.commits == rows(store) + 1
    assert end.commits + end.lost + end.torn == COMMITS
    assert end.torn <= 1
    assert end.is_damaged


def test_damage_to_the_very_last_commit_may_be_a_torn_end(store):
    flip(wal_path(store), wal_path(store).stat().st_size - 100)
    end = journal_end(store)
    assert (end.commits, end.lost, end.torn) == (COMMITS - 1, 0, 1)


def test_damage_to_the_last_commit_but_one_is_a_loss(store):
    flip(wal_path(store), wal_path(store).stat().st_size - 100 - 3 * FRAME_BYTES)
    assert journal_end(store).lost


@pytest.mark.parametrize("offset", [0, 5, 9, 17, 21, 25])
def test_a_header_that_is_damaged_hides_every_commit(store, offset):
    flip(wal_path(store), offset, 3)
    end = journal_end(store)
    assert rows(store) == -1
    assert (end.commits, end.damaged_at, end.torn) == (0, 0, 0)
    assert end.lost >= COMMITS - 1  # one more where the first frame alone tells which salts are those of now


def test_frames_from_before_the_wal_began_anew_are_no_damage(tmp_path):
    path = tmp_path / "a.sqlite"
    connection = connection_to(path)
    connection.execute("CREATE TABLE message(number, body)")
    for number in range(COMMITS):
        connection.execute("INSERT INTO message VALUES(?, zeroblob(3000))", (number,))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    connection.execute("INSERT INTO message VALUES(7, NULL)")
    size = wal_path(path).stat().st_size
    assert size > COMMITS * FRAME_BYTES
    assert journal_end(path) == JournalEnd(commits=1)
    connection.execute("INSERT INTO message VALUES(8, NULL)")
    assert journal_end(path) == JournalEnd(commits=2)
    connection.close()


def test_what_was_cut_within_a_frame_and_an_empty_wal_are_no_damage(store, tmp_path):
    wal = wal_path(store)
    wal.write_bytes(wal.read_bytes()[:-1])
    assert journal_end(store) == JournalEnd(commits=COMMITS - 1)
    wal.write_bytes(b"")
    assert journal_end(store) == JournalEnd()
    assert journal_end(tmp_path / "none") == JournalEnd()


@pytest.mark.parametrize(
    ("marks", "is_followed", "synced"),
    [
        (0, False, 0),
        (0, True, 0),
        (1, False, 0),  # the last commit, torn
        (1, True, 1),
        (2, False, 1),
        (9, True, 9),
    ],
)
def test_a_commit_is_written_only_when_all_before_it_are_synced(marks, is_followed, synced):
    assert synced_commits(marks, is_followed=is_followed) == synced
