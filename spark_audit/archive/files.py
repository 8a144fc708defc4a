"""Archives of captured messages, read: a folder with one message a file, or Parquet.

    Parquet   path or id                     names the message
              data (binary)                  message data, headers first
              format, ccsid, encoding        those of its MQMD; may be missing or null: then they are found
              converted (binary)             its conversion, and converted_format, converted_ccsid,
              report (JSON), error           converted_encoding; error is not null if there is no conversion
    files     the path within the folder names the message; report.jsonl is the report of converted ones

The conversions may lie in a folder of their own, as `rfhbridge convert` and `python -m spark_audit convert` write them.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, StringType, StructField, StructType

#: The longest message that IBM MQ takes, bytes (MAXMSGL).
LONGEST_MESSAGE_BYTES: Final = 104_857_600
REPORT_FILE: Final = "report.jsonl"
_NAMES: Final = ("path", "id")
_PARQUET: Final = ".parquet"
#: Files that Spark leaves beside Parquet, and that carry no data.
_MARKERS: Final = ("_SUCCESS", "_metadata", "_common_metadata")
_CHECKSUM: Final = ".crc"
#: Endings of files that programs have not finished.
_UNFINISHED: Final = (".part", ".partial", ".tmp", ".inprogress", ".crdownload", "._copying_")
_UNFINISHED_FOLDER: Final = "_temporary"
_DESCRIPTION: Final = {"format": "string", "ccsid": "int", "encoding": "int"}
_MADE: Final = StructType(
    [
        StructField("made", BinaryType()),
        StructField("made_format", StringType()),
        StructField("made_ccsid", IntegerType()),
        StructField("made_encoding", IntegerType()),
        StructField("report", StringType()),
        StructField("is_refused", BooleanType()),
    ]
)


class ArchiveError(Exception):
    """A frame or a folder is no archive of messages, by the operator's fault. The text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFiles:
    """The files of a folder.

    Spark silently skips two kinds: `unread` are names that begin with _ or a dot, `empty` are files without a byte.
    """

    folder: Path
    is_parquet: bool
    count: int
    size_bytes: int
    unread: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def archive_files(folder: Path) -> ArchiveFiles:
    """Looks through a folder. Raises ArchiveError if it is empty, half-written or mixed, or has a file that blocks."""
    names: list[str] = []
    unread: list[str] = []
    empty: list[str] = []
    size_bytes = 0
    for path in _files(folder):
        name = str(path.relative_to(folder))
        if _is_marker(path.name):
            continue
        if any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts):
            unread.append(name)
            continue
        names.append(name)
        length = path.stat().st_size
        size_bytes += length
        if not length:
            empty.append(name)
    if not names:
        raise ArchiveError(f"{folder} holds no file that can be read")
    parquet = sum(name.endswith(_PARQUET) for name in names)
    if parquet and parquet < len(names):
        other = next(name for name in names if not name.endswith(_PARQUET))
        raise ArchiveError(f"{folder} holds Parquet and other files ({other}): name a folder with one kind of them")
    if parquet and empty:
        raise ArchiveError(f"{folder / empty[0]} is empty: the archive is half-written")
    return ArchiveFiles(
        folder=folder.resolve(),
        is_parquet=bool(parquet),
        count=len(names),
        size_bytes=size_bytes,
        unread=tuple(sorted(unread)),
        empty=tuple(empty),
    )


def read_messages(spark: SparkSession, files: ArchiveFiles) -> DataFrame:
    """The messages: name, data (null if too long for a message), size, and the known fields of the MQMD."""
    if not files.is_parquet:
        content = read_files(spark, files)
        nothing = [sf.lit(None).cast(kind).alias(name) for name, kind in _DESCRIPTION.items()]
        return content.select("name", "data", "size_bytes", *nothing)
    frame = read_parquet(spark, files)
    return frame.select(*_messages(frame, files))


