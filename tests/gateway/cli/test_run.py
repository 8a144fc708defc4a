"""`rfhbridge run`: what it hands to the daemon, and a real gateway as a process."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import Address, Settings
from gateway.listener import OpenListener
from mq_adapters.reasons import QueueManagerError

PATIENCE_S = 60


@pytest.fixture
def started(monkeypatch):
    """The settings that the daemon was started with, and the file that they came from."""
    seen: list[tuple[Settings, Path | None]] = []

    def run(settings, *, ready, file):
        seen.append((settings, file))
        ready([OpenListener(name="default", address=Address(host="::1", port=1884), transport="tcp")])
        return 0

    monkeypatch.setattr("gateway.daemon.run", run)
    return seen


def test_options_go_before_the_configuration_file(rfhbridge, started, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text('listen = "127.0.0.1:1"\nheader = "mqrfh2"\n[log]\nformat = "json"\n')
    ended = rfhbridge(
        "run",
        "--config",
        config,
        "--listen",
        "[::1]:0",
        "--data",
        tmp_path,
        "--header",
        "mqrfh",
        "--log-level",
        "debug",
    )
    assert (ended.exit_code, ended.text) == (0, "rfhbridge listens on [::1]:1884\n")
    ((settings, file),) = started
    assert file == config
    assert (settings.listen, settings.data, settings.header) == ("[::1]:0", tmp_path, "mqrfh")
    assert (settings.log.level, settings.log.format) == ("debug", "json")


def test_without_options_the_defaults_hold(rfhbridge, started):
    assert rfhbridge("run").exit_code == 0
    assert started == [(Settings(), None)]


def test_exit_code_of_the_daemon_is_that_of_the_command(rfhbridge, monkeypatch):
    monkeypatch.setattr("gateway.daemon.run", lambda _settings, *, ready, file: 1)
    assert rfhbridge("run").exit_code == 1


def test_gateway_that_cannot_start_says_why_in_one_line(rfhbridge, monkeypatch):
    def run(_settings, *, ready, file):
        raise QueueManagerError(2042, "open the store")

    monkeypatch.setattr("gateway.daemon.run", run)
    ended = rfhbridge("run")
    assert ended.exit_code == 1
    assert "2042 MQRC_OBJECT_IN_USE" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "1883"],
        ["--listen", "localhost:70000"],
        ["--listen", "::1:1883"],
        ["--header", "mqrfh3"],
        ["--port", "1883"],
        ["extra"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_code_2_in_one_line(rfhbridge, started, arguments):
    ended = rfhbridge("run", *arguments)
    assert (ended.exit_code, ended.stdout, started) == (2, b"", [])
    assert ended.stderr.count("\n") == 1


def test_wrong_configuration_starts_nothing(rfhbridge, started, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text('lisen = "127.0.0.1:1"\n')
    ended = rfhbridge("run", "--config", config)
    assert (ended.exit_code, started) == (1, [])
    assert "'listen'" in ended.stderr


def test_gateway_announces_its_port_and_ends_with_0_on_sigterm(data_folder):
    command = [sys.executable, "-m", "gateway.cli", "run", "--listen", "127.0.0.1:0", "--data", str(data_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as gateway:
        try:
            announced = gateway.stdout.readline()
            gateway.send_signal(signal.SIGTERM)
            _, stderr = gateway.communicate(timeout=PATIENCE_S)
        finally:
            gateway.kill()
    host, _, port = announced.removeprefix("rfhbridge listens on ").strip().rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0
    assert gateway.returncode == 0
    assert "Traceback" not in stderr


def test_sighup_before_the_gateway_listens_for_it_does_not_end_it(data_folder):
    """Who reloads a service in the moment of its start stopped it: systemd takes that for a clean end."""
    data_folder.touch()
    program = (
        "import signal, sys\nclass HangingUp:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gateway.daemon': signal.raise_signal(signal.SIGHUP)\n"
        "from gateway.cli import main\nsys.meta_path.insert(0, HangingUp())\nmain()"
    )
    command = [sys.executable, "-c", program, "run", "--listen", "127.0.0.1:0", "--data", str(data_folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 1
    assert f"{data_folder} cannot be used: File exists" in ended.stderr


def test_hang_ups_mean_what_they_did_after_a_gateway_in_this_process(rfhbridge, started):
    before = signal.getsignal(signal.SIGHUP)
    assert rfhbridge("run").exit_code == 0
    assert signal.getsignal(signal.SIGHUP) is before


@pytest.mark.parametrize("place", ["s3://key:secret@backups/north", "file://key:secret@other/north", ""])
def test_a_data_folder_of_another_machine_is_wrong_use_and_makes_none_here(
    rfhbridge, started, tmp_path, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    ended = rfhbridge("run", "--data", place)
    assert (ended.exit_code, started, list(tmp_path.iterdir())) == (2, [], [])
    assert "secret" not in ended.text + ended.stderr
