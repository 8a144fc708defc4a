"""`make run` compiles for the gateway's next start, while the machine has time, and never in the gateway's way."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE_S = 60.0

#: Stands for .venv/bin/python: it has mypyc if a file says so, knows the name of the build, and notes other calls.
PYTHON = """#!/bin/sh
case "$*" in
    *"import mypyc"*) [ -e has_mypyc ] ;;
    *"compiled.build().name"*) echo build-of-these-sources ;;
    *sysconfig*) echo /usr/include ;;
    *"-m pip install"*)
        echo pip >>calls
        [ ! -e fails ] && mkdir -p "$(echo "$*" | sed 's/.*--target \\([^ ]*\\).*/\\1/')" ;;
    *)
        echo "$*" | sed 's/beside.py [0-9]*/beside.py PID/' >>calls
        [ ! -e refuses ] || exit 3
        [ ! -e fails ] ;;
esac
"""


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A folder with the scripts, an environment whose Python is a stand-in, and a compiler that compiles everything."""
    folder = tmp_path / "clone"
    shutil.copytree(root / "deploy" / "setup", folder / "deploy" / "setup")
    shutil.copytree(root / "requirements", folder / "requirements")
    shutil.copy(root / "pyproject.toml", folder)
    write_program(folder / ".venv" / "bin" / "python", PYTHON)
    write_program(folder / "tools" / "gcc", "#!/bin/sh\n")
    return folder


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def compiled_sh(clone: Path, *arguments: str, path: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(clone / "deploy" / "setup" / "compiled.sh"), *arguments],
        env={"PATH": path or f"{clone / 'tools'}:/usr/bin:/bin", **environment},
        cwd=clone,
        timeout=PATIENCE_S,
        check=False,
        capture_output=True,
        text=True,
    )


