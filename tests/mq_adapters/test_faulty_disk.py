"""A disk that fails under the queue manager: it stops with a clear error, and nothing acknowledged is lost.

The faults come from a VFS between SQLite and the files: an fsync that fails, a write that fails or is short, a disk
that is full, a file that may not be written. Everything else is the real thing.
"""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.store.verification import verify_store
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError

VFS_NAME = "rfhbridge-faulty"


class Faults:
    """What goes wrong next: the name of a file call, how many of them succeed before, and what it raises."""

    def __init__(self) -> None:
        self.call = ""
        self.left = 0
        self.error: type[apsw.Error] = apsw.IOError
        self.is_short = False
        self.happened = 0

    def plan(self, call: str, error: type[apsw.Error], *, after: int = 0, is_short: bool = False) -> None:
        self.call, self.error, self.left, self.is_short = call, error, after, is_short

    def strike(self, call: str) -> bool:
        if call != self.call:
            return False
        self.left -= 1
        if self.left >= 0:
            return False
        self.happened += 1
        return True


class FaultyFile(apsw.VFSFile):
    def __init__(self, faults: Faults, name: object, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.faults = faults

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        if self.faults.strike("write"):
            if self.faults.is_short:
                super().xWrite(data[: len(data) // 2], offset)
            raise self.faults.error("a write failed")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        if self.faults.strike("sync"):
            raise self.faults.error("fsync: " + errno.errorcode[errno.EIO])
        super().xSync(flags)


class FaultyVfs(apsw.VFS):
    def __init__(self, faults: Faults) -> None:
        super().__init__(VFS_NAME, "unix", makedefault=True)
        self.faults = faults

    def xOpen(self, name: object, flags: list[int]) -> FaultyFile:  # noqa: N802  # SQLite's name
        return FaultyFile(self.faults, name, flags)


@pytest.fixture
def faults() -> Iterator[Faults]:
    """Faults in every file that SQLite opens from now on."""
    faults = Faults()
    vfs = FaultyVfs(faults)
    yield faults
    faults.plan("", apsw.IOError)
    vfs.unregister()


def put_until_it_fails(queue_manager: Direct, faulty: Callable[[], None]) -> tuple[list[str], StoreError]:
    """What was acknowledged, before and after the fault was planned, and the error that ended it."""
    acknowledged = [put(queue_manager, number) for number in range(20)]
    faulty()
    try:
        for number in range(20, 1_000):
            acknowledged.append(put(queue_manager, number))
    except StoreError as error:
        return acknowledged, error
    return pytest.fail("the fault was not noticed")


def put(queue_manager: Direct, number: int) -> str:
    return queue_manager.put("ORDERS", Message(MessageDescriptor(), b"%d" % number + bytes(3_000))).hex()


CASES = {
    "an fsync fails": (("sync", apsw.IOError), 0, False, "IOError"),
    "the tenth fsync fails": (("sync", apsw.IOError), 9, False, "IOError"),
    "a write fails": (("write", apsw.IOError), 5, False, "IOError"),
    "a write is short": (("write", apsw.IOError), 7, True, "IOError"),
    "the disk is full": (("write", apsw.FullError), 11, False, "the disk is full"),
    "the disk is full in the middle of a page": (("write", apsw.FullError), 12, True, "the disk is full"),
    "the file may not be written": (("write", apsw.ReadOnlyError), 0, False, "own the data folder"),
}


@pytest.mark.parametrize(("fault", "after", "is_short", "said"), CASES.values(), ids=CASES)
def test_a_disk_that_fails_stops_the_queue_manager_and_loses_nothing_acknowledged(
    faults, data_folder, fault, after, is_short, said
):
    queue_manager = Direct(data_folder)
    queue_manager.define("ORDERS")
    acknowledged, error = put_until_it_fails(queue_manager, lambda: faults.plan(*fault, after=after, is_short=is_short))
    assert faults.happened
    assert said in str(error)
    with pytest.raises(StoreError):
        put(queue_manager, 0)
    faults.plan("", apsw.IOError)
    queue_manager.close()
    assert_complete(data_folder, acknowledged)


def test_a_disk_that_recovers_does_not_bring_the_queue_manager_back(faults, data_folder):
    queue_manager = Direct(data_folder)
    queue_manager.define("ORDERS")
    acknowledged, _ = put_until_it_fails(queue_manager, lambda: faults.plan("sync", apsw.IOError))
    faults.plan("", apsw.IOError)
    for attempt in (lambda: put(queue_manager, 0), lambda: queue_manager.define("NEXT"), queue_manager.commit):
        with pytest.raises(StoreError):
            attempt()
    queue_manager.close()
    assert_complete(data_folder, acknowledged)


def test_a_get_whose_removal_cannot_be_written_leaves_the_message(faults, data_folder):
    queue_manager = Direct(data_folder)
    queue_manager.define("ORDERS")
    put(queue_manager, 1)
    faults.plan("sync", apsw.IOError)
    with pytest.raises(StoreError):
        queue_manager.get("ORDERS")
    faults.plan("", apsw.IOError)
    queue_manager.close()
    with Direct(data_folder) as again:
        assert [message.body[:1] for message in again.browse("ORDERS")] == [b"1"]


def test_an_object_that_cannot_be_written_is_not_there(faults, data_folder):
    queue_manager = Direct(data_folder)
    faults.plan("sync", apsw.IOError)
    with pytest.raises(StoreError):
        queue_manager.define("ORDERS")
    faults.plan("", apsw.IOError)
    queue_manager.close()
    assert verify_store(data_folder).is_sound


def assert_complete(data_folder: Path, acknowledged: list[str]) -> None:
    """The store is sound and has everything that was acknowledged, in order, and at most the doubtful one more."""
    assert verify_store(data_folder).findings == ()
    with Direct(data_folder) as queue_manager:
        found = [message.msg_id.hex() for message in queue_manager.browse("ORDERS")]
    assert found[: len(acknowledged)] == acknowledged
    assert len(found) - len(acknowledged) <= 1
