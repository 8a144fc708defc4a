"""The place of ingested lines: one writer at a time, the remains of a kill, and files brought into place.

A folder of this machine is locked. An object store has no locks, so there the manifest is compared before it is
replaced: of two ingests at the same time one fails, and what it wrote is removed by the next.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from spark_audit.ingest import delta_log
from spark_audit.ingest.manifest import DELTA_LOG, MANIFEST_FILE, RECORDS, DataFile, Manifest, sync_folder
from spark_audit.location import Location
from spark_audit.remote_location import RemoteLocation
from spark_audit.trail.digest import DIGEST_FOLDER

#: Where Spark writes files in a folder of this machine, before they are brought into place.
STAGING: Final = "staging"
LOCK: Final = "lock"
_OURS: Final = frozenset({LOCK, RECORDS, STAGING, DIGEST_FOLDER, f"{MANIFEST_FILE}.part"})
_BLOCK_BYTES: Final = 1024 * 1024


class InUse(Exception):
    """Another process uses the folder."""


class Damaged(Exception):
    """A file has changed since it was written."""


@contextmanager
def writing_to(folder: Location) -> Iterator[Manifest]:
    """The manifest, for the only writer. Removes files that it does not name.

    Raises InUse, UnusableManifest, OSError.
    """
    if not isinstance(folder, Path):
        yield _swept(folder)
        return
    with alone_in(folder):
        yield _swept(folder)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder of this machine, which is made if it is not there. Raises InUse, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"another process uses {folder}: wait for its end") from None
        yield


def _manifest_of(folder: Location) -> Manifest:
    """The manifest; an empty one if the folder is empty."""
    try:
        return Manifest.load(folder)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            if others := {path.name for path in folder.iterdir()} - _OURS:
                raise Damaged(f"{folder} holds {min(others)!r} and no manifest: name a folder of its own") from None
        return Manifest()


def _swept(folder: Location) -> Manifest:
    """The manifest, after the remains of an ingest that was killed were removed."""
    manifest = _manifest_of(folder)
    delta_log.follow(folder, manifest)
    if isinstance(folder, Path):
        shutil.rmtree(folder / STAGING, ignore_errors=True)
    named = {folder / file.path for file in manifest.files}
    for path in parquet_files(folder / RECORDS):
        if path not in named:
            path.unlink()
    return manifest


def bring_into_place(folder: Path, staged: Path, number: int) -> tuple[DataFile, ...]:
    """Moves Spark's files to their place, and syncs. No manifest names them yet."""
    files: list[DataFile] = []
    for place, path in enumerate(sorted(staged.rglob("part-*.parquet"))):
        target = folder / RECORDS / path.parent.relative_to(staged) / f"{number:08d}-{place:05d}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(target)
        sync_folder(target.parent)
        files.append(_described(folder, target))
    shutil.rmtree(staged)
    return tuple(files)


def _described(folder: Path, path: Path) -> DataFile:
    return DataFile(
        path=str(path.relative_to(folder)),
        rows=pq.read_metadata(path).num_rows,
        size_bytes=path.stat().st_size,
        sha256=_sha256(path),
    )


def replace_file(path: Location, data: bytes) -> None:
    """Writes a file as a whole. It is on the disk when this returns. Raises OSError."""
    if not isinstance(path, Path):
        path.write_bytes(data)
        return
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(path.parent)


def parquet_files(folder: Location) -> Iterator[Location]:
    """The files of Parquet below a folder, without those of a Delta log. Raises OSError."""
    if isinstance(folder, Path):
        return (path for path in folder.rglob("*.parquet") if path.parent.name != DELTA_LOG)
    assert isinstance(folder, RemoteLocation)
    files = (path for path in folder.files_below() if path.parent.name != DELTA_LOG)
    return (path for path in files if path.name.endswith(".parquet"))


def check_files(folder: Location, files: tuple[DataFile, ...]) -> None:
    """Raises Damaged if a file is missing, or has changed since it was written."""
    for file in files:
        path = folder / file.path
        try:
            is_same = path.stat().st_size == file.size_bytes and _sha256(path) == file.sha256
        except OSError as error:
            raise Damaged(f"{path} cannot be read: {error.strerror} (ingest into a new folder)") from None
        if not is_same:
            raise Damaged(f"{path} is not as it was written (ingest into a new folder)")


def _sha256(path: Location) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
