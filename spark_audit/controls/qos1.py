"""QoS 1: what the gateway acknowledged with PUBACK was put at least once, or refused or dead-lettered and says so."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import PUBACK, confirmed_exchanges, outcomes, unsound_ranges
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, all_of, exchange_subject, violations
from spark_audit.controls.window_edge import begun_exchanges


def find(records: DataFrame) -> DataFrame:
    without = confirmed_exchanges(records, PUBACK).join(
        outcomes(records).select(*EXCHANGE), list(EXCHANGE), "left_anti"
    )
    found = (
        (begun_exchanges(without, records), "acknowledged with PUBACK, but neither put, refused nor dead-lettered"),
        (unsound_ranges(records, PUBACK), "a confirmed range is no range of exchanges"),
    )
    subject = exchange_subject("in")
    return all_of(*(violations(frame, subject=subject, detail=sf.lit(detail)) for frame, detail in found))


CONTROL = Control(
    identifier="qos.1",
    title="QoS 1: each acknowledged PUBLISH was put at least once",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 section 4.3.2",
    scope=Scope.RECORDS,
    rule=find,
)
