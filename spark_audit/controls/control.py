"""What a control is, and the shape of its violations: `gateway`, `sequence`, `subject`, `detail`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

#: One session of a client.
SESSION: Final = ("gateway", "client", "session_epoch")
#: One exchange of a client: identifiers of packets are reused, these together are not.
EXCHANGE: Final = (*SESSION, "exchange")
#: One message, by its number in the store.
MESSAGE: Final = ("gateway", "message_id")


class Severity(StrEnum):
    """ERROR makes the verdict `violations`; WARNING is told and leaves the verdict alone; OFF is not run, and said."""

    ERROR = "error"
    WARNING = "warning"
    OFF = "off"


class Scope(StrEnum):
    """What a control looks at.

    LINES are all lines of the trail, RECORDS those that are records, CONVERSIONS the outcomes of re-performance
    (reperformance.reperformed), DIGESTS the digests beside their segments (digests.beside_segments), VERDICTS what two
    programs say of the same trail (integrity.verdicts).
    """

    LINES = "lines"
    RECORDS = "records"
    CONVERSIONS = "conversions"
    DIGESTS = "digests"
    VERDICTS = "verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A threshold of a control: its value in force (the default, where no policy says otherwise) and its unit."""

    name: str
    value: int | bool
    unit: str
    meaning: str
    minimum: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control: what it asks, why (source), and the rule that makes violations of a frame.

    A rule takes the frame that `scope` names, and each parameter by its name.
    """

    identifier: str
    title: str
    severity: Severity
    source: str
    scope: Scope
    rule: Callable[..., DataFrame]
    parameters: tuple[Parameter, ...] = ()

    def find(self, frame: DataFrame) -> DataFrame:
        """The violations in a frame, by the parameters in force."""
        return self.rule(frame, **{parameter.name: parameter.value for parameter in self.parameters})

    def with_values(self, values: Mapping[str, int | bool]) -> Self:
        """The same control with other values for the parameters that are named."""
        parameters = tuple(replace(each, value=values.get(each.name, each.value)) for each in self.parameters)
        return replace(self, parameters=parameters)


def trail_key(frame: DataFrame) -> tuple[str, ...]:
    """The column that tells several trails in one frame apart, where there is one: their segments have equal names."""
    return ("trail",) if "trail" in frame.columns else ()


def in_trail(frame: DataFrame, name: Column) -> Column:
    """The name of a file, with its trail in front where several are in one frame."""
    return sf.concat("trail", sf.lit("/"), name) if trail_key(frame) else name


def violations(frame: DataFrame, *, subject: Column, detail: Column) -> DataFrame:
    """The columns of a violation; `gateway` and `sequence` are the frame's own."""
    return frame.select("gateway", "sequence", subject.alias("subject"), detail.alias("detail"))


def all_of(first: DataFrame, *others: DataFrame) -> DataFrame:
    """The violations of several frames together."""
    for other in others:
        first = first.unionByName(other)
    return first


def every_but_the_first(told: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Of the records with an equal key all that tell it again."""
    place = sf.row_number().over(Window.partitionBy(*key).orderBy("sequence"))
    return told.withColumn("place", place).where(sf.col("place") > 1)


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


def gateway_subject() -> Column:
    return sf.concat(sf.lit("gateway "), sf.col("gateway"))
