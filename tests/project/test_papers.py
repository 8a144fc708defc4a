"""The commands, files and libraries that the papers name exist, and every library has its reason."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def _code(root: Path, paper: str) -> str:
    return "\n".join(CODE.findall((root / paper).read_text()))


@pytest.mark.parametrize("paper", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_of_a_paper_is_a_target(root: Path, paper: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"(?:^|[\s`])make ([a-z]+)", _code(root, paper)))
    assert shown
    assert shown <= targets


READMES = ["README.md", "deploy/README.md", "mq_adapters/broker/README.md", "spark_audit/README.md"]


@pytest.mark.timeout(600)  # some thirty processes, one after the other
def test_every_rfhbridge_command_of_a_readme_exists(root: Path) -> None:
    command = re.compile(r"(?:^|[\s`/])rfhbridge ((?:queue |audit |sessions |user )?[a-z]+(?:-[a-z]+)*)")
    shown = {found for paper in READMES for found in command.findall(_code(root, paper))}
    assert {"sessions list", "user add", "audit explain"} <= shown
    start = "from gateway.cli import main; main()"
    for command in sorted(shown):
        run = subprocess.run(
            [sys.executable, "-c", start, *command.split(), "--help"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"rfhbridge {command}: {run.stderr}"


def _rooms(root: Path) -> list[str]:
    """Paths, as patterns, of what stands in the first column of ARCHITECTURE's rooms: `listener/tls.py` or a folder."""
    block = (root / "ARCHITECTURE.md").read_text().split("## Rooms")[1].split("```")[1]
    found: list[str] = []
    floor = room = ""
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or indent > 4:  # what goes on from the line above
            continue
        names = re.split(r"\s{2,}", line.strip())[0].split(", ")
        if not indent:
            floor = room = names[0]
            found.append(floor)
            continue
        folder = floor if indent == 2 else room
        if indent == 2:
            room = floor + names[0] if names[0].endswith("/") else ""
        found += [folder + (name if name.endswith(("/", ".py", ".toml")) else f"{name}.py") for name in names]
    return found


def test_every_room_and_file_of_the_architecture_exists(root: Path) -> None:
    rooms = _rooms(root)
    assert {"gateway/listener/", "gateway/listener/doorway.py", "mappings/options.toml"} <= set(rooms)
    # A noun in the column may be a room of several files.
    assert [
        name for name in rooms if not list(root.glob(name)) and not (root / name.removesuffix(".py")).is_dir()
    ] == []


def test_every_library_has_its_reason_in_the_architecture(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    rows = (root / "ARCHITECTURE.md").read_text().split("## Libraries")[1].splitlines()
    told = {name for row in rows if row.startswith("|") for name in re.split(r"[, ()]+", row.split("|")[1].lower())}
    assert {re.split(r"[\[<>=]", each)[0] for each in wanted} <= told
