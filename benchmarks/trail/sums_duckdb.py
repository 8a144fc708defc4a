"""The sums of an audit in DuckDB, as a process of its own: what an engine that is no cluster needs for them.

    python -m benchmarks.trail.sums_duckdb TRAIL SCRATCH      prints seconds and what was found, as JSON

DuckDB reads the lines, hashes them and adds up; it cannot perform a conversion again, since its functions in Python
are called for one value after the other in the process of the database, and are not measured here.
"""

import json
import sys
import time
from pathlib import Path
from typing import Final

import duckdb

#: As much as the driver of Spark has.
_MEMORY: Final = "2GB"
#: Length of `,"hash":"`, 64 digits, `"}`; of the last two.
_SUFFIX, _TAIL = 75, 66

_READ: Final = f"""
CREATE TABLE records AS
SELECT r.*, filename AS segment, sha256(left(line, length(line) - {_SUFFIX}) || '}}') AS actual_hash
FROM (
    SELECT line, filename, json_transform(line, '{{
        "sequence": "BIGINT", "gateway": "VARCHAR", "kind": "VARCHAR", "at_us": "BIGINT", "direction": "VARCHAR",
        "client": "VARCHAR", "session_epoch": "BIGINT", "exchange": "BIGINT", "exchanges": [["BIGINT"]],
        "packet_type": "BIGINT", "qos": "BIGINT", "message_id": "VARCHAR", "prev": "VARCHAR", "hash": "VARCHAR"
    }}') AS r
    FROM read_csv(?, columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '', header = false,
                  auto_detect = false, filename = true, max_line_size = 2097152)
)"""
_HASH: Final = "SELECT count(*) FROM records WHERE hash IS DISTINCT FROM actual_hash"
_CHAIN: Final = """
WITH heads AS (
    SELECT segment, lag(head, 1, repeat('0', 64)) OVER (ORDER BY segment) AS head_before
    FROM (SELECT segment, arg_max(hash, rowid) AS head FROM records GROUP BY segment)
), links AS (
    SELECT segment, prev, lag(hash) OVER (PARTITION BY segment ORDER BY rowid) AS before FROM records
)
SELECT count(*) FROM links JOIN heads USING (segment) WHERE prev IS DISTINCT FROM coalesce(before, head_before)"""
_GAPS: Final = """
SELECT count(*) FROM (
    SELECT sequence, lag(sequence, 1, 0) OVER (PARTITION BY gateway ORDER BY sequence) AS before FROM records
) WHERE sequence <> before + 1"""
_CONFIRMED: Final = """
SELECT gateway, client, session_epoch, unnest(range(pair[1], pair[2] + 1)) AS exchange, packet_type, at_us
FROM (
    SELECT gateway, client, session_epoch, unnest(exchanges) AS pair, packet_type, at_us
    FROM records WHERE kind = 'confirmed'
)"""
_ENDED: Final = """
SELECT gateway, client, session_epoch, exchange FROM records
WHERE kind IN ('put', 'refused', 'dead_lettered') AND direction = 'in' AND exchange IS NOT NULL"""
_KEY: Final = "(gateway, client, session_epoch, exchange)"
_QOS: Final = f"""
SELECT (
    SELECT count(*) FROM ({_CONFIRMED}) confirmed ANTI JOIN ({_ENDED}) ended USING {_KEY}
    WHERE confirmed.packet_type IN (4, 7)
) + (
    SELECT count(*) FROM ({_CONFIRMED}) confirmed ANTI JOIN (
        {_ENDED} UNION ALL
        SELECT gateway, client, session_epoch, exchange FROM records WHERE kind = 'accepted'
    ) stored USING {_KEY}
    WHERE confirmed.packet_type = 5
) + (
    SELECT count(*) FROM (
        SELECT count(*) AS puts FROM records
        WHERE kind = 'put' AND direction = 'in' AND qos = 2 AND exchange IS NOT NULL
        GROUP BY gateway, client, session_epoch, exchange
    ) WHERE puts > 1
)"""
_VOLUMES: Final = """
SELECT sum(counted) FROM (
    SELECT at_us // 60000000 AS minute, kind, count(*) AS counted FROM records GROUP BY minute, kind
) WHERE kind = 'accepted'"""
_LATENCY: Final = f"""
WITH begun AS (
    SELECT gateway, client, session_epoch, exchange, min(at_us) AS began_at_us, max(qos) AS qos
    FROM records WHERE kind = 'accepted' AND qos IN (1, 2) GROUP BY ALL
), copies AS (
    SELECT gateway, message_id, min(at_us) AS began_at_us FROM records WHERE kind = 'put' GROUP BY ALL
), durations AS (
    SELECT 'acknowledged' AS step, qos, at_us - began_at_us AS duration_us
    FROM ({_CONFIRMED}) confirmed JOIN begun USING {_KEY}
    WHERE (qos = 1 AND packet_type = 4) OR (qos = 2 AND packet_type = 7)
    UNION ALL
    SELECT 'delivered', qos, at_us - began_at_us
    FROM (SELECT gateway, message_id, min(at_us) AS at_us, max(qos) AS qos FROM records WHERE kind = 'delivered'
          GROUP BY ALL) delivered JOIN copies USING (gateway, message_id)
), shares AS (
    SELECT step, qos, count(*) AS counted, approx_quantile(duration_us, [0.5, 0.9, 0.99]) AS shares, max(duration_us)
    FROM durations GROUP BY step, qos
)
SELECT sum(counted) FROM shares"""
#: Each sum and its question; all but the last two count violations.
STEPS: Final = {
    "hash": _HASH,
    "chain": _CHAIN,
    "gaps": _GAPS,
    "QoS": _QOS,
    "volumes": _VOLUMES,
    "latency": _LATENCY,
}


def main(trail: Path, scratch: Path) -> dict[str, dict[str, float]]:
    """Seconds and number found of each step; `read` parses and hashes every line and keeps it as a table."""
    scratch.mkdir()
    database = duckdb.connect(str(scratch / "sums.duckdb"))
    database.execute(f"SET memory_limit = '{_MEMORY}'")
    database.execute("SET temp_directory = ?", [str(scratch)])
    started_s = time.perf_counter()
    database.execute(_READ, [str(trail / "*.jsonl")])
    outcome: dict[str, dict[str, float]] = {}
    ((records,),) = database.execute("SELECT count(*) FROM records").fetchall()
    outcome["read"] = {"seconds": time.perf_counter() - started_s, "found": records}
    for name, question in STEPS.items():
        started_s = time.perf_counter()
        ((found,),) = database.execute(question).fetchall()
        outcome[name] = {"seconds": time.perf_counter() - started_s, "found": found}
    return outcome


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
