"""Byte-level cases of others, played where the environment names the folder that holds them (see byte_cases.py).

    RFHBRIDGE_BYTE_CASES=.../mosquitto/test/broker/data .venv/bin/python -m pytest tests/conformance/test_byte_cases.py

plays those of mosquitto's v2.0.22, RFHBRIDGE_BYTE_CASES_2_1_2 those of v2.1.2, and RFHBRIDGE_BYTE_CASES_2_1_TIP those
of the tip of its branch release/2.1 (13 June 2026). Every case ends as it should, or stands in the table of its release
with the statement of the standard that says so.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.byte_cases import Case, Difference, play, read_cases
from tests.end_to_end.gateway_process import Gateway

#: What the suite's own broker announces in CONNACK, and that it tells of itself below $SYS.
CONFIGURATION = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
receive_maximum = 20
topic_alias_maximum = 10
sys_topics_interval_s = 10
"""
_ANNOUNCED_2_1 = "maximum_packet_bytes = 2_000_000\n"
#: By the variable that names the folder of a release: its name, its table, and what its broker announces beside that.
RELEASES = {
    "RFHBRIDGE_BYTE_CASES": ("v2.0.22", "differing_cases.toml", ""),
    "RFHBRIDGE_BYTE_CASES_2_1_2": ("v2.1.2", "differing_cases_2_1.toml", _ANNOUNCED_2_1),
    "RFHBRIDGE_BYTE_CASES_2_1_TIP": ("tip", "differing_cases_2_1.toml", _ANNOUNCED_2_1),
}
Table = list[dict[str, str]]


def _table(name: str) -> Table:
    rows: Table = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))["different"]
    return rows


def _of_release(table: Table, release: str) -> Table:
    return [row for row in table if row.get("release", release) == release]


def _row(table: Table, case: Case, difference: Difference) -> int:
    """The first row of the table that has this difference; -1: none."""
    facts = {"group": case.group, "name": case.name, "wanted": difference.wanted, "came": difference.came}
    rows = (all(re.fullmatch(row[key], value) for key, value in facts.items()) for row in table)
    return next((number for number, is_it in enumerate(rows) if is_it), -1)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Gateway]]:
    """Starts a gateway with a configuration."""
    started: list[Gateway] = []

    def start_with(text: str) -> Gateway:
        configuration = tmp_path / "rfhbridge.toml"
        configuration.write_text(text, encoding="utf-8")
        started.append(Gateway(tmp_path / "data", "--config", str(configuration)).start())
        return started[-1]

    yield start_with
    for gateway in started:
        gateway.clean_up()


@pytest.mark.parametrize("variable", RELEASES)
def test_every_case_ends_as_it_should_or_as_the_table_says(start: Callable[[str], Gateway], variable: str) -> None:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} names no folder of cases")
    release, name, announced = RELEASES[variable]
    table, gateway = _of_release(_table(name), release), start(CONFIGURATION + announced)
    played, found, unexpected = 0, set[int](), list[str]()
    for case in read_cases(Path(folder)):
        played += 1
        difference = play(case, gateway.port)
        if difference is None:
            continue
        row = _row(table, case, difference)
        found.add(row)
        if row < 0:
            unexpected.append(f"{case}: wanted {difference.wanted!r}, came {difference.came!r}")
    assert played
    assert not unexpected
    assert found == set(range(len(table))), "every row of the table has its case"


@pytest.mark.parametrize("name", sorted({name for _, name, _ in RELEASES.values()}))
def test_every_row_of_a_table_says_why(name: str) -> None:
    table = _table(name)
    releases = {release for release, of_release, _ in RELEASES.values() if of_release == name}
    assert all(row.pop("release", "") in {"", *releases} for row in table)
    assert all(set(row) == {"group", "name", "wanted", "came", "statement", "reason"} for row in table)
    assert all(re.search(r"MQTT-\d+\.\d+\.\d+-\d+|section \d+\.\d+", row["statement"]) for row in table)
    assert all(row["reason"] for row in table)