def beside(clone: Path, path: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    """A gateway that prints a line and ends with 7."""
    return compiled_sh(clone, "beside", "sh", "-c", "echo the gateway; exit 7", path=path, **environment)


def calls(clone: Path, expected: int) -> list[str]:
    """What the stand-in was asked for, when there were so many calls: the build begins in a process of its own."""
    noted = clone / "calls"
    wait_until(lambda: noted.exists() and len(noted.read_text().splitlines()) >= expected)
    return noted.read_text().splitlines()


ANNOUNCED = (
    "set-up: compiling for the gateway's next start, in the time that it leaves (.venv/compiled/log says how it goes)\n"
)
REFUSED = "set-up: mypyc could not compile these sources; make compile says why: the gateway runs its sources\n"
NEEDS_COMPILER = (
    "set-up: a C compiler and the headers of Python are needed (apt-get install gcc libc6-dev python3-dev):"
    " the gateway runs its sources, which are slower\n"
)


def test_the_gateway_starts_at_once_and_the_build_begins_beside_it(clone: Path) -> None:
    ran = beside(clone)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{ANNOUNCED}the gateway\n", "", 7)
    assert calls(clone, 1) == ["deploy/setup/beside.py PID deploy/setup/compiled.sh in-background"]


@pytest.mark.parametrize("said", ["0", "1"])
def test_nothing_is_built_beside_a_gateway_whose_operator_has_decided(clone: Path, said: str) -> None:
    ran = beside(clone, RFHBRIDGE_COMPILED=said)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("the gateway\n", "", 7)
    assert not clone.joinpath("calls").exists()


def test_what_is_built_already_is_not_built_again(clone: Path) -> None:
    clone.joinpath(".venv/compiled/build-of-these-sources").mkdir(parents=True)
    assert beside(clone).stdout == "the gateway\n"
    assert not clone.joinpath("calls").exists()


def test_what_could_not_be_compiled_is_tried_again_only_when_asked_for(clone: Path) -> None:
    clone.joinpath("fails").touch()
    clone.joinpath("has_mypyc").touch()
    assert compiled_sh(clone).stdout.startswith(
        "set-up: the build broke off with exit code 1; the lines above say why: "
    )
    assert beside(clone).stdout == f"{ANNOUNCED}the gateway\n"
    clone.joinpath("refuses").touch()
    assert compiled_sh(clone, "must").returncode == 1
    assert beside(clone).stdout == f"{REFUSED}the gateway\n"
    assert calls(clone, 3)[::2] == ["deploy/setup/compiled.py"] * 2


def test_a_missing_compiler_is_told_once_and_nothing_is_installed(clone: Path, tmp_path: Path) -> None:
    tools = tmp_path / "without_gcc"
    tools.mkdir()
    for name in ("sh", "dirname", "cat", "mkdir", "sed", "awk", "flock", "true"):
        tools.joinpath(name).symlink_to(shutil.which(name) or name)
    write_program(tools / "apt-get", "#!/bin/sh\necho apt-get >>calls\n")
    assert beside(clone, str(tools)).stdout == f"{NEEDS_COMPILER}the gateway\n"
    assert beside(clone, str(tools)).stdout == "the gateway\n"
    assert not clone.joinpath("calls").exists()


def test_a_machine_with_little_memory_is_left_alone(clone: Path) -> None:
    write_program(clone / "tools" / "awk", "#!/bin/sh\necho 1400000\n")
    assert beside(clone).stdout == "the gateway\n"
    assert not clone.joinpath("calls").exists()


def test_a_gateway_starts_where_nothing_can_be_written(clone: Path) -> None:
    clone.joinpath(".venv").rename(clone / "environment")
    clone.joinpath(".venv").symlink_to("/proc/self")  # no file can be made there, not even by root
    assert beside(clone).stdout == "the gateway\n"


def test_two_gateways_of_a_folder_build_once(clone: Path) -> None:
    with (clone / "deploy" / "setup" / "compiled.sh").open() as script:
        fcntl.flock(script, fcntl.LOCK_EX)
        assert beside(clone).stdout == "the gateway\n"
        assert compiled_sh(clone, "in-background").returncode == 0
    assert not clone.joinpath("calls").exists()


def test_who_wants_the_build_now_does_not_wait_for_idle_time(clone: Path) -> None:
    clone.joinpath("has_mypyc").touch()
    slow = PYTHON.replace('case "$*" in\n', 'case "$*" in\n    *"compiled.py 2") sleep 600 ;;\n')
    write_program(clone / ".venv" / "bin" / "python", slow)
    script = str(clone / "deploy" / "setup" / "compiled.sh")
    environment = {"PATH": f"{clone / 'tools'}:/usr/bin:/bin"}
    with subprocess.Popen([script, "in-background"], cwd=clone, env=environment, process_group=0) as background:
        wait_until(clone.joinpath(".venv/compiled/background").exists)
        assert compiled_sh(clone, "must").returncode == 0
        assert background.wait(PATIENCE_S) == -signal.SIGKILL
    assert calls(clone, 1) == ["deploy/setup/compiled.py"]


def test_mypyc_is_installed_in_a_folder_of_its_own_and_only_as_a_whole(clone: Path) -> None:
    clone.joinpath("fails").touch()
    ran = compiled_sh(clone)
    assert (ran.stdout.count("pip could not install mypyc"), ran.returncode) == (1, 0)
    clone.joinpath(".venv/mypyc/half.unfinished").mkdir(parents=True)
    clone.joinpath("fails").unlink()
    for _ in range(2):
        assert compiled_sh(clone).returncode == 0
    assert calls(clone, 4) == ["pip", "pip", "deploy/setup/compiled.py", "deploy/setup/compiled.py"]
    assert [folder.suffix for folder in clone.joinpath(".venv/mypyc").iterdir()] == [""]


@pytest.mark.parametrize("arguments", [["beside"], ["now"]], ids=["no command", "an unknown word"])
def test_a_wrong_call_builds_nothing_and_shows_the_usage(clone: Path, arguments: list[str]) -> None:
    ran = compiled_sh(clone, *arguments)
    assert (ran.stdout, ran.returncode) == ("", 2)
    assert ran.stderr == "usage: compiled.sh [must], or compiled.sh beside COMMAND...\n"
    assert not clone.joinpath("calls").exists()


# -- beside.py ---------------------------------------------------------------------------------------------------------

SHOW = "import os; print(os.sched_getscheduler(0), os.nice(0), open('/proc/self/oom_score_adj').read(), end='')"


def test_what_runs_beside_a_gateway_waits_for_idle_time_and_goes_first_where_memory_is_short(root: Path) -> None:
    command = [sys.executable, str(root / "deploy/setup/beside.py"), str(os.getpid()), sys.executable, "-c", SHOW]
    ran = subprocess.run(command, timeout=PATIENCE_S, check=False, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{os.SCHED_IDLE} 19 1000\n", "", 0)


@pytest.mark.parametrize("arguments", [[], ["1"], ["gateway", "true"]])
def test_beside_whom_and_what_must_be_said(root: Path, arguments: list[str]) -> None:
    command = [sys.executable, str(root / "deploy/setup/beside.py"), *arguments]
    ran = subprocess.run(command, timeout=PATIENCE_S, check=False, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "usage: beside.py PID COMMAND...\n", 1)


def test_its_exit_code_is_that_of_the_command_and_it_does_not_begin_beside_nobody(root: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    for process_id, exit_code in ((os.getpid(), 7), (gone.pid, 0)):
        command = [sys.executable, str(root / "deploy/setup/beside.py"), str(process_id), "sh", "-c", "exit 7"]
        assert subprocess.run(command, timeout=PATIENCE_S, check=False).returncode == exit_code


def test_it_ends_with_the_gateway_and_so_does_all_that_it_has_started(root: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as gateway:
        command = [sys.executable, str(root / "deploy/setup/beside.py"), str(gateway.pid)]
        script = "sleep 600 & echo $!; wait"
        with subprocess.Popen([*command, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as build:
            assert build.stdout is not None
            grandchild = int(build.stdout.readline())
            gateway.kill()
            assert build.wait(PATIENCE_S) != 0
        wait_until(lambda: not is_running(grandchild))


def test_beside_a_busy_gateway_it_rests_most_of_the_time_and_goes_on(root: Path) -> None:
    busy = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as gateway:
        command = [sys.executable, str(root / "deploy/setup/beside.py"), str(gateway.pid)]
        script = "sleep 600 & echo $!; wait"
        with subprocess.Popen([*command, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as build:
            assert build.stdout is not None
            grandchild = int(build.stdout.readline())
            for state in ("T", "S", "T"):
                wait_until(lambda state=state: state_of(grandchild) == state)  # type: ignore[misc]
            gateway.kill()
            build.wait(PATIENCE_S)
        wait_until(lambda: not is_running(grandchild))


def wait_until(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(process_id: int) -> bool:
    return state_of(process_id) not in ("", "Z")


def state_of(process_id: int) -> str:
    """Its state as ps shows it; "" where it has gone."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except FileNotFoundError:
        return ""
