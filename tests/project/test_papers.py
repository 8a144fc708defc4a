"""The commands that the papers show exist."""

import re
import subprocess
import sys
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


def test_every_rfhbridge_command_of_the_readme_exists(root: Path) -> None:
    shown = set(re.findall(r"(?:^|[\s`/])rfhbridge ((?:queue |audit )?[a-z]+)", _code(root, "README.md")))
    assert shown
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
