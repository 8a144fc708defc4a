"""Checkpoints of a Delta log: the whole state of the table in one file, so that nobody reads each commit since years.

    NNNNNNNNNNNNNNNNNNNN.checkpoint.parquet    the state behind the commit of that number, a row an action
    _last_checkpoint                           its number, for readers

Every tenth commit has one. Commits and checkpoints that are older than a month, and older than another checkpoint of
that age, are removed. So readers go back a month, and the log stays short. The files of Parquet that a table no longer
names are removed at once (ingestion.py), as those of a table without a log.
Source: Delta Transaction Log Protocol, "Checkpoints", "Last Checkpoint File" and "Metadata Cleanup".
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.ingest.manifest import sync_folder
from spark_audit.location import Location

#: Commits from one checkpoint to the next.
EVERY: Final = 10
#: How long commits stay, and how long a removed file is named, milliseconds.
KEPT_MS: Final = 30 * 86_400_000
TOMBSTONES_MS: Final = 7 * 86_400_000
#: The form with one file; other programs write others, which are passed over.
CHECKPOINT: Final = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_LAST: Final = "_last_checkpoint"
_NANOSECONDS: Final = 1_000_000
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_ACTIONS: Final = {
    "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("createdTime", pa.int64()),
            ("configuration", _TEXTS),
        ]
    ),
    "add": pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", _TEXTS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ]
    ),
    "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
}
_SCHEMA: Final = pa.schema(list(_ACTIONS.items()))
#: Fields that are mappings, which Arrow gives as lists of pairs.
_MAPPINGS: Final = ("partitionValues", "options", "configuration")

Action = dict[str, Any]


def checkpoint_name(version: int) -> str:
    """The name of the checkpoint behind a commit."""
    return f"{version:020d}.checkpoint.parquet"


def write_checkpoint(log: Location, version: int, actions: Iterable[Action]) -> None:
    """Writes the state behind a commit, and then its number for readers. Raises OSError."""
    rows = list(actions)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), sink, compression="zstd")
    _put(log / checkpoint_name(version), sink.getvalue().to_pybytes())
    _put(log / _LAST, orjson.dumps({"version": version, "size": len(rows)}))


def read_checkpoint(place: Location) -> list[Action]:
    """The actions of a checkpoint. Raises OSError, and ValueError for what is none."""
    try:
        table = pq.read_table(pa.BufferReader(place.read_bytes()), columns=list(_ACTIONS))
    except pa.ArrowException as error:
        raise ValueError(f"{place} is no checkpoint of Delta: {error}") from None
    return [
        {name: _as_in_a_commit(value) for name, value in row.items() if value is not None} for row in table.to_pylist()
    ]


def _as_in_a_commit(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as commits have it, with mappings."""
    return {
        name: dict(each or ()) if name in _MAPPINGS else _as_in_a_commit(each) if isinstance(each, Mapping) else each
        for name, each in value.items()
    }


def remove_old(log: Location, now_ms: int) -> None:
    """Removes what is older than a month and than a checkpoint of that age. Raises OSError."""
    places = [(int(place.name[:20]), place) for place in log.iterdir() if re.match(r"[0-9]{20}\.", place.name)]
    old_ns = (now_ms - KEPT_MS) * _NANOSECONDS
    kept = max(
        (version for version, place in places if CHECKPOINT.fullmatch(place.name) and _written_ns(place) <= old_ns),
        default=0,
    )
    for version, place in sorted(places, key=lambda each: each[0]):
        if version < kept:
            place.unlink()


def _written_ns(place: Location) -> int:
    with suppress(FileNotFoundError):
        return int(place.stat().st_mtime_ns)
    return 2**63


def _put(place: Location, data: bytes) -> None:
    """Writes a file, whole, over an earlier one."""
    if not isinstance(place, Path):
        place.write_bytes(data)
        return
    unfinished = place.with_name(f".{place.name}.part")
    unfinished.write_bytes(data)
    unfinished.replace(place)
    sync_folder(place.parent)
