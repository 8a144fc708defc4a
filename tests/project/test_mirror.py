"""The tests mirror the modules: each module has a test module of its name in the same place, or a reason in a list.

The list is mirror.toml. It names the tests that reach such a module instead, by room.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

FLOORS = ("gateway", "mappings", "mq_adapters", "rfhbridge", "spark_audit")


def modules_of(root: Path) -> set[Path]:
    """Every module of the floors but the files that Python itself runs, relative to the root."""
    found = (module for floor in FLOORS for module in (root / floor).rglob("*.py"))
    return {module.relative_to(root) for module in found if not module.name.startswith("__")}


def has_test(root: Path, module: Path) -> bool:
    return (root / "tests" / module.parent / f"test_{module.name}").is_file()


def complaints(root: Path, rooms: dict[str, dict[str, object]]) -> list[str]:
    """What the list says wrongly, and what it does not say."""
    modules, excepted, found = modules_of(root), set(), []
    for room, row in rooms.items():
        names = row["modules"]
        assert isinstance(names, Iterable)
        excepted |= {Path(room, f"{name}.py") for name in names}
        if not str(row["reason"]).endswith(".") or not (root / str(row["through"])).exists():
            found.append(f"{room} has no reason, or its tests are gone")
    found += [f"{module} is gone" for module in sorted(excepted - modules)]
    found += [f"{module} has a test of its own" for module in sorted(excepted & modules) if has_test(root, module)]
    missing = [module for module in sorted(modules - excepted) if not has_test(root, module)]
    return found + [f"{module} needs tests/{module.parent}/test_{module.name}" for module in missing]


def test_each_module_has_a_test_of_its_name_or_a_reason(root: Path) -> None:
    rooms = tomllib.loads((root / "tests/project/mirror.toml").read_text())
    assert complaints(root, rooms) == []


@pytest.mark.parametrize(
    ("modules", "through", "complaint"),
    [
        ([], "tests", "gateway/stray.py needs tests/gateway/test_stray.py"),
        (["stray", "gone"], "tests", "gateway/gone.py is gone"),
        (["stray", "tested"], "tests", "gateway/tested.py has a test of its own"),
        (["stray"], "tests/nowhere", "gateway has no reason, or its tests are gone"),
    ],
)
def test_a_wrong_list_is_found(tmp_path: Path, modules: list[str], through: str, complaint: str) -> None:
    for file in ("gateway/__init__.py", "gateway/stray.py", "gateway/tested.py", "tests/gateway/test_tested.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    row: dict[str, object] = {"reason": "It is simple.", "through": through, "modules": modules}
    assert complaints(tmp_path, {"gateway": row}) == [complaint]
