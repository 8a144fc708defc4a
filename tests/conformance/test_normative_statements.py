"""The table of normative statements is true: each row's test is there and names the statement."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.every_case import for_every

PROJECT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("normative_statements.toml").read_text())["normative"]
LEVELS = (4, 5)

#: For each section that has numbered statements, the number of the last one.
LAST_NUMBERS = {
    4: "1.5.3-3 2.2.2-2 2.3.1-7 3.1.0-2 3.1.2-24 3.1.3-11 3.1.4-5 3.2.0-1 3.2.2-6 3.3.1-12 3.3.2-3 3.3.4-1"
    " 3.3.5-2 3.6.1-1 3.8.1-1 3.8.3-4 3.8.4-6 3.9.3-2 3.10.1-1 3.10.3-2 3.10.4-6 3.12.4-1 3.14.1-1"
    " 3.14.4-3 4.1.0-2 4.3.1-1 4.3.2-2 4.3.3-2 4.4.0-1 4.5.0-2 4.6.0-6 4.7.1-3 4.7.2-1 4.7.3-4 4.8.0-2"
    " 6.0.0-4 7.0.0-2 7.1.1-1 7.1.2-1",
    5: "1.5.4-3 1.5.5-1 1.5.7-1 2.1.3-1 2.2.1-6 2.2.2-1 3.1.0-2 3.1.2-30 3.1.3-12 3.1.4-6 3.2.0-2 3.2.2-22"
    " 3.3.1-13 3.3.2-20 3.3.4-10 3.4.2-3 3.5.2-3 3.6.1-1 3.6.2-3 3.7.2-3 3.8.1-1 3.8.3-5 3.8.4-8 3.9.2-2"
    " 3.9.3-2 3.10.1-1 3.10.3-2 3.10.4-6 3.11.2-2 3.11.3-2 3.12.4-1 3.14.0-1 3.14.1-1 3.14.2-4 3.14.4-3"
    " 3.15.1-1 3.15.2-3 4.1.0-2 4.2.0-1 4.3.1-1 4.3.2-5 4.3.3-13 4.4.0-2 4.5.0-2 4.6.0-6 4.7.0-1 4.7.1-2"
    " 4.7.2-1 4.7.3-4 4.8.2-6 4.9.0-3 4.12.0-7 4.12.1-2 4.13.1-1 4.13.2-1 6.0.0-4",
}
#: What binds clients alone; 2.2.1-1 of level 5 does not exist.
OF_CLIENTS = {
    4: "2.3.1-2 2.3.1-3 3.1.2-23 3.1.3-7 3.14.4-1 3.14.4-2 4.5.0-2 7.1.2-1",
    5: "2.2.1-1 3.1.2-20 3.1.2-21 3.1.2-30 3.2.2-4 3.2.2-5 3.2.2-11 3.2.2-14 3.2.2-21 3.3.2-10 4.5.0-2 4.12.0-3",
}


@cache
def _module(path: str) -> tuple[str, frozenset[str]]:
    """The text of a test module, and the functions in it."""
    text = (PROJECT / path).read_text()
    functions = (each.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef))
    return text, frozenset(functions)


@for_every(TABLE, lambda row: f"{row['statement']} at level {row['level']}")
def test_statement_has_a_test_that_names_it(row: dict[str, str]) -> None:
    path, _, function = row["test"].partition("::")
    text, functions = _module(path)
    assert function in functions
    number = row["statement"].rpartition("-")[2]
    section = row["statement"].removesuffix(f"-{number}")
    named = re.findall(rf"{re.escape(section)}-(\d+)((?:,? (?:and )?-\d+)*)", text)
    numbers = {each for first, more in named for each in (first, *re.findall(r"\d+", more))}
    assert number in numbers


def test_every_statement_stands_once_for_each_level_in_order() -> None:
    rows = [(row["level"], *map(int, re.findall(r"\d+", row["statement"]))) for row in TABLE]
    assert len(set(rows)) == len(rows)
    for level in LEVELS:
        of_level = [row for row in rows if row[0] == level]
        assert of_level == sorted(of_level)
    assert {row[0] for row in rows} <= set(LEVELS)


@pytest.mark.parametrize("level", LEVELS)
def test_every_statement_that_concerns_a_server_is_listed(level: int) -> None:
    ends = [each.rpartition("-") for each in LAST_NUMBERS[level].split()]
    existing = {f"{section}-{number}" for section, _, last in ends for number in range(1, int(last) + 1)}
    listed = {row["statement"].removeprefix("MQTT-") for row in TABLE if row["level"] == level}
    assert listed == existing - set(OF_CLIENTS[level].split())


def test_every_row_has_the_same_columns() -> None:
    assert all(set(row) == {"statement", "level", "test", "deviation"} for row in TABLE)
