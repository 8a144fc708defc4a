"""The daemon's side of a channel process: what it takes up of its lines, and that it always has one, and then none."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from gateway.channels import supervisor
from gateway.channels.protocol import Order, ProcessSettings
from gateway.channels.supervisor import COMMAND, TargetProcess
from gateway.channels.target import Target
from gateway.config import TargetSettings
from mq_adapters.channel.in_doubt import MismatchCause
from mq_adapters.embedded.engine import Engine

OUT = "CENTRAL.OUT.0"
STEP_S = 60.0
#: Programs in place of a channel process. The first line that each gets are its settings.
DIES = "import sys; sys.stdin.readline(); open('starts', 'a').write('x')"
STAYS = "import sys; sys.stdin.readline(); print('{}', flush=True); sys.stdin.read()"
ECHOES = "import sys\nfor line in sys.stdin: open('lines', 'a').write(line)"
IGNORES = """import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open('starts', 'a').write('x')
while True: signal.pause()
"""


def telling(*lines: str) -> str:
    """A program that tells these lines and waits."""
    return f"import sys; sys.stdin.readline(); print({chr(10).join(lines)!r}, flush=True); sys.stdin.read()"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    engine = Engine.open(tmp_path / "data")
    yield Target(engine, TargetSettings.model_validate({"name": "CENTRAL"}))
    engine.close()


def settings_of(target: Target) -> ProcessSettings:
    return ProcessSettings(
        data="data",
        target=target.settings,
        shards=target.shards,
        subscriber_queue="S",
        reply_queue="R",
        publication_queues=(),
        stopped=(),
        log_level="info",
        log_format="text",
        now_us=0,
    )


def test_a_target_that_has_more_than_the_store_is_told_once(
    target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    problem = {"reason_code": 0, "text": "the store went back", "cause": MismatchCause.OLDER_STORE}
    failed = {"report": "status", "channel": OUT, "state": "failed", "problem": problem}
    running = {"report": "status", "channel": OUT, "state": "running", "problem": problem}

    async def then(_process: TargetProcess) -> None:
        while not target.is_store_behind:
            await asyncio.sleep(0.01)

    supervised(target, tmp_path, telling(json.dumps(running), json.dumps(failed), json.dumps(failed)), then)
    assert [record.levelname for record in caplog.records if "store behind" in record.message] == ["ERROR"]
    assert "the store went back" in caplog.text


def supervised(
    target: Target,
    folder: Path,
    program: str,
    then: Callable[[TargetProcess], Awaitable[None]],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Runs a program as the target's process, does something, and ends it."""

    async def run() -> None:
        process = TargetProcess(target, settings_of, folder=folder, command=(sys.executable, "-c", program))
        process.begin()
        await then(process)
        await process.end()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(asyncio.wait_for(run(), STEP_S))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_process_that_dies_is_started_again(target, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "_RESTART_S", 0.01)
    starts = tmp_path / "starts"
    supervised(target, tmp_path, DIES, lambda _: until(lambda: starts.exists() and len(starts.read_text()) >= 3))


def test_a_process_that_has_ended_before_it_is_told_anything_is_started_again(target, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "_RESTART_S", 0.01)
    starts = tmp_path / "starts"
    create = asyncio.create_subprocess_exec

    async def create_late(*command: str, **how: Any) -> asyncio.subprocess.Process:
        process = await create(*command, **how)
        await process.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_late)

    async def started_again(_process: TargetProcess) -> None:
        await until(lambda: starts.exists() and len(starts.read_text()) >= 2)

    program = "open('starts', 'a').write('x')"
    supervised(target, tmp_path, program, started_again, loop_factory=uvloop.new_event_loop)  # as the gateway has it


def test_orders_follow_the_settings(target, tmp_path):
    lines = tmp_path / "lines"

    async def order(process: TargetProcess) -> None:
        await until(lambda: process.order(Order.STOP, OUT))
        await until(lambda: lines.exists() and lines.read_text().count("\n") >= 2)

    supervised(target, tmp_path, ECHOES, order)
    settings, order_line = lines.read_text().splitlines()[:2]
    assert ProcessSettings.from_line(settings.encode()) == settings_of(target)
    assert json.loads(order_line) == {"order": "stop", "channel": OUT}


def test_what_is_no_report_is_passed_over(target, tmp_path):
    status = json.dumps({"report": "status", "channel": OUT, "state": "running"})
    lines = ("IBM says hello", "{}", "[]", '{"report":"gossip"}', '{"report":"queue_manager","name":"QM1"}', status)

    async def hear(process: TargetProcess) -> None:
        await until(lambda: OUT in process.statuses)
        assert not process.target.is_connected  # the others are not

    supervised(target, tmp_path, telling(*lines), hear)
    assert target.queue_manager_name == ""


def test_a_target_is_connected_when_each_of_its_channels_is_and_not_without_its_process(target, tmp_path):
    names = (OUT, "CENTRAL.IN.SUBSCRIBER", "CENTRAL.IN.REPLY")
    lines = [json.dumps({"report": "status", "channel": name, "state": "running"}) for name in names]
    found = {"report": "queue_manager", "name": "QM1", "identifier": "QM1_2026", "maximum_message_bytes": {"STOCK": 9}}

    async def hear(process: TargetProcess) -> None:
        await until(lambda: process.target.is_connected)

    supervised(target, tmp_path, telling(json.dumps(found), *lines), hear)
    assert not target.is_connected
    assert (target.queue_manager_name, target.maximum_message_bytes("STOCK")) == ("QM1", 9)


def test_a_channel_process_imports_nothing_from_the_folder_that_it_works_in(tmp_path):
    (tmp_path / "orjson.py").write_text("open('imported', 'w').close()\nraise SystemExit(7)\n")
    ended = subprocess.run(COMMAND, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert (ended.returncode, list(tmp_path.glob("imported"))) == (0, []), "without settings it just ends"


def test_an_endless_line_ends_the_process(target, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "_RESTART_S", 0.01)
    program = "open('starts', 'a').write('x')\nimport sys\nwhile True: sys.stdout.write('x' * 65536)"
    starts = tmp_path / "starts"
    supervised(target, tmp_path, program, lambda _: until(lambda: starts.exists() and len(starts.read_text()) >= 2))


def test_a_process_that_does_not_end_is_killed(target, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "END_WAIT_S", 0.2)
    supervised(target, tmp_path, IGNORES, lambda _: until((tmp_path / "starts").exists))


def test_a_process_that_cannot_be_started_is_tried_again(target, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(supervisor, "_RESTART_S", 0.01)
    folder = tmp_path / "later"

    async def appear(process: TargetProcess) -> None:
        await until(lambda: "channel process not started" in caplog.text)
        folder.mkdir()
        await until(lambda: process.order(Order.STOP, OUT))

    supervised(target, folder, STAYS, appear)


@pytest.mark.parametrize("module", ["gateway.channels.process", "gateway.channels.trial"])
def test_the_process_of_a_target_loads_no_settings_of_others_no_store_and_no_readers_of_headers(module: str) -> None:
    """One starts with each target: what it does not need would be most of its start and of its memory."""
    program = (
        f"import sys, {module}\n"
        "heavy = ('gateway.config.settings', 'gateway.config.routes', 'apsw', 'mq_adapters.embedded.engine', 'lxml')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert loaded.stdout == "[]\n"
