"""Deliveries to clients: a QoS 2 message has one exchange in a session, and what a client acknowledged was delivered.

Sending again with DUP repeats the exchange. A publication with several topics is one PUBLISH for each of them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    Control,
    Scope,
    Severity,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.record import Kind


def find(records: DataFrame) -> DataFrame:
    delivered = records.where(sf.col("kind") == Kind.DELIVERED)
    acknowledged = records.where(sf.col("kind") == Kind.ACKNOWLEDGED)
    undelivered = acknowledged.join(delivered.select(*EXCHANGE), list(EXCHANGE), "left_anti")
    return violations(
        _doubled(delivered),
        subject=message_subject(),
        detail=sf.concat(sf.lit("delivered with QoS 2 in "), sf.col("exchanges").cast("string"), sf.lit(" exchanges")),
    ).unionByName(
        violations(
            undelivered,
            subject=exchange_subject("out"),
            detail=sf.lit("the client acknowledged what was never delivered to it"),
        )
    )


def _doubled(delivered: DataFrame) -> DataFrame:
    exactly_once = delivered.where((sf.col("qos") == 2) & sf.col("message_id").isNotNull())
    counted = exactly_once.groupBy("gateway", "client", "session_epoch", "message_id", "topic").agg(
        sf.count_distinct("exchange").alias("exchanges"), sf.max("sequence").alias("sequence")
    )
    return counted.where(sf.col("exchanges") > 1)


CONTROL = Control(
    identifier="delivery",
    title="QoS 2 deliveries have one exchange, acknowledged ones were delivered",
    severity=Severity.ERROR,
    source="seed 004, QoS level 2; MQTT 3.1.1 section 4.3",
    scope=Scope.RECORDS,
    rule=find,
)
