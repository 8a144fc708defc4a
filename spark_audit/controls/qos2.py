"""QoS 2: PUBCOMP stands for exactly one put, PUBREC for a stored PUBLISH, and no exchange is put twice.

An exchange between PUBREC and PUBREL is pending: its session may come back.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import PUBCOMP, PUBREC, confirmed_exchanges, outcomes, unsound_ranges
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, exchange_subject, violations
from spark_audit.record import Kind


def find(records: DataFrame) -> DataFrame:
    keys = list(EXCHANGE)
    accepted = records.where(sf.col("kind") == Kind.ACCEPTED).select(*keys)
    stored = accepted.unionByName(outcomes(records).select(*keys))
    lost = confirmed_exchanges(records, PUBCOMP).join(outcomes(records), keys, "left_anti")
    unstored = confirmed_exchanges(records, PUBREC).join(stored, keys, "left_anti")
    unsound = unsound_ranges(records, PUBCOMP).unionByName(unsound_ranges(records, PUBREC))
    subject = exchange_subject("in")
    found = (
        (_doubled(records), "put more than once"),
        (lost, "completed with PUBCOMP, but neither put, refused nor dead-lettered"),
        (unstored, "answered with PUBREC, but never stored"),
        (unsound, "a confirmed range is no range of exchanges"),
    )
    frames = [violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found]
    return frames[0].unionByName(frames[1]).unionByName(frames[2]).unionByName(frames[3])


def _doubled(records: DataFrame) -> DataFrame:
    puts = records.where(
        (sf.col("kind") == Kind.PUT)
        & (sf.col("direction") == "in")
        & (sf.col("qos") == 2)
        & sf.col("exchange").isNotNull()
    )
    counted = puts.groupBy(*EXCHANGE).agg(sf.count("*").alias("puts"), sf.max("sequence").alias("sequence"))
    return counted.where(sf.col("puts") > 1)


CONTROL = Control(
    identifier="qos.2",
    title="QoS 2: each completed PUBLISH was put exactly once",
    severity=Severity.ERROR,
    source="seed 004, QoS level 2; MQTT 3.1.1 section 4.3.3",
    scope=Scope.RECORDS,
    find=find,
)
