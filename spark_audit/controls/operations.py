"""What people did to the gateway: orders of operators, and another program, mapping table or configuration.

An order is no fault, but somebody who answers for the messages should know of it. A message that an order destroyed has
a `dropped` record of its own, of the same moment and queue, and the order counts them: where the two disagree, a record
is missing. A conversion by another table than the one that the program named at its start is a fault.
"""

from typing import Final

from spark_audit.controls.control import (
    GATEWAY,
    MESSAGE,
    Control,
    Rule,
    Severity,
    Tested,
    all_of,
    told_by_reader,
    violations,
)

ACTS = Control(
    identifier="operators.acts",
    title="No operator gave an order that changes anything",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind operated",
    rule=told_by_reader("operators.acts"),
)
#: The commands that destroy messages of a queue.
_DESTROYING: Final = "('CLEAR QLOCAL', 'DELETE QLOCAL', 'DELETE QLOCAL PURGE', 'queue clear')"
DESTROYED = Control(
    identifier="operators.destroyed",
    is_of_neighbours=True,
    title="Each message that an operator destroyed has a record",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: kinds operated and dropped",
    tested=Tested(
        what="records",
        table="records",
        where=f"is_destroyed OR (kind = 'operated' AND command IN {_DESTROYING})",
    ),
    rule=violations(
        f"""(
  SELECT coalesce(acts.gateway, told.gateway) AS gateway, coalesce(acts.queue, told.queue) AS queue,
    coalesce(acts.sequence, told.sequence) AS sequence, coalesce(acts.messages, '0') AS messages,
    coalesce(told.times, '0') AS times
  FROM (
    SELECT gateway, queue, at_us, min(sequence) AS sequence,
      CAST(sum(CAST(messages AS DECIMAL(38, 0))) AS STRING) AS messages
    FROM records WHERE kind = 'operated' AND command IN {_DESTROYING} GROUP BY gateway, queue, at_us
  ) AS acts
  FULL JOIN (
    SELECT gateway, queue, at_us, min(sequence) AS sequence, CAST(count(*) AS STRING) AS times
    FROM records WHERE is_destroyed GROUP BY gateway, queue, at_us
  ) AS told ON told.gateway = acts.gateway AND told.queue = acts.queue AND told.at_us = acts.at_us
) AS units""",
        "messages <> times",
        subject=GATEWAY,
        detail=(
            "'queue ' || coalesce(queue, '?') || ': acts say ' || messages || ' messages, and ' || times || ' are told'"
        ),
    ),
)

#: Field of a start, and what it is called.
_NAMED: Final = (
    ("code_version", "the program"),
    ("table_version", "the field-mapping table"),
    ("configuration_sha256", "the configuration"),
)


def _changed(name: str, words: str) -> Rule:
    return violations(
        f"""(
  SELECT gateway, sequence, coalesce({name}, '') AS now,
    lag(coalesce({name}, '')) OVER (PARTITION BY gateway ORDER BY sequence) AS before
  FROM records WHERE kind = 'started'
) AS starts""",
        "now <> before",
        subject=GATEWAY,
        detail=f"'{words} changed from ' || before || ' to ' || now",
    )


CHANGES = Control(
    identifier="changes",
    is_of_neighbours=True,
    title="Program, table and configuration did not change between two starts",
    severity=Severity.WARNING,
    source="spark_audit/record/kinds.py: kind started",
    tested=Tested(what="starts", table="records", where="kind = 'started'"),
    rule=all_of(*(_changed(name, words) for name, words in _NAMED)),
)
OTHER_TABLE = Control(
    identifier="conversion.table",
    title="Each conversion names the table that was in force",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): field table; spark_audit/record/fields.py: `table_version`",
    tested=Tested(what="conversions", table="records", where="kind <> 'started' AND conversion = 'service'"),
    rule=violations(
        """(
  SELECT served.gateway, served.sequence, served.message_id, served.table_version, started.table_version AS due
  FROM (
    SELECT *, max(CASE WHEN kind = 'started' AND table_version IS NOT NULL THEN sequence END) OVER (
      PARTITION BY gateway ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS started_at
    FROM records WHERE kind = 'started' OR conversion = 'service'
  ) AS served
  JOIN records AS started
    ON started.kind = 'started' AND started.gateway = served.gateway AND started.sequence = served.started_at
  WHERE served.kind <> 'started'
) AS told""",
        "table_version IS DISTINCT FROM due",
        subject=MESSAGE,
        detail=(
            "'converted by table ' || coalesce(table_version, 'none') ||"
            " ', the program that runs started with table ' || due"
        ),
    ),
)
