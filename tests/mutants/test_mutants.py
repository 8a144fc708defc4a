"""Planted durability faults: each is noticed by the test that its row of mutants.toml names.

A row that no longer applies fails at once. In full (RFHBRIDGE_PROOF=full) each fault is planted in a copy of the tree,
alone, and its test must fail there; on a copy without a fault all of these tests pass.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import PROOF_VARIABLE

ROOT = Path(__file__).parents[2]
#: What the product and its tests are made of.
COPIED = ("gateway", "mappings", "mq_adapters", "spark_audit", "tests", "examples", "pyproject.toml")
LEAST = 20
#: How pytest ends where a test failed; anything else is a mutant that cannot be judged.
TESTS_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A row: the text `old` of a file becomes `new`, and test `noticed_by` fails. `fault`: what is wrong then."""

    name: str
    fault: str
    file: str
    old: str
    new: str
    noticed_by: str


MUTANTS = [Mutant(**row) for row in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())["mutant"]]
#: In the short form one stands for all: each runs tests of its own.
PLANTED = MUTANTS if os.environ.get(PROOF_VARIABLE) == "full" else [MUTANTS[0]]
every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])


def _copy(folder: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def _run(folder: Path, *tests: str) -> "subprocess.CompletedProcess[str]":
    """The tests of a copy, on the code of that copy, in full; the first failure is enough."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", "1800", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder), PROOF_VARIABLE: "full", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_there_are_enough_mutants_and_each_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= LEAST


@every_mutant
def test_each_mutant_applies_and_names_a_test(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1, f"{mutant.file} has the old text {text.count(mutant.old)} times"
    assert mutant.new != mutant.old
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    path, _, test = mutant.noticed_by.partition("::")
    assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text()


@pytest.mark.proof
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("mutant", PLANTED, ids=[mutant.name for mutant in PLANTED])
def test_each_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    folder = _copy(tmp_path)
    changed = folder / mutant.file
    changed.write_text(changed.read_text().replace(mutant.old, mutant.new))
    done = _run(folder, mutant.noticed_by)
    assert done.returncode == TESTS_FAILED, f"{mutant.fault}: {mutant.noticed_by}\n{done.stdout[-4000:]}{done.stderr}"


@pytest.mark.proof
@pytest.mark.timeout(3_600)
def test_without_a_fault_the_named_tests_pass(tmp_path: Path) -> None:
    done = _run(_copy(tmp_path), *sorted({mutant.noticed_by for mutant in PLANTED}))
    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr}"
