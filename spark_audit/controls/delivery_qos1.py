"""From the queue to the client, at least once: no message is passed over while later ones are delivered.

The messages of a session are one lane of the subscriber queue (its CorrelId), delivered in the order of their commits.
Each ends as delivered, dropped or dead-lettered, and says so. One that has no end waits, which is right while the
client is away or its window is full; but not when many that were committed later have been delivered. The margin
leaves room for messages of higher priority, which may overtake. A group that shares a subscription has one lane too,
and a message that is too large for all but a member without room waits while smaller ones go on (MQTT 5.0 section
4.8.2): there only later ones of the same payload size count. Judged are copies of what clients published with QoS 1
or 2: others may go with a crash, or come from an application whose persistence the trail does not tell.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import MESSAGE, Control, Parameter, Scope, Severity, message_subject, violations
from spark_audit.record import ConversionKind, Kind

_ENDS: Final = (Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED)
_LANE: Final = ("gateway", "queue", "correlation_id")


def find(records: DataFrame, *, overtaken_by_messages: int) -> DataFrame:
    key = list(MESSAGE)
    ends = records.where(sf.col("kind").isin(*_ENDS) & sf.col("message_id").isNotNull())
    ended = ends.groupBy(*key).agg(
        sf.bool_or(sf.col("kind") == Kind.DELIVERED).alias("is_delivered"), sf.first("client").alias("client")
    )
    told = _durable_copies(records).join(ended, key, "left").withColumn("size", _size())
    passed_over = told.withColumn("later", _delivered_later()).where(
        sf.col("is_delivered").isNull() & (sf.col("later") >= overtaken_by_messages)
    )
    detail = sf.concat(
        sf.lit("never delivered, and "),
        sf.col("later").cast("string"),
        sf.lit(" messages that were put later for the same session were"),
    )
    return violations(passed_over, subject=message_subject(), detail=detail)


def _durable_copies(records: DataFrame) -> DataFrame:
    """The copies for subscribers of what was published with QoS 1 or 2."""
    durable = records.where((sf.col("kind") == Kind.PUT) & (sf.col("direction") == "in") & (sf.col("qos") > 0))
    sources = durable.select("gateway", sf.col("message_id").alias("source_message_id"), "payload_bytes").distinct()
    is_copy = (sf.col("conversion") == ConversionKind.HEADER_TO_HEADER) & sf.col("correlation_id").isNotNull()
    copies = records.where(is_copy).drop("payload_bytes").join(sources, ["gateway", "source_message_id"])
    return copies.groupBy(*_LANE, "message_id").agg(
        sf.min("sequence").alias("sequence"),
        sf.min("batch").alias("batch"),
        sf.min("payload_bytes").alias("payload_bytes"),
    )


def _size() -> Column:
    """What else tells lanes apart: the payload's bytes where more than one client is sent what waits in it."""
    clients = sf.size(sf.collect_set("client").over(Window.partitionBy(*_LANE)))
    return sf.when(clients > 1, sf.col("payload_bytes")).otherwise(0)


def _delivered_later() -> Column:
    """How many messages of the same lane and size, from later commits, were delivered."""
    delivered = sf.count_if(sf.coalesce("is_delivered", sf.lit(False)))
    from_here_on = delivered.over(Window.partitionBy(*_LANE, "size").orderBy(sf.desc("batch")))
    return from_here_on - delivered.over(Window.partitionBy(*_LANE, "size", "batch"))


CONTROL = Control(
    identifier="delivery.qos1",
    title="At least once to the client: no message is passed over",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 sections 4.3.2 and 4.6",
    scope=Scope.RECORDS,
    rule=find,
    parameters=(
        Parameter(
            name="overtaken_by_messages",
            value=1_000,
            unit="messages",
            meaning="a message without an end is a violation when so many later ones of its session were delivered",
            minimum=1,
        ),
    ),
)
