"""The table of normative statements is true: each row's test is there and names the statement."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("normative_statements.toml").read_text())["normative"]
LEVELS = (4, 5)


@cache
def _module(path: str) -> tuple[str, frozenset[str]]:
    """The text of a test module, and the functions in it."""
    text = (PROJECT / path).read_text()
    functions = (each.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef))
    return text, frozenset(functions)


@pytest.mark.parametrize("row", TABLE, ids=[f"{row['statement']} at level {row['level']}" for row in TABLE])
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


def test_every_row_has_the_same_columns() -> None:
    assert all(set(row) == {"statement", "level", "test", "deviation"} for row in TABLE)
