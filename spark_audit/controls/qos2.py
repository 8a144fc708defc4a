"""QoS 2: PUBCOMP stands for exactly one put, PUBREC for a stored PUBLISH, and no exchange is put twice.

An exchange between PUBREC and PUBREL is pending: its session may come back. What was taken for a repeat meanwhile was
one: the exchange was open, and the message the same.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import PUBCOMP, PUBREC, confirmed_exchanges, outcomes, unsound_ranges
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, all_of, exchange_subject, violations
from spark_audit.controls.repeats import repeats_behind_the_end, repeats_of_nothing, repeats_of_other_messages
from spark_audit.controls.window_edge import begun_exchanges
from spark_audit.record import Kind


def find(records: DataFrame) -> DataFrame:
    keys = list(EXCHANGE)
    ended = outcomes(records).select(*keys)
    stored = records.where(sf.col("kind") == Kind.ACCEPTED).select(*keys).unionByName(ended)
    lost = confirmed_exchanges(records, PUBCOMP).join(ended, keys, "left_anti")
    unstored = confirmed_exchanges(records, PUBREC).join(stored, keys, "left_anti")
    found = (
        (_doubled(records), "put more than once"),
        (begun_exchanges(lost, records), "completed with PUBCOMP, but neither put, refused nor dead-lettered"),
        (begun_exchanges(unstored, records), "answered with PUBREC, but never stored"),
        (repeats_of_nothing(records), "taken for a repeat, but never accepted before"),
        (repeats_behind_the_end(records), "taken for a repeat, but its exchange had ended: it was a new message"),
        (repeats_of_other_messages(records), "taken for a repeat, but it is another message"),
        (unsound_ranges(records, PUBCOMP), "a confirmed range is no range of exchanges"),
        (unsound_ranges(records, PUBREC), "a confirmed range is no range of exchanges"),
    )
    subject = exchange_subject("in")
    return all_of(*(violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found))


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
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    scope=Scope.RECORDS,
    rule=find,
)
