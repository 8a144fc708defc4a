"""The set-up scripts: which Python and which Java they take, and what they say when there is none."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = ["run", "test", "prove", "bench", "lint", "docs", "pictures", "audit", "clean", "help"]


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A folder with the set-up scripts and what they read, and without an environment."""
    folder = tmp_path / "clone"
    shutil.copytree(root / "deploy" / "setup", folder / "deploy" / "setup")
    shutil.copytree(root / "requirements", folder / "requirements")
    shutil.copy(root / "pyproject.toml", folder)
    return folder


def _start(clone: Path, *command: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PYTHON"}}
    return subprocess.Popen(
        [str(clone / "deploy" / "setup" / command[0]), *command[1:]],
        env=inherited | environment,
        cwd=clone,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(clone: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    with _start(clone, *command, **environment) as started:
        told, complained = started.communicate()
    return subprocess.CompletedProcess(started.args, started.returncode, told, complained)


def _write_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _write_java(home: Path, version: str) -> Path:
    """A stand-in for a Java runtime, which tells its version as the real one does."""
    script = f"echo '    java.home = {home}' >&2; echo '    java.specification.version = {version}' >&2"
    _write_program(home / "bin" / "java", script)
    return home


def _chosen_java(clone: Path, on_path: Path, **environment: str) -> str:
    (clone / ".venv").mkdir(exist_ok=True)
    run = _run(clone, "java.sh", PATH=f"{on_path / 'bin'}:{os.environ['PATH']}", **environment)
    assert run.returncode == 0, run.stderr
    return (clone / ".venv" / "java-home").read_text().strip()


def test_a_python_that_does_not_run_is_refused_by_name(clone: Path, tmp_path: Path) -> None:
    shim = _write_program(tmp_path / "shim", "echo 'command not found' >&2; exit 127")
    run = _run(clone, "environment.sh", "run", PYTHON=str(shim))
    assert run.returncode == 1
    assert run.stderr == f"set-up: PYTHON={shim} does not run or is older than 3.11; name another interpreter\n"
    assert not (clone / ".venv").exists()


def test_an_older_python_is_refused(clone: Path, tmp_path: Path) -> None:
    older = _write_program(tmp_path / "older", "exit 1")  # what the version question of the script exits with
    assert _run(clone, "environment.sh", "run", PYTHON=str(older)).returncode == 1


#: A Python that makes environments of itself; pip notes its calls, and fails in the first ones.
PYTHON_WITH_PIP = """
case "$*" in
    *" venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"-m pip install"*) echo pip >>calls; [ $(wc -l <calls) -gt {failures} ] ;;
esac
"""


@pytest.mark.parametrize(("failures", "calls", "status"), [(0, 3, 0), (2, 5, 0), (3, 3, 1)])
def test_pip_may_break_off_twice(clone: Path, tmp_path: Path, failures: int, calls: int, status: int) -> None:
    python = _write_program(tmp_path / "python", PYTHON_WITH_PIP.format(failures=failures))
    run = _run(clone, "environment.sh", "run", PYTHON=str(python))
    assert run.returncode == status, run.stderr
    assert (clone / "calls").read_text().split() == ["pip"] * calls
    assert (clone / ".venv/installed/run").exists() == (status == 0)
    assert not (clone / ".venv/unfinished").exists()


def test_an_environment_behind_a_link_is_not_removed(clone: Path, tmp_path: Path) -> None:
    python = _write_program(tmp_path / "python", PYTHON_WITH_PIP.format(failures=0))
    kept = tmp_path / "elsewhere" / "bin" / "python"
    kept.parent.mkdir(parents=True)
    kept.write_text("kept")
    (clone / ".venv").symlink_to(tmp_path / "elsewhere")
    run = _run(clone, "environment.sh", "run", PYTHON=str(python))
    assert (run.returncode, kept.read_text()) == (1, "kept")
    assert run.stderr.startswith("set-up: .venv is a link to ")


def test_an_environment_that_is_ready_does_not_wait_for_what_is_made_beside_it(clone: Path, tmp_path: Path) -> None:
    python = _write_program(tmp_path / "python", PYTHON_WITH_PIP.format(failures=0))
    assert _run(clone, "environment.sh", "run", PYTHON=str(python)).returncode == 0
    with (clone / "pyproject.toml").open() as project:
        fcntl.flock(project, fcntl.LOCK_EX)
        run = _run(clone, "environment.sh", "run", PYTHON=str(python))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_java_home_is_taken_first(clone: Path, tmp_path: Path) -> None:
    asked, on_path = _write_java(tmp_path / "asked", "21"), _write_java(tmp_path / "on_path", "17")
    assert _chosen_java(clone, on_path, JAVA_HOME=str(asked)) == str(asked)


@pytest.mark.parametrize("version", ["1.8", "11", "24", "25"])
def test_java_that_spark_does_not_run_on_is_passed_over(clone: Path, tmp_path: Path, version: str) -> None:
    asked, on_path = _write_java(tmp_path / "asked", version), _write_java(tmp_path / "on_path", "17")
    assert _chosen_java(clone, on_path, JAVA_HOME=str(asked)) == str(on_path)


def test_java_is_looked_for_again_when_java_home_changes(clone: Path, tmp_path: Path) -> None:
    first, second = _write_java(tmp_path / "first", "17"), _write_java(tmp_path / "second", "21")
    assert _chosen_java(clone, first) == str(first)
    assert _chosen_java(clone, second) == str(first)
    assert _chosen_java(clone, first, JAVA_HOME=str(second)) == str(second)


def test_scripts_are_valid_posix_shell(root: Path) -> None:
    scripts = sorted((root / "deploy/setup").glob("*.sh"))
    assert len(scripts) > 10
    for script in scripts:
        run = subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, ""), script.name


def test_plain_make_lists_the_commands(root: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    run = subprocess.run(["make"], cwd=root, env=environment, capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in run.stdout.splitlines()}
    assert set(TARGETS) <= listed


PYTHON_HEADERS = "a C compiler and Python's headers are needed (apt-get install gcc libc6-dev python3-dev)"


@pytest.mark.parametrize(
    ("name", "sources", "needed", "skipped"),
    [
        (
            "ibm-mq-stand-in",
            "tests/ibm_mq_stand_in/library",
            PYTHON_HEADERS,
            "the tests of IBM MQ over the stand-in are skipped",
        ),
        (
            "crash-points",
            "tests/crash_matrix/library",
            "a C compiler is needed (apt-get install gcc libc6-dev)",
            "the crash matrix is skipped",
        ),
        (
            "load-generator",
            "benchmarks/load",
            "a C compiler is needed (apt-get install gcc libc6-dev)",
            "nothing that needs the load generator is measured",
        ),
    ],
)
def test_without_a_compiler_what_is_built_in_c_is_left_out_and_says_why(
    root: Path, clone: Path, name: str, sources: str, needed: str, skipped: str
) -> None:
    shutil.copytree(root / sources, clone / sources)
    tools = ["sh", "dirname", "cat", "cksum", "rm", "mkdir", "id", "uname"]
    for tool in tools:
        (clone / "bin" / tool).parent.mkdir(exist_ok=True)
        (clone / "bin" / tool).symlink_to(str(shutil.which(tool)))
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    run = _run(clone, f"{name}.sh", PATH=str(clone / "bin"))
    assert run.returncode == 0, run.stderr
    assert f"set-up: {needed}: {skipped}" in run.stdout
    assert (clone / ".venv" / name / "unavailable").read_text().strip() == needed


LOCKED = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (unattended-upgr)"


@pytest.mark.parametrize(
    ("answer", "calls"), [(LOCKED, 3), ("E: Unable to locate package mosquitto-clients", 1)], ids=["locked", "unknown"]
)
def test_apt_is_waited_for_while_another_process_has_it_and_not_otherwise(clone: Path, answer: str, calls: int) -> None:
    path = clone / "bin"
    for name in ("sh", "dirname", "cat", "grep", "rm", "mktemp", "touch", "wc"):
        path.mkdir(exist_ok=True)
        (path / name).symlink_to(str(shutil.which(name)))
    _write_program(path / "id", "echo 0")
    _write_program(path / "sleep", "exit 0")
    refused = f'echo install >>calls; [ $(wc -l <calls) -gt 2 ] || {{ echo "{answer}" >&2; exit 100; }}'
    _write_program(path / "apt-get", f'case "$*" in *install*) {refused} ;; esac')
    (clone / ".venv" / "installed").mkdir(parents=True)
    run = _run(clone, "mosquitto-clients.sh", PATH=str(path))
    assert run.returncode == 0
    assert (clone / "calls").read_text().split() == ["install"] * calls
    assert ("set-up: installed mosquitto-clients" in run.stdout) == (answer == LOCKED)
    assert run.stderr.count("set-up: waiting for apt, which another process uses") == (answer == LOCKED)


MQTT_JS = "tests/end_to_end/clients/mqtt_js"
NODE_NEEDED = "Node.js 18 or later with npm is needed (apt-get install nodejs npm)"


def _with_mqtt_js(root: Path, clone: Path, **programs: str) -> Path:
    """The clone gets what mqtt-js.sh reads, and a PATH of its own, with further programs by their scripts."""
    (clone / MQTT_JS).mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(root / MQTT_JS / name, clone / MQTT_JS)
    path = clone / "bin"
    path.mkdir()
    for name in ("sh", "dirname", "cat", "cksum", "cp", "rm", "mkdir", "id"):
        (path / name).symlink_to(str(shutil.which(name)))
    for name, script in programs.items():
        _write_program(path / name, script)
    return path


@pytest.mark.parametrize("node", ["", "exit 1"], ids=["no Node.js", "an old Node.js"])
def test_without_node_mqtt_js_is_left_out_and_says_why(root: Path, clone: Path, node: str) -> None:
    path = _with_mqtt_js(root, clone, **({"node": node, "npm": "exit 0"} if node else {}))
    first, second = (_run(clone, "mqtt-js.sh", PATH=str(path)) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert f"set-up: {NODE_NEEDED}: the tests with MQTT.js are skipped" in first.stdout
    assert (clone / ".venv/mqtt-js/unavailable").read_text().strip() == NODE_NEEDED
    assert (second.returncode, second.stdout) == (0, "")


def test_mqtt_js_is_left_out_where_npm_has_no_network(root: Path, clone: Path) -> None:
    path = _with_mqtt_js(root, clone, node="exit 0", npm="echo 'no network' >&2; exit 1")
    run = _run(clone, "mqtt-js.sh", PATH=str(path))
    assert run.returncode == 0, run.stderr
    assert "set-up: npm could not install MQTT.js (.venv/mqtt-js/npm.log says why" in run.stdout
    assert (clone / ".venv/mqtt-js/npm.log").read_text() == "no network\n"


def test_mqtt_js_is_installed_once(root: Path, clone: Path) -> None:
    path = _with_mqtt_js(root, clone, node="exit 0", npm='echo "$@" >>calls')
    runs = [_run(clone, "mqtt-js.sh", PATH=str(path)) for _ in range(2)]
    assert [(run.returncode, run.stdout) for run in runs] == [(0, "set-up: MQTT.js\n"), (0, "")]
    (call,) = (clone / "calls").read_text().splitlines()
    assert call.startswith("ci --prefix .venv/mqtt-js --ignore-scripts")


CLIENTS = "tests/end_to_end/clients"


def _with_clients(root: Path, clone: Path, **programs: str) -> Path:
    """The clone gets the sources of the clients, and a PATH of its own, with further programs by their scripts."""
    shutil.copytree(root / CLIENTS, clone / CLIENTS)
    path = clone / "bin"
    path.mkdir()
    for name in ("sh", "dirname", "cat", "cksum", "cp", "rm", "mkdir", "find", "sort", "xargs", "sed"):
        (path / name).symlink_to(str(shutil.which(name)))
    for name, script in programs.items():
        _write_program(path / name, script)
    return path


#: Stand-ins for the toolchains. What cargo, go and mvn fetch comes from nowhere.
NEW_TOOLS = {
    "cargo": 'echo "cargo $*" >>"$CALLS"',
    "rustc": 'echo "rustc 1.95.0 (59807616e 2026-04-14)"',
    "cc": "exit 1",
    "go": 'echo "go $*" >>"$CALLS"; [ "$1" != version ] || echo "go version go1.24.4 linux/amd64"',
    "java": 'echo "openjdk 11.0.2 2019-01-15"',
    "javac": 'echo "javac 11.0.2"',
    "mvn": 'echo "mvn $*" >>"$CALLS"; mkdir -p .venv/clients/java/jars',
    "sha256sum": "exit 0",
}
OLD_TOOLS = NEW_TOOLS | {
    "rustc": 'echo "rustc 1.63.0"',
    "go": 'echo "go version go1.19.8 linux/amd64"',
    "java": 'echo "openjdk 1.8.0"',
    "javac": "exit 1",
}
NEEDED = {
    "rust": "Rust 1.85 or later and a C compiler is needed",
    "go": "Go 1.24 or later is needed",
    "java": "a JDK 11 or later with Maven is needed",
}
FETCHES = {"rust": "cargo fetch", "go": "go list", "java": "mvn --batch-mode"}


@pytest.mark.parametrize("toolchain", NEEDED)
@pytest.mark.parametrize("tools", [{}, OLD_TOOLS], ids=["missing", "too old"])
def test_without_its_toolchain_a_client_is_left_out_and_says_why(
    root: Path, clone: Path, toolchain: str, tools: dict[str, str]
) -> None:
    path = _with_clients(root, clone, **tools)
    first, second = (_run(clone, "clients.sh", toolchain, PATH=str(path), CALLS="/dev/null") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert f"set-up: {NEEDED[toolchain]}: the tests with " in first.stdout
    assert (clone / ".venv/clients" / toolchain / "unavailable").read_text().strip() == NEEDED[toolchain]
    assert (second.returncode, second.stdout) == (0, "")


@pytest.mark.parametrize("toolchain", NEEDED)
def test_a_client_whose_toolchain_comes_later_is_built_then(root: Path, clone: Path, toolchain: str) -> None:
    path = _with_clients(root, clone)
    _run(clone, "clients.sh", toolchain, PATH=str(path))
    for name, script in NEW_TOOLS.items():
        _write_program(path / name, script)
    runs = [_run(clone, "clients.sh", toolchain, PATH=str(path), CALLS=str(clone / "calls")) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert (clone / ".venv/clients" / toolchain / "stamp").exists()
    assert not (clone / ".venv/clients" / toolchain / "unavailable").exists()
    calls = (clone / "calls").read_text().splitlines()
    assert len([call for call in calls if call.startswith(FETCHES[toolchain])]) == 1


@pytest.mark.parametrize("toolchain", NEEDED)
def test_a_client_is_left_out_where_there_is_no_network(root: Path, clone: Path, toolchain: str) -> None:
    tool = FETCHES[toolchain].split()[0]
    refused = f'case "$0 $*" in *"{FETCHES[toolchain]}"*) echo "no network" >&2; exit 1 ;; esac'
    path = _with_clients(root, clone, **NEW_TOOLS | {tool: f"{refused}\n{NEW_TOOLS[tool]}"})
    run = _run(clone, "clients.sh", toolchain, PATH=str(path), CALLS=str(clone / "calls"))
    assert run.returncode == 0, run.stderr
    assert f"could not be fetched (.venv/clients/{toolchain}/fetch.log says why" in run.stdout
    assert "no network\n" in (clone / ".venv/clients" / toolchain / "fetch.log").read_text()


def test_a_client_that_does_not_build_is_said_aloud(root: Path, clone: Path) -> None:
    broken = 'case "$*" in build*) echo "error: no such field" >&2; exit 1 ;; esac'
    run = _run(clone, "clients.sh", "rust", PATH=str(_with_clients(root, clone, **NEW_TOOLS | {"cargo": broken})))
    assert run.returncode == 1
    assert "error: no such field\nset-up: rumqttc could not be built" in run.stderr


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed: set-ups do not wait")
def test_of_two_set_ups_at_once_one_waits_and_then_has_nothing_to_do(root: Path, clone: Path) -> None:
    path = _with_mqtt_js(root, clone, node="exit 0", npm="echo begun >>calls; read word <go")
    for name in ("flock", "timeout"):
        (path / name).symlink_to(str(shutil.which(name)))
    os.mkfifo(clone / "go")
    with _start(clone, "mqtt-js.sh", PATH=str(path)) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "set-up: MQTT.js\n"
        with _start(clone, "mqtt-js.sh", PATH=str(path)) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "set-up: waiting for another one in this folder\n"
            (clone / "go").write_text("on\n")
            assert second.communicate() == ("", "")
        assert first.communicate() == ("", "")
    assert (first.returncode, second.returncode) == (0, 0)
    assert (clone / "calls").read_text() == "begun\n"


def test_the_lock_file_of_mqtt_js_has_hashes_and_names_no_place(root: Path) -> None:
    lock = json.loads((root / MQTT_JS / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())


NPM_NEEDED = "npm is needed to install Mermaid (apt-get install nodejs npm)"
CHROMIUM_NEEDED = "Chromium is needed (apt-get install chromium)"
NO_MERMAID = "npm could not install Mermaid (.venv/mermaid/npm.log says why; it needs the network once)"


@pytest.mark.parametrize(
    ("programs", "complaint"),
    [
        ({}, NPM_NEEDED),
        ({"npm": "exit 0"}, CHROMIUM_NEEDED),
        ({"npm": "exit 1", "chromium": "exit 0"}, NO_MERMAID),
        ({"npm": "exit 0", "chromium": "exit 0"}, ""),
    ],
    ids=["no npm", "no Chromium", "no network", "all there"],
)
def test_who_draws_pictures_is_told_what_is_missing(
    root: Path, clone: Path, programs: dict[str, str], complaint: str
) -> None:
    pictures = clone / "docs/pictures"
    pictures.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(root / "docs/pictures" / name, pictures)
    path = clone / "bin"
    path.mkdir()
    for name in ("sh", "dirname", "cat", "cksum", "cp", "grep", "rm", "mkdir", "mktemp", "id"):
        (path / name).symlink_to(str(shutil.which(name)))
    _write_program(path / "apt-get", "exit 1")
    for name, script in programs.items():
        _write_program(path / name, script)
    run = _run(clone, "mermaid.sh", PATH=str(path))
    assert run.stderr == (f"set-up: {complaint}\n" if complaint else "")
    assert run.returncode == bool(complaint)
    assert (clone / ".venv/mermaid/stamp").exists() == (not complaint)
