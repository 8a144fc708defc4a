"""What no file of the repository may hold, and what it must have."""

import os
import re
import subprocess
from pathlib import Path

import pytest

# Written with gaps, so that this file does not hold them itself.
REGISTRY_HOSTS = [
    "py pi.org",
    "python hosted.org",
    "npm js.org",
    "npm js.com",
    "crates .io",
    "proxy .golang.org",
    "maven .org",
    "deb .debian.org",
    "archive .ubuntu.com",
    "docker .io",
]
REGISTRY_SETTINGS = ["index -url", "extra-index -url", "find -links"]
#: Where IBM MQ's container keeps its queue manager is no path of a machine.
MACHINE_PATH = re.compile(
    rb"(?<![\w.$])(?!/mnt/mqm\b)/(?:(?:home|Users|mnt|private)/\w|(?:root|w[o]rk|workspace|f[a]rm)/)"
)


def _found_in(files: list[Path], pattern: re.Pattern[bytes]) -> list[str]:
    return [f"{file}: {match.group()!r}" for file in files for match in pattern.finditer(file.read_bytes())]


@pytest.mark.parametrize("spaced_word", REGISTRY_HOSTS + REGISTRY_SETTINGS)
def test_no_file_names_a_package_registry(tracked_files: list[Path], spaced_word: str) -> None:
    word = re.compile(re.escape(spaced_word.replace(" ", "").encode()), re.IGNORECASE)
    assert _found_in(tracked_files, word) == []


def test_no_file_names_a_path_of_one_machine(tracked_files: list[Path]) -> None:
    assert _found_in(tracked_files, MACHINE_PATH) == []


@pytest.mark.parametrize("folder", [b"home", b"root", b"Users", b"mnt", b"workspace"])
@pytest.mark.parametrize("before", [b"", b"cd ", b'"', b"="])
def test_paths_of_one_machine_are_recognised(before: bytes, folder: bytes) -> None:
    assert MACHINE_PATH.search(before + b"/" + folder + b"/someone")


@pytest.mark.parametrize("path", [b"/var/lib/rfhbridge", b"/usr/lib/jvm", b"a/home/boiler", b"docs/root/x"])
def test_other_paths_are_let_through(path: bytes) -> None:
    assert MACHINE_PATH.search(path) is None


def test_the_license_is_the_full_apache_license(root: Path) -> None:
    text = (root / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability" in text
    assert "APPENDIX: How to apply the Apache License to your work" in text


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"])
def test_the_papers_are_there(root: Path, name: str) -> None:
    assert (root / name).read_text().strip()


def test_what_is_run_is_executable(root: Path) -> None:
    runs = [file for file in (root / "deploy/setup").glob("*.sh") if file.read_bytes().startswith(b"#!")]
    assert len(runs) > 10
    assert [file.name for file in (root / ".ci/run", *runs) if not os.access(file, os.X_OK)] == []


@pytest.mark.parametrize("package", ["rfhbridge", "gateway", "mappings", "mq_adapters", "spark_audit"])
def test_no_module_is_named_after_nothing(root: Path, package: str) -> None:
    vague = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
    assert [file for file in (root / package).rglob("*.py") if file.name in vague] == []


@pytest.mark.parametrize("package", ["rfhbridge", "gateway", "mappings", "mq_adapters", "spark_audit"])
def test_no_module_is_longer_than_500_lines(root: Path, package: str) -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in (root / package).rglob("*.py")}
    assert {file: length for file, length in lengths.items() if length > 500} == {}


#: Some subjects up to here are longer.
LAST_COMMIT_OF_ANY_LENGTH = "faa47d1d520066a3d39812a965f389dd834e250f"
LONGEST_SUBJECT = 72


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)


def test_subjects_of_commits_fit_a_line_of_a_log(root: Path) -> None:
    if _git(root, "cat-file", "-e", f"{LAST_COMMIT_OF_ANY_LENGTH}^{{commit}}").returncode:
        pytest.skip("the history before is missing: a shallow clone or an unpacked archive")
    log = _git(root, "log", "--no-merges", "--format=%s", f"{LAST_COMMIT_OF_ANY_LENGTH}..HEAD")
    assert log.returncode == 0, log.stderr
    assert [subject for subject in log.stdout.splitlines() if len(subject) > LONGEST_SUBJECT] == []
