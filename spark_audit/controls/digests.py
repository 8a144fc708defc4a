"""Signed digests against each other, their copies, and the segments that they speak of.

A digest names the head of its segment, and the head is the last link of a chain that holds every byte of it: with
integrity.hash and integrity.chain it stands for file hash and Merkle root, which `rfhbridge audit verify` computes
anew. So a trail that is written anew with a good chain is found, and one whose end or middle was taken away.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Parameter, Scope, Severity, all_of, trail_key, violations
from spark_audit.digest import (
    LARGEST_DIGEST_BYTES,
    DigestKind,
    MalformedDigest,
    digest_hash,
    digest_number,
    parse_digest,
)
from spark_audit.record import ZERO_HASH

_TEXTS: Final = ("kind", "gateway", "segment", "head", "previous", "public_key", "new_public_key")
_NUMBERS: Final = ("first_sequence", "last_sequence", "records")
_SCHEMA: Final = (
    "number long, problem string, file_sha256 string, inner_number long, is_signed boolean, "
    + ", ".join(f"{name} string" for name in _TEXTS)
    + ", "
    + ", ".join(f"{name} long" for name in _NUMBERS)
)
_NAMES: Final = tuple(column.split()[0] for column in _SCHEMA.split(", "))
#: Digests are small and many: so many tasks read them.
_READING_TASKS: Final = 2
_NUMBER_DIGITS: Final = 12


def read_digests(spark: SparkSession, folder: str) -> DataFrame:
    """Every digest in a folder, a row each, with what is wrong with its bytes. Nothing in a file makes this fail."""
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.digest").load(folder)
    name = sf.substring_index("path", "/", -1).alias("name")
    # A file that is too long for a digest is not loaded.
    short = files.where(sf.col("length") <= LARGEST_DIGEST_BYTES).select(name, "content")
    long = files.where(sf.col("length") > LARGEST_DIGEST_BYTES).select(
        name, sf.lit(None).cast("binary").alias("content")
    )
    return short.unionByName(long).coalesce(_READING_TASKS).mapInArrow(_parse_batches, _SCHEMA)


def no_digests(spark: SparkSession) -> DataFrame:
    """The frame of a trail that has none."""
    return spark.createDataFrame([], _SCHEMA)


def beside_segments(
    digests: DataFrame, lines: DataFrame, *, copies: DataFrame | None = None, public_key: str = ""
) -> DataFrame:
    """The frame of this control: each digest with the segment that it is of, and each segment that has none.

    `copies` and `public_key` (hex) are the outside anchor. All frames may have a column `trail`.
    """
    trail = list(trail_key(lines))
    measured = _measured(lines, trail)
    sequences = _sequences(lines, trail)
    stem = sf.when(sf.col("kind") == DigestKind.SEGMENT, sf.col("segment"))
    told = digests.withColumnRenamed("records", "lines_told").withColumn("stem", stem)
    told = told.join(sequences, [*trail, "stem", "gateway"], "left").join(measured, [*trail, "stem"], "full")
    return _with_copies(told, copies, trail).withColumn("anchor_key", sf.lit(public_key))


def _measured(lines: DataFrame, trail: list[str]) -> DataFrame:
    """Number of lines and last hash of each segment."""
    stem = sf.substring_index("segment", ".", 1).alias("stem")
    is_closed = ~sf.col("segment").endswith(".open")
    place = sf.struct("block", "place")
    return (
        lines.select(*trail, stem, is_closed.alias("is_closed"), "hash", place.alias("at"))
        .groupBy(*trail, "stem")
        .agg(
            sf.count("*").alias("lines"),
            sf.max_by("hash", "at").alias("actual_head"),
            sf.max("is_closed").alias("is_closed"),
        )
    )


def _sequences(lines: DataFrame, trail: list[str]) -> DataFrame:
    """First and last sequence of each gateway in each segment."""
    stem = sf.substring_index("segment", ".", 1).alias("stem")
    records = lines.where("is_record").select(*trail, stem, "gateway", "sequence")
    return records.groupBy(*trail, "stem", "gateway").agg(
        sf.min("sequence").alias("actual_first"), sf.max("sequence").alias("actual_last")
    )


def _with_copies(told: DataFrame, copies: DataFrame | None, trail: list[str]) -> DataFrame:
    if copies is None:
        return told.withColumn("copy_sha256", sf.lit(None).cast("string"))
    copied = copies.select(*trail, "number", sf.col("file_sha256").alias("copy_sha256"))
    return told.join(copied, [*trail, "number"], "full")


def _parse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    text, number = pa.string(), pa.int64()
    numbers = ("number", "inner_number", *_NUMBERS)
    types = {name: number if name in numbers else text for name in _NAMES} | {"is_signed": pa.bool_()}
    schema = pa.schema([(name, types[name]) for name in _NAMES])
    for batch in batches:
        rows = zip(batch.column("name").to_pylist(), batch.column("content").to_pylist(), strict=True)
        parsed = [_parsed(found, content) for name, content in rows if (found := digest_number(name)) is not None]
        yield pa.RecordBatch.from_pylist(parsed, schema=schema)


def _parsed(number: int, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {"number": number, "problem": f"longer than {LARGEST_DIGEST_BYTES} bytes"}
    row: dict[str, Any] = {"number": number, "file_sha256": digest_hash(content)}
    try:
        digest = parse_digest(content)
    except MalformedDigest as error:
        return row | {"problem": str(error).encode(errors="replace").decode()}
    told = {name: getattr(digest, name) for name in (*_TEXTS, *_NUMBERS)}
    return row | told | {"inner_number": digest.number, "is_signed": digest.is_signed_by(digest.public_key)}


def find(digests: DataFrame, *, required: bool) -> DataFrame:
    trail = list(trail_key(digests))
    files = _in_order(digests.where(sf.col("number").isNotNull()), trail)
    subject = sf.format_string("digests/%012d.digest", "number")
    found = [_said(files, wrong, subject, detail) for wrong, detail in _rules_of_digests()]
    found += [_said(files, wrong, sf.col("stem"), detail) for wrong, detail in _rules_of_segments()]
    return all_of(*found, *_about_the_whole(digests, trail, required=required))


def _said(frame: DataFrame, wrong: Column, subject: Column, detail: Column) -> DataFrame:
    told = frame.where(wrong).select(
        sf.coalesce("gateway", sf.lit("")).alias("gateway"),
        sf.coalesce("last_sequence", sf.lit(0)).alias("sequence"),
        subject.alias("of"),
        sf.coalesce(detail, sf.lit("")).alias("words"),
    )
    return violations(told, subject=sf.col("of"), detail=sf.col("words"))


def _in_order(files: DataFrame, trail: list[str]) -> DataFrame:
    """Each digest with what the ones before it make due: number, link, key, head of records, number of the segment."""
    in_order = Window.partitionBy(*trail).orderBy("number")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    key_after = sf.when(sf.col("new_public_key") != "", sf.col("new_public_key")).otherwise(sf.col("public_key"))
    of_segment = sf.col("kind") == DigestKind.SEGMENT
    segment_number = sf.substring("segment", 1, _NUMBER_DIGITS).try_cast("long")
    removed = sf.when(sf.col("kind") == DigestKind.RETENTION, segment_number)
    return files.select(
        "*",
        segment_number.alias("segment_number"),
        sf.try_add(sf.coalesce(sf.lag("number").over(in_order), sf.lit(0)), sf.lit(1)).alias("due_number"),
        sf.coalesce(sf.lag("file_sha256").over(in_order), sf.lit(ZERO_HASH)).alias("due_previous"),
        sf.last(key_after, ignorenulls=True).over(before).alias("due_key"),
        sf.coalesce(
            sf.last(sf.when(of_segment, sf.col("head")), ignorenulls=True).over(before), sf.lit(ZERO_HASH)
        ).alias("due_head"),
        sf.coalesce(sf.last(sf.when(of_segment, segment_number), ignorenulls=True).over(before), sf.lit(0)).alias(
            "segment_before"
        ),
        sf.coalesce(sf.max(removed).over(Window.partitionBy(*trail)), sf.lit(0)).alias("removed_up_to"),
    )


def _rules_of_digests() -> tuple[tuple[Column, Column], ...]:
    """What is wrong with a digest itself, and the words for it. A comparison with null finds nothing."""
    is_there, copied = sf.col("file_sha256").isNotNull(), sf.col("copy_sha256").isNotNull()
    of_segment = sf.col("kind") == DigestKind.SEGMENT
    return (
        (sf.col("problem").isNotNull(), sf.col("problem")),
        (
            sf.col("number") != sf.col("due_number"),
            sf.format_string("digest %d was due: digests are missing", "due_number"),
        ),
        (sf.col("inner_number") != sf.col("number"), sf.format_string("it holds digest %d", "inner_number")),
        (sf.col("previous") != sf.col("due_previous"), sf.lit("it does not follow the digest before it")),
        (~sf.col("is_signed"), sf.lit("its signature is not that of its key over its bytes: it was changed")),
        (sf.col("public_key") != sf.col("due_key"), sf.lit("it is signed by a key that no rotation brought")),
        (
            ~of_segment & (sf.col("head") != sf.col("due_head")),
            sf.lit("its head is not that of the last segment's digest"),
        ),
        (
            of_segment & (sf.col("segment_number") != sf.col("segment_before") + 1),
            sf.format_string(
                "it is of segment %d, which does not follow segment %d", "segment_number", "segment_before"
            ),
        ),
        (copied & ~is_there & sf.col("problem").isNull(), sf.lit("it is missing, though there is a copy of it")),
        (
            copied & is_there & (sf.col("file_sha256") != sf.col("copy_sha256")),
            sf.lit("it is not the digest that was copied"),
        ),
    )


def _rules_of_segments() -> tuple[tuple[Column, Column], ...]:
    """What is wrong between a digest and its segment."""
    of_segment, is_read = sf.col("kind") == DigestKind.SEGMENT, sf.col("lines").isNotNull()
    is_removed = sf.col("segment_number") <= sf.col("removed_up_to")
    zero = sf.lit(0)
    compared = (
        ("lines", sf.col("lines_told"), sf.col("lines")),
        ("first_sequence", sf.col("first_sequence"), sf.coalesce("actual_first", zero)),
        ("last_sequence", sf.col("last_sequence"), sf.coalesce("actual_last", zero)),
        ("head", sf.col("head"), sf.col("actual_head")),
    )
    unlike = (
        (
            of_segment & is_read & ~told.eqNullSafe(actual),
            sf.concat(
                sf.lit(f"{name}: its digest says "), told.cast("string"), sf.lit(", the segment "), _text(actual)
            ),
        )
        for name, told, actual in compared
    )
    return ((of_segment & ~is_read & ~is_removed, sf.lit("it is missing: its digest is there")), *unlike)


def _about_the_whole(digests: DataFrame, trail: list[str], *, required: bool) -> Iterator[DataFrame]:
    """Segments that have no digest though later ones do, a key that was given and never signed, no digest at all."""
    everywhere = Window.partitionBy(*trail)
    told = digests.select(
        "*",
        sf.max(sf.when(sf.col("kind") == DigestKind.SEGMENT, sf.col("stem"))).over(everywhere).alias("last_digested"),
        sf.collect_set("public_key").over(everywhere).alias("keys"),
        sf.row_number().over(everywhere.orderBy(sf.col("number").asc_nulls_last(), "stem")).alias("row"),
    )
    without = sf.col("number").isNull() & sf.col("is_closed")
    yield _said(
        told,
        without & (sf.col("stem") < sf.col("last_digested")),
        sf.col("stem"),
        sf.lit("it has no digest, later ones have"),
    )
    strange = (sf.col("anchor_key") != "") & (sf.col("row") == 1) & ~sf.array_contains("keys", sf.col("anchor_key"))
    yield _said(told, strange, sf.lit("digests"), sf.lit("none is signed by the public key that was given"))
    if required:
        none = without & (sf.size("keys") == 0)
        yield _said(told, none, sf.col("stem"), sf.lit("there is no digest at all: nothing is signed"))


def _text(value: Column) -> Column:
    return sf.coalesce(value.cast("string"), sf.lit("nothing"))


CONTROL = Control(
    identifier="integrity.digests",
    title="Signed digests and their segments agree",
    severity=Severity.ERROR,
    source="spark_audit/digest.py; RFC 8032",
    scope=Scope.DIGESTS,
    rule=find,
    parameters=(
        Parameter(
            name="required",
            value=False,
            unit="yes or no",
            meaning="whether closed segments without any digest are a violation",
        ),
    ),
)
