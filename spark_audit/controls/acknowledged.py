"""What a client acknowledged was delivered to it before, and the packet goes with the QoS of the delivery."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, all_of, exchange_subject, violations
from spark_audit.controls.window_edge import begun_deliveries
from spark_audit.record import Kind

_PUBACK: Final = 4
_QOS_2_ANSWERS: Final = (5, 7)


def find(records: DataFrame) -> DataFrame:
    acknowledged = records.where(sf.col("kind") == Kind.ACKNOWLEDGED).select(*EXCHANGE, "sequence", "packet_type")
    delivered = records.where(sf.col("kind") == Kind.DELIVERED)
    first = delivered.groupBy(*EXCHANGE).agg(sf.min("sequence").alias("delivered_at"), sf.max("qos").alias("qos"))
    answered = acknowledged.join(first, list(EXCHANGE), "left")
    never = begun_deliveries(answered.where(sf.col("delivered_at").isNull()), records)
    goes_with = ((sf.col("qos") == 1) & (sf.col("packet_type") == _PUBACK)) | (
        (sf.col("qos") == 2) & sf.col("packet_type").isin(*_QOS_2_ANSWERS)
    )
    found = (
        (never, "the client acknowledged what was never delivered to it"),
        (answered.where(sf.col("delivered_at") > sf.col("sequence")), "acknowledged before it was delivered"),
        (
            answered.where(sf.col("delivered_at").isNotNull() & ~sf.coalesce(goes_with, sf.lit(False))),
            "the acknowledgement does not go with the QoS of the delivery",
        ),
    )
    subject = exchange_subject("out")
    return all_of(*(violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found))


CONTROL = Control(
    identifier="delivery.acknowledged",
    title="Every message that a client acknowledged was delivered to it",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_); MQTT 3.1.1 sections 3.4 to 3.7",
    scope=Scope.RECORDS,
    rule=find,
)
