"""The sums of a report: functions from a DataFrame of lines, records or outcomes to the values of result.json.

Each groups and sums on Spark, and brings a bounded number of rows to the driver. Columns are those of
spark_audit/read.py and of controls/reperformance.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls import conservation, passages
from spark_audit.controls.control import in_trail
from spark_audit.controls.incoming_exchanges import PUBACK, PUBCOMP, RANGE_LIMIT
from spark_audit.record import Kind
from spark_audit.report.latency import latencies
from spark_audit.result import (
    AuditResult,
    Balances,
    ControlResult,
    ConversionCount,
    Count,
    Coverage,
    DroppedField,
    PersonalData,
    ProgramStart,
    QosProof,
    Scope,
    Segment,
    Volume,
    Volumes,
)

#: The most rows of one table in a result.
GROUPS_SHOWN: Final = 200
SEGMENTS_SHOWN: Final = 1_000
#: The most intervals of a chart that the eye separates at the width of a page.
_INTERVALS: Final = 120
#: Lengths of an interval that people read easily, seconds: a minute to a day; past it whole days.
_INTERVALS_S: Final = (60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)
_DAY_S: Final = 86_400
#: A keyed client identifier or topic in the trail: a prefix and 32 hex digits of the HMAC.
_KEYED: Final = "^k:[0-9a-f]{32}$"


def segments(lines: DataFrame) -> tuple[Segment, ...]:
    """The segments in order of their names, the first SEGMENTS_SHOWN; from every line, records or not."""
    is_record = sf.col("is_record")
    counted = lines.groupBy(in_trail(lines, sf.col("segment")).alias("segment")).agg(
        sf.count("*").alias("lines"), sf.count_if("is_record").alias("records"), *_extent(is_record)
    )
    return tuple(
        Segment(
            name=row["segment"],
            lines=row["lines"],
            records=row["records"],
            first_sequence=row["first_sequence"] or 0,
            last_sequence=row["last_sequence"] or 0,
            first_at_us=row["first_at_us"] or 0,
            last_at_us=row["last_at_us"] or 0,
        )
        for row in counted.orderBy("segment").limit(SEGMENTS_SHOWN).collect()
    )


def coverage(records: DataFrame) -> tuple[Coverage, ...]:
    """Each gateway's first and last record, and how many numbers between them have none."""
    counted = records.groupBy("gateway").agg(
        sf.count("*").alias("records"), sf.count_distinct("sequence").alias("numbers"), *_extent(sf.lit(True))
    )
    return tuple(
        Coverage(
            gateway=row["gateway"],
            records=row["records"],
            first_sequence=row["first_sequence"],
            last_sequence=row["last_sequence"],
            missing=row["last_sequence"] - row["first_sequence"] + 1 - row["numbers"],
            first_at_us=row["first_at_us"] or 0,
            last_at_us=row["last_at_us"] or 0,
        )
        for row in counted.orderBy("gateway").limit(GROUPS_SHOWN).collect()
    )


def _extent(where: Column) -> tuple[Column, ...]:
    """First and last sequence number and time of the rows for which the condition holds."""
    sequence, at_us = (sf.when(where, sf.col(name)) for name in ("sequence", "at_us"))
    return (
        sf.min(sequence).alias("first_sequence"),
        sf.max(sequence).alias("last_sequence"),
        sf.min(at_us).alias("first_at_us"),
        sf.max(at_us).alias("last_at_us"),
    )


def personal_data(records: DataFrame) -> PersonalData:
    """Whether clients stand in the trail plainly or as keyed hashes."""
    keyed = sf.col("client").rlike(_KEYED)
    row = records.where(sf.col("client").isNotNull()).agg(
        sf.count_if(keyed).alias("keyed"), sf.count_if(~keyed).alias("plain")
    )
    keyed_count, plain_count = row.collect()[0]
    if keyed_count and plain_count:
        return PersonalData.MIXED
    if keyed_count:
        return PersonalData.KEYED
    return PersonalData.PLAIN if plain_count else PersonalData.UNKNOWN


def conversions(outcomes: DataFrame) -> tuple[ConversionCount, ...]:
    """Conversions by kind and outcome of re-performance."""
    keys = ("conversion", "status", "same_bytes")
    rows = outcomes.groupBy(*keys).count().orderBy(*keys).limit(GROUPS_SHOWN).collect()
    return tuple(
        ConversionCount(
            conversion=row["conversion"], status=row["status"], same_bytes=row["same_bytes"], count=row["count"]
        )
        for row in rows
    )


