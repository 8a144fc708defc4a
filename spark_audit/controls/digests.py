"""Signed digests against each other, their copies, and the segments that they speak of.

A digest names the head of its segment, and the head is the last link of a chain that holds every byte of it: with
integrity.hash and integrity.chain it stands for file hash and Merkle root, which `rfhbridge audit verify` computes
anew. So a trail that is written anew with a good chain is found, and one whose end or middle was taken away.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Parameter, Scope, Severity, in_trail, trail_key, violations
from spark_audit.digest import (
    LARGEST_DIGEST_BYTES,
    DigestKind,
    MalformedDigest,
    digest_hash,
    digest_number,
    parse_digest,
)
from spark_audit.period import EVERYTHING, Period
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
#: When it is broken, and the words for it.
Rule = tuple[Column, Column]
#: Digests are small and many: so many tasks read them.
_READING_TASKS: Final = 2
_NUMBER_DIGITS: Final = 12


def read_digests(spark: SparkSession, folder: str, last_number: int = sys.maxsize) -> DataFrame:
    """Every digest in a folder up to a number, a row each, with what is wrong with its bytes.

    Nothing in a file makes this fail.
    """
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.digest").load(folder)
    name = sf.substring_index("path", "/", -1).alias("name")
    # A file that is too long for a digest is not loaded.
    short = files.where(sf.col("length") <= LARGEST_DIGEST_BYTES).select(name, "content")
    long = files.where(sf.col("length") > LARGEST_DIGEST_BYTES).select(
        name, sf.lit(None).cast("binary").alias("content")
    )
    parsed = short.unionByName(long).coalesce(_READING_TASKS).mapInArrow(_parse_batches, _SCHEMA)
    return parsed.where(sf.col("number") <= last_number)


def no_digests(spark: SparkSession) -> DataFrame:
    """The frame of a trail that has none."""
    return spark.createDataFrame([], _SCHEMA)


def beside_segments(
    digests: DataFrame,
    lines: DataFrame,
    *,
    due: Period | None = EVERYTHING,
    copies: DataFrame | None = None,
    public_key: str = "",
) -> DataFrame:
    """The frame of this control: each digest with the segment that it is of, and each segment that has none.

    `copies` and `public_key` (hex) are the outside anchor. A segment that has no line is missing where the lines of its
    hour are `due`, and always between two that have some; None where more segments are still to come. All frames may
    have a column `trail`.
    """
    trail = list(trail_key(lines))
    measured = _measured(lines, trail)
    sequences = _sequences(lines, trail)
    stem = sf.when(sf.col("kind") == DigestKind.SEGMENT, sf.col("segment"))
    told = digests.withColumnRenamed("records", "lines_told").withColumn("stem", stem)
    told = told.join(sequences, [*trail, "stem", "gateway"], "left").join(measured, [*trail, "stem"], "full")
    told = told.withColumn("is_due", _is_due(due, trail))
    return _with_copies(told, copies, trail).withColumn("anchor_key", sf.lit(public_key))


def _is_due(due: Period | None, trail: list[str]) -> Column:
    if due is not None and due.is_everything:
        return sf.lit(True)
    everywhere = Window.partitionBy(*trail)
    read = sf.when(sf.col("lines").isNotNull(), sf.col("stem"))
    is_between = sf.col("stem").between(sf.min(read).over(everywhere), sf.max(read).over(everywhere))
    return is_between if due is None else is_between | due.concerns(sf.col("stem"))


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
    """All rules in one pass: a row says each that it breaks."""
    trail = list(trail_key(digests))
    file = in_trail(digests, sf.format_string("digests/%012d.digest", "number"))
    segment = in_trail(digests, sf.col("stem"))
    whole = in_trail(digests, sf.lit("digests"))
    rules = [(file, *rule) for rule in _rules_of_digests()]
    rules += [(segment, *rule) for rule in (*_rules_of_segments(), *_rules_of_undigested(required=required))]
    strange = (sf.col("anchor_key") != "") & (sf.col("row") == 1) & ~sf.array_contains("keys", sf.col("anchor_key"))
    rules.append((whole, strange, sf.lit("none is signed by the public key that was given")))
    broken = [
        sf.when(wrong, sf.struct(subject.alias("subject"), detail.alias("detail"))) for subject, wrong, detail in rules
    ]
    told = _in_order(digests, trail).select(
        sf.coalesce("gateway", sf.lit("")).alias("gateway"),
        sf.coalesce("last_sequence", sf.lit(0)).alias("sequence"),
        sf.explode(sf.array_compact(sf.array(*broken))).alias("found"),
    )
    return violations(told, subject=sf.col("found.subject"), detail=sf.coalesce("found.detail", sf.lit("")))


def _in_order(digests: DataFrame, trail: list[str]) -> DataFrame:
    """Each row with what the ones before it make due, and what is known of the whole trail."""
    is_file = sf.col("number").isNotNull()
    in_order = Window.partitionBy(*trail, is_file).orderBy("number")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    everywhere = Window.partitionBy(*trail)
    key_after = sf.when(sf.col("new_public_key") != "", sf.col("new_public_key")).otherwise(sf.col("public_key"))
    of_segment, of_removal = (sf.col("kind") == kind for kind in (DigestKind.SEGMENT, DigestKind.RETENTION))
    number = sf.substring("segment", 1, _NUMBER_DIGITS).try_cast("long")

    def last_before(value: Column, otherwise: Column) -> Column:
        return sf.coalesce(sf.last(sf.when(of_segment, value), ignorenulls=True).over(before), otherwise)

    return digests.select(
        "*",
        number.alias("segment_number"),
        sf.try_add(sf.coalesce(sf.lag("number").over(in_order), sf.lit(0)), sf.lit(1)).alias("due_number"),
        sf.coalesce(sf.lag("file_sha256").over(in_order), sf.lit(ZERO_HASH)).alias("due_previous"),
        sf.last(key_after, ignorenulls=True).over(before).alias("due_key"),
        last_before(sf.col("head"), sf.lit(ZERO_HASH)).alias("due_head"),
        last_before(number, sf.lit(0)).alias("segment_before"),
        sf.coalesce(sf.max(sf.when(of_removal, number)).over(everywhere), sf.lit(0)).alias("removed_up_to"),
        sf.max(sf.when(of_segment, sf.col("stem"))).over(everywhere).alias("last_digested"),
        sf.collect_set("public_key").over(everywhere).alias("keys"),
        sf.row_number().over(everywhere.orderBy(sf.col("number").asc_nulls_last(), "stem")).alias("row"),
    )


def _rules_of_digests() -> tuple[Rule, ...]:
    """What is wrong with a digest itself, and the words for it. A comparison with null finds nothing."""
    is_there, copied = sf.col("file_sha256").isNotNull(), sf.col("copy_sha256").isNotNull()
    of_segment = sf.col("kind") == DigestKind.SEGMENT
    due, number = sf.col("due_number"), sf.col("number")
    return (
        (sf.col("problem").isNotNull(), sf.col("problem")),
        (number != due, sf.format_string("digest %d was due: digests are missing", due)),
        (sf.col("inner_number") != number, sf.format_string("it holds digest %d", "inner_number")),
        (sf.col("previous") != sf.col("due_previous"), sf.lit("it does not follow the digest before it")),
        (~sf.col("is_signed"), sf.lit("its signature is not that of its key over its bytes: it was changed")),
        (sf.col("public_key") != sf.col("due_key"), sf.lit("it is signed by a key that no rotation brought")),
        (
            ~of_segment & (sf.col("head") != sf.col("due_head")),
            sf.lit("its head is not that of the digest of the last segment"),
        ),
        (
            of_segment & (sf.col("segment_number") != sf.col("segment_before") + 1),
            sf.format_string(
                "it is of segment %d, which does not follow segment %d", "segment_number", "segment_before"
            ),
        ),
        (copied & ~is_there & sf.col("problem").isNull(), sf.lit("it is missing, though there is a copy of it")),
        (copied & (sf.col("file_sha256") != sf.col("copy_sha256")), sf.lit("it is not the digest that was copied")),
    )


def _rules_of_segments() -> tuple[Rule, ...]:
    """What is wrong between a digest and its segment."""
    of_segment, is_read = sf.col("kind") == DigestKind.SEGMENT, sf.col("lines").isNotNull()
    is_missing = of_segment & ~is_read & sf.col("is_due") & (sf.col("segment_number") > sf.col("removed_up_to"))
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
    return ((is_missing, sf.lit("it is missing: its digest is there")), *unlike)


def _rules_of_undigested(*, required: bool) -> tuple[Rule, ...]:
    """Segments that have no digest: behind the last one they wait for theirs."""
    without = sf.col("number").isNull() & sf.col("is_closed")
    overtaken = (without & (sf.col("stem") < sf.col("last_digested")), sf.lit("it has no digest, later ones have"))
    if not required:
        return (overtaken,)
    return overtaken, (without & (sf.size("keys") == 0), sf.lit("there is no digest at all: nothing is signed"))


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
