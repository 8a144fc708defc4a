"""The duration of each step, from the times of the records at its two ends.

    acknowledged after accepted    the gateway's PUBACK (QoS 1) or PUBCOMP (QoS 2) after the PUBLISH was accepted
    forwarded after put            the commit at the target after the put on the transmission queue
    delivered after put            the PUBLISH to a client after the put on the subscriber's queue

A time is the gateway's clock when the fact was noted. Over a restart or a step of the clock a duration may be negative.
The engine counts durations by their first four digits. The ranks of percentiles are exact.
"""

from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Final

from spark_audit.engines.engine import Engine, Row
from spark_audit.result import Latency

_SHARES: Final = (0.5, 0.9, 0.99)
_DIGITS: Final = 4
#: From the first record that an exchange was accepted: a repeat (DUP) is one more, and the sensor waits since. A
#: message that a channel brought counts from its arrival.
_DURATIONS: Final = """
  SELECT 'acknowledged after accepted' AS step, counted_qos AS qos,
    CASE counted_qos WHEN 1 THEN puback_us ELSE pubcomp_us END - accepted_us AS took_us
  FROM exchanges WHERE counted_qos IN (1, 2)
  UNION ALL
  SELECT 'forwarded after put', -1, forwarded_us - made_us FROM messages WHERE was_forwarded AND is_made
  UNION ALL
  SELECT 'delivered after put', coalesce(delivered_qos, -1), delivered_us - made_us FROM messages
  WHERE was_delivered AND is_made
"""
_SCALE: Final = f"CAST(power(10, greatest(0, length(CAST(abs(took_us) AS STRING)) - {_DIGITS})) AS BIGINT)"
_COUNTED: Final = f"""
SELECT step, qos, rounded_us, count(*) AS times, max(took_us) AS max_us
FROM (
  SELECT step, qos, took_us, took_us - took_us % {_SCALE} AS rounded_us FROM ({_DURATIONS}) AS durations
  WHERE took_us IS NOT NULL
) AS timed
GROUP BY step, qos, rounded_us ORDER BY step, qos, rounded_us
"""


def latencies(engine: Engine) -> tuple[Latency, ...]:
    """Percentiles of each step and QoS, of those that have both ends within the period."""
    grouped = groupby(engine.rows(_COUNTED), key=lambda row: (row["step"], row["qos"]))
    return tuple(_latency(step, qos, list(rows)) for (step, qos), rows in grouped)


def _latency(step: str, qos: int, rows: Sequence[Row]) -> Latency:
    up_to = list(accumulate(row["times"] for row in rows))
    p50_us, p90_us, p99_us = (
        next(row["rounded_us"] for row, count in zip(rows, up_to, strict=True) if count >= share * up_to[-1])
        for share in _SHARES
    )
    return Latency(
        step=step,
        qos=qos,
        count=up_to[-1],
        p50_us=p50_us,
        p90_us=p90_us,
        p99_us=p99_us,
        max_us=max(row["max_us"] for row in rows),
    )
