"""Children of a forked process that are forks too: exporter and channels of a gateway start without their imports.

A run that may have such children has a nursery from its start: a second process, as new as the run itself. For each
child the nursery forks twice, and the process in between ends at once. The run is a subreaper (prctl(2)), so the child
becomes its own: `os.getppid()` of the child is the run, and the run waits for it. All else that
`asyncio.create_subprocess_exec` starts is a fresh process.
"""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.processes.runs import LONGEST_REQUEST, NUMBER, STREAMS, Run

#: The modules whose runs have a nursery, and those that are forked there.
_OF_CHANNELS: Final = "tests.gateway.channels.processes"
PARENTS: Final = ("tests.end_to_end.comparing_gateway", _OF_CHANNELS, "tests.processes.parent")
CHILDREN: Final = ("gateway.audit_trail.exporter", "gateway.channels", _OF_CHANNELS, "tests.processes.probe")
#: What `asyncio.create_subprocess_exec` is asked for of them.
_ASKED: Final = frozenset({"pass_fds", "start_new_session", "stdin", "stdout", "limit", "cwd"})
#: Where this process, and all that is forked of it, finds libraries: Linux reads that at a program's start alone.
LIBRARIES: Final = "LD_LIBRARY_PATH"
_LIBRARIES_HERE: Final = os.environ.get(LIBRARIES)
_MOST_DESCRIPTORS: Final = STREAMS + 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_NAME: Final = "nursery"
_CHANNELS: Final = "channels"


def with_nursery(run: Run) -> Run:
    """Begins the nursery of a run that may have one. Returns `run`, and in each child what that child is to run."""
    if run.module not in PARENTS:
        return run
    asking, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.fork():
        asked.close()
        asyncio.create_subprocess_exec = Nursery(asking).create  # type: ignore[assignment]
        return run
    asking.close()
    with asked:
        return _next_child(asked)


def children_of(process: int) -> list[int]:
    """The children of a process but its nursery. FileNotFoundError: the kernel does not tell them."""
    found = map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    return [child for child in found if not _is_nursery(child)]


def _is_nursery(process: int) -> bool:
    return _name_of(process) == _NAME


def runs_channels(process: int) -> bool:
    """Whether a child of a gateway, which may be a fork, is a channel process."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
    return _name_of(process) == _CHANNELS or bool({b"channels", b"gateway.channels"} & set(command))


def _name_of(process: int) -> str:
    with contextlib.suppress(OSError):  # it has ended
        return Path(f"/proc/{process}/comm").read_text().rstrip("\n")
    return ""


def _next_child(asked: socket.socket) -> Run:
    """The nursery: returns in its children alone, and ends with the run that asks it."""
    Path("/proc/self/comm").write_text(_NAME)
    name = Path(sys.executable).name
    while True:
        request, descriptors, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, _MOST_DESCRIPTORS)
        if not request:
            os._exit(0)
        between = os.fork()
        if between:
            for descriptor in descriptors:
                os.close(descriptor)
            os.waitpid(between, 0)
            continue
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            os.sched_yield()
        # Not before it is the run's own: that may kill it at once, and wait for it.
        asked.send(NUMBER.pack(os.getpid()))
        run = Run.from_json(request)
        Path("/proc/self/comm").write_text(_CHANNELS if run.module in ("gateway.channels", _OF_CHANNELS) else name)
        run.begin(descriptors)
        sys.modules.pop(run.module, None)  # its own code runs once more, as `__main__`
        return run


class Nursery:
    """The run's side: takes the place of `asyncio.create_subprocess_exec`."""

    def __init__(self, asking: socket.socket) -> None:
        self._asking = asking
        self._fresh = asyncio.create_subprocess_exec

    async def create(self, *command: str, **how: Any) -> "Child | asyncio.subprocess.Process":
        is_known = how.keys() <= _ASKED and os.environ.get(LIBRARIES) == _LIBRARIES_HERE
        if command[:3] == (sys.executable, "-P", "-m") and command[3] in CHILDREN and is_known:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # somebody has killed the nursery
                return await self._child(command[3], command[4:], **how)
        return await self._fresh(*command, **how)

    async def _child(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = False,
        stdin: int | None = None,
        stdout: int | None = None,
        limit: int = 0,
        cwd: str | Path | None = None,
    ) -> "Child":
        run = Run(
            module=module,
            arguments=list(arguments),
            environment=dict(os.environ),
            folder=str(cwd or Path.cwd()),
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE),
            starts_session=start_new_session,
            numbers=[*range(STREAMS), *pass_fds],
        )
        given, writer, reader = list(run.numbers), None, None
        with contextlib.ExitStack() as theirs:
            if stdin == asyncio.subprocess.PIPE:
                given[0], end = os.pipe()
                theirs.callback(os.close, given[0])
                writer = await _writer(end)
            if stdout == asyncio.subprocess.PIPE:
                end, given[1] = os.pipe()
                theirs.callback(os.close, given[1])
                reader = await _reader(end, limit)
            return Child(self._forked(run, given), writer, reader)

    def _forked(self, run: Run, descriptors: list[int]) -> int:
        socket.send_fds(self._asking, [run.to_json()], descriptors)
        answer = self._asking.recv(NUMBER.size)
        if not answer:
            raise BrokenPipeError
        process: int = NUMBER.unpack(answer)[0]
        return process


class Child:
    """A child, with what the gateway uses of asyncio's Process."""

    def __init__(
        self, process: int, stdin: asyncio.StreamWriter | None = None, stdout: asyncio.StreamReader | None = None
    ) -> None:
        self.pid, self.stdin, self.stdout = process, stdin, stdout
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._descriptor = os.pidfd_open(process)
        self._loop.add_reader(self._descriptor, self._ended)

    def _ended(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self._end.set()

    async def wait(self) -> int:
        await self._end.wait()
        if self.stdin is not None:
            self.stdin.close()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def _writer(end: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(end, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(end: int, limit: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    pipe = os.fdopen(end, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
