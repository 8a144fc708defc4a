"""Where a flow is played: a folder, a gateway on it, the clients' ledger; and how a run is prepared, cut off, mended.

A flow is prepared once, without points. Each run begins with a copy of what that left, so that a point has the same
number in each run, as far as the gateway's own threads and processes allow.
"""

import os
import random
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.reasons import QueueManagerError
from tests.crash_matrix.disk_images import Disk, Loss, write_image
from tests.crash_matrix.gateway_with_points import GatewayGone, GatewayWithPoints, environment_of
from tests.crash_matrix.ledger import Entry, Ledger
from tests.crash_matrix.points import Change, Moment, Option, Points
from tests.crash_matrix.sensor import PATIENCE_S, Sensor
from tests.end_to_end.ibm_mq.central import Central
from tests.processes.forked import ForkServer, rfhbridge

DATA, CONFIGURATION = "data", "rfhbridge.toml"


class Stage:
    """One life or two of a gateway on one folder."""

    def __init__(self, server: ForkServer, folder: Path, flow: "Flow", entries: tuple[Entry, ...] = ()) -> None:
        """`entries`: what clients did while the flow was prepared."""
        self.folder, self.flow = folder, flow
        self.points: Points | None = None
        self.ledger = Ledger(lambda: 0 if self.points is None else self.points.count, entries)
        self._server = server
        self._kept: list[Sensor] = []
        for name in flow.folders:
            (folder / name).mkdir(exist_ok=True)
        self.write_configuration()
        configuration = ("--config", str(folder / CONFIGURATION))
        self._central: Central | None = None
        environment = {}
        if flow.has_target:
            self._central = Central(folder / "central")
            environment = self._central.environment("ibmmq")
        self.gateway: Final = GatewayWithPoints(server, self.data, *configuration, environment=environment)

    def write_configuration(self) -> None:
        (self.folder / CONFIGURATION).write_text(self.flow.settings.replace("FOLDER", str(self.folder)))

    @property
    def data(self) -> Path:
        return self.folder / DATA

    @property
    def central(self) -> Central:
        """The target's queue manager, which is never cut off; it runs from the first start on."""
        assert self._central is not None
        if not self._central.is_running:
            self._central.start()
        return self._central

    def start(self) -> None:
        if self.flow.has_target:
            self.central.subscribed_topics()  # it runs
        self.gateway.points = self.points
        self.gateway.start()

    def sensor(self, name: str, **more: object) -> Sensor:
        """A client, not connected yet, in the state that the ledger tells."""
        return Sensor(ledger=self.ledger, port=self.gateway.port, name=name, **more)  # type: ignore[arg-type]

    def connected(self, name: str, **more: object) -> Sensor:
        sensor = self.sensor(name, **more)
        try:
            sensor.connect()
        except BaseException:
            sensor.drop()
            raise
        return sensor

    def keep(self, sensor: Sensor) -> None:
        """A client that stays connected to the end of the run."""
        self._kept.append(sensor)

    def application(self) -> SocketClient:
        """An application of the gateway's queue manager."""
        try:
            return SocketClient(self.data)
        except QueueManagerError as error:
            if self.is_cut_off:
                raise GatewayGone("an application") from error
            raise

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`rfhbridge`; its changes are points too. GatewayGone where it was cut off."""
        environment = os.environ | environment_of(self.points)
        ended = rfhbridge(*arguments, server=self._server, env=environment, start_new_session=True)
        if self.is_cut_off:
            raise GatewayGone(arguments[0])
        return ended

    @property
    def is_cut_off(self) -> bool:
        return self.points is not None and self.points.is_dead

    def play(self) -> None:
        """The run, from the start of the gateway to its end, or to its point."""
        try:
            self.start()
            self.flow.run(self)
            self.gateway.end()
        except GatewayGone:
            assert self.is_cut_off, self.gateway.log
        except QueueManagerError:  # an application of the queue manager, whose connection broke
            if not self.is_cut_off:
                raise
        if self.is_cut_off:  # by a command beside it, perhaps, while it had nothing to write
            self.gateway.signal(signal.SIGKILL)
        self.gateway.wait()
        self._drop_kept()

    def mend(self) -> None:
        """The gateway's second life, in which everything must come right. It has ended when this returns."""
        self.points = None
        self.start()
        self.flow.settle(self)
        assert self.gateway.stop() == 0, self.gateway.log
        self.flow.inspect(self)

    def close(self) -> None:
        self._drop_kept()
        self.gateway.clean_up()
        if self._central is not None:
            self._central.__exit__()

    def _drop_kept(self) -> None:
        while self._kept:
            self._kept.pop().drop()

    def forget(self) -> None:
        """Removes the files; a stage whose questions were not answered keeps them."""
        shutil.rmtree(self.folder)


Step = Callable[[Stage], None]


