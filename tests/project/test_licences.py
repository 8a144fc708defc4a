"""The list of licences that `make sbom` writes."""

import json
import subprocess
import sys
from pathlib import Path


def _list(root: Path, folder: Path, *components: dict[str, object]) -> subprocess.CompletedProcess[str]:
    bill = folder / "sbom.json"
    bill.write_text(json.dumps({"bomFormat": "CycloneDX", "components": components}))
    command = [sys.executable, root / "deploy/setup/licences.py", bill]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_each_package_is_listed_with_its_licences(root: Path, tmp_path: Path) -> None:
    done = _list(
        root,
        tmp_path,
        {"name": "uvloop", "version": "0.22.1", "licenses": [{"expression": "MIT OR Apache-2.0"}]},
        {"name": "Jinja2", "version": "3.1.6", "licenses": [{"license": {"name": "License :: OSI Approved :: BSD"}}]},
        {"name": "a", "version": "1", "licenses": [{"license": {"id": "MIT"}}, {"license": {"id": "MIT"}}]},
    )
    assert done.stdout == "a 1: MIT\nJinja2 3.1.6: BSD\nuvloop 0.22.1: MIT OR Apache-2.0\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_package_without_a_licence_ends_the_list_with_1(root: Path, tmp_path: Path) -> None:
    done = _list(root, tmp_path, {"name": "a", "version": "1"})
    assert done.stdout == "a 1: UNKNOWN\n"
    assert (done.returncode, done.stderr) == (1, "licences: a 1 names no licence\n")
