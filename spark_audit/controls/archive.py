"""Controls of an archive of captured messages (archive/examination.py), beside the controls of conversions.

The controls HELD_BY_PAIRS judge conversions, and only an archive that has conversions can be judged by them.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls import reperformance
from spark_audit.controls.control import Control, Scope, Severity, all_of, message_subject, violations
from spark_audit.reperform.outcome import Status

_NINE: Final = "Message formats (aq19780_): table of functionally equivalent fields"


def _found(frame: DataFrame, where: Column, detail: Column | str) -> DataFrame:
    words = sf.lit(detail) if isinstance(detail, str) else detail
    return violations(frame.where(where), subject=message_subject(), detail=words)


def _lost(outcomes: DataFrame) -> DataFrame:
    told = outcomes.select("gateway", "sequence", "message_id", sf.explode("dropped_fields").alias("pair"))
    detail = sf.concat(sf.get("pair", 0), sf.lit(": "), sf.get("pair", 1))
    return violations(told, subject=message_subject(), detail=detail)


def _unpaired(outcomes: DataFrame) -> DataFrame:
    """A message that cannot be read or converted needs no conversion."""
    is_due = sf.col("fault").isNull() & sf.col("refusal").isNull() & sf.col("unjudged").isNull()
    known = outcomes.where(~sf.col("is_doubled"))
    without = sf.col("has_message") & ~sf.col("has_made") & is_due
    detail = sf.when(sf.col("is_refused"), sf.lit("it was refused, though it can be converted")).otherwise(
        sf.lit("there is no conversion of it")
    )
    alone = ~sf.col("has_message") & sf.col("has_made")
    return all_of(
        _found(known, without, detail),
        _found(known, alone, "it was converted from no message here"),
        _found(outcomes, sf.col("is_doubled"), "its name stands twice: nothing says which was made of which"),
    )


def _twice(outcomes: DataFrame) -> DataFrame:
    names = outcomes.where("has_message").groupBy("gateway", "sequence", "message_id").count()
    return _found(names, sf.col("count") > 1, sf.format_string("%d messages have this name", "count"))


def _other_bytes(outcomes: DataFrame) -> DataFrame:
    is_layout = (sf.col("status") == Status.MATCH.value) & ~sf.col("same_bytes") & (sf.col("expected_bytes") > 0)
    detail = sf.format_string("the meaning is the same, and byte %d is another than the audit writes", "byte_offset")
    return _found(outcomes, is_layout, detail)


READABLE: Final = Control(
    identifier="archive.readable",
    title="Each message begins with headers that can be read",
    severity=Severity.ERROR,
    source="IBM MQ: MQRFH, MQRFH2, MQDLH",
    scope=Scope.CONVERSIONS,
    rule=lambda outcomes: _found(outcomes, sf.col("fault").isNotNull(), sf.col("fault.text")),
)
JUDGED: Final = Control(
    identifier="archive.judged",
    title="The audit's own reading knows each header and code page",
    severity=Severity.WARNING,
    source="spark_audit/reperform",
    scope=Scope.CONVERSIONS,
    rule=lambda outcomes: _found(outcomes, sf.col("unjudged").isNotNull(), sf.col("unjudged")),
)
CONVERTIBLE: Final = Control(
    identifier="archive.convertible",
    title="Each message can be written in the other format",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): option support table; IBM MQ: Wildcard schemes",
    scope=Scope.CONVERSIONS,
    rule=lambda outcomes: _found(
        outcomes, sf.col("refusal").isNotNull() & ~sf.col("is_refused"), sf.col("refusal.text")
    ),
)
LOSSES: Final = Control(
    identifier="archive.losses",
    title="No field is left out in the other format",
    severity=Severity.WARNING,
    source=_NINE,
    scope=Scope.CONVERSIONS,
    rule=_lost,
)
NAMES: Final = Control(
    identifier="archive.names",
    title="A name stands for one message",
    severity=Severity.WARNING,
    source="spark_audit/archive/files.py",
    scope=Scope.CONVERSIONS,
    rule=_twice,
)
PAIRED: Final = Control(
    identifier="archive.paired",
    title="Each message that can be converted was converted, and no other",
    severity=Severity.ERROR,
    source="spark_audit/archive/files.py",
    scope=Scope.CONVERSIONS,
    rule=_unpaired,
)
BODY: Final = Control(
    identifier="archive.body",
    title="The body behind the headers stayed as it was, byte for byte",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): the header alone is converted",
    scope=Scope.CONVERSIONS,
    rule=lambda outcomes: _found(outcomes, ~sf.col("body_is_same"), "the bytes behind the headers are others"),
)
BYTES: Final = Control(
    identifier="archive.bytes",
    title="Each header is byte for byte what the audit writes",
    severity=Severity.WARNING,
    source=_NINE,
    scope=Scope.CONVERSIONS,
    rule=_other_bytes,
)

#: In the order in which they run and are shown.
OF_MESSAGES: Final = (READABLE, JUDGED, CONVERTIBLE, LOSSES, NAMES)
HELD_BY_PAIRS: Final = (
    PAIRED,
    reperformance.CONTROL,
    reperformance.UNREADABLE,
    reperformance.FIELDS,
    reperformance.SUPPORT,
    reperformance.REPORT,
    BODY,
    BYTES,
)
