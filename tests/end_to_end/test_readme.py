"""README's exchange, played on a real gateway: the output must be what README shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.gateway_process import Gateway

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
WAIT_S = 60


#: The panel here subscribes once more, and the number of records depends on the time that it all takes.
_NUMBERS = re.compile(r"\d+")


def _console_blocks() -> list[list[str]]:
    return [block.splitlines() for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)]


def _shown(block: list[str]) -> list[str]:
    """The output lines of a block, without the commands, what is left out, and identifiers that differ each time."""
    lines = [line for line in block if not line.startswith("$ ") and line.strip() != "..."]
    return [line for line in lines if not line.lstrip().startswith(("MsgId", "CorrelId"))]


@pytest.fixture
def mosquitto(mosquitto_clients: object) -> None:
    """README uses mosquitto's clients."""


@pytest.mark.usefixtures("mosquitto")
def test_the_first_exchange_prints_what_readme_shows(gateway: Gateway) -> None:
    first, second, third = _console_blocks()[:3]
    broker = ["-h", "127.0.0.1", "-p", str(gateway.port)]
    application = subprocess.Popen(
        [sys.executable, "examples/mq_application.py", "--data", str(gateway.data), "--queue", "PUMP.READINGS"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    panel = ["mosquitto_sub", *broker, "-i", "panel", "-c", "-q", "2", "-t", "plant/#"]
    subprocess.run([*panel, "-E"], check=True, timeout=WAIT_S)
    assert application.stdout is not None
    printed = [application.stdout.readline().rstrip()]
    publish = ["mosquitto_pub", *broker, "-t", "plant/pump 7/bar"]
    subprocess.run([*publish, "-m", "4.2", "-q", "1"], check=True, timeout=WAIT_S)
    printed += [line.rstrip() for line in application.communicate(timeout=WAIT_S)[0].splitlines()]
    received = subprocess.run([*panel, "-v", "-C", "1"], check=True, timeout=WAIT_S, capture_output=True, text=True)
    assert printed + received.stdout.splitlines() == _shown(first)

    unit = ["-V", "5", "-D", "publish", "user-property", "unit", "bar"]
    subprocess.run([*publish, "-m", "4.3", "-q", "2", *unit], check=True, timeout=WAIT_S)
    browse = [sys.executable, "-m", "gateway.cli", "queue", "browse", "RFHBRIDGE.SUBSCRIBER", "--data"]
    browsed = subprocess.run([*browse, str(gateway.data)], check=True, timeout=WAIT_S, capture_output=True, text=True)
    lines = iter(browsed.stdout.splitlines())
    assert [line for line in _shown(second) if line not in lines] == []

    audit = [sys.executable, "-m", "gateway.cli", "audit", "run", "--engine", "duckdb", "--data", str(gateway.data)]
    audited = subprocess.run(audit, check=True, timeout=WAIT_S, capture_output=True, text=True)
    told = audited.stdout.splitlines()[0]
    assert [_NUMBERS.sub("N", told)] == [_NUMBERS.sub("N", line) for line in _shown(third)]
