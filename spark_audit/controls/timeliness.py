"""How long it took: from the PUBLISH to its acknowledgement, over the channel, to the client.

An acknowledgement is noted in the commit after the one that it stands for, so the trail shows it late, never early. For
what waits to be forwarded, time runs until the last record of its gateway. A subscriber that is away is no delay of the
gateway's, so a delivery counts from the later of its put and its session's last (re)connection.
"""

from typing import Final

from spark_audit.controls.control import (
    GATEWAY,
    MESSAGE,
    Control,
    Parameter,
    Rule,
    Scope,
    Severity,
    Tested,
    all_of,
    exchange,
    in_trail,
    violations,
)
from spark_audit.controls.digests import tell_digests
from spark_audit.trail.digest import CLOCK_ERROR, CLOCK_UNKNOWN

_SECONDS: Final = "seconds"


def _late(table: str, took_us: str, limit: str, sequence: str, subject: str, what: str) -> Rule:
    """A number that is not there makes nothing late."""
    detail = f"printf('{what} after %.1f s, limit {{{limit}}} s', ({took_us}) / 1000000)"
    return violations(table, f"({took_us}) / 1000000 > {{{limit}}}", sequence=sequence, subject=subject, detail=detail)


#: What was put for a target and has no end, until the last record of its gateway.
_WAITING: Final = """(
  SELECT put.gateway, put.message_id, put.sequence, g.last_at_us - put.at_us AS took_us
  FROM records AS put
  JOIN gateways AS g ON g.gateway = put.gateway
  LEFT JOIN messages AS m ON m.gateway = put.gateway AND m.message_id = put.message_id
  WHERE put.kind = 'put' AND put.destination IS NOT NULL AND NOT coalesce(m.is_passed, false)
) AS waiting"""
#: Each message's first delivery in a session, of those that were put long before, and whose session did not connect
#: meanwhile.
_DELIVERED: Final = """(
  SELECT first.gateway, first.message_id, first.sequence, first.at_us - greatest(first.made_us, first.connected_us)
    AS took_us
  FROM (
    SELECT late.gateway, late.message_id, late.sequence, late.at_us, late.made_us,
      max(coalesce(connection.at_us, late.made_us)) AS connected_us
    FROM (
      SELECT told.gateway, told.client, told.session_epoch, told.message_id, min(told.sequence) AS sequence,
        min(told.at_us) AS at_us, min(m.made_us) AS made_us
      FROM records AS told
      JOIN messages AS m ON m.gateway = told.gateway AND m.message_id = told.message_id
        AND (m.delivered_last_us - m.made_us) / 1000000 > {delivered_within_s}
      WHERE told.kind = 'delivered'
      GROUP BY told.gateway, told.client, told.session_epoch, told.message_id
    ) AS late
    LEFT JOIN (SELECT * FROM records WHERE kind = 'session' AND event IN ('opened', 'resumed')) AS connection
      ON connection.gateway = late.gateway AND connection.client = late.client
      AND connection.session_epoch = late.session_epoch AND connection.sequence <= late.sequence
    GROUP BY late.gateway, late.message_id, late.sequence, late.at_us, late.made_us
  ) AS first
) AS delivered"""


def _limit(name: str, value: int, meaning: str) -> Parameter:
    return Parameter(name=name, value=value, unit=_SECONDS, meaning=meaning)


CONTROL = Control(
    identifier="timeliness",
    title="Each message was acknowledged, forwarded and delivered in time",
    severity=Severity.WARNING,
    source="QoS levels and flows (ac10850_): the interval before sending again is the application's; limits by policy",
    tested=Tested(what="messages", table="messages", where="made_us IS NOT NULL"),
    rule=all_of(
        _late(
            "exchanges",
            "answered_us - accepted_us",
            "acknowledged_within_s",
            "answered_at",
            exchange("in"),
            "acknowledged",
        ),
        _late("messages", "forwarded_us - sent_us", "forwarded_within_s", "forwarded_at", MESSAGE, "forwarded"),
        _late(
            _WAITING,
            "took_us",
            "forwarded_within_s",
            "sequence",
            MESSAGE,
            "not forwarded yet",
        ),
        _late(_DELIVERED, "took_us", "delivered_within_s", "sequence", MESSAGE, "delivered"),
    ),
    parameters=(
        _limit("acknowledged_within_s", 60, "from the PUBLISH to the record of its PUBACK or PUBREC"),
        _limit("forwarded_within_s", 3_600, "from the put for a target to its passage over the channel"),
        _limit("delivered_within_s", 60, "from the put for a connected client to its first PUBLISH"),
    ),
)


