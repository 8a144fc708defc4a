"""A backup of a store while it is in use: one file, with everything that was committed at one moment.

To restore it, stop the gateway and put the file into an empty data folder under the name `queue_manager.sqlite`. Later
commits are then missing. So the gateway refuses to start until an operator has accepted that (`rfhbridge queue
accept-rollback`). Then a new incarnation begins, so that no number comes again. Never let a restored store and its
original both send to one remote queue manager.
"""

import os
from pathlib import Path

import apsw

from mq_adapters.embedded.store.readers import may_be_ended
from mq_adapters.embedded.store.store import FILE_NAME, LOCK_NAME
from mq_adapters.embedded.store.verification import StoreVerification, verify_file
from mq_adapters.reasons import StoreError


def back_up(data_dir: Path, target: Path) -> StoreVerification:
    """Writes the backup, checks it, and gives it its name when it is on the disk. It replaces no file.

    Raises StoreError if there is no store, the target exists, or the disk fails. Then it leaves no target.
    """
    source = data_dir / FILE_NAME
    operation = f"back up {source}"
    if not source.is_file():
        raise StoreError(operation, "there is no store", "name the data folder with --data")
    if target.exists():
        raise StoreError(operation, f"{target} is there already", "name a new file")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        _copy(source, unfinished)
        verification = verify_file(unfinished)
        _synchronize(unfinished)
        unfinished.rename(target)
        _synchronize(target.parent)
    except StoreError:
        unfinished.unlink(missing_ok=True)
        raise
    except (apsw.Error, OSError) as error:
        unfinished.unlink(missing_ok=True)
        raise StoreError(operation, str(error), "look at the disks of both files; the store is as it was") from error
    return verification


def _copy(source: Path, target: Path) -> None:
    """Copies the store as it is at one moment, however much is written meanwhile."""
    reader = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        reader.set_busy_timeout(10_000)
        reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # the WAL may be evidence
        with may_be_ended(source.with_name(LOCK_NAME), reader):
            reader.execute("VACUUM INTO ?", (str(target.absolute()),))
    finally:
        reader.close()


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
