"""Exchanges from a client to the gateway: what was acknowledged was stored first, and put as often as its QoS says."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    EXCHANGE,
    SESSION,
    Control,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    violations,
)
from spark_audit.controls.window_edge import begun_exchanges
from spark_audit.record import EVENTS, Kind

PUBACK: Final = 4
PUBREC: Final = 5
PUBCOMP: Final = 7
#: More exchanges than one confirmation can speak of; a longer range is a violation and is not spelled out.
RANGE_LIMIT: Final = 1_000_000
_CONFIRMATION: Final = (*SESSION, "sequence", "at_us")
_OUTCOMES: Final = (Kind.PUT, Kind.REFUSED, Kind.DEAD_LETTERED)


def confirmed_exchanges(records: DataFrame, packet_type: int) -> DataFrame:
    """Each exchange for which that packet was sent, with the sequence of the record that says so."""
    ranges = _ranges(records, packet_type).where(_is_sound())
    numbers = sf.sequence(sf.col("first"), sf.col("last"))
    return ranges.select(*_CONFIRMATION, sf.explode(numbers).alias("exchange"))


def unsound_ranges(records: DataFrame, packet_type: int) -> DataFrame:
    """Ranges without two ends, backwards, or longer than any confirmation."""
    return _ranges(records, packet_type).where(~_is_sound()).withColumn("exchange", sf.col("first"))


def outcomes(records: DataFrame) -> DataFrame:
    """What became of exchanges of clients: they were put, refused or dead-lettered."""
    told = records.where(sf.col("kind").isin(*_OUTCOMES) & sf.col("exchange").isNotNull())
    return told.where(sf.col("direction") == "in").select(*EXCHANGE, "kind", "sequence")


def _ranges(records: DataFrame, packet_type: int) -> DataFrame:
    confirmations = records.where((sf.col("kind") == Kind.CONFIRMED) & (sf.col("packet_type") == packet_type))
    pairs = confirmations.select(*_CONFIRMATION, sf.explode("exchanges").alias("pair"))
    return pairs.select(*_CONFIRMATION, sf.get("pair", 0).alias("first"), sf.get("pair", 1).alias("last"))


def _is_sound() -> Column:
    length = sf.try_subtract(sf.col("last"), sf.col("first"))
    return sf.coalesce((sf.col("first") >= 0) & (length >= 0) & (length < RANGE_LIMIT), sf.lit(False))


_SAME, _REUSED = EVENTS[Kind.REPEATED]
#: What of a message both records say.
_OF_MESSAGE: Final = ("topic", "retain", "payload_bytes", "payload_sha256")
_LOST: Final = "another message came under this packet identifier before PUBREL: it was acknowledged, and nobody got it"


def repeats_of_nothing(records: DataFrame) -> DataFrame:
    """Repeats of exchanges that were never accepted."""
    accepted = _accepted(records).select(*EXCHANGE)
    return begun_exchanges(_repeated(records).join(accepted, list(EXCHANGE), "left_anti"), records)


def repeats_behind_the_end(records: DataFrame) -> DataFrame:
    """Repeats of exchanges that had ended: their PUBREL had come, so each was a new message."""
    ended = outcomes(records).groupBy(*EXCHANGE).agg(sf.min("sequence").alias("ended_at"))
    return _repeated(records).join(ended, list(EXCHANGE)).where(sf.col("sequence") > sf.col("ended_at"))


def repeats_of_other_messages(records: DataFrame) -> DataFrame:
    """Records that call a PUBLISH a repeat, although another message was accepted."""
    same = _repeated(records).where(sf.col("event") == _SAME)
    accepted = _accepted(records).select(*EXCHANGE, *(sf.col(name).alias(f"accepted_{name}") for name in _OF_MESSAGE))
    is_same = sf.lit(True)
    for name in _OF_MESSAGE:
        is_same = is_same & sf.col(name).eqNullSafe(sf.col(f"accepted_{name}"))
    return same.join(accepted, list(EXCHANGE)).where(~is_same)


def find_reused_identifiers(records: DataFrame) -> DataFrame:
    """QoS 2 messages that came under the packet identifier of another message, before its PUBREL.

    A sender must not use an identifier for another message before PUBCOMP. A receiver must answer such a PUBLISH like a
    repeat, so the message is acknowledged and reaches nobody. The client is at fault; the record tells of it.
    """
    reused = _repeated(records).where(sf.col("event") == _REUSED)
    return violations(reused, subject=exchange_subject("in"), detail=sf.lit(_LOST))


def _repeated(records: DataFrame) -> DataFrame:
    return records.where((sf.col("kind") == Kind.REPEATED) & (sf.col("direction") == "in"))


def _accepted(records: DataFrame) -> DataFrame:
    return records.where((sf.col("kind") == Kind.ACCEPTED) & (sf.col("direction") == "in"))


IDENTIFIERS = Control(
    identifier="qos.identifiers",
    title="QoS 2: no packet identifier was used again before its PUBREL",
    severity=Severity.WARNING,
    source="MQTT 3.1.1 sections 2.3.1 and 4.3.3",
    scope=Scope.RECORDS,
    rule=find_reused_identifiers,
)


def find_unput(records: DataFrame) -> DataFrame:
    """QoS 1: messages that PUBACK acknowledged, and that were neither put, refused nor dead-lettered."""
    without = confirmed_exchanges(records, PUBACK).join(
        outcomes(records).select(*EXCHANGE), list(EXCHANGE), "left_anti"
    )
    found = (
        (
            begun_exchanges(without, records),
            "acknowledged with PUBACK, and no record says that it was put, refused or dead-lettered",
        ),
        (unsound_ranges(records, PUBACK), "a confirmed range is no range of exchanges"),
    )
    subject = exchange_subject("in")
    return all_of(*(violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found))


AT_LEAST_ONCE = Control(
    identifier="qos.1",
    title="QoS 1: each acknowledged PUBLISH was put at least once",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 section 4.3.2",
    scope=Scope.RECORDS,
    rule=find_unput,
)


def find_not_put_once(records: DataFrame) -> DataFrame:
    """QoS 2: messages that were completed and not put exactly once, and PUBRECs for a PUBLISH that was never stored.

    An exchange between PUBREC and PUBREL is pending: its session may come back. A PUBLISH that the gateway took for a
    repeat must be one: the exchange was open, and the message was the same.
    """
    keys = list(EXCHANGE)
    ended = outcomes(records).select(*keys)
    stored = records.where(sf.col("kind") == Kind.ACCEPTED).select(*keys).unionByName(ended)
    lost = confirmed_exchanges(records, PUBCOMP).join(ended, keys, "left_anti")
    unstored = confirmed_exchanges(records, PUBREC).join(stored, keys, "left_anti")
    found = (
        (_doubled(records), "put more than once"),
        (
            begun_exchanges(lost, records),
            "completed with PUBCOMP, and no record says that it was put, refused or dead-lettered",
        ),
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


EXACTLY_ONCE = Control(
    identifier="qos.2",
    title="QoS 2: each completed PUBLISH was put exactly once",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    scope=Scope.RECORDS,
    rule=find_not_put_once,
)


def find_uncommitted(records: DataFrame) -> DataFrame:
    """Acknowledgements whose commit comes later in the trail than they do.

    The gateway notes a confirmation after the acknowledgement has left, in a later group commit. So the exchange must
    be in an earlier record: for PUBACK and PUBCOMP the outcome of the PUBLISH (put, refused, dead-lettered), for PUBREC
    the record that it was stored (accepted). The controls qos.1 and qos.2 find exchanges that are in no record at all.
    """
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


COMMITTED = Control(
    identifier="qos.committed",
    title="Nothing was acknowledged before its commit",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_): the message is stored, then acknowledged; MQTT 3.1.1 section 4.3",
    scope=Scope.RECORDS,
    rule=find_uncommitted,
)
