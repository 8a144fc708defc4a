"""A forked process is what a fresh one is: what it inherits, what it finds, and how it ends."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.guarded_run import MARK, marked_processes
from tests.processes.forked import Forked, ForkServer, fork_server, fresh, rfhbridge

PROBE = "tests.processes.probe"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
ENDINGS = ("end", "none", "0", "3", "a reason", "fault", "interrupted", "killed", "thread")


def probed(begin: Callable[..., Any], ending: str, **how: Any) -> tuple[int, dict[str, Any], str]:
    """The exit code of a probe, what it found, and what it complained of."""
    environment = os.environ | {"PROBE": "its own", "PROBED_FROM": str(os.getpid())}
    with begin(PROBE, ending, "an argument", env=environment, **PIPES, **how) as process:
        process.stdin.write("what is read\n")
        process.stdin.close()
        found = json.loads(process.stdout.read())
        complaint = process.stderr.read()
        exit_code = process.wait(60)
    return exit_code, found, complaint


@pytest.fixture
def more_files() -> Iterator[None]:
    """This process may open fewer files than when its fork server began."""
    fork_server()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_forked_process_finds_and_ends_what_a_fresh_one_does(tmp_path: Path, more_files: None, ending: str) -> None:
    forked, freshly = (probed(begin, ending, cwd=tmp_path) for begin in (Forked, fresh))
    assert forked[0] == freshly[0]
    own = forked[1].pop("own"), freshly[1].pop("own")
    assert forked[1] == freshly[1]
    assert not set(own[0]) & set(own[1])
    # Behind the frames of the server a traceback ends alike; of runpy it has some lines more.
    assert forked[2].splitlines()[-2:] == freshly[2].splitlines()[-2:]


def probed_as_child(
    begin: Callable[..., Any], ending: str, folder: Path, **variables: str
) -> tuple[str, dict[str, Any], list[str]]:
    """How a probe ended that the process had started, what it found, and what it complained of."""
    environment = os.environ | variables
    with begin("tests.processes.parent", ending, "an argument", cwd=folder, env=environment, **PIPES) as process:
        process.stdin.close()
        found = json.loads(process.stdout.read())
        *complaint, exit_code = process.stderr.read().splitlines()
        assert process.wait(60) == 0
    return exit_code, found, complaint


@pytest.mark.parametrize("is_piped", [False, True], ids=["with a socket", "through pipes"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_child_of_a_forked_process_finds_and_ends_what_that_of_a_fresh_one_does(
    tmp_path: Path, ending: str, is_piped: bool
) -> None:
    variables = {"PIPED": str(tmp_path.parent)} if is_piped else {}
    forked, freshly = (probed_as_child(begin, ending, tmp_path, **variables) for begin in (Forked, fresh))
    assert forked[0] == freshly[0]
    forked[1].pop("own"), freshly[1].pop("own")
    assert freshly[1]["is_child"]
    assert freshly[1]["read"] == ("what is read\n" if is_piped else "")
    assert forked[1] == freshly[1]
    assert forked[2][-2:] == freshly[2][-2:]


def test_a_child_may_be_killed_as_soon_as_its_number_is_told() -> None:
    """The run must be its parent by then: else nobody tells the run of its end, and a gateway never stops."""
    with fresh("tests.processes.impatient", stdout=subprocess.PIPE) as process:
        assert process.stdout.read() == f"{-signal.SIGKILL}\n"


def test_no_two_runs_of_a_server_draw_the_same() -> None:
    drawn = [probed(Forked, "end")[1]["own"] for _ in range(3)]
    assert len({value for own in drawn for value in own}) == 9


def test_a_forked_process_may_have_a_session_of_its_own() -> None:
    for begin in (Forked, fresh):
        assert probed(begin, "end", start_new_session=True)[1]["group"] is False


def test_a_process_that_runs_is_killed_and_waited_for() -> None:
    with Forked("gateway.cli", "inspect", stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.kill()  # of a process that has ended nothing comes
    assert process.poll() == -signal.SIGKILL


def test_the_guard_of_a_run_finds_server_and_runs() -> None:
    with Forked("gateway.cli", "inspect", stdin=subprocess.PIPE) as process:
        marked = set(marked_processes(os.environ[MARK]))
        assert {process.pid, fork_server()._process.pid} <= marked


def test_a_command_answers_in_text_or_in_the_bytes_that_it_was_given() -> None:
    text, data = rfhbridge("lint", input="no message"), rfhbridge("lint", input=b"no message")
    assert text.returncode == data.returncode == 1
    assert (text.stdout.encode(), text.stderr.encode()) == (data.stdout, data.stderr)
    assert "MQRC_RFH_ERROR (2334)" in text.stdout


def test_a_server_that_nobody_can_ask_ends_and_its_runs_go_on() -> None:
    server = ForkServer()
    process = Forked("gateway.cli", "inspect", stdin=subprocess.PIPE, stdout=subprocess.PIPE, server=server)
    server.close()
    with process.stdin, process.stdout:
        process.stdin.close()
        assert "MQRC_RFH_ERROR (2334)" in process.stdout.read()
    with pytest.raises(AssertionError, match="the fork server has ended"):
        process.wait()
