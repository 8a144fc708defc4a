"""The daemon's side of the channel processes: starts one for each target, restarts it, and reads its reports.

Reports are kept for the operator (channel_commands.py). The queue manager's own data go to the target. Orders reach a
process as lines. The target's state keeps all that must survive the process, such as a stopped channel.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from gateway.channels.names import channel_names
from gateway.channels.protocol import LONGEST_LINE_BYTES, Order, ProcessSettings, Report, line_of, object_of
from gateway.channels.target import Target
from mq_adapters.channel import ChannelState
from mq_adapters.channel.in_doubt import MismatchCause
from mq_adapters.reasons import QueueManagerError, StoreError

#: How long a process that is told to end may take, seconds; it gives its channels less.
END_WAIT_S: Final = 5.0
_RESTART_S: Final = 5.0
_RUNNING: Final = "running"
#: The command of a channel process; -P: it imports nothing from its working folder.
COMMAND: Final = (sys.executable, "-P", "-m", "gateway.channels")

_log = logging.getLogger(__name__)


class TargetProcess:
    """The process of one target. `settings_of` makes its settings anew for each start."""

    def __init__(
        self,
        target: Target,
        settings_of: Callable[[Target], ProcessSettings],
        *,
        folder: Path,
        command: tuple[str, ...],
    ) -> None:
        self.target = target
        #: The last status report of each channel, as the process wrote it; none while no process runs.
        self.statuses: dict[str, dict[str, Any]] = {}
        #: The outcome of the last resolution of each channel, in words.
        self.resolutions: dict[str, str] = {}
        self._settings_of = settings_of
        self._folder = folder
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._shards = 0
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The channels of the target."""
        return channel_names(self.target.name, self.target.shards)

    def begin(self) -> None:
        self._task = asyncio.create_task(self._keep_running())

    def tick(self) -> None:
        """Starts another process if the number of shards has changed. Call it several times a second."""
        self.target.tick()
        if self._shards not in (0, self.target.shards):
            self._shards = 0
            self._send(signal.SIGTERM)

    def order(self, order: Order, channel: str, **values: object) -> bool:
        """Sends an order; False while there is no process."""
        process = self._process
        if process is None or process.returncode is not None:
            return False
        return _tell(process, line_of(order=order, channel=channel, **values))

    async def end(self, *, kill: bool = False) -> None:
        """Ends the process and returns when it has ended.

        It is told to end, or killed at once, or killed when it takes too long.
        """
        self._stop.set()
        if self._task is None:
            return
        self._send(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(self._task), END_WAIT_S)
        except TimeoutError:
            _log.warning("channels left behind target=%s waited_s=%s", self.target.name, END_WAIT_S)
            self._send(signal.SIGKILL)
            await self._task

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _keep_running(self) -> None:
        while not self._stop.is_set():
            self._shards = self.target.shards
            try:
                exit_code = await self._run_once()
            except OSError as error:
                _log.error("channel process not started target=%s reason=%s", self.target.name, str(error))
            else:
                if not self._stop.is_set():
                    _log.warning("channel process ended target=%s exit_code=%s", self.target.name, exit_code)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _RESTART_S)

    async def _run_once(self) -> int:
        """Runs one process from its start to its end; returns its exit code."""
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
            cwd=self._folder,  # nobody else may write there, because IBM's library looks there for other libraries
            start_new_session=True,
        )
        _tell(process, self._settings_of(self.target).to_line())
        if self._stop.is_set():
            self._send(signal.SIGTERM)
        try:
            await self._hear(process)
            return await process.wait()
        finally:
            self.statuses.clear()
            self.target.is_connected = False

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None, "it is a pipe"
        while True:
            try:
                line = await process.stdout.readuntil()
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                _log.error("channel process sent an unknown line target=%s", self.target.name)
                self._send(signal.SIGKILL)
                return
            self._heard(line)

    def _heard(self, line: bytes) -> None:
        """Takes up a report. Any other line, which a library may print, is logged."""
        try:
            said = object_of(line)
            report = Report(said.pop("report"))
            if report is Report.STATUS:
                self._status(said)
            elif report is Report.QUEUE_MANAGER:
                self.target.heard_from(said["name"], said["identifier"], said["maximum_message_bytes"])
            else:
                self._resolved(said)
        except (QueueManagerError, StoreError) as error:  # the store has failed, and the daemon stops because of that
            _log.error("channel report not kept target=%s reason=%s", self.target.name, str(error))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("channel report not understood target=%s reason=%s", self.target.name, repr(error))

    def _status(self, said: dict[str, Any]) -> None:
        self.statuses[said["channel"]] = said
        states = [self.statuses.get(name, {}).get("state") for name in self.names]
        self.target.is_connected = all(state == _RUNNING for state in states)
        behind = [text for status in self.statuses.values() if (text := _shows_store_behind(status))]
        if behind and not self.target.is_store_behind:
            _log.error("store behind target=%s problem=%r", self.target.name, behind[0])
        self.target.is_store_behind = bool(behind)

    def _resolved(self, said: dict[str, Any]) -> None:
        self.resolutions[said["channel"]] = f"{'done' if said['succeeded'] else 'refused'}: {said['text']}"

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                self._process.send_signal(number)


def _shows_store_behind(status: dict[str, Any]) -> str:
    """Why a channel does not go on, if that shows that the store went back; else ""."""
    problem = status["problem"]
    shows = status["state"] == ChannelState.FAILED and problem and problem["cause"] == MismatchCause.OLDER_STORE
    return str(problem["text"]) if shows else ""


def _tell(process: asyncio.subprocess.Process, line: bytes) -> bool:
    """Writes a line. False if the process reads no more, because it has ended."""
    assert process.stdin is not None, "it is a pipe"
    if process.stdin.is_closing():
        return False
    process.stdin.write(line)
    return True


class Supervisor:
    """All channel processes of a gateway."""

    def __init__(self, processes: Iterable[TargetProcess]) -> None:
        self.processes = tuple(processes)

    def begin(self) -> None:
        """Starts the processes. The gateway's socket must exist."""
        for process in self.processes:
            process.begin()

    def tick(self) -> None:
        """Call it several times a second."""
        for process in self.processes:
            process.tick()

    async def end(self, *, kill: bool = False) -> None:
        """Ends the processes, and returns when they have ended. Then all their work is in the store."""
        await asyncio.gather(*(process.end(kill=kill) for process in self.processes))
