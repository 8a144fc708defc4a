"""The files and libraries that the papers name exist, and every library has its reason."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("rfhbridge", "gateway", "spark_audit", "mq_adapters", "mappings")
LONGEST_WORDS = 1_500
LONGEST_README = 150
#: Questions that the section Doors answers, each with one file.
LEAST_DOORS = 10


def _architecture(root: Path) -> str:
    return (root / "ARCHITECTURE.md").read_text()


def _rooms_of_the_architecture(root: Path) -> set[str]:
    """The folders in the first column of the section Rooms."""
    block = _architecture(root).split("## Rooms")[1].split("```")[1]
    return {line.split()[0].rstrip("/") for line in block.splitlines() if line.strip()}


def _rooms_of_the_tree(root: Path) -> set[str]:
    """The folders of the floors that hold modules."""
    modules = (module for floor in FLOORS for module in (root / floor).rglob("*.py"))
    return {module.parent.relative_to(root).as_posix() for module in modules}


def test_the_architecture_names_every_room_of_the_tree(root: Path) -> None:
    assert _rooms_of_the_architecture(root) == _rooms_of_the_tree(root)


def test_every_path_that_the_architecture_names_exists(root: Path) -> None:
    text = _architecture(root)
    code = set(re.findall(r"`([a-z_]+(?:/[\w.]+)+)`", text))
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link}
    assert {"gateway/listener", "tests/project/test_floors.py"} <= code
    assert {path for path in code | links if not (root / path).exists()} == set()
    rows = text.split("## Rooms")[1].split("```")[1].splitlines()
    files = {f"{row.split()[0]}{file}" for row in rows for file in re.findall(r"\(([a-z_]+\.(?:py|toml))\)", row)}
    assert {"mappings/fields.toml", "gateway/daemon.py"} <= files
    assert {file for file in files if not (root / file).is_file()} == set()


def _definitions(module: Path) -> set[str]:
    """The names that a module defines: `Class`, `function`, `Class.method`."""
    found = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{each.name}" for each in methods if isinstance(node, ast.ClassDef)}
    return found


def _shut_doors(root: Path, rows: str) -> set[str]:
    """Rows of the section Doors whose file does not define what it says, or that name no definition."""
    shut = set()
    for row in rows.splitlines():
        _, question, door, _ = row.split("|")
        file, _, name = door.strip(" `").partition("::")
        if not (root / file).is_file() or name not in _definitions(root / file):
            shut.add(question.strip())
    return shut


def test_every_question_of_a_newcomer_opens_one_file_with_its_answer(root: Path) -> None:
    rows = _architecture(root).split("## Doors for newcomers")[1].split("|---|---|\n")[1].split("\n\n")[0]
    assert len(rows.splitlines()) >= LEAST_DOORS
    assert _shut_doors(root, rows) == set()


def test_a_door_without_its_definition_is_found(tmp_path: Path) -> None:
    (tmp_path / "login.py").write_text("class Login:\n    def check(self): ...\n")
    rows = "| login | `login.py::Login.check` |\n| a | `gone.py::Login` |\n| b | `login.py::Log` |\n| c | `login.py` |"
    assert _shut_doors(tmp_path, rows) == {"a", "b", "c"}


def test_the_architecture_can_be_read_in_ten_minutes(root: Path) -> None:
    assert len(_architecture(root).split()) <= LONGEST_WORDS


def _missing_modules(readme: Path) -> set[str]:
    """Modules and tables that a room's README names, and that are neither in the room nor anywhere below it."""
    named = re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:py|toml))`", readme.read_text())
    return {name for name in named if not [*readme.parent.rglob(name)] and not (ROOT / name).exists()}


@pytest.mark.parametrize(
    "readme",
    sorted(each for floor in FLOORS for each in (ROOT / floor).rglob("README.md")),
    ids=lambda each: each.parent.name,
)
def test_every_module_that_a_room_names_exists(readme: Path) -> None:
    assert _missing_modules(readme) == set()


def test_a_module_that_a_room_has_lost_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("`here.py`, `room/there.toml`, `gateway/daemon.py`, `gone.py`")
    (tmp_path / "here.py").touch()
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "there.toml").touch()
    assert _missing_modules(tmp_path / "README.md") == {"gone.py"}


def test_the_readme_is_short(root: Path) -> None:
    assert len((root / "README.md").read_text().splitlines()) <= LONGEST_README


def test_every_library_has_its_reason_in_the_architecture(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    rows = (root / "ARCHITECTURE.md").read_text().split("## Libraries")[1].splitlines()
    told = {name for row in rows if row.startswith("|") for name in re.split(r"[, ()]+", row.split("|")[1].lower())}
    assert {re.split(r"[\[<>=]", each)[0] for each in wanted} <= told
