"""What is measured: the gateway and mosquitto as processes of their own, a free port and a temporary folder for each.

CPU time and memory are read from /proc, so this part needs Linux.
"""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Protocol, Self

from benchmarks.certificate import write_certificate
from benchmarks.load.task import generator
from benchmarks.load.wire import BenchmarkError

#: The gateway is measured without mosquitto where this variable is set.
ALONE: Final = "RFHBRIDGE_BENCHMARK_ALONE"
#: What the gateway has on the disk for a session that stays.
KEPT_BEFORE_PUBACK: Final = "the subscriber's copy and the audit note, synced before PUBACK"
_READY: Final = re.compile(r"listens on \S+:(\d+)")
_START_WAIT_S: Final = 60.0
_STOP_WAIT_S: Final = 60.0
_POLL_S: Final = 0.02
_CLOCK_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
#: Where utime and stime stand in /proc/PID/stat behind the command's closing parenthesis (proc(5), fields 14 and 15).
_TIMES: Final = slice(11, 13)


class Server(Protocol):
    """A running MQTT server; leaving the `with` statement stops it and removes its folder."""

    name: str
    port: int
    process_id: int
    #: What is on the disk before it answers; of the gateway the benchmark knows it, because it depends on the session.
    durable: str

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def cpu_s(process_id: int) -> float:
    """CPU seconds that a process has used so far, user and system, in steps of the kernel's clock tick (10 ms)."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_TIMES])) / _CLOCK_TICKS_A_SECOND


def resident_mib(process_id: int) -> float:
    """Memory of a process that is in RAM, MiB."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1_024


def waited_for_core_s(process_id: int) -> float:
    """Seconds for which the main thread of a process was ready to run and had no core (proc(5), schedstat)."""
    return int(Path(f"/proc/{process_id}/task/{process_id}/schedstat").read_text().split()[1]) / 1_000_000_000


