"""Every violation as Parquet, not only the sample: one data set, partitioned by control.

The engine writes it. If that is Spark, the folder must be one that all of its workers see. Without a violation the data
set is empty, but exists. So its absence never means clean.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.engines.engine import Engine
from spark_audit.result import EXCEPTIONS_FOLDER, ControlResult


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the data set. One that `is_number` has 64 bits, any other is text."""

    name: str
    meaning: str
    is_number: bool = False

    @property
    def type(self) -> pa.DataType:
        return pa.int64() if self.is_number else pa.string()


COLUMNS: Final = (
    Column("gateway", "incarnation of the gateway's store"),
    Column("sequence", "number of the record that shows the violation; 0 for none", is_number=True),
    Column("subject", "what the violation is about"),
    Column("detail", "what is wrong"),
    Column("client", "client of that record; empty for none, as in the next two columns"),
    Column("topic", "topic of that record"),
    Column("message_id", "MsgId of that record"),
    Column("at_us", "time of that record, microseconds since 1970 UTC; 0 for none", is_number=True),
    Column("severity", "severity of the control: error or warning"),
    Column("control", "the control; its folder is `control=...`"),
)
#: Each finding with what its record says; of a doubled record the first says it.
_OF_TRAIL: Final = """
SELECT told.*, coalesce(shown.client, '') AS client, coalesce(shown.topic, '') AS topic,
  coalesce(shown.message_id, '') AS message_id, coalesce(shown.at_us, 0) AS at_us
FROM told
LEFT JOIN (
  SELECT gateway, sequence, client, topic, message_id, at_us,
    row_number() OVER (PARTITION BY gateway, sequence ORDER BY segment, block, place) AS turn
  FROM records SEMI JOIN told ON told.gateway = records.gateway AND told.sequence = records.sequence
) AS shown ON shown.gateway = told.gateway AND shown.sequence = told.sequence AND shown.turn = 1
"""
#: Each finding in an archive of messages, which has no records.
OF_ARCHIVE: Final = """
SELECT *, '' AS client, '' AS topic, replace(subject, 'message ', '') AS message_id, CAST(0 AS BIGINT) AS at_us
FROM told
"""


def write_exceptions(
    engine: Engine, results: Sequence[ControlResult], report_folder: Path, found: str = _OF_TRAIL
) -> str:
    """Writes the violations of each control, from the engine's table `told`; returns the name of the folder.

    `found` is the query that gives each row of `told` with the columns that tell of its record.
    """
    folder = report_folder / EXCEPTIONS_FOLDER
    severities = {result.identifier: result.severity for result in results if result.violations}
    if not severities:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        empty = pa.schema([(each.name, each.type) for each in COLUMNS]).empty_table()
        pq.write_table(empty, folder / "part-0.parquet")
        return EXCEPTIONS_FOLDER
    cases = " ".join(f"WHEN '{identifier}' THEN '{severity}'" for identifier, severity in severities.items())
    names = ", ".join(each.name for each in COLUMNS)
    with_severity = f"SELECT *, CASE control {cases} END AS severity FROM ({found}) AS one"
    engine.write(f"SELECT {names} FROM ({with_severity}) AS two", folder)
    return EXCEPTIONS_FOLDER
