"""An audit of a night beside one of the whole trail: the same records, and what was open before them.

The trail is made first (trail/made.py). Its last segments, a tenth of it, are set aside with their digests: they are
the night. One audit of the rest leaves its state. Then the night comes back, and `audit run` judges it from the state,
and after that the whole trail. Each is a process of its own on DuckDB. Both must find the trail clean.
"""

import importlib.util
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks.audit import Ended, ended, size_gb, used
from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import BenchmarkError
from benchmarks.trail.made import make_trail

NAME: Final = "increment"
#: The part of the trail's segments that is the night.
_PART: Final = 10
_STATE: Final = "state.zst"


def run(records: int) -> Report:
    """Makes a trail of about so many records, and audits its last tenth and all of it."""
    if importlib.util.find_spec("duckdb") is None:
        raise BenchmarkError("duckdb is not installed (make bench installs it)")
    with tempfile.TemporaryDirectory(prefix="rfhbridge-bench-increment-") as name:
        folder = Path(name)
        made = make_trail(folder / "trail", records, with_application=False)
        return _report(folder, made)


def _report(folder: Path, records: int) -> Report:
    key = folder / "auditor.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    size_of_trail = size_gb(folder / "trail")
    night = _set_aside(folder)
    first = _audited(folder, key, "--with-state")
    state = (folder / "report" / _STATE).stat().st_size
    for path, there in night.items():
        path.rename(there)
    audits = {
        "the night": _audited(folder, key, "--since-state", str(folder / "report" / _STATE)),
        "the whole trail": _audited(folder, key),
    }
    of_night, of_whole = (json.loads(each.output)["scope"]["records"] for each in audits.values())
    before = json.loads(first.output)["scope"]["records"]
    if of_whole != records or of_night + before != records:
        raise BenchmarkError(f"{before} and {of_night} records were judged, and {of_whole} of {records} at once")
    return Report(
        name=NAME,
        title=f"{of_night:,} records of a night, of a trail of {records:,} ({size_of_trail:.1f} GB), on DuckDB",
        rows=tuple(
            Row(subject=subject, case="the audit", measures=(*used(each), _records(each)))
            for subject, each in audits.items()
        ),
        notes=(f"The state before the night has {state:,} bytes. {os.cpu_count()} cores.",),
    )


def _records(each: Ended) -> Measure:
    return Measure(name="records", value=json.loads(each.output)["scope"]["records"], unit="")


def _set_aside(folder: Path) -> dict[Path, Path]:
    """Moves the last segments and their digests out of the trail. Returns where they are, and where they were."""
    segments = sorted((folder / "trail").glob("*.jsonl*"))
    digests = sorted((folder / "trail" / "digests").iterdir())
    count = max(1, len(segments) // _PART)
    if len(segments) <= count or len(digests) != len(segments):
        raise BenchmarkError(f"the trail has {len(segments)} segments: name more with --records")
    (folder / "night").mkdir()
    moved = {folder / "night" / path.name: path for path in (*segments[-count:], *digests[-count:])}
    for path, there in moved.items():
        there.rename(path)
    return moved


def _audited(folder: Path, key: Path, *words: str) -> Ended:
    out = folder / ("report" if words else "whole")
    told = ("--data", str(folder), "--out", str(out), "--engine", "duckdb", "--sign", str(key), "--json", *words)
    audit = ended("spark_audit", "run", *told)
    result: dict[str, Any] = json.loads(audit.output)
    if result["verdict"] != "clean":
        raise BenchmarkError(f"the audit of a sound trail says {result['verdict']}: {result['reason']}")
    return audit
