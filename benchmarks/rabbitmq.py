"""RabbitMQ with its MQTT plug-in, as a process of its own with its own folder, node and name server.

Sessions that stay have durable queues: a message of QoS 1 is acknowledged when the files of the queue are synced. The
plug-in of version 3 grants QoS 1 at most.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.servers import ALONE, Server, each_server, free_port, wait_for_port

_CONFIGURATION: Final = """\
listeners.tcp = none
mqtt.listeners.tcp.default = 127.0.0.1:{port}
mqtt.allow_anonymous = true
mqtt.default_user = guest
mqtt.default_pass = guest
mqtt.prefetch = 100
"""
_PLUGINS: Final = "[rabbitmq_mqtt].\n"
#: The node talks to no other one, and may be reached from this machine only.
_LOOPBACK: Final = "-kernel inet_dist_use_interface {127,0,0,1}"
_STOP_WAIT_S: Final = 30.0
_POLL_S: Final = 0.05


class RabbitMq:
    """A RabbitMQ node with the gateway's window of 100 in flight to a client."""

    def __init__(self) -> None:
        program = rabbitmq_program()
        assert program is not None
        self.name = f"RabbitMQ {rabbitmq_version()}"
        self.durable = "the message, synced before PUBACK, if the subscriber's session stays; otherwise nothing"
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="rfhbench"))
        self._folder.joinpath("rabbitmq.conf").write_text(_CONFIGURATION.format(port=self.port))
        self._folder.joinpath("plugins").write_text(_PLUGINS)
        self._environment = os.environ | {
            "HOME": str(self._folder),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_NODENAME": "rfhbench@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _LOOPBACK,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port()),
        }
        self._process = subprocess.Popen(
            [program],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait_for_port(self.port, self._process, "RabbitMQ")
            self.process_id = _node_of(self._process.pid)
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        """Ends the node, the script that started it, and the name server, which has a session of its own."""
        node = Path(f"/proc/{_node_of(self._process.pid)}")
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _STOP_WAIT_S
        while (node.is_dir() or self._has_name_server()) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _has_name_server(self) -> bool:
        """Asks epmd, the name server of Erlang nodes, to end; it waits for its nodes. Whether it was there."""
        command = ["epmd", "-port", self._environment["ERL_EPMD_PORT"], "-kill"]
        return subprocess.run(command, env=self._environment, capture_output=True, check=False).returncode == 0


def each_server_and_rabbitmq() -> Iterator[Server]:
    """The servers of `each_server`, then RabbitMQ where it is installed."""
    yield from each_server()
    if rabbitmq_program() is not None:
        with RabbitMq() as rabbitmq:
            yield rabbitmq


def rabbitmq_program() -> str | None:
    """The server of this machine, where Debian puts it too; None where it is not installed, or not wanted."""
    if os.environ.get(ALONE):
        return None
    found = shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin")
    return found or shutil.which("rabbitmq-server") or shutil.which("rabbitmq-server", path="/usr/sbin")


def rabbitmq_version() -> str:
    """By its package; "" where none tells it."""
    command = ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""
    return told.partition("-")[0]


def _node_of(script: int) -> int:
    """The process of the node, which the script of the package starts."""
    children = Path(f"/proc/{script}/task/{script}/children").read_text().split()
    return next(
        (each for each in map(int, children) if "beam" in Path(f"/proc/{each}/comm").read_text()),
        script,
    )
