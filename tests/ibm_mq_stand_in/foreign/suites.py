"""The bindings' own test suites: fetched when they are to run, run over the stand-in, and their results.

ibmmq's is in its source distribution, pymqi's in its repository alone. Where they are at hand already, the variable
RFHBRIDGE_FOREIGN_SUITES names a folder with the folders `pymqi` and `ibmmq` of their tests.
"""

import os
import subprocess
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, Literal

from tests.ibm_mq_stand_in.foreign.command_server import PcfServer
from tests.ibm_mq_stand_in.process import BUILT, Binding, StandInQueueManager, python_folder

VARIABLE: Final = "RFHBRIDGE_FOREIGN_SUITES"
_REPOSITORY: Final = "https://github.com/dsuch/pymqi"
_FETCH_S: Final = 120.0
_RUN_S: Final = 1_800.0
_NAME: Final = "QM1"
#: How both suites are told about the queue manager; the second prefix and the second word are ibmmq's.
_SETTINGS: Final = {
    f"{prefix}_TEST_QM_{name}": value
    for prefix, word in (("PYMQI", "CONN_AUTH"), ("PY_IBMMQ", "CONNAUTH"))
    for name, value in (("NAME", _NAME), (f"{word}_SUPPORTED", "0"), (f"{word}_USE_PW", "OPTIONAL"))
}

Result = Literal["passed", "failed", "skipped"]


class SuiteMissing(Exception):
    """A suite that cannot be had. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exempt:
    """Tests that cannot pass, by patterns `module.class.test`, and why."""

    reason: str
    tests: tuple[str, ...]


def exempt() -> tuple[Exempt, ...]:
    said = tomllib.loads(Path(__file__).with_name("suites.toml").read_text())["cannot"]
    return tuple(Exempt(reason=each["reason"], tests=tuple(each["tests"])) for each in said)


def cannot_pass(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for each in exempt() for pattern in each.tests)


def fetched(binding: Binding, folder: Path) -> Path:
    """The folder of a suite's tests. Raises SuiteMissing."""
    if VARIABLE in os.environ:
        found = Path(os.environ[VARIABLE], binding)
        if not found.is_dir():
            raise SuiteMissing(f"{found} is not there")
        return found
    made = _from_its_distribution(folder) if binding == "ibmmq" else _from_its_repository(folder)
    (tests,) = made.glob("**/code/tests")
    return tests


def _from_its_distribution(folder: Path) -> Path:
    (version,) = (each.version for each in distributions(name="ibmmq", path=[str(python_folder("ibmmq"))]))
    options = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder))
    _fetch(sys.executable, "-m", "pip", "download", "--quiet", *options, f"ibmmq=={version}")
    (archive,) = folder.glob("ibmmq-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "ibmmq", filter="data")
    return folder / "ibmmq"


def _from_its_repository(folder: Path) -> Path:
    _fetch("git", "clone", "--quiet", "--depth", "1", _REPOSITORY, str(folder / "pymqi"))
    return folder / "pymqi"


def install_requirements(folder: Path) -> Path:
    """What the suites need beside pytest, in a folder of its own. Raises SuiteMissing."""
    where = folder / "requirements"
    options = ("--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(where))
    _fetch(sys.executable, "-m", "pip", "install", *options, "ddt")
    return where


def _fetch(*command: str) -> None:
    environment = {**os.environ, "MQ_FILE_PATH": str(BUILT), "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SuiteMissing(f"{command[0]}: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise SuiteMissing(f"{' '.join(command[:4])} failed: {last}")


def run(binding: Binding, tests: Path, requirements: Path, folder: Path) -> Mapping[str, Result]:
    """The result of each test, by `module.class.test`."""
    with (
        StandInQueueManager(folder / "data", name=_NAME) as queue_manager,
        PcfServer(queue_manager.client),
    ):
        environment = {**os.environ, **queue_manager.environment(binding), **_SETTINGS}
        environment["PYTHONPATH"] += os.pathsep + str(requirements)
        report = folder / "report.xml"
        plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "-c", os.devnull)
        given = (f"--junitxml={report}", f"--rootdir={tests}", f"--basetemp={folder / 'temporary'}", str(tests))
        command = (sys.executable, "-m", "pytest", "--quiet", "--timeout=120", *plain, *given)
        subprocess.run(command, env=environment, cwd=tests, capture_output=True, timeout=_RUN_S, check=False)
    return _read(report)


def _read(report: Path) -> dict[str, Result]:
    found: dict[str, Result] = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcome: Result = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif case.find("skipped") is not None:
            outcome = "skipped"
        if found.get(name) != "failed":
            found[name] = outcome
    return found
