"""Integrity of the records: lines, hashes, links, numbers, and the gaps that the trail itself tells.

Digests have a module of their own (digests.py), and so have values that do not exist (values.py).
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, in_trail, trail_key, violations
from spark_audit.controls.window_edge import FROM_START, numbered_apart
from spark_audit.record import ZERO_HASH, Kind


def find_lines(lines: DataFrame) -> DataFrame:
    """Lines that are no audit records. Every other control sets them aside.

    Each is named by its file and number, from 1; only the files that have one are counted through.
    """
    file = [*trail_key(lines), "segment"]
    damaged = lines.where(~sf.col("is_record")).select(*file).distinct()
    order = Window.partitionBy(*file).orderBy("block", "place")
    numbered = lines.join(damaged, file, "left_semi").withColumn("number", sf.row_number().over(order))
    return violations(
        numbered.where(~sf.col("is_record")),
        subject=in_trail(numbered, sf.concat(sf.col("segment"), sf.lit(", line "), sf.col("number").cast("string"))),
        detail=sf.concat(sf.lit("no audit record: "), sf.col("line")),
    )


LINES = Control(
    identifier="integrity.lines",
    title="Every line of the trail is an audit record",
    severity=Severity.ERROR,
    source="spark_audit/record: the audit record",
    scope=Scope.LINES,
    rule=find_lines,
)


def find_changed_lines(records: DataFrame) -> DataFrame:
    """Lines whose bytes do not have the hash that the line carries."""
    changed = records.where(~sf.col("hash").eqNullSafe(sf.col("actual_hash")))
    detail = sf.concat(sf.lit("the line's bytes have hash "), sf.col("actual_hash"), sf.lit(": the line was changed"))
    return violations(changed, subject=in_trail(changed, sf.col("segment")), detail=detail)


HASHES = Control(
    identifier="integrity.hash",
    title="Each record carries the hash of its own bytes",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `hash`",
    scope=Scope.RECORDS,
    rule=find_changed_lines,
)


def find_broken_links(records: DataFrame, *, from_start: bool) -> DataFrame:
    """Records that do not name the hash of the record before them, across segments too.

    The order is that of the lines in the files. Sorting by number would hide that two lines were swapped.
    """
    trail = trail_key(records)
    links = records.select(*trail, "gateway", "sequence", "segment", "block", "place", "prev", "hash")
    in_segment = Window.partitionBy(*trail, "segment").orderBy("block", "place")
    linked = links.withColumn("before", sf.lag("hash").over(in_segment))
    start = sf.lit(ZERO_HASH) if from_start else sf.col("prev")
    joined = linked.join(sf.broadcast(_heads(links, trail)), [*trail, "segment"]).withColumn(
        "due", sf.coalesce("before", "head_before", start)
    )
    broken = joined.where(~sf.col("prev").eqNullSafe(sf.col("due")))
    detail = sf.concat(sf.lit("prev is not the hash of the record before, "), sf.coalesce("due", sf.lit("none")))
    return violations(broken, subject=in_trail(broken, sf.col("segment")), detail=detail)


def _heads(links: DataFrame, trail: tuple[str, ...]) -> DataFrame:
    """For each segment the last hash of the segment before: a row a file, so one partition is enough."""
    lasts = links.groupBy(*trail, "segment").agg(sf.max_by("hash", sf.struct("block", "place")).alias("head"))
    in_order = Window.partitionBy(*trail).orderBy("segment")
    return lasts.select(*trail, "segment", sf.lag("head").over(in_order).alias("head_before"))


CHAIN = Control(
    identifier="integrity.chain",
    title="Each record is linked to the record before it",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `prev`",
    scope=Scope.RECORDS,
    rule=find_broken_links,
    parameters=(FROM_START,),
)


def find_sequence_gaps(records: DataFrame, *, from_start: bool) -> DataFrame:
    """Records of a gateway that are not numbered from 1, without gaps and doubles."""
    in_order = Window.partitionBy("gateway", "part").orderBy("sequence")
    before = sf.lag("sequence").over(in_order)
    first = sf.lit(0) if from_start else sf.try_subtract(sf.col("sequence"), sf.lit(1))
    numbered = numbered_apart(records).select("gateway", "sequence", sf.coalesce(before, first).alias("before"))
    # A number beside the largest there is has none behind it: then nothing is due, and null is not equal.
    wrong = numbered.where(~sf.col("sequence").eqNullSafe(sf.try_add(sf.col("before"), sf.lit(1))))
    detail = sf.when(sf.col("sequence") == sf.col("before"), sf.lit("the number stands twice")).otherwise(
        sf.concat(sf.lit("follows sequence "), sf.col("before").cast("string"), sf.lit(": records are missing"))
    )
    return violations(wrong, subject=gateway_subject(), detail=detail)


SEQUENCE = Control(
    identifier="integrity.sequence",
    title="Records are numbered without gaps and doubles",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `sequence`",
    scope=Scope.RECORDS,
    rule=find_sequence_gaps,
    parameters=(FROM_START,),
)


def find_batch_gaps(records: DataFrame, *, from_start: bool) -> DataFrame:
    """Group commits of a gateway that are not numbered from 1 without gaps, in the order of the records."""
    in_order = Window.partitionBy("gateway", "part").orderBy("sequence")
    before = sf.lag("batch").over(in_order)
    step = sf.try_subtract(sf.col("batch"), before)
    is_right = sf.when(before.isNull(), sf.col("batch") == 1 if from_start else sf.lit(True)).otherwise(
        step.between(0, 1)
    )
    begins_late = before.isNull() & (sf.col("kind") == Kind.RESTORED) & (sf.col("first_missing_batch") == 1)
    tells_gap = sf.coalesce(begins_late & (sf.col("last_missing_batch") == sf.col("batch")), sf.lit(False))
    is_right = sf.when(tells_gap, sf.lit(True)).otherwise(is_right)
    numbered = numbered_apart(records).select(
        "gateway", "sequence", "batch", before.alias("before"), is_right.alias("is_right")
    )
    wrong = numbered.where(~sf.coalesce("is_right", sf.lit(False)))
    detail = sf.concat(
        sf.lit("batch "),
        sf.col("batch").cast("string"),
        sf.lit(" follows batch "),
        sf.coalesce("before", sf.lit(0)).cast("string"),
        sf.lit(": the records of a commit are missing"),
    )
    return violations(wrong, subject=gateway_subject(), detail=detail)


BATCHES = Control(
    identifier="integrity.batch",
    title="No group commit is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `batch`",
    scope=Scope.RECORDS,
    rule=find_batch_gaps,
    parameters=(FROM_START,),
)


def find_restored(records: DataFrame, *, accepted: frozenset[str] = frozenset()) -> DataFrame:
    """Gaps that the trail itself tells and the policy does not name: a store that went back, a trail that begins late.

    `accepted` are the hashes of the records that the policy names. Without this control somebody could remove a trail,
    follow the remedy for a lost key, and the rest would be called consistent.
    """
    told = records.where((sf.col("kind") == Kind.RESTORED) & ~sf.col("hash").isin(*sorted(accepted)))
    missing = sf.concat_ws(" and ", _range("records", "missing"), _range("batches", "missing_batch"))
    what = sf.when(missing != "", sf.concat(missing, sf.lit(" missing"))).otherwise(
        sf.lit("the trail does not know what the store lost")
    )
    detail = sf.concat(
        sf.lit("restored at "),
        sf.coalesce(sf.timestamp_micros("at_us").cast("string"), sf.lit("?")),
        sf.lit(", "),
        what,
        sf.lit("; until a policy names it: record = "),
        sf.coalesce("hash", sf.lit("?")),
    )
    return violations(told, subject=gateway_subject(), detail=detail)


def _range(noun: str, name: str) -> Column:
    """First and last, or null where they are not told."""
    first, last = (sf.col(f"{which}_{name}") for which in ("first", "last"))
    return sf.when(last.isNotNull(), sf.format_string(f"{noun} %d to %d", first, last))


RESTORED = Control(
    identifier="integrity.restored",
    title="The policy names everything that is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: Kind.RESTORED",
    scope=Scope.RECORDS,
    rule=find_restored,
)


#: The controls that ask what `verify` asks.
OF_INTEGRITY: Final = (
    "integrity.lines",
    "integrity.hash",
    "integrity.chain",
    "integrity.sequence",
    "integrity.batch",
    "integrity.digests",
)
_SCHEMA: Final = (
    "gateway string, sequence long, trail string, spark_faults long, verify_faults long, verify_reason string"
)


def verdicts(spark: SparkSession, told: list[tuple[str, int, int, str]]) -> DataFrame:
    """The frame of this control, a row for each trail.

    A row is the trail's name, how many violations the controls OF_INTEGRITY found, and what `verify` says of the same
    files: its `problem_count` and `reason`. Leave out a trail that verify could not evaluate.
    """
    return spark.createDataFrame([("", 0, *row) for row in told], _SCHEMA)


def find_disagreement(verdicts: DataFrame) -> DataFrame:
    """Trails of which Spark and `rfhbridge audit verify` do not say the same.

    The two programs read the same bytes in different ways. Where only one finds a fault, one of them is wrong.
    """
    disagreeing = verdicts.where((sf.col("spark_faults") > 0) != (sf.col("verify_faults") > 0))
    detail = sf.format_string(
        "Spark found %d faults of integrity, verify %d: %s", "spark_faults", "verify_faults", "verify_reason"
    )
    return violations(disagreeing, subject=sf.concat(sf.lit("trail "), sf.col("trail")), detail=detail)


AGREEMENT = Control(
    identifier="integrity.agreement",
    title="Spark and verify agree",
    severity=Severity.ERROR,
    source="two readings of spark_audit/record/line.py and spark_audit/digest.py",
    scope=Scope.VERDICTS,
    rule=find_disagreement,
)
