"""The page of the wrong trails that the audit finds, from the table of the forger in the tests."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from docs.generator.markdown import code, sentence, table

FORGER: Final = Path(__file__).resolve().parents[2] / "tests" / "spark_audit" / "forger"
FORGERIES: Final = FORGER / "forgeries.toml"
CHANCE: Final = FORGER / "chance.toml"
INTRODUCTION: Final = """
A forger with the gateway's own key can write a trail whose hashes, links, Merkle roots and signatures are right. Then
only what its records say is wrong. The tests have such a forger: it takes the trail of a real gateway, makes one
change, and seals the whole anew. An audit finds a wrong trail if a control of severity error has a violation.

The tests check this page: they fail if the audit does not find a wrong trail that is under "Found", or finds one that
is under "Not found".
""".strip()

BY_CHANCE: Final = """
Another forger changes one record by chance: it leaves the record out, doubles it, moves it, leaves a field out, gives a
field another record's value, or bends it by a digit. Many such changes mean nothing. `make prove` makes 6,000 of them,
and fails if a smaller share is found than this.
""".strip()

Row = dict[str, Any]


def lines() -> list[str]:
    """The page, without its title."""
    rows: list[Row] = tomllib.loads(FORGERIES.read_text())["wrong"]
    kinds = dict.fromkeys(row["class"] for row in rows)
    sums = [_sums(kind, [row for row in rows if row["class"] == kind]) for kind in kinds]
    missed = ((sentence(row["id"]), sentence(row["not_found"])) for row in rows if "not_found" in row)
    found = ((sentence(row["id"]), code(row["control"])) for row in rows if "control" in row)
    return [
        *INTRODUCTION.splitlines(),
        "",
        *table(["Class", "Wrong trails", "Found", "Share"], [*sums, _sums("all", rows)]),
        "",
        "## Not found",
        "",
        *table(["What is wrong", "Why no control finds it"], missed),
        "",
        "## Found",
        "",
        *table(["What is wrong", "Control"], found),
        "",
        "## Changes by chance",
        "",
        *_by_chance(),
    ]


def _by_chance() -> list[str]:
    told = tomllib.loads(CHANCE.read_text())
    shares = ((act, f"{100 * share:.0f} %") for act, share in told["found"].items())
    missed = ((sentence(row["what"]), sentence(row["why"])) for row in told["not_found"])
    return [
        *BY_CHANCE.splitlines(),
        "",
        *table(["Act", "Found at least"], shares),
        "",
        *table(["What is changed", "Why it may go unfound"], missed),
    ]


def _sums(name: str, rows: Iterable[Row]) -> tuple[str, ...]:
    told = ["control" in row for row in rows]
    return name, str(len(told)), str(sum(told)), f"{100 * sum(told) / len(told):.0f} %"
