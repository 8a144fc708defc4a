"""Exchanges that the gateway acknowledged, one row each from the ranges of `confirmed` records, and their outcomes."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import EXCHANGE, SESSION
from spark_audit.record import Kind

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
    """Ranges that are none: without two ends, backwards, or longer than any confirmation."""
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
