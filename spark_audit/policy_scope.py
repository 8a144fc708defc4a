"""The findings that a policy asks for: those of a period, of some gateways, of some topics.

Every control reads the whole trail, because a window would cut exchanges and make gaps. The scope is about the record
that a finding names. If neither the record nor its exchange or message has a known topic, the finding is reported,
because a scope must not hide findings that it cannot place. Faults of digests and lines have no record, and are always
reported.
"""

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import EXCHANGE, MESSAGE
from spark_audit.record import Kind

_GATEWAY: Final = re.compile("[0-9a-f]{24}")
#: Characters with a meaning in a regular expression of Java.
_PUNCTUATION: Final = re.compile(r"[!-/:-@\[-^`{-~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScope:
    """Times are microseconds since 1970 UTC, 0 for no limit; no gateways or no topics means all of them."""

    from_us: int = 0
    until_us: int = 0
    gateways: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        return self == PolicyScope()

    def problem(self) -> str:
        """The fault of this scope, in words that begin with the key; empty if there is none."""
        for gateway in self.gateways:
            if _GATEWAY.fullmatch(gateway) is None:
                return f"gateways has {gateway[:60]!r}: write the 24 hex digits that records have"
        for topic_filter in self.topics:
            levels = topic_filter.split("/")
            if not topic_filter or ("#" in topic_filter and (levels[-1] != "#" or topic_filter.count("#") > 1)):
                return f"topics has {topic_filter[:60]!r}: `#` stands alone on the last level (MQTT 3.1.1 section 4.7)"
            if any("+" in level and level != "+" for level in levels):
                return f"topics has {topic_filter[:60]!r}: `+` stands alone on its level (MQTT 3.1.1 section 4.7)"
        return ""

    def within(self, found: DataFrame, records: DataFrame) -> DataFrame:
        """The violations within this scope."""
        if self.is_everything:
            return found
        outside = self._outside(records).distinct()
        return found.join(outside, ["gateway", "sequence"], "left_anti")

    def _outside(self, records: DataFrame) -> DataFrame:
        """Gateway and sequence of the records outside of this scope."""
        is_outside = sf.lit(False)
        if self.from_us:
            is_outside |= sf.col("at_us") < self.from_us
        if self.until_us:
            is_outside |= sf.col("at_us") >= self.until_us
        if self.gateways:
            is_outside |= ~sf.col("gateway").isin(*self.gateways)
        told = self._with_other_topics(records) if self.topics else records.withColumn("is_other", sf.lit(False))
        return told.where(is_outside | sf.col("is_other")).select("gateway", "sequence")

    def _with_other_topics(self, records: DataFrame) -> DataFrame:
        """`is_other`: topics of the record are known, and none of them is asked for."""
        asked = sf.when(sf.col("topic").isNotNull(), self._matches(sf.col("topic")))
        of_exchanges = _asked_by(records, (*EXCHANGE, "direction"), (Kind.ACCEPTED, Kind.DELIVERED), asked)
        of_messages = _asked_by(records, MESSAGE, (Kind.PUT,), asked)
        told = records.select(
            "gateway", "sequence", "at_us", *EXCHANGE[1:], "direction", "message_id", asked.alias("own")
        )
        joined = told.join(of_exchanges.withColumnRenamed("is_asked", "by_exchange"), [*EXCHANGE, "direction"], "left")
        joined = joined.join(of_messages.withColumnRenamed("is_asked", "by_message"), list(MESSAGE), "left")
        is_asked = sf.coalesce("own", "by_exchange", "by_message", sf.lit(True))
        return joined.withColumn("is_other", ~is_asked)

    def _matches(self, topic: Column) -> Column:
        patterns = "|".join(f"(?:{_expression(topic_filter)})" for topic_filter in self.topics)
        return topic.rlike(f"(?s)^(?:{patterns})$")


def _asked_by(records: DataFrame, key: tuple[str, ...], kinds: tuple[Kind, ...], asked: Column) -> DataFrame:
    """Whether each exchange or message with a topic is within this scope."""
    told = records.where(sf.col("kind").isin(*kinds) & sf.col("topic").isNotNull())
    return told.groupBy(*key).agg(sf.bool_or(asked).alias("is_asked"))


def _expression(topic_filter: str) -> str:
    """A regular expression for the topics that a filter matches. Filters of subscriptions are compared as text."""
    levels = topic_filter.split("/")
    has_tree = levels[-1] == "#"
    kept = levels[:-1] if has_tree else levels
    first = "(?!\\$)" if levels[0] in ("+", "#") else ""
    base = "/".join("[^/]*" if level == "+" else _PUNCTUATION.sub(r"\\\g<0>", level) for level in kept)
    if not has_tree:
        return first + base
    return f"{first}{base}(?:/.*)?" if kept else f"{first}.*"
