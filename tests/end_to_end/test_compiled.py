"""The compiled gateway passes the tests that the sources pass: the same files run again, with compiled gateways.

In the short form those of MQTT 5, of starts and of stops; in full all of this folder and the crash matrix, each in its
own short form.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from gateway import compiled
from tests.compiled_build import require_build
from tests.conftest import PROOF_VARIABLE
from tests.end_to_end.conftest import StartGateway
from tests.processes.forked import fresh

SHORT: Final = ("tests/end_to_end/mqtt5", "tests/end_to_end/test_start_and_stop.py")
FULL: Final = ("-n", "2", "tests/end_to_end", "tests/crash_matrix", "--ignore=tests/end_to_end/test_compiled.py")
_PROJECT: Final = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def build() -> None:
    require_build()


def test_a_gateway_takes_a_build_of_its_sources_and_says_so(
    new_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wanted, is_compiled in (("1", True), ("0", False)):
        monkeypatch.setenv(compiled.VARIABLE, wanted)
        gateway = new_gateway(begin=fresh).start()
        assert gateway.logged("gateway started")[-1]["compiled"] is is_compiled
        assert gateway.stop() == 0


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_the_same_tests_pass_with_compiled_gateways(proof_scale: str) -> None:
    files = SHORT if proof_scale == "short" else FULL
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, compiled.VARIABLE: "1", PROOF_VARIABLE: "short"}
    ended = subprocess.run(command, cwd=_PROJECT, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-5_000:]
