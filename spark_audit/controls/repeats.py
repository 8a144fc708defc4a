"""PUBLISHes of QoS 2 under an identifier whose PUBREL had not come: the same message again, or another, which is lost.

A sender must not use an identifier for another message before PUBCOMP. A receiver must answer one that comes before its
PUBREL like a repeat, so the message reaches nobody though it was acknowledged. The record says so; a client does that.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import outcomes
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, exchange_subject, violations
from spark_audit.controls.window_edge import begun_exchanges
from spark_audit.record import EVENTS, Kind

_SAME, _REUSED = EVENTS[Kind.REPEATED]
#: What of a message both records say.
_OF_MESSAGE: Final = ("topic", "retain", "payload_bytes", "payload_sha256")
_LOST: Final = "another message came under the identifier of this one before its PUBREL: acknowledged, given to nobody"


def repeats_of_nothing(records: DataFrame) -> DataFrame:
    """Repeats of exchanges that were never accepted."""
    accepted = _accepted(records).select(*EXCHANGE)
    return begun_exchanges(_repeated(records).join(accepted, list(EXCHANGE), "left_anti"), records)


def repeats_behind_the_end(records: DataFrame) -> DataFrame:
    """Repeats of exchanges that had ended: their PUBREL had come, so each was a new message."""
    ended = outcomes(records).groupBy(*EXCHANGE).agg(sf.min("sequence").alias("ended_at"))
    return _repeated(records).join(ended, list(EXCHANGE)).where(sf.col("sequence") > sf.col("ended_at"))


def repeats_of_other_messages(records: DataFrame) -> DataFrame:
    """What is told as the same message, and is not the one that was accepted."""
    same = _repeated(records).where(sf.col("event") == _SAME)
    accepted = _accepted(records).select(*EXCHANGE, *(sf.col(name).alias(f"accepted_{name}") for name in _OF_MESSAGE))
    is_same = sf.lit(True)
    for name in _OF_MESSAGE:
        is_same = is_same & sf.col(name).eqNullSafe(sf.col(f"accepted_{name}"))
    return same.join(accepted, list(EXCHANGE)).where(~is_same)


def find(records: DataFrame) -> DataFrame:
    reused = _repeated(records).where(sf.col("event") == _REUSED)
    return violations(reused, subject=exchange_subject("in"), detail=sf.lit(_LOST))


def _repeated(records: DataFrame) -> DataFrame:
    return records.where((sf.col("kind") == Kind.REPEATED) & (sf.col("direction") == "in"))


def _accepted(records: DataFrame) -> DataFrame:
    return records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))


CONTROL = Control(
    identifier="qos.identifiers",
    title="QoS 2: no packet identifier was used again before its PUBREL",
    severity=Severity.WARNING,
    source="MQTT 3.1.1 sections 2.3.1 and 4.3.3",
    scope=Scope.RECORDS,
    rule=find,
)
