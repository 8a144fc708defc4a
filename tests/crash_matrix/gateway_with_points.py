"""A gateway under the library: its changes of files are points, and it may die at one of them."""

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Self

from tests.crash_matrix.points import LIBRARY, VARIABLE, Points
from tests.end_to_end.gateway_process import Gateway
from tests.processes.forked import Forked, ForkServer


class GatewayGone(Exception):
    """The gateway died, as it was meant to, before what was waited for."""


def server_with_library() -> ForkServer:
    """A server whose runs have the library."""
    return ForkServer("tests.crash_matrix.fork_server", os.environ | {"LD_PRELOAD": str(LIBRARY)})


def environment_of(points: Points | None) -> dict[str, str]:
    """What a run's processes need: without points their changes are none."""
    return {"LD_PRELOAD": str(LIBRARY)} | ({} if points is None else {VARIABLE: str(points.path)})


class GatewayWithPoints(Gateway):
    """A gateway that the server forks."""

    def __init__(self, server: ForkServer, data: Path, *arguments: str, environment: Mapping[str, str]) -> None:
        begin = partial(Forked, server=server, start_new_session=True)
        super().__init__(data, *arguments, environment=environment, begin=begin)
        self.points: Points | None = None

    def variables(self) -> dict[str, str]:
        return super().variables() | environment_of(self.points)

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
