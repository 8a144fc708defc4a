"""Runs of `rfhbridge` under the library: the server that forks them, a process as subprocess has it, and a gateway."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from tests.crash_matrix.fork_server import EXIT_CODE
from tests.crash_matrix.points import LIBRARY, Points
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway

_PROJECT: Final = Path(__file__).parents[2]


class GatewayGone(Exception):
    """The gateway died, as it was meant to, before what was waited for."""


class ForkedProcess:
    """What `Gateway` uses of a Popen, for a process that is not a child of ours."""

    def __init__(self, pid: int, ended: int, stderr: IO[str]) -> None:
        self.pid = pid
        self.stderr = stderr
        self.returncode: int | None = None
        self._ended = ended

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float = PATIENCE_S) -> int:
        if self.returncode is None:
            readable, _, _ = select.select([self._ended], [], [], timeout)
            if not readable:
                raise subprocess.TimeoutExpired("rfhbridge", timeout)
            self.returncode = EXIT_CODE.unpack(os.read(self._ended, EXIT_CODE.size))[0]
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has died, and nobody has told its exit code yet
                os.kill(self.pid, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that has ended."""

    exit_code: int
    output: str
    error: str


class ForkServer:
    """The process that forks. One run is asked for at a time."""

    def __init__(self) -> None:
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash_matrix.fork_server", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            cwd=_PROJECT,
            env=os.environ | {"LD_PRELOAD": str(LIBRARY)},
        )
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._asking.close()
        self._process.wait(PATIENCE_S)

    def start(
        self,
        *arguments: str,
        points: Points | None,
        environment: dict[str, str] | None = None,
        output: int | None = None,
    ) -> ForkedProcess:
        """A run. `output`: a descriptor for its standard output; without it that goes nowhere."""
        error, error_of_run = os.pipe()
        ended, end_of_run = os.pipe()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        request = {
            "arguments": arguments,
            "control": "" if points is None else str(points.path),
            "environment": environment or {},
        }
        given = [nowhere if output is None else output, error_of_run, end_of_run]
        socket.send_fds(self._asking, [json.dumps(request).encode()], given)
        for descriptor in (nowhere, error_of_run, end_of_run):
            os.close(descriptor)
        (pid,) = struct.unpack("<i", self._asking.recv(4))
        return ForkedProcess(pid, ended, os.fdopen(error, encoding="utf-8", errors="replace"))

    def command(self, *arguments: str, points: Points | None = None) -> Ended:
        """A command, run to its end."""
        read, written = os.pipe()
        process = self.start(*arguments, points=points, output=written)
        os.close(written)
        with os.fdopen(read, encoding="utf-8") as output, process.stderr as error:
            said, complained = output.read(), error.read()  # neither is longer than a pipe holds
        return Ended(exit_code=process.wait(), output=said, error=complained)


class ForkedGateway(Gateway):
    """A gateway that the server forks; its changes are points."""

    def __init__(self, server: ForkServer, data: Path, *arguments: str, environment: dict[str, str]) -> None:
        super().__init__(data, *arguments, environment=environment)
        self._server = server
        self.points: Points | None = None

    def _begin(self, command: list[str]) -> ForkedProcess:  # type: ignore[override]
        return self._server.start(*command, points=self.points, environment=dict(self._environment))

    def start(self) -> Self:
        """Raises GatewayGone where it dies before its port is open."""
        already = len(self.logged("gateway started"))
        self.launch()
        self.await_log("gateway started", already + 1)
        return self

    def await_log(self, event: str, count: int = 1) -> None:
        """Waits for an event in the log, or for the gateway's death: GatewayGone."""
        with self._changed:
            while len(self._logged(event)) < count:
                if not self.is_running:
                    assert self.points is not None, f"the gateway ended before {event!r}:\n{''.join(self.lines)}"
                    raise GatewayGone(event)
                self._changed.wait(0.02)

    def end(self) -> None:
        """SIGTERM, and waits until it has ended, in order or by its point."""
        self.signal(signal.SIGTERM)
        self.wait()
