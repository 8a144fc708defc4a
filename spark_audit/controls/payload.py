"""The payload is the same where it was accepted, put and delivered: length and SHA-256 agree.

A delivery leads over its copy's `source_message_id` to the publication's put. A publication of an MQ application has no
put of the gateway's to compare with.
"""

from pyspark.sql import Column, DataFrame
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


CONTROL = Control(
    identifier="payload",
    title="Payloads are the same at every station",
    severity=Severity.ERROR,
    source="architecture: the payload is never decoded or re-encoded",
    scope=Scope.RECORDS,
    rule=find,
)
