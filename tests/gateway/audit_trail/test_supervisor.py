"""Keys that are missing or wrong are told before the gateway starts; the exporter's process, and who does its work."""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from gateway import daemon
from gateway.audit_trail import supervisor
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.supervisor import ExporterSupervisor
from gateway.config import ConfigurationError, Settings
from mappings.table import TABLE_VERSION

pytestmark = pytest.mark.usefixtures("interpreter_as_it_was")


@pytest.fixture
def begun(data_folder: Path, clock, batches) -> Path:
    """A data folder whose trail has a digest."""
    data_folder.mkdir()
    with Trail.open(data_folder / "trail", now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    return data_folder


def _run(data: Path, **audit: object) -> int:
    settings = Settings.model_validate({"listen": "127.0.0.1:0", "data": str(data), "audit": audit})
    return daemon.run(settings, ready=lambda _listeners: pytest.fail("the port was opened"))


def test_a_gateway_without_the_signing_key_of_its_trail_does_not_start(begun: Path) -> None:
    (begun / "trail-key.pem").rename(begun / "lost.pem")
    with pytest.raises(ConfigurationError, match=r"trail-key\.pem is missing"):
        _run(begun)


def test_a_gateway_with_another_signing_key_does_not_start(begun: Path, tmp_path: Path) -> None:
    with Trail.open(tmp_path / "other" / "trail"):
        other = tmp_path / "other" / "trail-key.pem"
    with pytest.raises(ConfigurationError, match="is not the key of this trail"):
        _run(begun, signing_key=str(other))


def test_a_gateway_whose_personal_key_was_destroyed_does_not_start(begun: Path) -> None:
    with pytest.raises(ConfigurationError, match="head -c 32 /dev/urandom"):
        _run(begun, personal_data="keyed")


def test_a_data_folder_that_cannot_be_had_is_named_before_the_keys_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"data: .*/file cannot be used: File exists \(name a folder that"):
        _run(tmp_path / "file")
    with pytest.raises(ConfigurationError, match=r"data: .*/file/var cannot be used: Not a directory"):
        _run(tmp_path / "file" / "var")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(ConfigurationError, match="cannot be used: Permission denied"):
        _run(tmp_path)


PATIENCE_S = 60


class Exporters:
    """Processes in the place of exporters, each of which ends with 0 at once: what they were started with.

    `before` and `after`: what each does besides, before it tells that, and then.
    """

    def __init__(self, folder: Path, *, before: str = "", after: str = "") -> None:
        self._told = folder / "told"
        self._told.write_text("")
        tell = "import sys; print(*sys.argv[2:], file=open(sys.argv[1], 'a'), flush=True)"
        self.command = (sys.executable, "-c", f"{before}\n{tell}\n{after}", str(self._told))

    @property
    def arguments(self) -> list[list[str]]:
        return [line.split() for line in self._told.read_text().splitlines()]

    @property
    def options(self) -> list[str]:
        return [words[-1] for words in self.arguments]


def _supervise(data: Path, use: Callable[[ExporterSupervisor], Awaitable[None]]) -> None:
    async def run() -> None:
        await use(ExporterSupervisor(Settings.model_validate({"data": str(data)})))

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


async def _adopt(end: socket.socket) -> None:
    """In the place of the gateway's socket server."""
    end.close()


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("has_batches", [False, True])
def test_what_waits_behind_an_exporter_that_somebody_else_told_to_end_is_written_by_another(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    has_batches: bool,
) -> None:
    """systemd sends SIGTERM to every process of a service: the exporter may be gone while the gateway still drains."""
    exporters = Exporters(tmp_path)
    monkeypatch.setattr(supervisor, "_COMMAND", exporters.command)
    monkeypatch.setattr(supervisor, "_RESTART_S", PATIENCE_S)

    async def use(supervised: ExporterSupervisor) -> None:
        supervised.begin(_adopt)
        await _until(lambda: "exporter ended exit_code=0" in caplog.text)
        await supervised.end(kill=False, has_batches=lambda: has_batches)

    _supervise(data_folder, use)
    assert exporters.options.count("--once") == has_batches


def test_an_exporter_that_is_too_slow_to_end_is_killed_and_no_other_makes_the_stop_longer(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A service manager gives a gateway a minute to stop: two exporters that hang would take it whole."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    exporters = Exporters(tmp_path, before=deaf, after="signal.pause()")
    monkeypatch.setattr(supervisor, "_COMMAND", exporters.command)
    monkeypatch.setattr(supervisor, "EXPORT_WAIT_S", 0.2)

    async def use(supervised: ExporterSupervisor) -> None:
        supervised.begin(_adopt)
        await _until(lambda: bool(exporters.options))
        await supervised.end(kill=False, has_batches=lambda: True)

    _supervise(data_folder, use)
    assert caplog.text.count("exporter left behind") == len(exporters.options) == 1


def test_an_exporter_that_cannot_be_started_is_tried_again(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The system may have no process or no file to give for a moment; nothing was exported from then on."""
    exporters = Exporters(tmp_path)
    monkeypatch.setattr(supervisor, "_RESTART_S", 0.01)
    monkeypatch.setattr(supervisor, "_COMMAND", (str(tmp_path / "nowhere"),))

    async def use(supervised: ExporterSupervisor) -> None:
        supervised.begin(_adopt)
        await _until(lambda: "exporter not started" in caplog.text)
        monkeypatch.setattr(supervisor, "_COMMAND", exporters.command)
        await _until(lambda: bool(exporters.options))
        await supervised.end(kill=False, has_batches=lambda: False)

    _supervise(data_folder, use)


def test_an_exporter_is_told_the_versions_that_digests_name(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporters = Exporters(tmp_path)
    monkeypatch.setattr(supervisor, "_COMMAND", exporters.command)

    async def use(supervised: ExporterSupervisor) -> None:
        supervised.begin(_adopt)
        await _until(lambda: bool(exporters.arguments))
        await supervised.end(kill=False, has_batches=lambda: False)

    _supervise(data_folder, use)
    (words, *_) = exporters.arguments
    at = words.index("--versions")
    assert words[at + 1 : at + 3] == [version("rfhbridge"), TABLE_VERSION]


def test_a_gateway_whose_exporter_cannot_be_started_stops_all_the_same(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "_COMMAND", (str(tmp_path / "nowhere"),))

    async def use(supervised: ExporterSupervisor) -> None:
        supervised.begin(_adopt)
        await _until(lambda: "exporter not started" in caplog.text)
        await supervised.end(kill=False, has_batches=lambda: True)

    _supervise(data_folder, use)
    assert caplog.text.count("exporter not started") == 2
