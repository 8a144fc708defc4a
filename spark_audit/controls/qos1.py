"""QoS 1: what the gateway acknowledged with PUBACK was put at least once, or refused or dead-lettered and says so."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.confirmed import PUBACK, confirmed_exchanges, outcomes, unsound_ranges
from spark_audit.controls.control import EXCHANGE, Control, Scope, Severity, exchange_subject, violations


def find(records: DataFrame) -> DataFrame:
    lost = confirmed_exchanges(records, PUBACK).join(outcomes(records), list(EXCHANGE), "left_anti")
    unsound = unsound_ranges(records, PUBACK)
    return violations(
        lost,
        subject=exchange_subject("in"),
        detail=sf.lit("acknowledged with PUBACK, but neither put, refused nor dead-lettered"),
    ).unionByName(
        violations(unsound, subject=exchange_subject("in"), detail=sf.lit("a confirmed range is no range of exchanges"))
    )


CONTROL = Control(
    identifier="qos.1",
    title="QoS 1: each acknowledged PUBLISH was put at least once",
    severity=Severity.ERROR,
    source="seed 004, QoS level 1; MQTT 3.1.1 section 4.3.2",
    scope=Scope.RECORDS,
    find=find,
)