def read_files(spark: SparkSession, files: ArchiveFiles) -> DataFrame:
    """Name, data and size of one message a file. The content of a file that is too long is not read."""
    found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(str(files.folder))
    is_message = sf.col("length") <= LONGEST_MESSAGE_BYTES
    named = (_within(sf.col("path"), files).alias("name"), sf.col("length").alias("size_bytes"))
    read = found.where(is_message).select(*named, sf.col("content").alias("data"))
    too_long = found.where(~is_message).select(*named, sf.lit(None).cast("binary").alias("data"))
    rows = [(name, 0, b"") for name in files.empty]
    empty = spark.createDataFrame(rows, "name string, size_bytes long, data binary")
    return read.unionByName(too_long).unionByName(empty)


def read_parquet(spark: SparkSession, files: ArchiveFiles) -> DataFrame:
    """The rows of Parquet with all their columns."""
    return spark.read.option("recursiveFileLookup", "true").parquet(str(files.folder))


def holds_conversions(spark: SparkSession, files: ArchiveFiles) -> bool:
    """Whether each message has its conversion beside it, in the same row."""
    return files.is_parquet and "converted" in read_parquet(spark, files).columns


def without_conversions(messages: DataFrame) -> DataFrame:
    """A row for each message in the form of `paired`, without a conversion."""
    nothing = {field.name: sf.lit(None).cast(field.dataType).alias(field.name) for field in _MADE.fields}
    return _flagged(messages.withColumns(nothing).withColumn("has_message", sf.lit(True)))


def pairs_in_rows(spark: SparkSession, files: ArchiveFiles) -> DataFrame:
    """A row for each message of Parquet in the form of `paired`, with the conversion in its own row."""
    frame = read_parquet(spark, files)
    made = _made(frame, "converted", "converted_")
    known = _messages(frame, files)
    return _flagged(frame.select(*known, *made).withColumn("has_message", sf.lit(True)))


def read_conversions(spark: SparkSession, files: ArchiveFiles, source: ArchiveFiles) -> DataFrame:
    """The conversions in a folder of their own, by the name of the message in `source`."""
    if not files.is_parquet:
        return _read_converted_files(spark, files)
    frame = read_parquet(spark, files)
    made = _made(frame, "converted" if "converted" in frame.columns else "data", "")
    return frame.select(_name_of(frame, source, files).alias("name"), *made)


def paired(messages: DataFrame, made: DataFrame) -> DataFrame:
    """A row for each name: the message and its conversion, if they exist.

    If a name stands twice, nobody knows which message goes with which conversion. So its rows stand alone, and are
    marked.
    """
    sides = messages.withColumn("has_message", sf.lit(True)).unionByName(made, allowMissingColumns=True)
    of_name = Window.partitionBy("name")
    times = [sf.count(side).over(of_name) for side in (sf.col("has_message"), sf.when(sf.isnull("has_message"), 1))]
    turn = sf.row_number().over(of_name.orderBy("has_message"))
    counted = sides.withColumn("is_doubled", sf.greatest(*times) > 1).withColumn("turn", turn)
    rows = counted.groupBy("name", "is_doubled", sf.when(sf.col("is_doubled"), sf.col("turn")).alias("turn"))
    columns = [name for name in sides.columns if name != "name"]
    return _flagged(rows.agg(*(sf.first(name, ignorenulls=True).alias(name) for name in columns)).drop("turn"))


def _flagged(pairs: DataFrame) -> DataFrame:
    whole = pairs.withColumn("has_made", sf.col("made").isNotNull())
    missing = {name: sf.lit(False) for name in ("is_doubled",) if name not in whole.columns}
    flags = ("has_message", "is_refused", "is_doubled")
    return whole.withColumns(missing).withColumns({flag: sf.coalesce(flag, sf.lit(False)) for flag in flags})


