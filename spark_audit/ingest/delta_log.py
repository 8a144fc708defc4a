"""The log of a Delta table: any reader of Delta Lake sees the lines that the manifest names, each ingest as a whole.

    TO/records/_delta_log/00000000000000000000.json    one file a commit, one action a line

The table is the folder `records`: the same files of Parquet, with the columns `date` and `gateway_id` from the names of
their folders. The manifest still decides: a commit adds its missing files to the log, and removes files that it does
not name. So after a kill between the two the next ingest mends the log. The log is read from its first commit on.
Source: Delta Transaction Log Protocol, reader version 1 and writer version 2.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

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


@dataclass(slots=True)
class _State:
    """The state of a log: its last version (-1: there is none), the table's description, and its files."""

    version: int = -1
    metadata: dict[str, Any] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, log: Location) -> "_State":
        """Reads a log, commit by commit. Raises UnusableManifest, OSError."""
        state = cls()
        for number, place in enumerate(sorted(_commits(log), key=lambda place: place.name)):
            if int(place.name.partition(".")[0]) != number:
                raise UnusableManifest(f"{log} lacks commit {number}: remove the folder, and it is made anew")
            try:
                for line in place.read_bytes().splitlines():
                    state._heed(orjson.loads(line))
            except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
                raise UnusableManifest(f"{place} is no commit of Delta: {error!r}") from None
            state.version = number
        return state

    def _heed(self, action: dict[str, Any]) -> None:
        self.metadata = action.get("metaData", self.metadata)
        if "add" in action:
            self.paths.add(action["add"]["path"])
        if "remove" in action:
            self.paths.discard(action["remove"]["path"])


def _commits(log: Location) -> Iterator[Location]:
    with suppress(FileNotFoundError):
        yield from (place for place in log.iterdir() if _COMMIT.fullmatch(place.name))


def _commit(log: Location, state: _State, manifest: Manifest) -> None:
    """Writes the next commit, if there is something to say."""
    now_ms = time.time_ns() // 1_000_000
    files = {file.path.removeprefix(f"{RECORDS}/"): file for file in manifest.files}
    actions = [
        *_descriptions(state, now_ms),
        *({"remove": _removed(path, now_ms)} for path in sorted(state.paths - files.keys())),
        *({"add": _added(path, files[path], now_ms)} for path in sorted(files.keys() - state.paths)),
    ]
    if actions:
        told = {"commitInfo": {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "rfhbridge"}}
        lines = (orjson.dumps(action) for action in (told, *actions))
        _write(log / f"{state.version + 1:020d}.json", b"\n".join(lines) + b"\n")


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
