"""What `make compile` builds of a small project: a whole build that runs, or none, and a reason."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import compiled
from spark_audit import compiled_modules

SOURCE = "def doubled(numbers: list[int]) -> int:\n    return sum([2 * number for number in numbers])\n"
AS_LIST = (
    "def first(numbers: list[int]) -> int:\n    found = (number for number in numbers)\n    return next(iter(found))\n"
)
WRONG = "def doubled(number: int) -> str:\n    return 2 * number\n"
BUILD = (
    "import runpy, sys; sys.prefix = sys.argv.pop(1); sys.path.insert(0, '.'); sys.argv.pop(0); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
RUN = (
    "import sys; sys.prefix = sys.argv[1]; sys.path.insert(0, '.'); from gateway.compiled import use; print(use()); "
    "from mappings.small import doubled; print(doubled([1, 2]), sys.modules['mappings.small'].__file__)"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose table has one module, `mappings.small`; its environment is `tmp_path / "environment"`."""
    unavailable = compiled.builds() / "unavailable"
    if unavailable.exists() or importlib.util.find_spec("mypyc") is None:
        pytest.skip(unavailable.read_text().strip() if unavailable.exists() else "mypyc is not installed")
    folder = tmp_path / "project"
    for package in compiled.PACKAGES:
        folder.joinpath(package).mkdir(parents=True)
        folder.joinpath(package, "__init__.py").touch()
    shutil.copy(Path(compiled.__file__), folder / "gateway")
    shutil.copy(Path(compiled_modules.__file__), folder / "spark_audit")
    folder.joinpath("gateway", compiled.TABLE.name).write_text('modules = ["mappings.small"]\n', encoding="utf-8")
    folder.joinpath("mappings", "small.py").write_text(SOURCE, encoding="utf-8")
    return folder


def python(program: str, project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-c", program, str(project.with_name("environment")), *arguments]
    return subprocess.run(
        command, cwd=project, env={"PATH": "/usr/bin:/bin"}, timeout=100, check=False, capture_output=True, text=True
    )


def built(project: Path, root: Path) -> "subprocess.CompletedProcess[str]":
    project.with_name("environment").mkdir(exist_ok=True)
    return python(BUILD, project, build_script(root))


def build_script(root: Path) -> str:
    return str(root / "deploy" / "setup" / "compiled.py")


def builds(project: Path) -> list[str]:
    return [build.name for build in project.with_name("environment").joinpath("compiled").iterdir()]


def test_a_build_is_taken_until_a_source_changes_and_old_ones_go(project: Path, root: Path) -> None:
    """With it goes what a killed one has left. The newest of the others stay, and files beside them do not count."""
    folder = project.with_name("environment") / "compiled"
    for place, name in enumerate(["oldest", "log", "older", "newer", ".building-killed"]):
        (folder / name).mkdir(parents=True) if name != "log" else (folder / name).touch()
        os.utime(folder / name, (place, place))
    ended = built(project, root)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(builds(project)) == 4
    assert {"log", "older", "newer"} < set(builds(project))
    ran = python(RUN, project)
    assert ran.stdout.split()[:2] == ["True", "6"], ran.stderr
    assert ran.stdout.endswith(".so\n")
    project.joinpath("mappings", "small.py").write_text(SOURCE.replace("2 *", "3 *"), encoding="utf-8")
    ran = python(RUN, project)
    assert ran.stdout.split()[:2] == ["False", "9"], ran.stderr
    assert ran.stdout.endswith("small.py\n")


def test_a_source_that_changes_while_it_is_compiled_leaves_no_build(project: Path, root: Path) -> None:
    table = project / "gateway" / "compiled.toml"
    changing = (
        "import sys, threading, time, pathlib\n"
        "def change():\n"
        "    folder = pathlib.Path(sys.prefix, 'compiled')\n"
        "    while not list(folder.glob('.building-*/c')): time.sleep(0.001)\n"
        f"    pathlib.Path({str(table)!r}).write_text('modules = []')\n"
        "threading.Thread(target=change).start()\n"
    )
    project.with_name("environment").mkdir()
    ended = python(BUILD.replace("runpy.run_path", f"exec({changing!r}); runpy.run_path"), project, build_script(root))
    assert (ended.returncode, ended.stderr) == (1, "a source changed while it was compiled: try again\n")
    assert builds(project) == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [(AS_LIST, "mappings/small.py:2: warning: Treating generator"), (WRONG, "mappings/small.py:2: error: ")],
    ids=["a list in disguise", "a wrong type"],
)
def test_a_source_that_cannot_be_compiled_well_leaves_no_build_and_its_line_is_named(
    project: Path, root: Path, source: str, complaint: str
) -> None:
    project.joinpath("mappings", "small.py").write_text(source, encoding="utf-8")
    ended = built(project, root)
    assert ended.returncode == 3
    assert complaint in ended.stderr
    assert "Traceback" not in ended.stderr
    assert builds(project) == []
