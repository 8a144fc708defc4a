"""One distribution: the library, the four packages behind it, their tables, what they import, and the command."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging import tags
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.compiled_build import require_build

PACKAGES = ["rfhbridge", "gateway", "mappings", "mq_adapters", "spark_audit"]
HOOK = "deploy/setup/wheel_hook.py"
DATA_SUFFIXES = {".toml", ".html", ".css", ".json", ".md", ".typed"}


#: A python block, and the text block behind it that shows what it prints.
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)


#: Prints it for a gateway that must be compiled, in the environment of that folder.
FILE_OF_A_COMPILED_MODULE = """
import os, sys
sys.prefix = sys.argv[1]
os.environ["RFHBRIDGE_COMPILED"] = "1"
from gateway import compiled
compiled.use()
from gateway.mqtt import framing
print(framing.__file__, end="")
"""


@pytest.fixture(scope="module")
def source(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel of this work tree is made from."""
    folder = tmp_path_factory.mktemp("wheel") / "source"
    (folder / HOOK).parent.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore", HOOK):
        shutil.copy(root / name, folder / name)
    for package in PACKAGES:
        shutil.copytree(root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def make_wheel(source: Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    return subprocess.run(build, cwd=source, env=os.environ | environment, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    """The wheel that this work tree makes."""
    assert make_wheel(source, source.parent).returncode == 0
    (wheel,) = source.parent.glob("rfhbridge-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    """The names of the files in the wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the wheel; what it depends on is in the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return folder


def _run(installed: Path, folder: Path, *arguments: str) -> str:
    """What Python prints in an empty folder, with the installed wheel in front of the work tree."""
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_the_wheel_holds_every_module_table_and_template(wheel_names: set[str], root: Path, package: str) -> None:
    files = [file for file in (root / package).rglob("*") if file.suffix in DATA_SUFFIXES | {".py"}]
    assert {str(file.relative_to(root)) for file in files} <= wheel_names


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(wheel_names: set[str], package: str) -> None:
    assert f"{package}/py.typed" in wheel_names


def test_the_wheel_holds_nothing_but_the_library_and_the_four_packages(wheel_names: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names if ".dist-info/" not in name} == set(PACKAGES)


def _imported_modules(file: Path) -> Iterator[str]:
    """The top-level names of the modules that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_foreign_import_is_a_declared_dependency(root: Path, pyproject: dict[str, Any], package: str) -> None:
    project = pyproject["project"]
    texts = chain(project["dependencies"], *project["optional-dependencies"].values())
    declared = {canonicalize_name(Requirement(text).name) for text in texts}
    known = {*sys.stdlib_module_names, *PACKAGES, "pymqi", "ibmmq", "pydantic_core", "py4j"}
    imported = {name for file in (root / package).rglob("*.py") for name in _imported_modules(file)} - known
    distributions = packages_distributions()
    foreign = {name: {canonicalize_name(found) for found in distributions.get(name, [name])} for name in imported}
    assert {name: found for name, found in foreign.items() if found.isdisjoint(declared)} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_version_that_a_package_tells_is_that_of_pyproject(pyproject: dict[str, Any], package: str) -> None:
    version = pyproject["project"]["version"]
    assert getattr(import_module(package), "__version__", version) == version


def test_the_command_is_there(pyproject: dict[str, Any]) -> None:
    module_name, function_name = pyproject["project"]["scripts"]["rfhbridge"].split(":")
    assert callable(getattr(import_module(module_name), function_name))


def test_the_library_is_imported_from_where_pip_installed_it(installed: Path, tmp_path: Path) -> None:
    program = "import sys, rfhbridge; print(rfhbridge.__file__, sys.modules['mappings'].__file__)"
    assert all(Path(file).is_relative_to(installed) for file in _run(installed, tmp_path, "-c", program).split())


def test_an_example_of_the_library_prints_what_its_page_shows(installed: Path, root: Path, tmp_path: Path) -> None:
    pages = [root / "README.md", *root.glob("docs/**/*.md")]
    shown = [example for page in pages for example in EXAMPLE.findall(page.read_text())]
    examples = [example for example in shown if "import rfhbridge" in example[0]]
    assert examples
    for number, (program, output) in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert _run(installed, folder, "-c", program) == output


def test_the_installed_library_is_the_command_too(installed: Path, tmp_path: Path) -> None:
    assert _run(installed, tmp_path, "-m", "rfhbridge", "--help").startswith("Usage: rfhbridge ")


# -- a wheel with what is compiled -------------------------------------------------------------------------------------


def test_a_wheel_with_what_is_compiled_is_taken_where_it_is_installed(source: Path, tmp_path: Path) -> None:
    require_build()
    assert make_wheel(source, tmp_path, RFHBRIDGE_COMPILED="1").returncode == 0
    (wheel,) = tmp_path.glob("rfhbridge-*.whl")
    tag = next(iter(tags.cpython_tags(platforms=[sysconfig.get_platform().replace("-", "_")])))
    assert wheel.name.endswith(f"-{tag}.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = tmp_path / "environment"
    (data,) = (tmp_path / "installed").glob("rfhbridge-*.data/data")
    data.rename(environment)  # pip does the same: the scheme `data` is the environment itself
    file = _run(tmp_path / "installed", tmp_path, "-c", FILE_OF_A_COMPILED_MODULE, str(environment))
    assert Path(file).is_relative_to(environment / "compiled")


def test_a_wheel_that_must_be_compiled_and_cannot_says_what_to_do(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "source"
    shutil.copytree(source, other)
    (other / "gateway" / "more.py").touch()
    ended = make_wheel(other, tmp_path, RFHBRIDGE_COMPILED="1")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "RFHBRIDGE_COMPILED=1, and there is no build of these sources: make compile"
    )
    assert list(tmp_path.glob("*.whl")) == []
