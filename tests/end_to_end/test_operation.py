"""Two how-to guides, step by step on a real gateway: its files are written, its commands run, its outputs compared."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.gateway_process import Gateway

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
GUIDE = "\n".join((GUIDES / name).read_text("utf-8") for name in ("open-it-to-a-network.md", "restore-a-backup.md"))
LISTENERS = {"devices": "8883", "people": "8884", "browsers": "8083"}
WAIT_S = 60


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, flags=re.DOTALL)


def _commands(block: str) -> list[tuple[str, str]]:
    """Each command of a block with the lines that it shows."""
    steps = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (step.partition("\n") for step in steps)]


def _matches(shown: str, printed: str) -> bool:
    """Whether an output is the one that is shown. `...` stands for any rest of a line; alone, for any lines."""
    lines = [
        "(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + "\n"
        for line in shown.splitlines()
    ]
    return re.fullmatch("".join(lines), f"{printed.strip()}\n" if printed.strip() else "") is not None


class Terminal:
    """A folder in which commands are run, one after another in the same shell's variables."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._variables: list[str] = []
        self.ports: dict[str, str] = {}

    def run(self, command: str) -> str:
        for listener, port in self.ports.items():
            command = command.replace(LISTENERS[listener], port)
        if re.match(r"\w+=", command):
            self._variables.append(command)
            return ""
        done = subprocess.run(
            ["bash", "-c", "\n".join([*self._variables, command])],
            cwd=self._folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + ("" if command.startswith(("openssl", "$new", "$signed")) else done.stderr)

    def play(self, block: str) -> None:
        for command, shown in _commands(block):
            printed = self.run(command)
            assert _matches(shown, printed), f"$ {command}\n{printed}"


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)  # names of files in a configuration are relative to where the gateway is started
    return Terminal(tmp_path)


@pytest.fixture
def gateway(data_folder: Path, tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(data_folder, "--config", str(tmp_path / "running.toml"))
    yield gateway
    gateway.clean_up()


@pytest.fixture
def openssl() -> None:
    """The guide signs certificates by `openssl req`, which version 3 can."""
    found = shutil.which("openssl")
    if found is None or "OpenSSL 3" not in subprocess.check_output([found, "version"], text=True, timeout=WAIT_S):
        pytest.skip("OpenSSL 3 is not installed")


@pytest.mark.usefixtures("mosquitto_clients", "openssl")
def test_the_guide_to_operation_does_what_it_says(terminal: Terminal, gateway: Gateway, tmp_path: Path) -> None:
    certificates, password, clients, token, sessions, restore = _blocks("console")
    configuration, access = _blocks("toml")
    make_token, websocket = _blocks("python")
    (tmp_path / "rfhbridge.toml").write_text(configuration)
    (tmp_path / "access.toml").write_text(access)
    (tmp_path / "make_token.py").write_text(make_token)
    terminal.play(certificates)
    terminal.play(password)

    (tmp_path / "running.toml").write_text(re.sub(r"(listen = .*):\d+", r"\1:0", configuration))
    gateway.start()
    for listener in LISTENERS:
        terminal.ports[listener] = str(gateway.wait_for_log("listener opened", name=listener)["port"])
    terminal.play(clients)
    gateway.wait_for_log("publish refused", client="pump-7", reason="publish to 'plant/pump-8/bar' is not allowed")
    terminal.play(token)
    (tmp_path / "over_websocket.py").write_text(websocket.replace(LISTENERS["browsers"], terminal.ports["browsers"]))
    terminal.run("python over_websocket.py")  # paho logs of its own that it has gone
    terminal.play(
        sessions.replace("sessions list", f"sessions list --data {gateway.data}").replace(
            "expire panel", f"expire panel --data {gateway.data}", 1
        )
    )
    (tmp_path / "restored").mkdir()
    terminal.run(f"rfhbridge queue backup restored/queue_manager.sqlite --data {gateway.data}")
    terminal.play(restore)
