"""Which modules run compiled: a whole build of exactly these sources, and only where no source of it is loaded yet."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gateway import compiled
from spark_audit.compiled_modules import BUILD_VARIABLE, Finder

MODULES = ["gateway.mqtt.framing_of_nobody", "mappings.template_of_nobody"]


@pytest.fixture
def finders() -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    sys.meta_path[:] = before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finders: None) -> Path:
    """Where the build of these sources would lie, for a table of two modules that nobody has loaded."""
    monkeypatch.setattr(compiled, "builds", lambda: tmp_path)
    monkeypatch.setattr(compiled, "modules", lambda: MODULES)
    monkeypatch.delenv(compiled.VARIABLE)
    return compiled.build()


def fill(folder: Path, modules: list[str]) -> None:
    suffix = next(suffix for suffix in importlib.machinery.EXTENSION_SUFFIXES if "cpython" in suffix)
    for module in modules:
        file = folder / f"{module.replace('.', '/')}{suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def project(folder: Path) -> ModuleType:
    """A project of this one's form in that folder; returns its module `compiled`."""
    for package in compiled.PACKAGES:
        folder.joinpath(package, "room").mkdir(parents=True)
        folder.joinpath(package, "room", "module.py").write_text("NUMBER = 1\n", encoding="utf-8")
    for file in (Path(compiled.__file__), compiled.TABLE):
        shutil.copy(file, folder / "gateway")
    spec = importlib.util.spec_from_file_location("compiled_of_a_copy", folder / "gateway" / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("package", compiled.PACKAGES)
def test_a_change_of_any_source_asks_for_another_build(tmp_path: Path, package: str) -> None:
    copy = project(tmp_path)
    before = copy.build()
    assert copy.build() == before
    tmp_path.joinpath(package, "room", "module.py").write_text("NUMBER = 2\n", encoding="utf-8")
    after = copy.build()
    assert after != before
    tmp_path.joinpath(package, "room", "module.py").rename(tmp_path / package / "room" / "other.py")
    assert copy.build() not in (before, after)


def test_a_change_of_the_table_or_another_interpreter_asks_for_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = project(tmp_path)
    before = copy.build()
    copy.TABLE.write_text("modules = []\n", encoding="utf-8")
    assert copy.build() != before
    before = copy.build()
    monkeypatch.setattr(sys, "version", "3.11.0 of somebody else")
    assert copy.build() != before


def test_a_whole_build_is_taken_once(folder: Path) -> None:
    fill(folder, MODULES)
    assert not compiled.is_used()
    assert compiled.use()
    assert compiled.use()
    assert compiled.is_used()
    found = [importlib.util.find_spec(MODULES[0])]
    assert [str(spec.origin).startswith(str(folder)) for spec in found if spec] == [True]
    assert sum(isinstance(finder, Finder) for finder in sys.meta_path) == 1


@pytest.mark.parametrize("filled", [[], MODULES[:1]], ids=["no build", "a part of one"])
def test_without_a_whole_build_the_sources_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, filled: list[str]
) -> None:
    fill(folder, filled)
    assert not compiled.use()
    monkeypatch.setenv(compiled.VARIABLE, "1")
    with pytest.raises(compiled.NotCompiled, match="make compile builds one"):
        compiled.use()
    assert not compiled.is_used()


def test_the_processes_of_an_audit_are_told_of_a_whole_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.for_processes() == {BUILD_VARIABLE: ""}
    fill(folder, MODULES[:1])
    assert compiled.for_processes() == {BUILD_VARIABLE: ""}
    monkeypatch.setenv(compiled.VARIABLE, "1")
    with pytest.raises(compiled.NotCompiled, match="make compile builds one"):
        compiled.for_processes()
    fill(folder, MODULES)
    assert compiled.for_processes() == {BUILD_VARIABLE: str(folder)}
    assert not compiled.is_used()
    monkeypatch.setenv(compiled.VARIABLE, "0")
    assert compiled.for_processes() == {BUILD_VARIABLE: ""}


def test_a_build_of_other_sources_is_never_taken(folder: Path) -> None:
    fill(folder.with_name("0" * len(folder.name)), MODULES)
    assert not compiled.use()


def test_no_build_is_taken_where_a_source_of_it_is_loaded_or_the_operator_wants_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, MODULES)
    monkeypatch.setitem(sys.modules, MODULES[1], ModuleType(MODULES[1]))
    assert not compiled.use()
    monkeypatch.setenv(compiled.VARIABLE, "1")
    with pytest.raises(compiled.NotCompiled):
        compiled.use()
    monkeypatch.delenv(compiled.VARIABLE)
    monkeypatch.delitem(sys.modules, MODULES[1])
    monkeypatch.setenv(compiled.VARIABLE, "0")
    assert not compiled.use()


def test_the_table_names_modules_of_this_project() -> None:
    root = Path(compiled.__file__).parents[1]
    assert compiled.modules()
    assert [name for name in compiled.modules() if not root.joinpath(f"{name.replace('.', '/')}.py").is_file()] == []


def command(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command where nothing is built and RFHBRIDGE_COMPILED=1 demands it."""
    program = "import sys; sys.prefix = sys.argv.pop(1); from gateway.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *arguments],
        env={compiled.VARIABLE: "1"},
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("arguments", [["run"], ["--log-level", "debug", "run"], ["--log-format=json", "run"]])
def test_a_gateway_that_must_be_compiled_and_cannot_says_so_in_one_line(tmp_path: Path, arguments: list[str]) -> None:
    ended = command(tmp_path, *arguments, "--data", str(tmp_path / "data"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("rfhbridge: RFHBRIDGE_COMPILED=1, and there is no build of these sources (make ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [(["audit", "run", "--help"], 0), (["balance", "--help"], 0), (["--log-level", "loud", "run"], 2)],
    ids=["the run of an audit", "another command", "a wrong option"],
)
def test_other_commands_need_no_build(tmp_path: Path, arguments: list[str], exit_code: int) -> None:
    ended = command(tmp_path, *arguments)
    assert ended.returncode == exit_code
    assert compiled.VARIABLE not in ended.stderr
