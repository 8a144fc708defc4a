"""The processes of an audit take the build that their environment names, and say the same as those of the sources."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway import compiled
from spark_audit.compiled_modules import BUILD_VARIABLE, SUFFIX
from tests.compiled_build import require_build
from tests.spark_audit.conftest import TrailBuilder

IN = {"direction": "in", "client": "boiler", "session_epoch": 1, "packet_type": 3, "qos": 1}
#: Parts of a result that differ from run to run.
OF_A_RUN = ("audited_at", "command", "seconds")
#: What a process beside the audit's loads first, as DuckDB's processes and Spark's workers do.
BESIDE = (
    "import multiprocessing, sys\n"
    "from spark_audit.facts import reader\n"
    "def told(_): return reader.__file__\n"
    "if __name__ == '__main__':\n"
    "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
    "        print(reader.__file__, *pool.map(told, [0]))\n"
)


def environment(build: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != BUILD_VARIABLE} | (
        {BUILD_VARIABLE: build} if build else {}
    )


def python(build: str, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, env=environment(build), timeout=100, check=False, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


@pytest.mark.parametrize("is_compiled", [True, False], ids=["a build", "none"])
def test_a_process_and_those_that_it_starts_take_the_build_that_is_named(tmp_path: Path, is_compiled: bool) -> None:
    require_build()
    program = tmp_path / "beside.py"
    program.write_text(BESIDE)
    files = python(str(compiled.build()) if is_compiled else "", str(program)).split()
    assert [file.endswith(SUFFIX) for file in files] == [is_compiled] * 2, files


def test_a_build_and_the_sources_audit_alike(trail: TrailBuilder, tmp_path: Path) -> None:
    require_build()
    for exchange in range(1, 200):
        trail.add("accepted", exchange=exchange, **IN, topic="a/b", payload_sha256="0b" * 32)
        trail.add("put", exchange=exchange, **IN, topic="a/b", command="Publish", message_id=f"{exchange:048x}")
        if exchange % 5:
            trail.add("confirmed", exchanges=[[exchange, exchange]], **(IN | {"packet_type": 4}))
    trail.lines[7] = trail.lines[7].replace(b"boiler", b"broken")

    def audited(build: str) -> dict[str, Any]:
        told = ("--trail", str(trail.write()), "--out", str(tmp_path / "out"), "--engine", "duckdb", "--json")
        result: dict[str, Any] = json.loads(python(build, "-m", "spark_audit", "run", *told))
        return {name: value for name, value in result.items() if name not in OF_A_RUN}

    sources = audited("")
    assert sources["verdict"] == "violations"
    assert audited(str(compiled.build())) == sources
