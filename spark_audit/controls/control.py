"""What a control is, and the shape of its violations: `gateway`, `sequence`, `subject`, `detail`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

#: One exchange of a client: identifiers of packets are reused, these together are not.
EXCHANGE: Final = ("gateway", "client", "session_epoch", "exchange")


class Severity(StrEnum):
    """ERROR makes the verdict `violations`; WARNING is told and leaves the verdict alone."""

    ERROR = "error"
    WARNING = "warning"


class Scope(StrEnum):
    """What a control looks at: LINES are all lines of the trail, CONVERSIONS are outcomes of re-performance."""

    LINES = "lines"
    RECORDS = "records"
    CONVERSIONS = "conversions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control: what it asks, why (source), and the function that finds its violations."""

    identifier: str
    title: str
    severity: Severity
    source: str
    scope: Scope
    find: Callable[[DataFrame], DataFrame]


def violations(frame: DataFrame, *, subject: Column, detail: Column) -> DataFrame:
    """The columns of a violation; `gateway` and `sequence` are the frame's own."""
    return frame.select("gateway", "sequence", subject.alias("subject"), detail.alias("detail"))


def exchange_subject(direction: str) -> Column:
    """An exchange in words."""
    return sf.concat(
        sf.lit(f"{direction}: client "),
        sf.coalesce(sf.col("client"), sf.lit("?")),
        sf.lit(", session "),
        sf.coalesce(sf.col("session_epoch").cast("string"), sf.lit("?")),
        sf.lit(", exchange "),
        sf.coalesce(sf.col("exchange").cast("string"), sf.lit("?")),
    )


def message_subject() -> Column:
    return sf.concat(sf.lit("message "), sf.coalesce(sf.col("message_id"), sf.lit("?")))
