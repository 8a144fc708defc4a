"""Converts archives of messages on Spark: a DataFrame in, a DataFrame with a report for every message out.

    in     path or id     names the message                    data (binary)      message data, headers first
           format         string, may be left out or null      ccsid, encoding    integers, may be left out or null
    out    path or id, converted (binary), format (string), report (JSON),
           error (reason_code, reason_name, offset, text)

StrucId and Version tell a format, ccsid or encoding that is missing. A message that cannot be converted has an error
instead of converted, format and report, and the others go on. Only this module here uses `mappings`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from mappings.conversion.convert import Mode, convert
from mappings.errors import MappingError
from mappings.headers.detection import announcement_of
from mappings.table import Dialect
from spark_audit.archive.files import ArchiveError, archive_files, read_files, read_parquet

#: Messages handed to a worker at once. With IBM MQ's default of 4 MiB each they take a quarter of a worker's memory.
MESSAGES_PER_BATCH: Final = 64
_ARROW_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_NAMES: Final = ("path", "id")
_DESCRIPTION: Final = {"format": "string", "ccsid": "int", "encoding": "int"}
_FORMAT_BYTES: Final = 8
_OUTCOME: Final = (
    "converted binary, format string, report string, "
    "error struct<reason_code: int, reason_name: string, offset: int, text: string>"
)
_ERROR_TYPE: Final = pa.struct(
    [("reason_code", pa.int32()), ("reason_name", pa.string()), ("offset", pa.int32()), ("text", pa.string())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The result for an archive: the number of messages, and of those with an error."""

    messages: int
    failed: int


def convert_archive(spark: SparkSession, source: Path, target: Path, *, to: str, mode: str) -> Archive:
    """Converts every message of a folder and writes Parquet to `target`, which must not exist yet.

    A folder with *.parquet files is read as Parquet with the columns above. Any other folder, with its subfolders, has
    one message a file. `to` and `mode` are values of Dialect and Mode. Raises ArchiveError, and PySpark's errors if
    something cannot be read or written.
    """
    spark.conf.set(_ARROW_ROWS, str(MESSAGES_PER_BATCH))
    converted(read_archive(spark, source), to=Dialect(to), mode=Mode(mode)).write.parquet(str(target))
    written = spark.read.parquet(str(target))
    failed = sf.count_if(sf.col("error").isNotNull())
    row = written.agg(sf.count("*").alias("messages"), failed.alias("failed")).first()
    assert row is not None  # an aggregate without groups has one row
    return Archive(messages=row["messages"], failed=row["failed"])


def read_archive(spark: SparkSession, source: Path) -> DataFrame:
    """The messages of a folder, as `converted` takes them. Raises ArchiveError if it is no finished archive."""
    files = archive_files(source)
    if files.unread:
        raise ArchiveError(
            f"Spark does not read {source / files.unread[0]}: give it a name without _ or a dot in front"
        )
    if files.is_parquet:
        return read_parquet(spark, files)
    path = sf.concat(sf.lit(f"file:{files.folder}/"), sf.col("name"))
    return read_files(spark, files).select(path.alias("path"), "data")


def converted(messages: DataFrame, *, to: Dialect, mode: Mode = Mode.STRICT) -> DataFrame:
    """One row for each message: its name, and the new message with its report, or an error.

    Raises ArchiveError for a frame that lacks `data`, or both `path` and `id`.
    """
    name = next((name for name in _NAMES if name in messages.columns), None)
    if name is None or "data" not in messages.columns:
        held = ", ".join(messages.columns)
        raise ArchiveError(f"the archive has the columns {held}; it needs path or id, and data with the message")
    described = [_described(messages, column, type_name) for column, type_name in _DESCRIPTION.items()]
    taken = messages.select(sf.col(name).cast("string").alias(name), sf.col("data").cast("binary"), *described)
    convert_batches = partial(_convert_batches, to=to, mode=mode)
    return taken.mapInArrow(convert_batches, f"{name} string, {_OUTCOME}")


def _described(messages: DataFrame, column: str, type_name: str) -> Column:
    found = sf.col(column) if column in messages.columns else sf.lit(None)
    return found.cast(type_name).alias(column)


def _convert_batches(batches: Iterable[pa.RecordBatch], *, to: Dialect, mode: Mode) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        name = batch.schema.names[0]
        rows = [{name: row.pop(name), **_outcome(row, to=to, mode=mode)} for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=_schema(name))


def _schema(name: str) -> pa.Schema:
    return pa.schema(
        [
            (name, pa.string()),
            ("converted", pa.binary()),
            ("format", pa.string()),
            ("report", pa.string()),
            ("error", _ERROR_TYPE),
        ]
    )


def _outcome(row: dict[str, Any], *, to: Dialect, mode: Mode) -> dict[str, Any]:
    try:
        return _converted_row(row, to=to, mode=mode)
    except MappingError as error:
        return {
            "error": {
                "reason_code": error.reason_code,
                "reason_name": error.reason_name,
                "offset": error.offset,
                "text": error.hint.encode(errors="backslashreplace").decode(),
            }
        }


def _converted_row(row: dict[str, Any], *, to: Dialect, mode: Mode) -> dict[str, Any]:
    data = bytes(row["data"] or b"")
    announcement = announcement_of(
        data, format=_format(row["format"]), coded_char_set_id=row["ccsid"], encoding=row["encoding"]
    )
    conversion = convert(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
        to=to,
        mode=mode,
    )
    return {
        "converted": conversion.header + data[conversion.body_offset :],
        "format": conversion.format.decode("ascii").rstrip(),
        "report": json.dumps(conversion.report.as_dict()),
    }


def _format(text: str | None) -> bytes | None:
    """The 8 bytes of a Format. A longer text stays as it is, and matches no header."""
    return None if text is None else text.encode("ascii", "replace").ljust(_FORMAT_BYTES)