def dropped_fields(records: DataFrame) -> tuple[DroppedField, ...]:
    """Fields that conversions did not copy, by name and reason, the most frequent first."""
    pairs = records.select(sf.explode("dropped_fields").alias("pair"))
    counted = pairs.groupBy(sf.get("pair", 0).alias("name"), sf.get("pair", 1).alias("reason")).count()
    rows = counted.orderBy(sf.desc("count"), "name", "reason").limit(GROUPS_SHOWN).collect()
    return tuple(
        DroppedField(name=_words(row["name"]), reason=_words(row["reason"]), count=row["count"]) for row in rows
    )


def balances(records: DataFrame) -> Balances:
    """The records of each kind, and the ends of exchanges, copies and passages."""
    return Balances(
        kinds=_counts(records.groupBy(sf.lit("records").alias("group"), sf.col("kind").alias("what")).count()),
        exchanges=_counts(conservation.exchange_balance(records)),
        copies=_counts(conservation.copy_balance(records)),
        passages=_counts(passages.passage_balance(records)),
    )


def _counts(frame: DataFrame) -> tuple[Count, ...]:
    """Rows of a group, a thing and a count, the first GROUPS_SHOWN of them in order."""
    group, what, count = frame.columns
    rows = frame.orderBy(group, what).limit(GROUPS_SHOWN).collect()
    return tuple(Count(group=_words(row[group]), what=_words(row[what]), count=row[count]) for row in rows)


def qos_proofs(
    records: DataFrame, exchanges: Sequence[Count], controls: Sequence[ControlResult]
) -> tuple[QosProof, ...]:
    """For QoS 0, 1 and 2: the ends of `exchanges` (a balance), deliveries, acknowledgements, violations."""
    ends = {(row.group, row.what): row.count for row in exchanges}
    acknowledged = _acknowledged(records)
    delivered = _delivered(records)
    found = {control.identifier: control.violations for control in controls}
    return tuple(
        QosProof(
            qos=qos,
            accepted=sum(count for (group, _end), count in ends.items() if group == str(qos)),
            put=ends.get((str(qos), Kind.PUT.value), 0),
            refused=ends.get((str(qos), Kind.REFUSED.value), 0),
            dead_lettered=ends.get((str(qos), Kind.DEAD_LETTERED.value), 0),
            pending=ends.get((str(qos), "pending"), 0),
            acknowledged=acknowledged.get(qos, 0),
            delivered=sum(delivered.get((qos, is_completed), 0) for is_completed in (False, True)),
            completed=delivered.get((qos, True), 0),
            unanswered=delivered.get((qos, False), 0) if qos else 0,
            violations=found.get(f"qos.{qos}", 0) + found.get(f"delivery.qos{qos}", 0),
        )
        for qos in (0, 1, 2)
    )


def _acknowledged(records: DataFrame) -> dict[int, int]:
    """Exchanges that the gateway acknowledged: by PUBACK at QoS 1, by PUBCOMP at QoS 2."""
    pairs = records.where((sf.col("kind") == Kind.CONFIRMED) & sf.col("packet_type").isin(PUBACK, PUBCOMP)).select(
        "packet_type", sf.explode("exchanges").alias("pair")
    )
    length = sf.try_add(sf.try_subtract(sf.get("pair", 1), sf.get("pair", 0)), sf.lit(1))
    sound = pairs.select("packet_type", length.alias("length")).where(sf.col("length").between(1, RANGE_LIMIT))
    rows = sound.groupBy("packet_type").agg(sf.sum("length").alias("count")).collect()
    return {1 if row["packet_type"] == PUBACK else 2: row["count"] for row in rows}


def _delivered(records: DataFrame) -> dict[tuple[int, bool], int]:
    """Exchanges to clients by QoS, and whether the client completed them with PUBACK or PUBCOMP."""
    told = records.where(sf.col("kind").isin(Kind.DELIVERED, Kind.ACKNOWLEDGED) & (sf.col("direction") == "out"))
    is_last = (sf.col("kind") == Kind.ACKNOWLEDGED) & sf.col("packet_type").isin(PUBACK, PUBCOMP)
    is_delivered = sf.col("kind") == Kind.DELIVERED
    numbered = (
        told.where(sf.col("exchange").isNotNull())
        .groupBy("gateway", "client", "session_epoch", "exchange")
        .agg(sf.max(sf.when(is_delivered, sf.col("qos"))).alias("qos"), sf.bool_or(is_last).alias("is_completed"))
    )
    unnumbered = told.where(is_delivered & sf.col("exchange").isNull()).select(
        "qos", sf.lit(False).alias("is_completed")
    )
    counted = numbered.select("qos", "is_completed").unionByName(unnumbered).groupBy("qos", "is_completed").count()
    rows = counted.where(sf.col("qos").isin(0, 1, 2)).collect()
    return {(row["qos"], row["is_completed"]): row["count"] for row in rows}


