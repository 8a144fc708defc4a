"""From the queue to the client, exactly once: a QoS 2 message has one exchange in a session, which PUBREC ends.

Sending again with DUP repeats the exchange, until the client's PUBREC; after that only PUBREL may be repeated. A
publication with several topics is one PUBLISH for each of them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    SESSION,
    Control,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.record import Kind

_PUBREC = 5


def find(records: DataFrame) -> DataFrame:
    delivered = records.where((sf.col("kind") == Kind.DELIVERED) & (sf.col("qos") == 2))
    detail = sf.concat(sf.lit("delivered with QoS 2 in "), sf.col("exchanges").cast("string"), sf.lit(" exchanges"))
    return all_of(
        violations(_doubled(delivered), subject=message_subject(), detail=detail),
        violations(
            _repeated(records, delivered),
            subject=exchange_subject("out"),
            detail=sf.lit("PUBLISH was sent again after the client's PUBREC"),
        ),
    )


def _doubled(delivered: DataFrame) -> DataFrame:
    counted = (
        delivered.where(sf.col("message_id").isNotNull())
        .groupBy(*SESSION, "message_id", "topic")
        .agg(sf.count_distinct("exchange").alias("exchanges"), sf.max("sequence").alias("sequence"))
    )
    return counted.where(sf.col("exchanges") > 1)


def _repeated(records: DataFrame, delivered: DataFrame) -> DataFrame:
    answers = records.where((sf.col("kind") == Kind.ACKNOWLEDGED) & (sf.col("packet_type") == _PUBREC))
    received = answers.groupBy(*EXCHANGE).agg(sf.min("sequence").alias("received_at"))
    later = delivered.join(received, list(EXCHANGE)).where(sf.col("sequence") > sf.col("received_at"))
    return later.select(*EXCHANGE, "sequence")


CONTROL = Control(
    identifier="delivery.qos2",
    title="Exactly once to the client: one exchange, not repeated after PUBREC",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    scope=Scope.RECORDS,
    rule=find,
)