#: The gateway looks at its clock once a second: so far from the change its record may stand, with much to spare.
_TOLD_US: Final = 10_000_000
#: Records that are noted before the one in front of them, by more than a margin.
#:
#: Within a commit notes stand in the order in which they were made, and the copies of a publication have the time of
#: its put, so records are a little out of order by themselves. A clock that was set back makes every time of the trail
#: doubtful, unless records of kind clock_jumped tell where the clock settled. A run ends where the margin is exceeded.
CLOCK = Control(
    identifier="timeliness.clock",
    is_of_neighbours=True,
    title="The clock goes forward",
    severity=Severity.WARNING,
    source="spark_audit/record/fields.py: `at_us`",
    rule=violations(
        f"""(
  SELECT back.* FROM (
    SELECT gateway, first_sequence, first_at_us, lag(last_at_us) OVER (PARTITION BY gateway ORDER BY first_sequence)
      - first_at_us AS back_us
    FROM runs WHERE is_record
  ) AS back
  ANTI JOIN (SELECT * FROM records WHERE kind = 'clock_jumped' AND jump_us < 0) AS jump
    ON jump.gateway = back.gateway AND abs(jump.at_us - back.first_at_us) <= {_TOLD_US}
  WHERE back_us / 1000000 > {{backwards_s}}
) AS untold""",
        "true",
        sequence="first_sequence",
        subject=GATEWAY,
        detail="printf('noted %.1f s before the record in front of it', back_us / 1000000)",
    ),
    parameters=(
        Parameter(
            name="backwards_s",
            value=5,
            unit="seconds",
            meaning="a record may be noted so long before the one in front of it",
        ),
    ),
)


#: Digests whose clock is not known to be right; one finding where several follow each other for the same reason.
_DOUBTFUL_CLOCKS: Final = f"""(
  SELECT *, lag(fault) OVER (PARTITION BY trail ORDER BY number) AS fault_before FROM (
    SELECT *, CASE
      WHEN clock_state = '{CLOCK_ERROR}' THEN 'nothing synchronised the clock'
      WHEN clock_state = '{CLOCK_UNKNOWN}' AND {{known}} THEN 'nobody could say whether the clock was synchronised'
      WHEN clock_error_us > 1000 * {{largest_error_ms}} THEN 'the clock could be off by more than it may'
    END AS fault FROM digests
  ) AS judged
) AS doubtful"""
SYNCHRONISED: Final = Control(
    identifier="timeliness.synchronised",
    title="The clock was synchronised whenever a digest was signed",
    severity=Severity.WARNING,
    source="adjtimex(2); spark_audit/trail/digest.py: `clock_state`",
    scope=Scope.DIGESTS,
    tested=Tested(what="digests", table="digests", where=f"clock_state <> '{CLOCK_UNKNOWN}'"),
    rule=violations(
        _DOUBTFUL_CLOCKS,
        "fault IS NOT NULL AND fault IS DISTINCT FROM fault_before",
        subject=in_trail("'digest ' || CAST(number AS STRING)"),
        detail="fault || ', from this digest on (error ' || CAST(clock_error_us / 1000 AS BIGINT) || ' ms)'",
    ),
    step=tell_digests,
    parameters=(
        Parameter(
            name="largest_error_ms",
            value=2_000,
            unit="milliseconds",
            meaning="how far the clock may have been off; without a correction that grows by 0.5 ms a second",
        ),
        Parameter(
            name="known",
            value=False,
            unit="yes or no",
            meaning="whether a digest that says nothing of its clock, as those of version 1 do not, is a finding",
        ),
    ),
)
