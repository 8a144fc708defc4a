"""A store that went back, or a trail that begins late, is a gap that the trail itself tells; a policy may name it.

Else whoever removes a trail follows the remedy for a lost key, and is called consistent.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, gateway_subject, violations
from spark_audit.record import Kind


def find(records: DataFrame, *, accepted: frozenset[str] = frozenset()) -> DataFrame:
    """`accepted` are the hashes of the records that the policy names."""
    told = records.where((sf.col("kind") == Kind.RESTORED) & ~sf.col("hash").isin(*sorted(accepted)))
    missing = sf.concat_ws(" and ", _range("records", "missing"), _range("batches", "missing_batch"))
    what = sf.when(missing != "", sf.concat(missing, sf.lit(" missing"))).otherwise(
        sf.lit("what the store had lost was never told to the trail")
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


CONTROL = Control(
    identifier="integrity.restored",
    title="The policy names everything that is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: Kind.RESTORED",
    scope=Scope.RECORDS,
    rule=find,
)
