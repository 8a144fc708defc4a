"""Deleting what is retained: an empty PUBLISH with RETAIN is a DeletePub and then a Publish, and takes effect.

    PUBLISH, RETAIN, no payload    a DeletePub of the topic stands in front of the Publish, in the same commit
    after the DeletePub            no copy is made of a publication that was retained before it

A copy that was made before the DeletePub and waits for its client is delivered all the same: it was published. A
DeletePub that the broker refused deletes nothing. The second rule is about the gateway's own stream: of a publication
that an application retained the trail has no put, so its topic space is not known.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    MESSAGE,
    SESSION,
    Control,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.record import ConversionKind, Kind

_PUBLISH: Final = 3
_PLACE: Final = ("gateway", "queue", "topic")


def find(records: DataFrame) -> DataFrame:
    puts = records.where((sf.col("kind") == Kind.PUT) & (sf.col("direction") == "in"))
    deletes = puts.where(sf.col("command") == "DeletePub")
    return all_of(
        violations(
            _without_delete(puts, deletes),
            subject=exchange_subject("in"),
            detail=sf.lit("an empty PUBLISH with RETAIN was put without a DeletePub in front of it"),
        ),
        violations(
            _copied_after(records, puts, deletes),
            subject=message_subject(),
            detail=sf.format_string("a copy of publication %s, which DeletePub %s had deleted", "source", "deleted_by"),
        ),
    )


def _without_delete(puts: DataFrame, deletes: DataFrame) -> DataFrame:
    is_empty = sf.col("retain") & (sf.col("payload_bytes") == 0)
    empty = puts.where((sf.col("command") == "Publish") & (sf.col("packet_type") == _PUBLISH) & is_empty)
    key = [*SESSION, "batch", "topic"]
    first = deletes.groupBy(*key).agg(sf.min("sequence").alias("deleted_at"))
    told = empty.select(*key, "exchange", "sequence").join(first, key, "left")
    return told.where(~sf.coalesce(sf.col("deleted_at") < sf.col("sequence"), sf.lit(False)))


def _copied_after(records: DataFrame, puts: DataFrame, deletes: DataFrame) -> DataFrame:
    """Copies of retained publications that are older than a DeletePub in front of the copy."""
    events = _retained_copies(records, puts).unionByName(_effective(deletes, records), allowMissingColumns=True)
    so_far = Window.partitionBy(*_PLACE).orderBy("sequence").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    told = events.withColumn("deleted_by", sf.max("deleted_by").over(so_far))
    return told.where(sf.col("source") < sf.col("deleted_by"))


def _effective(deletes: DataFrame, records: DataFrame) -> DataFrame:
    """The DeletePubs that the embedded broker carried out."""
    refused = records.where(sf.col("kind") == Kind.REFUSED).select(*MESSAGE)
    here = deletes.where(sf.col("destination").isNull()).join(refused, list(MESSAGE), "left_anti")
    return here.select(*_PLACE, "sequence", sf.col("message_id").alias("deleted_by"))


def _retained_copies(records: DataFrame, puts: DataFrame) -> DataFrame:
    """Copies of retained publications of clients, with the stream queue that the publication was put on."""
    is_copy = sf.col("is_retained") & (sf.col("conversion") == ConversionKind.HEADER_TO_HEADER)
    source = sf.col("source_message_id").alias("source")
    copies = records.where(is_copy).select("gateway", "sequence", "topic", "message_id", source)
    sources = puts.select("gateway", sf.col("message_id").alias("source"), "queue")
    return copies.join(sources, ["gateway", "source"])


CONTROL = Control(
    identifier="retained.deleted",
    title="A retained publication that was deleted is retained no longer",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): DeletePub; MQTT 3.1.1 section 3.3.1.3",
    scope=Scope.RECORDS,
    rule=find,
)