def volumes(records: DataFrame, first_at_us: int, last_at_us: int) -> Volumes:
    """Records by interval, between the given times. The interval is long enough that about _INTERVALS suffice."""
    interval_s = interval_for((last_at_us - first_at_us) / 1_000_000)
    interval_us = interval_s * 1_000_000
    timed = records.where(sf.col("at_us").between(first_at_us, last_at_us))
    start = (sf.floor(sf.col("at_us") / interval_us) * interval_us).cast("long").alias("start")
    otherwise = (Kind.REFUSED, Kind.DEAD_LETTERED, Kind.DROPPED)
    counted = timed.groupBy(start).agg(
        *(
            sf.count_if(sf.col("kind") == kind).alias(kind.value)
            for kind in (Kind.ACCEPTED, Kind.PUT, Kind.DELIVERED, Kind.FORWARDED)
        ),
        sf.count_if(sf.col("kind").isin(*otherwise)).alias("ended_otherwise"),
    )
    rows = counted.orderBy("start").limit(2 * _INTERVALS).collect()
    return Volumes(
        interval_s=interval_s,
        intervals=tuple(
            Volume(
                at_us=row["start"],
                accepted=row[Kind.ACCEPTED.value],
                put=row[Kind.PUT.value],
                delivered=row[Kind.DELIVERED.value],
                forwarded=row[Kind.FORWARDED.value],
                ended_otherwise=row["ended_otherwise"],
            )
            for row in rows
        ),
    )


def interval_for(period_s: float) -> int:
    """The length in seconds of the intervals into which a period is cut."""
    for length in _INTERVALS_S:
        if period_s <= length * _INTERVALS:
            return length
    return _DAY_S * (1 + int(period_s // (_DAY_S * _INTERVALS)))


def starts(records: DataFrame) -> tuple[ProgramStart, ...]:
    """Starts of gateways in order, the first GROUPS_SHOWN."""
    started = records.where(sf.col("kind") == Kind.STARTED).orderBy("gateway", "sequence").limit(GROUPS_SHOWN)
    return tuple(
        ProgramStart(
            gateway=row["gateway"],
            at_us=row["at_us"] or 0,
            code_version=_words(row["code_version"]),
            table_version=_words(row["table_version"]),
            configuration_sha256=_words(row["configuration_sha256"]),
        )
        for row in started.collect()
    )


def _words(value: object) -> str:
    return "" if value is None else str(value)


def with_figures(result: AuditResult, records: DataFrame) -> AuditResult:
    """The result with every sum over its records. `scope` and `controls` exist already."""
    summed = balances(records)
    return replace(
        result,
        dropped_fields=dropped_fields(records),
        balances=summed,
        qos_proofs=qos_proofs(records, summed.exchanges, result.controls),
        volumes=volumes(records, result.scope.first_at_us, result.scope.last_at_us),
        latencies=latencies(records),
        starts=starts(records),
        personal_data=personal_data(records),
    )


def scope(lines: DataFrame, *, size_bytes: int, torn_files: tuple[str, ...]) -> Scope:
    """The lines, segments and gateways that were read."""
    sums = lines.agg(
        sf.count("*").alias("lines"),
        sf.count_if("is_record").alias("records"),
        sf.min(sf.when(sf.col("is_record"), sf.col("at_us"))).alias("first"),
        sf.max(sf.when(sf.col("is_record"), sf.col("at_us"))).alias("last"),
        sf.count_distinct(in_trail(lines, sf.col("segment"))).alias("segments"),
        sf.count_distinct(sf.when(sf.col("is_record"), sf.col("gateway"))).alias("gateways"),
    ).collect()[0]
    return Scope(
        segments=segments(lines),
        segment_count=sums["segments"],
        bytes=size_bytes,
        lines=sums["lines"],
        records=sums["records"],
        lines_set_aside=sums["lines"] - sums["records"],
        torn_files=torn_files,
        coverage=coverage(lines.where("is_record")),
        gateway_count=sums["gateways"],
        first_at_us=sums["first"] or 0,
        last_at_us=sums["last"] or 0,
    )
