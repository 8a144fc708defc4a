"""What was left out, refused, dead-lettered or dropped says why: names with reasons, reason codes, words."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, message_subject, violations
from spark_audit.record import Kind


def find(records: DataFrame) -> DataFrame:
    unexplained = records.where(sf.exists("dropped_fields", _is_unexplained))
    nameless = records.where(
        sf.col("kind").isin(Kind.REFUSED, Kind.DEAD_LETTERED) & (sf.coalesce("reason_code", sf.lit(0)) == 0)
    )
    wordless = records.where((sf.col("kind") == Kind.DROPPED) & (sf.trim(sf.coalesce("reason", sf.lit(""))) == ""))
    found = (
        (unexplained, "a field was not copied, without a name or a reason"),
        (nameless, "refused or dead-lettered without a reason code"),
        (wordless, "dropped without a reason"),
    )
    frames = [violations(frame, subject=message_subject(), detail=sf.lit(detail)) for frame, detail in found]
    return frames[0].unionByName(frames[1]).unionByName(frames[2])


def _is_unexplained(pair: Column) -> Column:
    empty = (sf.trim(sf.get(pair, 0)) == "") | (sf.trim(sf.get(pair, 1)) == "")
    return sf.coalesce(empty, sf.lit(True)) | (sf.size(pair) != 2)


CONTROL = Control(
    identifier="reasons",
    title="Everything that was not copied or not delivered has a reason",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): fields that are not copied",
    scope=Scope.RECORDS,
    rule=find,
)
