"""The daemon's side of the exporter: checks its keys, starts it, starts it again when it dies, and ends it."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from gateway.audit_trail.digests import key_in_force, place_in_force
from gateway.audit_trail.exporter import TRAIL_FOLDER
from gateway.audit_trail.keys.personal_key import ready_personal_key
from gateway.audit_trail.keys.signing_key import check_place, check_token, ready_key
from gateway.audit_trail.plan import TrailPlan, versions_of_program
from gateway.config import ConfigurationError, Settings
from mq_adapters.embedded.store.files import make_folder
from spark_audit.trail.digest import KEY_IN_A_FILE

#: How long a stopping gateway waits for the exporter to write what is left, seconds.
EXPORT_WAIT_S: Final = 30.0
_RESTART_S: Final = 5.0
#: How an exporter is started: -P, for the folder that the gateway was started in is no place for programs.
_COMMAND: Final = (sys.executable, "-P", "-m", "gateway.audit_trail.exporter")

#: Takes one end of a socket pair, whose other end the exporter inherits.
Adopt = Callable[[socket.socket], Awaitable[None]]

_log = logging.getLogger(__name__)


class ExporterSupervisor:
    """The exporter of a gateway. Raises ConfigurationError for a wrong key or data folder, before it is started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._plan = TrailPlan.of(settings)
        self._stop = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._adopt: Adopt
        _make_folder(settings.data)  # before the keys, which lie in it: its name may be what is wrong
        trail = settings.data / TRAIL_FOLDER
        _make_folder(trail)  # so that the gateway sees from its start on whether it is there
        in_force = key_in_force(trail)
        if self._plan.personal_key:
            ready_personal_key(Path(self._plan.personal_key), in_force)
        if (token := self._plan.signing_token) is None:
            key, place = ready_key(Path(self._plan.signing_key), in_force).public_key, KEY_IN_A_FILE
        else:
            former = self._plan.former_signing_token
            check_token(Path(self._plan.signing_key), token.public_key, in_force, former.public_key if former else "")
            key, place = token.public_key, token.type
            if former is not None and in_force == former.public_key:
                key, place = former.public_key, former.type
        check_place(key, place, in_force, place_in_force(trail))

    def begin(self, adopt: Adopt) -> None:
        """Starts the exporter. `adopt` makes one end of a socket pair its connection to the queue manager."""
        self._adopt = adopt
        self._task = asyncio.create_task(self._keep_exporting())

    async def end(self, *, kill: bool, has_batches: Callable[[], bool]) -> None:
        """Returns when the trail is complete and its segment closed, or, with `kill`, the store has failed.

        What an exporter that is too slow has not written stays on the audit queue, and the next gateway's writes it.
        `has_batches`: whether anything waits on the audit queue.
        """
        if self._task is None:
            return
        self._stop.set()
        # After a failure of the store it may wait for an answer that never comes.
        self._send(signal.SIGKILL if kill else signal.SIGTERM)
        is_left_behind = not await self._has_ended(self._task)
        has_finished = self._process is not None and self._process.returncode == 0
        if kill or is_left_behind or (has_finished and not has_batches()):
            return
        try:  # it was not up yet, had died, or somebody else had told it to end: another does its work
            self._process = await self._start("--once")
        except OSError as error:
            _log.error("exporter not started reason=%s", str(error))
            return
        await self._has_ended(asyncio.create_task(self._process.wait()))

    async def _keep_exporting(self) -> None:
        """Runs the exporter, and starts it again if it dies: what it has not written is still on the audit queue."""
        while not self._stop.is_set():
            try:
                self._process = await self._start()
            except OSError as error:  # no memory or no file left for it now
                _log.error("exporter not started reason=%s", str(error))
            else:
                if self._stop.is_set():
                    self._send(signal.SIGTERM)
                exit_code = await self._process.wait()
                if not self._stop.is_set():
                    _log.warning("exporter ended exit_code=%s", exit_code)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _RESTART_S)

    async def _start(self, *options: str) -> asyncio.subprocess.Process:
        """An exporter with a connection of its own, which no other program can make."""
        here, there = socket.socketpair()
        with there:
            await self._adopt(here)
            return await self._process_with(there.fileno(), *options)

    async def _process_with(self, connection: int, *options: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *_COMMAND,
            "--data",
            os.fspath(self._settings.data),
            "--plan",
            self._plan.to_json().decode(),
            "--versions",
            *versions_of_program(),
            "--log-level",
            self._settings.log.level,
            "--log-format",
            self._settings.log.format,
            "--socket",
            str(connection),
            "--parent",
            str(os.getpid()),
            *options,
            start_new_session=True,
            pass_fds=(connection,),
        )

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                self._process.send_signal(number)

    async def _has_ended(self, end: "asyncio.Task[Any]") -> bool:
        """Whether it ended in time. Otherwise it is killed."""
        try:
            await asyncio.wait_for(asyncio.shield(end), EXPORT_WAIT_S)
        except TimeoutError:
            _log.warning("exporter left behind waited_s=%s", EXPORT_WAIT_S)
            self._send(signal.SIGKILL)
            await end
            return False
        return True


def _make_folder(data: Path) -> None:
    """A folder of the gateway's data, made where it is missing. ConfigurationError where it cannot be made."""
    problem = "" if not data.is_dir() or os.access(data, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    try:
        make_folder(data)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        hint = "name a folder that the gateway's user may write: data in the configuration, or --data DIR"
        raise ConfigurationError("data", (f"{data} cannot be used: {problem}",), hint)
