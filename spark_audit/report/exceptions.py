"""Every violation as Parquet, not only the sample: one data set, partitioned by control.

Columns: gateway, sequence, subject, detail, severity, control. The engine writes it. If that is Spark, the folder must
be one that all of its workers see. Without a violation the data set is empty, but exists. So its absence never means
clean.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.engines.engine import Engine
from spark_audit.result import EXCEPTIONS_FOLDER, ControlResult

_COLUMNS: Final = ("gateway", "sequence", "subject", "detail", "severity", "control")
_EMPTY: Final = pa.schema([(name, pa.int64() if name == "sequence" else pa.string()) for name in _COLUMNS])


def write_exceptions(engine: Engine, results: Sequence[ControlResult], report_folder: Path) -> str:
    """Writes the violations of each control, from the engine's table `told`; returns the name of the folder."""
    folder = report_folder / EXCEPTIONS_FOLDER
    found = {result.identifier: result.severity for result in results if result.violations}
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pq.write_table(_EMPTY.empty_table(), folder / "part-0.parquet")
        return EXCEPTIONS_FOLDER
    cases = " ".join(f"WHEN '{identifier}' THEN '{severity}'" for identifier, severity in found.items())
    engine.write(
        f"SELECT gateway, sequence, subject, detail, CASE control {cases} END AS severity, control FROM told", folder
    )
    return EXCEPTIONS_FOLDER