class Gateway:
    """`rfhbridge run` with its defaults: MQRFH2, audit on."""

    def __init__(
        self,
        configuration: str = "",
        files: Mapping[str, str] = MappingProxyType({}),
        *,
        parent: Path | None = None,
    ) -> None:
        """`configuration`: TOML; `{folder}` stands for the temporary folder, which has these files.

        `parent`: where that folder is made, if not where temporary files are.
        """
        self.name = "rfhbridge"
        self.durable = ""
        self.folder = Path(tempfile.mkdtemp(prefix="rfhbench", dir=parent))
        self.data = self.folder / "data"
        self._log = self.folder / "log"
        command = [sys.executable, "-m", "gateway.cli", "run", "--listen", "127.0.0.1:0", "--data", str(self.data)]
        if configuration:
            file = self.folder / "rfhbridge.toml"
            file.write_text(configuration.format(folder=self.folder))
            for name, text in files.items():
                self.folder.joinpath(name).write_text(text)
                self.folder.joinpath(name).chmod(0o600)
            write_certificate(self.folder / "certificate.pem", self.folder / "key.pem")
            command += ["--config", str(file)]
        self._command = command
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.remove()

    @property
    def exporter(self) -> int | None:
        """The process that writes the audit trail; None before it runs."""
        children = Path(f"/proc/{self.process_id}/task/{self.process_id}/children").read_text().split()
        return int(children[0]) if children else None

    def port_of(self, listener: str) -> int:
        """Where a [[listener]] of the configuration has opened. BenchmarkError where there is none of that name."""
        found = re.search(rf"listener opened name={re.escape(listener)} .*port=(\d+)", self._log.read_text())
        if found is None:
            raise BenchmarkError(f"the gateway has no listener {listener}")
        return int(found[1])

    def restart(self) -> float:
        """Stops it and starts it again with its data, on another port. Seconds from the start until it listens."""
        self.stop()
        began_s = time.monotonic()
        self._begin()
        return time.monotonic() - began_s

    def stop(self) -> None:
        """SIGTERM, and waits until it has drained; kills it only if that takes very long."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Ends it at once: nothing is drained."""
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _begin(self) -> None:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT, text=True)
        self.process_id = self._process.pid
        try:
            self.port = self._announced_port()
        except BaseException:
            self.stop()
            self.remove()
            raise

    def _announced_port(self) -> int:
        deadline = time.monotonic() + _START_WAIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            found = _READY.search(self._log.read_text())
            if found:
                return int(found[1])
            time.sleep(_POLL_S)
        raise BenchmarkError(f"the gateway did not start: {self._log.read_text()[-2_000:]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """A way to run mosquitto: lines of its configuration; `{folder}` stands for its temporary folder."""

    name: str
    durable: str
    lines: tuple[str, ...]


IN_MEMORY: Final = Persistence(name="in memory", durable="nothing", lines=("persistence false",))
#: mosquitto never syncs a message; this writes its whole database every so often, where the default is 1,800 s.
AUTOSAVE_S: Final = 5
AUTOSAVED: Final = Persistence(
    name=f"autosave every {AUTOSAVE_S} s",
    durable=f"nothing; all messages go to the disk every {AUTOSAVE_S} s, without a sync",
    lines=("persistence true", "persistence_location {folder}/", f"autosave_interval {AUTOSAVE_S}"),
)

_MOSQUITTO_CONFIGURATION: Final = """\
listener {port} 127.0.0.1
allow_anonymous true
user {user}
log_type error
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 100
{persistence}
"""


class Mosquitto:
    """mosquitto with no limit on queued messages and the gateway's window of 100 in flight to a client."""

    def __init__(self, persistence: Persistence) -> None:
        program = mosquitto_program()
        assert program is not None
        self.name = f"mosquitto {mosquitto_version(program)}, {persistence.name}"
        self.durable = persistence.durable
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="rfhbench"))
        configuration = self._folder / "mosquitto.conf"
        lines = "\n".join(persistence.lines).format(folder=self._folder)
        configuration.write_text(
            _MOSQUITTO_CONFIGURATION.format(port=self.port, user=getpass.getuser(), persistence=lines)
        )
        self._process = subprocess.Popen([program, "-c", str(configuration)], stderr=subprocess.DEVNULL)
        self.process_id = self._process.pid
        wait_for_port(self.port, self._process, "mosquitto")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Sink:
    """A server that only answers (benchmarks/load/sink.c)."""

    def __init__(self) -> None:
        self.name = "sink"
        self.durable = "nothing"
        self._process = subprocess.Popen(generator("sink"), stdout=subprocess.PIPE, text=True)
        self.process_id = self._process.pid
        assert self._process.stdout is not None
        self.port: int = json.loads(self._process.stdout.readline())["port"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


def mosquitto_program() -> str | None:
    """The mosquitto broker of this machine, where Debian puts it too; None where it is not installed."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


def mosquitto_version(program: str) -> str:
    first_line = subprocess.run([program, "-h"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    return first_line.rpartition(" ")[2]


def peers(*ways: Persistence) -> list[Persistence]:
    """The ways to run mosquitto, or none where it is not installed or not wanted."""
    return list(ways) if mosquitto_program() and not os.environ.get(ALONE) else []


def each_server() -> Iterator[Server]:
    """A new gateway, then mosquitto in memory, if `peers` has it. Each runs until the next one is asked for."""
    with Gateway() as gateway:
        yield gateway
    for persistence in peers(IN_MEMORY):
        with Mosquitto(persistence) as mosquitto:
            yield mosquitto


def free_port() -> int:
    """A port that was free just now, for a server that cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], name: str) -> None:
    """Returns when the server of that name listens there. BenchmarkError when it ends, or takes too long."""
    deadline = time.monotonic() + _START_WAIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=_START_WAIT_S).close()
        except ConnectionRefusedError:
            time.sleep(_POLL_S)
            continue
        return
    raise BenchmarkError(f"{name} did not start")
