"""Byte-level cases of others, played where RFHBRIDGE_BYTE_CASES names the folder that holds them (see byte_cases.py).

    RFHBRIDGE_BYTE_CASES=.../mosquitto/test/broker/data .venv/bin/python -m pytest tests/conformance/test_byte_cases.py

Every case ends as it should, or stands in differing_cases.toml with the statement of the standard that says so.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.byte_cases import Case, Difference, play, read_cases
from tests.end_to_end.gateway_process import Gateway

FOLDER = os.environ.get("RFHBRIDGE_BYTE_CASES", "")
DIFFERENT = tomllib.loads(Path(__file__).with_name("differing_cases.toml").read_text())["different"]
#: What the suite's own broker announces in CONNACK.
CONFIGURATION = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
receive_maximum = 20
topic_alias_maximum = 10
"""


def _row(case: Case, difference: Difference) -> int:
    """The first row of the table that has this difference; -1: none."""
    facts = {"group": case.group, "name": case.name, "wanted": difference.wanted, "came": difference.came}
    rows = (all(re.fullmatch(row[key], value) for key, value in facts.items()) for row in DIFFERENT)
    return next((number for number, is_it in enumerate(rows) if is_it), -1)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text(CONFIGURATION)
    gateway = Gateway(tmp_path / "data", "--config", str(configuration)).start()
    yield gateway
    gateway.clean_up()


@pytest.mark.skipif(not FOLDER, reason="RFHBRIDGE_BYTE_CASES names no folder of cases")
def test_every_case_ends_as_it_should_or_as_the_table_says(gateway: Gateway) -> None:
    played, found, unexpected = 0, set[int](), list[str]()
    for case in read_cases(Path(FOLDER)):
        played += 1
        difference = play(case, gateway.port)
        if difference is None:
            continue
        row = _row(case, difference)
        found.add(row)
        if row < 0:
            unexpected.append(f"{case}: wanted {difference.wanted!r}, came {difference.came!r}")
    assert played
    assert not unexpected
    assert found == set(range(len(DIFFERENT))), "every row of the table has its case"


def test_every_row_of_the_table_says_why() -> None:
    assert all(set(row) == {"group", "name", "wanted", "came", "statement", "reason"} for row in DIFFERENT)
    assert all(re.search(r"MQTT-\d+\.\d+\.\d+-\d+|section \d+\.\d+", row["statement"]) for row in DIFFERENT)
    assert all(row["reason"] for row in DIFFERENT)
