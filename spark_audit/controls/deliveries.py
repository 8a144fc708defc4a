"""Deliveries to clients: a message reaches its client as often as its QoS says, with the payload that was put."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    MESSAGE,
    SESSION,
    Control,
    Parameter,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.controls.incoming_exchanges import PUBACK, PUBCOMP, PUBREC
from spark_audit.controls.window_edge import begun_deliveries
from spark_audit.record import ConversionKind, Kind

_ENDS: Final = (Kind.DELIVERED, Kind.DROPPED, Kind.DEAD_LETTERED)
_LANE: Final = ("gateway", "queue", "correlation_id")


def find_passed_over(records: DataFrame, *, overtaken_by_messages: int) -> DataFrame:
    """At least once: messages without an end, while many later ones of their session were delivered.

    The messages of a session are one lane of the subscriber queue (its CorrelId), delivered in the order of their
    commits. Each ends as delivered, dropped or dead-lettered. A message without an end waits, which is right while the
    client is away or its window is full. The margin leaves room for messages of higher priority, which may overtake.

    A group that shares a subscription has one lane too. There a message may be too large for every member that has
    room, and waits while smaller ones go on (MQTT 5.0 section 4.8.2); so only later ones of the same payload size
    count. The control judges copies of messages that clients published with QoS 1 or 2: others may be lost in a crash,
    or come from an application whose persistence the trail does not tell.
    """
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


AT_LEAST_ONCE = Control(
    identifier="delivery.qos1",
    title="QoS 1: no message for a client is passed over",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 sections 4.3.2 and 4.6",
    scope=Scope.RECORDS,
    rule=find_passed_over,
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


def find_not_delivered_once(records: DataFrame) -> DataFrame:
    """Exactly once: QoS 2 messages with several exchanges in a session, and PUBLISHes sent again after PUBREC.

    Until the client's PUBREC the gateway may send the PUBLISH again with DUP; after that, only PUBREL. A publication
    with several topics is one PUBLISH for each of them.
    """
    delivered = records.where((sf.col("kind") == Kind.DELIVERED) & (sf.col("qos") == 2))
    detail = sf.concat(sf.lit("delivered with QoS 2 in "), sf.col("exchanges").cast("string"), sf.lit(" exchanges"))
    return all_of(
        violations(_doubled(delivered), subject=message_subject(), detail=detail),
        violations(
            _sent_again(records, delivered),
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


def _sent_again(records: DataFrame, delivered: DataFrame) -> DataFrame:
    answers = records.where((sf.col("kind") == Kind.ACKNOWLEDGED) & (sf.col("packet_type") == PUBREC))
    received = answers.groupBy(*EXCHANGE).agg(sf.min("sequence").alias("received_at"))
    later = delivered.join(received, list(EXCHANGE)).where(sf.col("sequence") > sf.col("received_at"))
    return later.select(*EXCHANGE, "sequence")


EXACTLY_ONCE = Control(
    identifier="delivery.qos2",
    title="QoS 2: a client gets a message in one exchange, not repeated after PUBREC",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    scope=Scope.RECORDS,
    rule=find_not_delivered_once,
)


_QOS_2_ANSWERS: Final = (PUBREC, PUBCOMP)


def find_undelivered(records: DataFrame) -> DataFrame:
    """Acknowledgements of a client without a delivery before them, or with another QoS than the delivery's."""
    acknowledged = records.where(sf.col("kind") == Kind.ACKNOWLEDGED).select(*EXCHANGE, "sequence", "packet_type")
    delivered = records.where(sf.col("kind") == Kind.DELIVERED)
    first = delivered.groupBy(*EXCHANGE).agg(sf.min("sequence").alias("delivered_at"), sf.max("qos").alias("qos"))
    answered = acknowledged.join(first, list(EXCHANGE), "left")
    never = begun_deliveries(answered.where(sf.col("delivered_at").isNull()), records)
    goes_with = ((sf.col("qos") == 1) & (sf.col("packet_type") == PUBACK)) | (
        (sf.col("qos") == 2) & sf.col("packet_type").isin(*_QOS_2_ANSWERS)
    )
    found = (
        (never, "the client acknowledged a message that was never delivered to it"),
        (answered.where(sf.col("delivered_at") > sf.col("sequence")), "acknowledged before it was delivered"),
        (
            answered.where(sf.col("delivered_at").isNotNull() & ~sf.coalesce(goes_with, sf.lit(False))),
            "the acknowledgement does not go with the QoS of the delivery",
        ),
    )
    subject = exchange_subject("out")
    return all_of(*(violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found))


ACKNOWLEDGED = Control(
    identifier="delivery.acknowledged",
    title="Every message that a client acknowledged was delivered to it",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_); MQTT 3.1.1 sections 3.4 to 3.7",
    scope=Scope.RECORDS,
    rule=find_undelivered,
)


def find_other_payloads(records: DataFrame) -> DataFrame:
    """Messages whose payload differs where it was accepted, put and delivered, by length or SHA-256.

    The `source_message_id` of the copy leads from a delivery to the publication's put. A publication of an MQ
    application has no put of the gateway to compare with.
    """
    told = records.where(sf.col("payload_sha256").isNotNull())
    puts = told.where((sf.col("kind") == Kind.PUT) & (sf.col("direction") == "in"))
    return _accepted_otherwise(told, puts).unionByName(_delivered_otherwise(records, told, puts))


def _accepted_otherwise(told: DataFrame, puts: DataFrame) -> DataFrame:
    accepted = told.where(sf.col("kind") == Kind.ACCEPTED).select(*EXCHANGE, *_payload("accepted"))
    put = puts.select(*EXCHANGE, "sequence", *_payload("put"))
    other = put.join(accepted, list(EXCHANGE)).where(_differs("accepted", "put"))
    detail = sf.lit("the payload that was put is not the payload that was accepted")
    return violations(other, subject=exchange_subject("in"), detail=detail)


def _delivered_otherwise(records: DataFrame, told: DataFrame, puts: DataFrame) -> DataFrame:
    copies = records.where(sf.col("source_message_id").isNotNull()).select("gateway", "message_id", "source_message_id")
    sources = puts.select("gateway", sf.col("message_id").alias("source_message_id"), *_payload("put"))
    delivered = told.where(sf.col("kind") == Kind.DELIVERED).select(
        "gateway", "message_id", "sequence", *_payload("delivered")
    )
    traced = delivered.join(copies, ["gateway", "message_id"]).join(sources, ["gateway", "source_message_id"])
    detail = sf.lit("the payload that was delivered is not the payload that was put")
    return violations(traced.where(_differs("delivered", "put")), subject=message_subject(), detail=detail)


def _payload(where: str) -> tuple[Column, Column]:
    return sf.col("payload_sha256").alias(f"{where}_sha256"), sf.col("payload_bytes").alias(f"{where}_bytes")


def _differs(one: str, other: str) -> Column:
    same_bytes = sf.col(f"{one}_bytes").eqNullSafe(sf.col(f"{other}_bytes"))
    return ~(same_bytes & sf.col(f"{one}_sha256").eqNullSafe(sf.col(f"{other}_sha256")))


PAYLOAD = Control(
    identifier="payload",
    title="The payload is the same when accepted, put and delivered",
    severity=Severity.ERROR,
    source="architecture: the payload is never decoded or re-encoded",
    scope=Scope.RECORDS,
    rule=find_other_payloads,
)
