"""The real gateway as a process of its own: started, watched by its log, stopped, killed, started again."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from tests.processes.forked import Begin, Forked

#: Far above what a start or a stop takes, for machines that are busy with something else.
PATIENCE_S = 40.0
#: How long the lines of a process that has ended may take from the pipe to the test.
_LAST_LINES_S = 5.0

#: The gateway, which also compares headers that travel with their messages with what their bytes say.
_GATEWAY = "tests.end_to_end.comparing_gateway"
LogLine = dict[str, Any]


class Gateway:
    """One gateway on one data folder. Every start is on the same port, which nobody else gets in between."""

    def __init__(
        self, data: Path, *arguments: str, environment: Mapping[str, str] | None = None, begin: Begin = Forked
    ) -> None:
        """`environment`: variables that its processes have beside those of the tests. `begin`: Forked or fresh."""
        self.data = data
        self.port = 0
        self.lines: list[str] = []
        self._arguments = arguments
        self._environment = environment or {}
        self._reserved: socket.socket | None = None
        self._begin = begin
        self._process: Forked | subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._changed = threading.Condition()

    # -- starting and stopping -----------------------------------------------------------------------------------------

    def launch(self) -> Self:
        """Starts the process and does not wait for it."""
        if not self.port:
            self._reserve_port()
        command = ["run", "--log-format", "json", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self._process = self._begin(_GATEWAY, *command, *self._arguments, env=self.variables(), **streams)
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        return self

    def variables(self) -> dict[str, str]:
        """The environment of its processes."""
        return {**os.environ, **self._environment}

    def start(self) -> Self:
        """Starts the process and waits until its port is open."""
        already = len(self.logged("gateway started"))
        self.launch()
        started = self.wait_for_log("gateway started", count=already + 1)
        assert started["port"] == self.port, started
        return self

    def _reserve_port(self) -> None:
        """Binds a port and never listens: the gateway may bind it too, and the system gives it to nobody else."""
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """Waits until the gateway and all that it had started have ended, and the log is whole. The exit code."""
        assert self._process is not None
        assert self._reader is not None
        exit_code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert not self._reader.is_alive(), f"something outlived the gateway:\n{self.log}"
        return exit_code

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9. The exporter, which is not killed, sees the gateway go and ends in its own time."""
        assert self._process is not None
        self.signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def restart(self) -> Self:
        assert self.stop() == 0, self.log
        return self.start()

    def kill_and_restart(self) -> Self:
        self.kill()
        return self.start()

    def clean_up(self) -> None:
        """Leaves nothing running, whatever state the test left the gateway in."""
        if self.is_running:
            self.kill()
        if self._reserved is not None:
            self._reserved.close()

    @property
    def process_identifier(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # -- the log -------------------------------------------------------------------------------------------------------

    @property
    def log(self) -> str:
        with self._changed:
            return "".join(self.lines)

    def logged(self, event: str) -> list[LogLine]:
        """The events of that name, oldest first."""
        with self._changed:
            return self._logged(event)

    def wait_for_log(self, event: str, *, count: int = 1, **fields: str) -> LogLine:
        """Waits until `count` such events have been logged, whose fields match the patterns; returns the last."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while True:
                found = [line for line in self._logged(event) if _matches(line, fields)]
                if len(found) >= count:
                    return found[count - 1]
                left_s = deadline - time.monotonic()
                assert left_s > 0, f"{event!r} {fields} was not logged in time:\n{''.join(self.lines)}"
                assert not self._has_ended(), f"the gateway ended before {event!r} {fields}:\n{''.join(self.lines)}"
                self._changed.wait(min(left_s, 0.5))

    def _has_ended(self) -> bool:
        """Whether nothing more can come. The exporter may hold the log open a little longer than the gateway."""
        assert self._process is not None
        if self._process.poll() is None:
            return False
        return not self._changed.wait(_LAST_LINES_S)

    def _logged(self, event: str) -> list[LogLine]:
        return [line for line in map(_event, self.lines) if line.get("event") == event]

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()
        stream.close()


def _event(line: str) -> LogLine:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _matches(line: LogLine, fields: dict[str, str]) -> bool:
    return all(re.search(pattern, str(line.get(name, ""))) for name, pattern in fields.items())
