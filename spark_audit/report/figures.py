"""The sums of a report: from the tables of an engine to the values of result.json.

Each groups and sums in the engine, and brings a bounded number of rows here. Tables are those of facts/tables.py and
facts/derived.py. Only records within the period of the audit are counted.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spark_audit.controls.control import in_trail
from spark_audit.engines.engine import Engine
from spark_audit.facts.words import PUBACK, PUBCOMP
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
_INTERVALS_S: Final = (1, 5, 15, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)
_DAY_S: Final = 86_400
#: No time of a fact lies beyond.
_LATEST_US: Final = 2**62
_EXTENT: Final = (
    "min(first_sequence) AS first_sequence, max(last_sequence) AS last_sequence,"
    " min(lowest_at_us) AS first_at_us, max(highest_at_us) AS last_at_us"
)


def segments(engine: Engine) -> tuple[Segment, ...]:
    """The segments in order of their names, the first SEGMENTS_SHOWN; from every line, records or not."""
    query = f"""SELECT {in_trail("segment")} AS name, sum(lines) AS lines,
        sum(records) AS records, {_EXTENT}
        FROM runs WHERE is_fresh GROUP BY trail, segment ORDER BY name LIMIT {SEGMENTS_SHOWN}"""
    return tuple(
        Segment(
            name=row["name"],
            lines=row["lines"],
            records=row["records"],
            first_sequence=row["first_sequence"] or 0,
            last_sequence=row["last_sequence"] or 0,
            first_at_us=row["first_at_us"] or 0,
            last_at_us=row["last_at_us"] or 0,
        )
        for row in engine.rows(query)
    )


#: Runs may overlap where lines are doubled: a number counts where no run in front of it has it.
_NUMBERED: Final = """(
  SELECT *, CASE WHEN before IS NULL OR before < first_sequence THEN lines WHEN last_sequence > before
    THEN last_sequence - before ELSE 0 END AS numbers
  FROM (
    SELECT *, max(last_sequence) OVER (
      PARTITION BY gateway ORDER BY first_sequence, last_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before FROM runs WHERE is_record AND is_fresh
  ) AS ordered
) AS numbered"""


#: What a gateway's configuration called it last: each start and each inventory says so.
_NAMES: Final = """SELECT gateway, gateway_name FROM (
  SELECT gateway, gateway_name, row_number() OVER (PARTITION BY gateway ORDER BY sequence DESC) AS place
  FROM records WHERE kind = 'started' OR (kind = 'inventory' AND event = 'begun')
) AS said WHERE place = 1 AND gateway_name IS NOT NULL"""


def coverage(engine: Engine) -> tuple[Coverage, ...]:
    """Each gateway's first and last record, and how many numbers between them have none."""
    query = f"""SELECT gateway, sum(records) AS records, sum(numbers) AS numbers, {_EXTENT}
        FROM {_NUMBERED} GROUP BY gateway ORDER BY gateway LIMIT {GROUPS_SHOWN}"""
    names = {row["gateway"]: row["gateway_name"] for row in engine.rows(_NAMES)}
    return tuple(
        Coverage(
            gateway=row["gateway"],
            records=row["records"],
            first_sequence=row["first_sequence"],
            last_sequence=row["last_sequence"],
            missing=row["last_sequence"] - row["first_sequence"] + 1 - row["numbers"],
            first_at_us=row["first_at_us"] or 0,
            last_at_us=row["last_at_us"] or 0,
            name=names.get(row["gateway"], ""),
        )
        for row in engine.rows(query)
    )


def personal_data(engine: Engine) -> PersonalData:
    """Whether clients stand in the trail plainly or as keyed hashes."""
    (row,) = engine.rows("SELECT sum(keyed) AS keyed, sum(plain) AS plain FROM runs")
    if row["keyed"] and row["plain"]:
        return PersonalData.MIXED
    if row["keyed"]:
        return PersonalData.KEYED
    return PersonalData.PLAIN if row["plain"] else PersonalData.UNKNOWN


def conversions(engine: Engine) -> tuple[ConversionCount, ...]:
    """Conversions by kind and outcome of re-performance."""
    keys = "conversion, status, same_bytes"
    rows = engine.rows(
        f"""SELECT {keys}, count(*) AS times FROM records WHERE status IS NOT NULL
        GROUP BY {keys} ORDER BY {keys} LIMIT {GROUPS_SHOWN}"""
    )
    return tuple(
        ConversionCount(
            conversion=row["conversion"], status=row["status"], same_bytes=row["same_bytes"], count=row["times"]
        )
        for row in rows
    )


def dropped_fields(engine: Engine) -> tuple[DroppedField, ...]:
    """Fields that conversions did not copy, by name and reason, the most frequent first."""
    rows = engine.rows(
        f"""SELECT name, reason, sum(times) AS times FROM dropped_fields
        GROUP BY name, reason ORDER BY times DESC, name, reason LIMIT {GROUPS_SHOWN}"""
    )
    return tuple(DroppedField(name=row["name"], reason=row["reason"], count=row["times"]) for row in rows)


def _balance(things: str, group: str, ends: dict[str, str]) -> str:
    """Counts of things by the first end in order that each has; `pending` where it has none."""
    cases = " ".join(f"WHEN {condition} THEN '{end}'" for end, condition in ends.items())
    return f"""SELECT CAST({group} AS STRING) AS thing, CASE {cases} ELSE 'pending' END AS ending, count(*) AS times
        FROM {things} GROUP BY 1, 2 ORDER BY thing NULLS FIRST, ending LIMIT {GROUPS_SHOWN}"""


_EXCHANGES: Final = _balance(
    "(SELECT * FROM exchanges WHERE is_counted) AS counted",
    "counted_qos",
    {Kind.REFUSED: "is_refused", Kind.DEAD_LETTERED: "is_dead_lettered", Kind.PUT: "is_put"},
)
_COPIES: Final = _balance(
    "(SELECT * FROM copies WHERE is_counted) AS counted",
    "queue",
    {Kind.DELIVERED: "was_delivered", Kind.DEAD_LETTERED: "was_dead_lettered", Kind.DROPPED: "was_dropped"},
)
_PASSAGES: Final = _balance(
    """(
  SELECT DISTINCT put.gateway, put.message_id, put.destination, m.was_forwarded, m.was_dead_lettered, m.was_dropped
  FROM records AS put
  LEFT JOIN messages AS m ON m.gateway = put.gateway AND m.message_id = put.message_id
  WHERE put.kind = 'put' AND put.destination IS NOT NULL AND put.is_counted
) AS counted""",
    "destination",
    {Kind.FORWARDED: "was_forwarded", Kind.DEAD_LETTERED: "was_dead_lettered", Kind.DROPPED: "was_dropped"},
)
_KINDS: Final = f"""SELECT 'records' AS thing, kind AS ending, count(*) AS times FROM records WHERE is_counted
    GROUP BY kind ORDER BY ending LIMIT {GROUPS_SHOWN}"""


def balances(engine: Engine) -> Balances:
    """What there was of each kind, and the ends of exchanges, copies and passages."""
    return Balances(
        kinds=_counts(engine, _KINDS),
        exchanges=_counts(engine, _EXCHANGES),
        copies=_counts(engine, _COPIES),
        passages=_counts(engine, _PASSAGES),
    )


def _counts(engine: Engine, query: str) -> tuple[Count, ...]:
    return tuple(
        Count(group=row["thing"] or "", what=row["ending"] or "", count=row["times"]) for row in engine.rows(query)
    )


def qos_proofs(engine: Engine, exchanges: Sequence[Count], controls: Sequence[ControlResult]) -> tuple[QosProof, ...]:
    """For QoS 0, 1 and 2: the ends of `exchanges` (a balance), deliveries, acknowledgements, violations."""
    ends = {(row.group, row.what): row.count for row in exchanges}
    acknowledged = _acknowledged(engine)
    delivered = _delivered(engine)
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


def _acknowledged(engine: Engine) -> dict[int, int]:
    """Exchanges that the gateway acknowledged: by PUBACK at QoS 1, by PUBCOMP at QoS 2."""
    rows = engine.rows(
        f"""SELECT packet_type, count(*) AS times FROM confirmations
        WHERE is_counted AND packet_type IN ({PUBACK}, {PUBCOMP}) GROUP BY packet_type"""
    )
    return {1 if row["packet_type"] == PUBACK else 2: row["times"] for row in rows}


_DELIVERED: Final = """
SELECT qos, is_completed, count(*) AS times
FROM (
  SELECT sent_qos AS qos, is_completed FROM exchanges WHERE side = 'out'
  UNION ALL
  SELECT qos, false FROM records
  WHERE kind = 'delivered' AND direction = 'out' AND exchange IS NULL AND is_counted
) AS told
WHERE qos IN (0, 1, 2) GROUP BY qos, is_completed
"""


def _delivered(engine: Engine) -> dict[tuple[int, bool], int]:
    """Exchanges to clients by QoS, and whether the client completed them with PUBACK or PUBCOMP."""
    return {(row["qos"], row["is_completed"]): row["times"] for row in engine.rows(_DELIVERED)}


def volumes(engine: Engine, first_at_us: int, last_at_us: int) -> Volumes:
    """Records by interval, between the given times. The interval is long enough that about _INTERVALS suffice."""
    interval_s = interval_for((last_at_us - first_at_us) / 1_000_000)
    interval_us = interval_s * 1_000_000
    first_us, last_us = (max(-_LATEST_US, min(each, _LATEST_US)) for each in (first_at_us, last_at_us))
    kinds = {kind.value: f"kind = '{kind}'" for kind in (Kind.ACCEPTED, Kind.PUT, Kind.DELIVERED, Kind.FORWARDED)}
    kinds["ended_otherwise"] = "kind IN ('refused', 'dead_lettered', 'dropped')"
    sums = ", ".join(f"count(CASE WHEN {where} THEN 1 END) AS {name}" for name, where in kinds.items())
    rows = engine.rows(
        f"""SELECT at_us - (at_us % {interval_us} + {interval_us}) % {interval_us} AS begins_us, {sums} FROM records
        WHERE is_counted AND at_us BETWEEN {first_us} AND {last_us}
        GROUP BY 1 ORDER BY begins_us LIMIT {2 * _INTERVALS}"""
    )
    return Volumes(
        interval_s=interval_s,
        intervals=tuple(Volume(at_us=row["begins_us"], **{name: row[name] for name in kinds}) for row in rows),
    )


def interval_for(period_s: float) -> int:
    """The length in seconds of the intervals into which a period is cut."""
    for length in _INTERVALS_S:
        if period_s <= length * _INTERVALS:
            return length
    return _DAY_S * (1 + int(period_s // (_DAY_S * _INTERVALS)))


def starts(engine: Engine) -> tuple[ProgramStart, ...]:
    """Starts of gateways in order, the first GROUPS_SHOWN."""
    rows = engine.rows(
        f"""SELECT gateway, at_us, code_version, table_version, configuration_sha256 FROM records
        WHERE kind = 'started' AND is_counted ORDER BY gateway, sequence LIMIT {GROUPS_SHOWN}"""
    )
    return tuple(
        ProgramStart(
            gateway=row["gateway"],
            at_us=row["at_us"] or 0,
            code_version=row["code_version"] or "",
            table_version=row["table_version"] or "",
            configuration_sha256=row["configuration_sha256"] or "",
        )
        for row in rows
    )


def with_figures(result: AuditResult, engine: Engine) -> AuditResult:
    """The result with every sum over its records. `scope` and `controls` exist already."""
    summed = balances(engine)
    return replace(
        result,
        dropped_fields=dropped_fields(engine),
        balances=summed,
        qos_proofs=qos_proofs(engine, summed.exchanges, result.controls),
        volumes=volumes(engine, result.scope.first_at_us, result.scope.last_at_us),
        latencies=latencies(engine),
        starts=starts(engine),
        personal_data=personal_data(engine),
    )


def scope(engine: Engine, *, size_bytes: int, torn_files: tuple[str, ...]) -> Scope:
    """The lines, segments and gateways that were read."""
    (sums,) = engine.rows(
        """SELECT sum(lines) AS lines, sum(records) AS records,
        sum(CASE WHEN is_record THEN 0 ELSE lines END) AS foreign_lines,
        min(lowest_at_us) AS first_us, max(highest_at_us) AS last_us,
        count(DISTINCT trail || '/' || segment) AS segments, count(DISTINCT gateway) AS gateways
        FROM runs WHERE is_fresh"""
    )
    return Scope(
        segments=segments(engine),
        segment_count=sums["segments"],
        bytes=size_bytes,
        lines=sums["lines"] or 0,
        records=sums["records"] or 0,
        lines_set_aside=sums["foreign_lines"] or 0,
        torn_files=torn_files,
        coverage=coverage(engine),
        gateway_count=sums["gateways"],
        first_at_us=sums["first_us"] or 0,
        last_at_us=sums["last_us"] or 0,
    )
