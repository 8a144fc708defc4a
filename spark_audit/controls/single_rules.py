"""Single rules that each conversion is held against, beside the comparison of the whole (see reperform/rules.py).

A conversion that breaks one of them mostly differs from its re-performance too: that control says that it is wrong,
these say by which rule of the specification.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import Control, Scope, Severity, message_subject, violations
from spark_audit.reperform.finding import Rule


def _control(rule: Rule, *, identifier: str, title: str, source: str) -> Control:
    return Control(
        identifier=identifier,
        title=title,
        severity=Severity.ERROR,
        source=source,
        scope=Scope.CONVERSIONS,
        rule=_broken(rule),
    )


def _broken(rule: Rule) -> Callable[[DataFrame], DataFrame]:
    """A function from outcomes to the violations of one rule."""

    def find(outcomes: DataFrame) -> DataFrame:
        told = outcomes.select("gateway", "sequence", "message_id", "conversion", sf.explode("findings").alias("found"))
        broken = told.where(sf.col("found.rule") == rule.value)
        detail = sf.concat(sf.col("conversion"), sf.lit(": "), sf.col("found.detail"))
        return violations(broken, subject=message_subject(), detail=detail)

    return find


FIELDS = _control(
    Rule.FIELDS,
    identifier="conversion.fields",
    title="The nine fields pass under their other names, and nothing else",
    source="Message formats (aq19780_): table of functionally equivalent fields",
)
SUPPORT = _control(
    Rule.SUPPORT,
    identifier="conversion.support",
    title="Options stand where they are supported, by notes 1 to 7",
    source="Message formats (aq19780_): option support table, notes 1 to 7",
)
REPORT = _control(
    Rule.REPORT,
    identifier="conversion.report",
    title="Every field that is left out is reported",
    source="Message formats (aq19780_): fields that are not copied",
)
RETAIN = _control(
    Rule.RETAIN,
    identifier="retained.option",
    title="RETAIN, RetainPub and IsRetainedPub stand for each other",
    source="Message formats (aq19780_): RetainPub, IsRetainedPub; MQTT 3.1.1 section 3.3.1.3",
)
