"""Integrity of the records: lines, hashes, links, numbers, and the gaps that the trail itself tells.

Lines of a run follow each other without a fault, so the rules compare where a run begins with what is in front of it.
Digests have a module of their own (digests.py).
"""

from typing import Final

from spark_audit.controls.control import (
    GATEWAY,
    RECORDS,
    Control,
    Parameter,
    Rule,
    Scope,
    Severity,
    Tested,
    in_trail,
    told_by_reader,
    violations,
)
from spark_audit.record import ZERO_HASH

FROM_START: Final = Parameter(
    name="from_start",
    value=True,
    unit="yes or no",
    meaning="whether the first record must be number 1; no, where older segments are removed or not read",
)
#: Whether the first record of a gateway or trail must be the very first.
_IS_FIRST: Final = "({from_start} AND NOT is_cut)"

LINES = Control(
    identifier="integrity.lines",
    title="Every line of the trail is an audit record",
    severity=Severity.ERROR,
    source="spark_audit/record: the audit record",
    tested=Tested(what="lines", table="runs", number="lines"),
    rule=Rule(
        query=f"""
SELECT '' AS gateway, 0 AS sequence, {in_trail("segment || ', line ' || CAST(number AS STRING)")} AS subject,
  'no audit record: ' || coalesce(line, '') AS detail
FROM (
  SELECT *, sum(lines) OVER (
    PARTITION BY trail, segment ORDER BY block, place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS number FROM runs
) AS numbered
WHERE NOT is_record
"""
    ),
)
HASHES = Control(
    identifier="integrity.hash",
    title="Each record carries the hash of its own bytes",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `hash`",
    rule=told_by_reader("integrity.hash"),
)
#: The order is that of the lines in the files, across segments too: by number, two lines that were swapped look right.
CHAIN = Control(
    identifier="integrity.chain",
    is_of_neighbours=True,
    title="Each record is linked to the record before it",
    severity=Severity.ERROR,
    source="spark_audit/record/line.py: `prev`",
    parameters=(FROM_START,),
    rule=violations(
        f"""(
  SELECT *, coalesce(before, CASE WHEN {_IS_FIRST} THEN '{ZERO_HASH}' ELSE first_prev END) AS due
  FROM (
    SELECT *, lag(last_hash) OVER (PARTITION BY trail ORDER BY segment, block, place) AS before
    FROM runs WHERE is_record
  ) AS linked
) AS ordered""",
        "first_prev IS DISTINCT FROM due",
        sequence="first_sequence",
        subject=in_trail("segment"),
        detail="'prev is not the hash of the record before, ' || coalesce(due, 'none')",
    ),
)
#: Of several trails one that begins late numbers its gateway's records from 1 again; a trail and its copy are doubles.
_PARTS: Final = """(
  SELECT runs.*, CASE WHEN late.trail IS NULL THEN '' ELSE runs.trail END AS part
  FROM runs
  LEFT JOIN (SELECT DISTINCT trail, gateway FROM runs WHERE begins_late AND trail <> '') AS late
    ON late.trail = runs.trail AND late.gateway = runs.gateway
  WHERE is_record
)"""
_IN_ORDER: Final = "PARTITION BY gateway, part, is_cut ORDER BY first_sequence, trail, segment, block, place"
#: The number before; none before the smallest that there is.
_BEFORE: Final = "CASE WHEN {0} > -9223372036854775807 THEN {0} - 1 END"

SEQUENCE = Control(
    identifier="integrity.sequence",
    is_of_neighbours=True,
    title="Records are numbered without gaps and doubles",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `sequence`",
    parameters=(FROM_START,),
    rule=violations(
        f"""(
  SELECT gateway, first_sequence, {_BEFORE.format("first_sequence")} AS due,
    coalesce(before, CASE WHEN {_IS_FIRST} THEN 0 ELSE {_BEFORE.format("first_sequence")} END) AS before
  FROM (
    SELECT *, max(last_sequence) OVER ({_IN_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM {_PARTS} AS parts
  ) AS ordered
) AS numbered""",
        "due IS NULL OR before IS DISTINCT FROM due",
        sequence="first_sequence",
        subject=GATEWAY,
        detail=(
            "CASE WHEN first_sequence <= before THEN 'the number stands twice'"
            " ELSE 'follows sequence ' || coalesce(CAST(before AS STRING), 'none') || ': records are missing' END"
        ),
    ),
)
BATCHES = Control(
    identifier="integrity.batch",
    is_of_neighbours=True,
    title="No group commit is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `batch`",
    parameters=(FROM_START,),
    rule=violations(
        f"""(
  SELECT *, lag(last_batch) OVER ({_IN_ORDER}) AS before, {_BEFORE.format("first_batch")} AS due
  FROM {_PARTS} AS parts
) AS ordered""",
        f"""NOT coalesce(CASE
    WHEN before IS NOT NULL THEN before = first_batch OR before = due
    WHEN begins_late AND first_missing_batch = 1 AND last_missing_batch = first_batch THEN true
    WHEN {_IS_FIRST} THEN first_batch = 1
    ELSE true END, false)""",
        sequence="first_sequence",
        subject=GATEWAY,
        detail=(
            "'batch ' || CAST(first_batch AS STRING) || ' follows batch ' || CAST(coalesce(before, 0) AS STRING)"
            " || ': the records of a commit are missing'"
        ),
    ),
)
#: Without it somebody could remove a trail, follow the remedy for a lost key, and the rest would be called consistent.
#: Policy.controls leaves out the records that a policy names.
RESTORED = Control(
    identifier="integrity.restored",
    title="The policy names everything that is missing",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: Kind.RESTORED",
    rule=told_by_reader("integrity.restored"),
)
VALUES = Control(
    identifier="integrity.values",
    title="Each record holds what its kind must hold",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: FIELDS",
    rule=told_by_reader("integrity.values"),
)
REASONS = Control(
    identifier="reasons",
    title="Everything that was not copied or not delivered has a reason",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): fields that are not copied",
    rule=told_by_reader("reasons"),
    tested=RECORDS,
)

#: The controls that ask what `verify` asks.
OF_INTEGRITY: Final = (
    "integrity.lines",
    "integrity.hash",
    "integrity.chain",
    "integrity.sequence",
    "integrity.batch",
    "integrity.digests",
)
#: The two programs read the same bytes in different ways: where only one finds a fault, one of them is wrong. The rule
#: is judgement.py's, which knows what the others found.
AGREEMENT = Control(
    identifier="integrity.agreement",
    title="This audit and verify agree",
    severity=Severity.ERROR,
    source="two readings of spark_audit/record/line.py and spark_audit/trail/digest.py",
    scope=Scope.VERDICTS,
    rule=Rule(query=""),
    tested=Tested(what="trails", table=""),
)