def _nothing(_stage: Stage) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A row of the matrix. In `settings`, TOML, FOLDER stands for the folder of the run.

    `prepare` comes before the points, `run` is cut off at one of them. `settle` plays the clients' part behind the next
    start, and checks what each of them was told, by the ledger; `inspect` looks at what the stopped gateway left. With
    `found` there was no gateway before the run: it makes what the first one finds. With `has_target` the stage has a
    target's queue manager, CENTRAL, over the stand-in for IBM's library. A long one is no part of the short form.
    """

    name: str
    run: Step
    settle: Step
    prepare: Step = _nothing
    inspect: Step = _nothing
    found: Callable[[Path], None] | None = None
    settings: str = ""
    folders: tuple[str, ...] = ()
    has_target: bool = False
    is_long: bool = False


@dataclass(kw_only=True)
class Recorded:
    """A flow that was played to its end: what it left, and how many points it has."""

    prepared: Path
    entries: tuple[Entry, ...]
    changes: tuple[Change, ...]
    ledger: Ledger
    count: int


@dataclass(kw_only=True)
class Theatre:
    """Makes stages in one folder; a flow is prepared and recorded once."""

    server: ForkServer
    folder: Path
    _recorded: dict[tuple[str, str], Recorded] = field(default_factory=dict)
    _prepared: dict[object, tuple[Path, tuple[Entry, ...]]] = field(default_factory=dict)
    _number: int = 0

    def recorded(self, flow: Flow, unsynced: str = "") -> Recorded:
        """The flow played without a kill, with a journal. `unsynced`: files of that kind are synced for nothing."""
        key = (flow.name, unsynced)
        if key not in self._recorded:
            self._recorded[key] = self._record(flow, unsynced)
        return self._recorded[key]

    def cut_off(self, flow: Flow, number: int, moment: Moment) -> Stage:
        """A run that was killed at that point, or came to its end before it: the next thing is `mend`."""
        stage = self.stage(flow, *self._prepare(flow))
        with Points(stage.folder.with_suffix(".points"), stage.folder) as points:
            points.kill_at(number, moment)
            stage.points = points
            try:
                stage.play()
            except BaseException as error:
                error.add_note(f"{flow.name}, to be killed at {number}, {moment.name}")
                stage.close()
                raise
            stage.points = None
        return stage

    def power_lost(self, flow: Flow, number: int, loss: Loss, draw: random.Random, *, unsynced: str = "") -> Stage:
        """What is left where the power went behind that change; `stage.ledger` ends there too."""
        recorded = self.recorded(flow, unsynced)
        disk = Disk(recorded.prepared)
        disk.follow(change for change in recorded.changes if change.number <= number)
        stage = self.stage(flow, entries=tuple(recorded.ledger.until(number).entries))
        write_image(disk.after(loss, draw), stage.folder)
        stage.write_configuration()
        return stage

    def stage(self, flow: Flow, prepared: Path | None = None, entries: tuple[Entry, ...] = ()) -> Stage:
        self._number += 1
        folder = self.folder / f"{self._number}"
        if prepared is None:
            folder.mkdir()
        else:
            shutil.copytree(prepared, folder, ignore=shutil.ignore_patterns("*.socket"))
        return Stage(self.server, folder, flow, entries)

    def _record(self, flow: Flow, unsynced: str) -> Recorded:
        prepared, entries = self._prepare(flow)
        stage = self.stage(flow, prepared, entries)
        points = Points(
            stage.folder.with_suffix(".points"), stage.folder, options=Option.SKIP_SYNCS | Option.KEEP_JOURNAL
        )
        if unsynced:
            points.forget_syncs(unsynced)
        stage.points = points
        try:
            stage.play()
            count = points.count
            stage.points = None
        finally:
            stage.close()
        return Recorded(
            prepared=prepared, entries=entries, changes=tuple(points.changes()), ledger=stage.ledger, count=count
        )

    def _prepare(self, flow: Flow) -> tuple[Path, tuple[Entry, ...]]:
        """The folder before the points, and what clients did for it; flows that prepare the same share it."""
        key = (flow.prepare, flow.found, flow.settings, flow.has_target)
        if key not in self._prepared:
            self._prepared[key] = self._prepare_anew(flow)
        return self._prepared[key]

    def _prepare_anew(self, flow: Flow) -> tuple[Path, tuple[Entry, ...]]:
        stage = self.stage(flow)
        if flow.found is not None:
            flow.found(stage.folder)
            return stage.folder, ()
        try:
            stage.start()
            flow.prepare(stage)
            assert stage.gateway.stop() == 0, stage.gateway.log
        finally:
            stage.close()
        return stage.folder, tuple(stage.ledger.entries)


def await_condition(holds: Callable[[], bool], stage: Stage) -> None:
    """Looks again and again whether something has come about in the gateway; GatewayGone where that was cut off."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        if not stage.gateway.is_running:
            raise GatewayGone("a condition")
        assert time.monotonic() < deadline_s, stage.gateway.log
        select.select([], [], [], 0.01)
