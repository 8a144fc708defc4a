"""No acknowledgement before the commit: what was confirmed stands earlier in the trail than the confirmation.

A confirmation is noted after the acknowledgement has left, in a later group commit or, where no commit came between, at
the earliest in the next one. So its exchange must be durable in an earlier record: PUBACK and PUBCOMP by what became of
the PUBLISH (put, refused, dead-lettered), PUBREC by its being stored (accepted). What is in no record at all is for the
controls qos.1 and qos.2.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import PUBACK, PUBCOMP, PUBREC, confirmed_exchanges, outcomes
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, all_of, exchange_subject, violations
from spark_audit.record import Kind


def find(records: DataFrame) -> DataFrame:
    accepted = records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))
    stored = _first_durable(accepted.select(*EXCHANGE, "sequence"))
    ended = _first_durable(outcomes(records))
    return all_of(
        _too_early(confirmed_exchanges(records, PUBACK), ended, "PUBACK"),
        _too_early(confirmed_exchanges(records, PUBREC), stored, "PUBREC"),
        _too_early(confirmed_exchanges(records, PUBCOMP), ended, "PUBCOMP"),
    )


def _first_durable(told: DataFrame) -> DataFrame:
    return told.groupBy(*EXCHANGE).agg(sf.min("sequence").alias("durable_at"))


def _too_early(confirmed: DataFrame, durable: DataFrame, packet: str) -> DataFrame:
    early = confirmed.join(durable, list(EXCHANGE)).where(sf.col("durable_at") > sf.col("sequence"))
    detail = sf.concat(
        sf.lit(f"{packet} is confirmed here, the commit that it stands for comes later, in record "),
        sf.col("durable_at").cast("string"),
    )
    return violations(early, subject=exchange_subject("in"), detail=detail)


CONTROL = Control(
    identifier="qos.committed",
    title="Nothing was acknowledged before its commit",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_): the message is stored, then acknowledged; MQTT 3.1.1 section 4.3",
    scope=Scope.RECORDS,
    rule=find,
)