# -- files ---------------------------------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[Path]:
    """Every file. Links are not followed.

    Anything but a file or folder is an error, because a reader might wait for ever.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if entry.name == _UNFINISHED_FOLDER:
                    raise ArchiveError(f"{path} belongs to a Spark that is writing: the archive is half-written")
                yield from _files(path)
            elif not entry.is_file():
                raise ArchiveError(f"{path} is not a plain file; remove it")
            elif entry.name.lower().endswith(_UNFINISHED):
                raise ArchiveError(f"{path} has the name of an unfinished file: the archive is half-written")
            else:
                yield path


def _is_marker(name: str) -> bool:
    return name in _MARKERS or (name.startswith(".") and name.endswith(_CHECKSUM))


def _read_converted_files(spark: SparkSession, files: ArchiveFiles) -> DataFrame:
    read = read_files(spark, files).where(sf.col("name") != REPORT_FILE)
    nothing = [sf.lit(None).cast(kind).alias(f"made_{name}") for name, kind in _DESCRIPTION.items()]
    made = read.select("name", sf.col("data").alias("made"), *nothing)
    report = files.folder / REPORT_FILE
    if not report.is_file():
        return made.withColumn("report", sf.lit(None).cast("string")).withColumn("is_refused", sf.lit(False))
    line = sf.col("value")
    reports = spark.read.text(str(report)).select(
        sf.get_json_object(line, "$.path").alias("name"),
        sf.get_json_object(line, "$.report").alias("report"),
        sf.get_json_object(line, "$.error").isNotNull().alias("is_refused"),
    )
    return made.join(reports.where(sf.col("name").isNotNull()).dropDuplicates(["name"]), "name", "full_outer")


# -- Parquet -------------------------------------------------------------------------------------------------------


def _messages(frame: DataFrame, files: ArchiveFiles) -> list[Column]:
    name = _name_of(frame, files)
    _check_binary(frame, "data")
    size = sf.octet_length("data").cast("long")
    data = sf.when(size <= LONGEST_MESSAGE_BYTES, sf.col("data"))
    described = [_described(frame, column, column, kind) for column, kind in _DESCRIPTION.items()]
    return [name.alias("name"), data.alias("data"), size.alias("size_bytes"), *described]


def _made(frame: DataFrame, data: str, prefix: str) -> list[Column]:
    _check_binary(frame, data)
    is_refused = sf.col("error").isNotNull() if "error" in frame.columns else sf.lit(False)
    return [
        sf.when(sf.octet_length(data) <= LONGEST_MESSAGE_BYTES, sf.col(data)).alias("made"),
        *(_described(frame, f"{prefix}{column}", f"made_{column}", kind) for column, kind in _DESCRIPTION.items()),
        _described(frame, "report", "report", "string"),
        is_refused.alias("is_refused"),
    ]


def _check_binary(frame: DataFrame, column: str) -> None:
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    if not isinstance(kinds.get(column), BinaryType):
        held = ", ".join(f"{name} {kind.simpleString()}" for name, kind in kinds.items())
        raise ArchiveError(f"the archive has the columns {held}; it needs path or id, and {column} (binary)")


def _name_of(frame: DataFrame, *folders: ArchiveFiles) -> Column:
    name = next((name for name in _NAMES if name in frame.columns), None)
    if name is None:
        held = ", ".join(frame.columns)
        raise ArchiveError(f"the archive has the columns {held}; it needs path or id, and data with the message")
    return _within(sf.coalesce(sf.col(name).cast("string"), sf.lit("")), *folders)


def _within(path: Column, *folders: ArchiveFiles) -> Column:
    """A path from its folder on. Any other text stays as it is."""
    name = path
    for files in folders:
        for prefix in (f"file://{files.folder}/", f"file:{files.folder}/", f"{files.folder}/"):
            name = sf.when(path.startswith(prefix), sf.substring(path, len(prefix) + 1, 1 << 30)).otherwise(name)
    return name


def _described(frame: DataFrame, column: str, name: str, kind: str) -> Column:
    found = sf.col(column) if column in frame.columns else sf.lit(None)
    return found.cast(kind).alias(name)
