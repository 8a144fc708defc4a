"""The log of a Delta table: any reader of Delta Lake sees the lines that the manifest names, each ingest as a whole.

    TO/records/_delta_log/00000000000000000000.json    one file a commit, one action a line

The table is the folder `records`: the same files of Parquet, with the columns `date` and `gateway_id` from the names of
their folders. The manifest still decides: a commit adds its missing files to the log, and removes files that it does
not name. So after a kill between the two the next ingest mends the log. The log is read from its last checkpoint on
(delta_checkpoint.py), or from its first commit.
Source: Delta Transaction Log Protocol, reader version 1 and writer version 2.
"""

import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from spark_audit.ingest.delta_checkpoint import (
    CHECKPOINT,
    EVERY,
    TOMBSTONES_MS,
    read_checkpoint,
    remove_old,
    write_checkpoint,
)
from spark_audit.ingest.manifest import DELTA_LOG, RECORDS, DataFile, Manifest, UnusableManifest, sync_folder
from spark_audit.location import Location
from spark_audit.record.columns import PARTITION
from spark_audit.schema import LINES

_COMMIT: Final = re.compile(r"([0-9]{20})\.json")
_PROTOCOL: Final = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
_PRIMITIVES: Final = {pa.int64(): "long", pa.string(): "string", pa.bool_(): "boolean"}


def begin(folder: Location, manifest: Manifest) -> None:
    """Makes a log for the files of a manifest, or brings an existing one up to date.

    Raises UnusableManifest, OSError.
    """
    log = folder / RECORDS / DELTA_LOG
    _commit(log, _State.of(log), manifest)


def follow(folder: Location, manifest: Manifest) -> None:
    """Brings an existing log up to date; makes none. Raises UnusableManifest, OSError."""
    log = folder / RECORDS / DELTA_LOG
    state = _State.of(log)
    if state.version >= 0:
        _commit(log, state, manifest)


def _heeded(place: Location, actions: Iterable[dict[str, Any]], state: "_State") -> None:
    """Carries out the actions of a file. Raises UnusableManifest."""
    try:
        for action in actions:
            state.heed(action)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise UnusableManifest(f"{place} is no commit of Delta: {error!r}") from None


@dataclass(slots=True)
class _State:
    """The state of a log: its last version (-1: there is none), the table's description, and its files.

    `files` and `removed` have the actions that named files last, by their paths.
    """

    version: int = -1
    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, log: Location) -> "_State":
        """Reads a log: its last checkpoint, and each commit behind it. Raises UnusableManifest, OSError."""
        state = cls()
        commits, checkpoints = _numbered(log)
        if checkpoints:
            state.version = max(checkpoints)
            place = checkpoints[state.version]
            _heeded(place, _actions_of(place), state)
        for number in range(state.version + 1, max(commits, default=-1) + 1):
            if number not in commits:
                raise UnusableManifest(f"{log} lacks commit {number}: remove the folder, and it is made anew")
            _heeded(commits[number], map(orjson.loads, commits[number].read_bytes().splitlines()), state)
            state.version = number
        return state

    def heed(self, action: dict[str, Any]) -> None:
        self.protocol = action.get("protocol", self.protocol)
        self.metadata = action.get("metaData", self.metadata)
        for name, there, other in (("add", self.files, self.removed), ("remove", self.removed, self.files)):
            if name in action:
                path = action[name]["path"]
                there[path] = action[name]
                other.pop(path, None)

    def actions(self, now_ms: int) -> Iterator[dict[str, Any]]:
        """The actions that make this state, for a checkpoint."""
        yield {"protocol": self.protocol}
        yield {"metaData": self.metadata}
        for each in self.files.values():
            yield {"add": each | {"dataChange": False}}
        for each in self.removed.values():
            if (each.get("deletionTimestamp") or 0) >= now_ms - TOMBSTONES_MS:
                yield {"remove": each | {"dataChange": False}}


def _actions_of(checkpoint: Location) -> list[dict[str, Any]]:
    try:
        return read_checkpoint(checkpoint)
    except ValueError as error:
        raise UnusableManifest(f"{error}: remove its folder, and it is made anew") from None


def _numbered(log: Location) -> tuple[dict[int, Location], dict[int, Location]]:
    """The commits and checkpoints of a log, by number."""
    commits: dict[int, Location] = {}
    checkpoints: dict[int, Location] = {}
    with suppress(FileNotFoundError):
        for place in log.iterdir():
            for form, found in ((_COMMIT, commits), (CHECKPOINT, checkpoints)):
                if matched := form.fullmatch(place.name):
                    found[int(matched[1])] = place
    return commits, checkpoints


def _commit(log: Location, state: _State, manifest: Manifest) -> None:
    """Writes the next commit, if there is something to say."""
    now_ms = time.time_ns() // 1_000_000
    files = {file.path.removeprefix(f"{RECORDS}/"): file for file in manifest.files}
    actions = [
        *_descriptions(state, now_ms),
        *({"remove": _removed(path, now_ms)} for path in sorted(state.files.keys() - files.keys())),
        *({"add": _added(path, files[path], now_ms)} for path in sorted(files.keys() - state.files.keys())),
    ]
    if actions:
        version = state.version + 1
        told = {"commitInfo": {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "rfhbridge"}}
        lines = (orjson.dumps(action) for action in (told, *actions))
        _write(log / f"{version:020d}.json", b"\n".join(lines) + b"\n")
        if version and version % EVERY == 0:
            for action in actions:
                state.heed(action)
            write_checkpoint(log, version, state.actions(now_ms))
            remove_old(log, now_ms)


def _descriptions(state: _State, now_ms: int) -> Iterator[dict[str, Any]]:
    """The description of the table, for the first commit, and if a new version of the record has more fields."""
    schema = orjson.dumps(_struct()).decode()
    if state.version < 0:
        yield _PROTOCOL
    if state.metadata.get("schemaString") != schema:
        yield {
            "metaData": {
                "id": state.metadata.get("id", str(uuid.uuid4())),
                "name": "records",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [name for name, _kind, _meaning in PARTITION],
                "createdTime": state.metadata.get("createdTime", now_ms),
                "configuration": {},
            }
        }


def _struct() -> dict[str, Any]:
    columns = [
        *((column.name, _type_of(column.type)) for column in LINES),
        *((name, kind) for name, kind, _meaning in PARTITION),
    ]
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return {"type": "struct", "fields": fields}


def _type_of(kind: pa.DataType) -> str | dict[str, Any]:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type_of(kind.value_type), "containsNull": True}
    return _PRIMITIVES[kind]


def _added(path: str, file: DataFile, now_ms: int) -> dict[str, Any]:
    return {
        "path": path,
        "partitionValues": _partition_values(path),
        "size": file.size_bytes,
        "modificationTime": now_ms,
        "dataChange": True,
        "stats": orjson.dumps({"numRecords": file.rows}).decode(),
    }


def _removed(path: str, now_ms: int) -> dict[str, Any]:
    return {"path": path, "deletionTimestamp": now_ms, "dataChange": True}


def _partition_values(path: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in path.split("/")[:-1])


def _write(place: Location, data: bytes) -> None:
    """Writes a commit whole, unless another process wrote it meanwhile. Raises UnusableManifest, OSError."""
    if not isinstance(place, Path):
        if place.exists():
            raise _overtaken(place)
        place.write_bytes(data)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.part")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(unfinished, place)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise _overtaken(place) from None
    finally:
        unfinished.unlink()
    sync_folder(place.parent)


def _overtaken(place: Location) -> UnusableManifest:
    return UnusableManifest(f"another process wrote {place} meanwhile: ingest once more")
