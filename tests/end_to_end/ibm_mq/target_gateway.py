"""A real gateway with a target: its configuration, its channels and their process, and what it uses."""

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.mqsc import read_command
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.processes.forked import forked_with, rfhbridge
from tests.processes.nursery import runs_channels
from tests.trail_lines import trail_records

OUT, IN_SUBSCRIBER, IN_REPLY = "CENTRAL.OUT.0", "CENTRAL.IN.SUBSCRIBER", "CENTRAL.IN.REPLY"
DEAD_LETTERS = "SYSTEM.DEAD.LETTER.QUEUE"
#: Nothing is mapped from these unless IBM's library, or the stand-in for it, is in the process.
_IBM_LIBRARIES = re.compile(r"libmq[im]|pymqe|ibmmqc")

Table = Mapping[str, object]


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    limit_s: float = PATIENCE_S,
    found: Callable[[], object] = lambda: "",
) -> None:
    """Waits until a condition of other processes holds; `found` tells what there was when it did not come to hold."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}\n{found()}"
        select.select([], [], [], 0.02)


def toml(top: Table, **tables: list[Table]) -> str:
    """A configuration file. JSON's texts, numbers, truths and lists are TOML's."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items() if not isinstance(value, Mapping)]
    for name, table in ((name, value) for name, value in top.items() if isinstance(value, Mapping)):
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    for name, rows in tables.items():
        for row in rows:
            lines += [f"[[{name}]]", *(f"{key} = {json.dumps(value)}" for key, value in row.items())]
    return "\n".join(lines) + "\n"


class TargetGateway(Gateway):
    """A gateway whose topics, unless `routes` say otherwise, all go to target CENTRAL."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        target: Table | None = None,
        routes: tuple[Table, ...] = ({"topics": ["#"]},),
        settings: Table | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.config = folder / "rfhbridge.toml"
        begin = forked_with(environment)
        super().__init__(folder / "data", "--config", str(self.config), environment=environment, begin=begin)
        self.configure(target=target, routes=routes, settings=settings)

    def configure(
        self,
        *,
        target: Table | None = None,
        routes: tuple[Table, ...] = ({"topics": ["#"]},),
        settings: Table | None = None,
    ) -> None:
        """Writes the configuration; it counts from the next start."""
        targets: list[Table] = [{"name": "CENTRAL", **(target or {})}]
        to_target: list[Table] = [{"target": "CENTRAL", **route} for route in routes]
        self.config.write_text(toml(settings or {}, target=targets, route=to_target))

    def command(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs `rfhbridge` beside the gateway; `environment`: variables beside those of the tests."""
        variables = environment or {}
        return rfhbridge(*arguments, env={**os.environ, **variables}, begin=forked_with(variables))

    def set_up_mqsc(self) -> str:
        """What its operator has to run at the target."""
        done = self.command("explain", "--mqsc", "--config", str(self.config))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def connected(self) -> SocketClient:
        return SocketClient(self.data)

    # -- channels ------------------------------------------------------------------------------------------------------

    def channel_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`rfhbridge channel`, as the operator says it."""
        return self.command("channel", *arguments, "--data", str(self.data))

    def mqsc(self, command: str) -> tuple[str, ...]:
        with self.connected() as store:
            answer = store.mqsc(command)
        assert answer.succeeded, answer.lines
        return answer.lines

    def channel(self, name: str = OUT) -> dict[str, str]:
        """How a channel stands, by the keywords of DISPLAY CHSTATUS."""
        shown = read_command("DISPLAY NOTHING " + " ".join(self.mqsc(f"DISPLAY CHSTATUS({name})")[1:]))
        return {parameter.keyword: parameter.text for parameter in shown.parameters}

    def wait_for_channel(
        self, state: str, name: str = OUT, *, problem: str = "", limit_s: float = PATIENCE_S
    ) -> dict[str, str]:
        """Waits until a channel has that state, and a problem with that text; returns how it stands then."""
        shown: dict[str, str] = {}

        def has_it() -> bool:
            shown.update(self.channel(name))
            return shown["STATUS"] == state and problem in shown["PROBLEM"]

        wait_until(has_it, f"{name} is {state} {problem}", limit_s=limit_s, found=lambda: f"{shown}\n{self.log}")
        return shown

    def try_now(self, *names: str) -> None:
        """Ends the wait of channels for their next attempt, by default of all.

        None is started before all are at rest: one that is still at another queue manager would keep the others away.
        """
        chosen = names or (OUT, IN_SUBSCRIBER, IN_REPLY)
        for name in chosen:
            self.mqsc(f"STOP CHANNEL({name})")
        for name in chosen:
            self.wait_for_channel("STOPPED", name)
        for name in chosen:
            self.mqsc(f"START CHANNEL({name})")

    def wait_for_running(self, *, shards: int = 1) -> None:
        """Every channel of the target has its connection."""
        for name in (*(f"CENTRAL.OUT.{shard}" for shard in range(shards)), IN_SUBSCRIBER, IN_REPLY):
            self.wait_for_channel("RUNNING", name)

    def waiting(self, *, shards: int = 1) -> int:
        """Messages that wait for the target."""
        with self.connected() as store:
            return sum(store.depth(f"RFHBRIDGE.XMIT.CENTRAL.{shard}") for shard in range(shards))

    def dead_letters(self) -> list[bytes]:
        """The bodies on the gateway's dead-letter queue."""
        with self.connected() as store:
            return [message.body for message in store.browse(DEAD_LETTERS)]

    # -- processes -----------------------------------------------------------------------------------------------------

    def channel_process(self) -> int:
        """The process id of the channel process."""
        pid = self.process_identifier
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return next(filter(runs_channels, map(int, children)))

    def resident_bytes(self) -> int:
        """What the gateway's own process has in memory (Linux)."""
        status = Path(f"/proc/{self.process_identifier}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None, status
        return int(found[1]) * 1024

    def trail(self, kind: str) -> list[dict[str, Any]]:
        """The records of a kind; the gateway must have stopped."""
        return [record for record in trail_records(self.data / "trail") if record["kind"] == kind]


def has_ibm_library(pid: int) -> bool:
    """Whether a process has loaded IBM's client library, pymqi or ibmmq."""
    return _IBM_LIBRARIES.search(Path(f"/proc/{pid}/maps").read_text()) is not None
