"""The lock files: hashes for all, one version of each package, and what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK_FILES = sorted(file.stem for file in Path(__file__).parents[2].glob("requirements/*.txt"))


def _locked_requirements(root: Path, name: str) -> list[tuple[Requirement, list[str]]]:
    """Each requirement of a lock file with its hashes."""
    logical_lines = (root / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ").splitlines()
    words = [line.split(" --hash=") for line in logical_lines if line.strip()]
    return [(Requirement(requirement), [text.strip() for text in hashes]) for requirement, *hashes in words]


def _locked_here(root: Path, name: str) -> dict[str, Requirement]:
    """What this interpreter installs from a lock file, by name."""
    locked = [requirement for requirement, _ in _locked_requirements(root, name)]
    return {
        canonicalize_name(requirement.name): requirement
        for requirement in locked
        if requirement.marker is None or requirement.marker.evaluate()
    }


def _pinned_version(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    return specifier.version


@pytest.mark.parametrize("name", LOCK_FILES)
def test_every_locked_requirement_has_a_version_and_hashes(root: Path, name: str) -> None:
    locked = _locked_requirements(root, name)
    assert locked
    for requirement, hashes in locked:
        assert _pinned_version(requirement)
        assert hashes, f"{requirement} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", text) for text in hashes)


def test_a_package_has_one_version_in_all_lock_files(root: Path) -> None:
    versions: dict[str, set[str]] = {}
    for name in LOCK_FILES:
        for package, requirement in _locked_here(root, name).items():
            versions.setdefault(package, set()).add(_pinned_version(requirement))
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", ["audit", "test", "docs"])
def test_audit_test_and_docs_contain_run(root: Path, name: str) -> None:
    assert _locked_here(root, "run").items() <= _locked_here(root, name).items()


@pytest.mark.parametrize(("name", "extra"), [("run", None), ("audit", "audit")])
def test_what_pyproject_asks_for_is_locked(root: Path, pyproject: dict[str, Any], name: str, extra: str | None) -> None:
    project = pyproject["project"]
    wanted = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    locked = _locked_here(root, name)
    for text in wanted:
        requirement = Requirement(text)
        version = _pinned_version(locked[canonicalize_name(requirement.name)])
        assert requirement.specifier.contains(version), f"make lock: {text} is locked at {version}"


def test_running_the_gateway_needs_neither_spark_nor_ibms_libraries(root: Path) -> None:
    assert _locked_here(root, "run").keys().isdisjoint({"pyspark", "pandas", "pyarrow", "pymqi", "ibmmq"})


CLIENTS = "tests/end_to_end/clients"


def test_every_crate_of_rumqttc_has_a_checksum_and_no_address(root: Path) -> None:
    folder = root / CLIENTS / "rumqttc"
    locked = tomllib.loads((folder / "Cargo.lock").read_text())["package"]
    assert {crate["name"] for crate in locked if "checksum" not in crate} == {"rumqttc-stream"}
    assert [crate for crate in locked if "source" in crate] == []
    (asked,) = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"].values()
    versions = {crate["version"] for crate in locked if crate["name"] == "rumqttc"}
    assert {f"={version}" for version in versions} == {asked["version"]}


def test_every_file_for_java_has_a_checksum(root: Path) -> None:
    folder = root / CLIENTS / "java"
    lines = [line.split() for line in (folder / "jars.sha256").read_text().splitlines()]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest, _ in lines)
    pom = (folder / "pom.xml").read_text()
    asked = re.findall(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>\s*</dependency>", pom)
    assert {f"{name}-{version}.jar" for name, version in asked} <= {name for _, name in lines}
    assert len(asked) == pom.count("<dependency>")


def test_every_module_for_go_has_a_checksum(root: Path) -> None:
    folder = root / CLIENTS / "go"
    asked = re.findall(r"^\t(\S+ v\S+)", (folder / "go.mod").read_text(), re.MULTILINE)
    summed = {" ".join(line.split()[:2]) for line in (folder / "go.sum").read_text().splitlines()}
    assert asked
    assert set(asked) <= summed
