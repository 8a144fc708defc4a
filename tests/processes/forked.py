"""Processes that a fork server of this process of pytest starts, and the command `rfhbridge` as one of them.

    ended = rfhbridge("balance", "--data", data)
    with Forked("gateway.cli", "run", stderr=subprocess.PIPE) as gateway: ...

Each is a process of its own, with a pid, signals, pipes, an environment, a folder and an exit code. What a start costs,
what it loads, and what only a start reads (LD_PRELOAD, PYTHONPATH, PYTHONUTF8) need a fresh process: `fresh`.
"""

import contextlib
import functools
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, AnyStr, Final, Self

from tests.processes.runs import NUMBER, STATUS, Run

#: Far above what a command takes, for machines that are busy with something else.
PATIENCE_S: Final = 60.0
SERVER: Final = "tests.processes.fork_server"
#: Where Python and Linux find modules and libraries.
READ_AT_START: Final = ("PYTHONPATH", "LD_LIBRARY_PATH")
_PROJECT: Final = Path(__file__).parents[2]
#: What a stream may be beside a descriptor.
_PIPE, _NOWHERE = subprocess.PIPE, subprocess.DEVNULL
#: Starts a module as a process: Forked, or fresh.
Begin = Callable[..., "Forked | subprocess.Popen[str]"]


def fresh(module: str, *arguments: str, env: Mapping[str, str] | None = None, **how: Any) -> "subprocess.Popen[str]":
    """`python -P -m MODULE ARGUMENTS` as an operator starts it; `how` as Popen has it. Modules of tests are found."""
    variables = os.environ if env is None else env
    path = os.pathsep.join(filter(None, (variables.get("PYTHONPATH"), str(_PROJECT))))
    how = {"stdin": _NOWHERE, "text": True, "errors": "replace", **how}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments], env={**variables, "PYTHONPATH": path}, **how
    )


class ForkServer:
    """The process that forks. It ends when nobody can ask it any more."""

    def __init__(self, module: str = SERVER, environment: Mapping[str, str] | None = None) -> None:
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        with theirs:
            number = theirs.fileno()
            self._process = fresh(module, str(number), pass_fds=(number,), env=environment)

    def begin(self, run: Run, descriptors: list[int]) -> int:
        """Starts a run with its standard streams and the pipe for its end; returns its process identifier."""
        with self._one_at_a_time:
            socket.send_fds(self._asking, [run.to_json()], descriptors)
            answer = self._asking.recv(NUMBER.size)
        assert answer, "the fork server has ended"
        process: int = NUMBER.unpack(answer)[0]
        return process

    def close(self) -> None:
        self._asking.close()
        self._process.wait(PATIENCE_S)


@functools.cache
def fork_server() -> ForkServer:
    """The server of this process of pytest, which starts with the first run and ends with pytest."""
    return ForkServer()


@functools.cache
def _server_with(variables: tuple[tuple[str, str], ...]) -> ForkServer:
    return ForkServer(environment={**os.environ, **dict(variables)})


def forked_with(environment: Mapping[str, str]) -> Begin:
    """Forked, from a server whose program started with those variables that only a start reads."""
    read = tuple((name, environment[name]) for name in READ_AT_START if name in environment)
    return functools.partial(Forked, server=_server_with(read) if read else None)


class Forked:
    """`python -m MODULE ARGUMENTS`, forked from a server. What it offers it offers as Popen does; pipes are of text."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        stdin: int | IO[Any] = _NOWHERE,
        stdout: int | IO[Any] = _NOWHERE,
        stderr: int | IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        start_new_session: bool = False,
        server: ForkServer | None = None,
    ) -> None:
        """`stderr`: without it the process complains where this one does."""
        run = Run(
            module=module,
            arguments=list(arguments),
            environment=dict(os.environ if env is None else env),
            folder=str(cwd or Path.cwd()),
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE),
            starts_session=start_new_session,
        )
        self._name = f"{module} {' '.join(arguments)}"
        self.returncode: int | None = None
        with contextlib.ExitStack() as given:
            self.stdin, read = _stream(stdin, given, written=True)
            self.stdout, written = _stream(stdout, given)
            self.stderr, complained = _stream(2 if stderr is None else stderr, given)
            self._ended, told = os.pipe()
            given.callback(os.close, told)
            self.pid = (server or fork_server()).begin(run, [read, written, complained, told])

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = PATIENCE_S) -> int:
        if self.returncode is None:
            ending = select.poll()
            ending.register(self._ended, select.POLLIN)
            if not ending.poll(None if timeout is None else timeout * 1_000):
                raise subprocess.TimeoutExpired(self._name, timeout or 0.0)
            status = os.read(self._ended, STATUS.size)
            os.close(self._ended)
            assert status, "the fork server has ended"
            self.returncode = os.waitstatus_to_exitcode(STATUS.unpack(status)[0])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has died, and nobody has told its exit code yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in filter(None, (self.stdin, self.stdout, self.stderr)):
            stream.close()
        self.wait()


def _stream(stream: int | IO[Any], given: contextlib.ExitStack, *, written: bool = False) -> tuple[IO[str] | None, int]:
    """This side of a standard stream, where there is one, and the descriptor for the other."""
    if not isinstance(stream, int):
        return None, stream.fileno()
    if stream == _NOWHERE:
        nowhere = os.open(os.devnull, os.O_RDWR)
        given.callback(os.close, nowhere)
        return None, nowhere
    if stream != _PIPE:
        return None, stream
    ends = os.pipe()
    ours, theirs = reversed(ends) if written else ends
    given.callback(os.close, theirs)
    return os.fdopen(ours, "w" if written else "r", encoding="utf-8", errors="replace"), theirs


def rfhbridge(
    *arguments: object,
    input: AnyStr = "",  # type: ignore[assignment]
    stdout: int | None = None,
    timeout: float | None = PATIENCE_S,
    begin: Begin = Forked,
    **how: Any,
) -> "subprocess.CompletedProcess[AnyStr]":
    """Runs a command to its end; `how` as Forked has it. What it says is text, or bytes where its input is.

    `stdout`: a descriptor for what it says, which is not read then. `begin`: Forked, or fresh.
    """
    words = [str(each) for each in arguments]
    with contextlib.ExitStack() as files:
        read, said, complained = (files.enter_context(os.fdopen(os.memfd_create(name), "w+b")) for name in "ioe")
        read.write(input.encode() if isinstance(input, str) else input)
        read.seek(0)
        streams = {"stdin": read, "stdout": said if stdout is None else stdout, "stderr": complained}
        process = begin("gateway.cli", *words, **streams, **how)
        try:
            exit_code = process.wait(timeout)
        finally:
            process.kill()
        answers = [_all_of(file) for file in (said, complained)]
    if isinstance(input, str):
        return subprocess.CompletedProcess(words, exit_code, *map(bytes.decode, answers))
    return subprocess.CompletedProcess(words, exit_code, *answers)


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
