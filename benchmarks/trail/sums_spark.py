"""The sums of sums_duckdb.py on Spark, by the audit's own controls and figures, as a process of its own.

python -m benchmarks.trail.sums_spark TRAIL SCRATCH      prints seconds and what was found, as JSON
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls import incoming_exchanges, integrity
from spark_audit.kept_frame import ON_DISK
from spark_audit.read import read_lines, trail_files
from spark_audit.report.figures import volumes
from spark_audit.report.latency import latencies
from spark_audit.spark_session import start_session

#: What the sums look at: the same that DuckDB keeps, with the place of a line.
_COLUMNS: Final = (
    "sequence",
    "gateway",
    "kind",
    "at_us",
    "direction",
    "client",
    "session_epoch",
    "exchange",
    "exchanges",
    "packet_type",
    "qos",
    "message_id",
    "prev",
    "hash",
    "actual_hash",
    "segment",
    "block",
    "place",
)


def _volumes(records: DataFrame) -> int:
    first_at_us, last_at_us = records.agg(sf.min("at_us"), sf.max("at_us")).collect()[0]
    return sum(row.accepted for row in volumes(records, first_at_us, last_at_us).intervals)


#: Each sum as DuckDB has it; all but the last two count violations.
STEPS: Final[dict[str, Callable[[DataFrame], int]]] = {
    "hash": lambda records: integrity.HASHES.find(records).count(),
    "chain": lambda records: integrity.CHAIN.find(records).count(),
    "gaps": lambda records: integrity.SEQUENCE.find(records).count(),
    "QoS": lambda records: (
        incoming_exchanges.AT_LEAST_ONCE.find(records).count() + incoming_exchanges.EXACTLY_ONCE.find(records).count()
    ),
    "volumes": _volumes,
    "latency": lambda records: sum(row.count for row in latencies(records)),
}


def main(trail: Path, scratch: Path) -> dict[str, dict[str, float]]:
    """Seconds and number found of each step; `read` parses and hashes every line and keeps what the sums look at."""
    scratch.mkdir()
    files = trail_files(trail, scratch)
    spark = start_session(scratch, trail_bytes=files.size_bytes)
    started_s = time.perf_counter()
    records = read_lines(spark, files).where("is_record").select(*_COLUMNS).persist(ON_DISK)
    outcome: dict[str, dict[str, float]] = {}
    outcome["read"] = {"found": records.count(), "seconds": time.perf_counter() - started_s}
    for name, ask in STEPS.items():
        started_s = time.perf_counter()
        found = ask(records)
        outcome[name] = {"seconds": time.perf_counter() - started_s, "found": found}
    spark.stop()
    return outcome


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
