"""A gateway and its target, both real processes; the target is an embedded queue manager instead of IBM MQ."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQPER_PERSISTENT, MQRO_NAN, Message, MessageDescriptor
from mq_adapters.mqsc import read_command
from mq_adapters.transmission import transmission_message
from tests.processes.forked import Forked, forked_with
from tests.processes.nursery import runs_channels

PROCESSES = "tests.gateway.channels.processes"
STEP_S = 60.0  # the processes may have one busy core for all of them; a step that takes longer has failed
TRANSMISSION_QUEUE = "RFHBRIDGE.XMIT.CENTRAL.0"
OUT = "CENTRAL.OUT.0"


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits until a condition of other processes holds."""
    deadline = time.monotonic() + STEP_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {STEP_S} s: {what}"
        select.select([], [], [], 0.02)


class Program:
    """A process that prints a line when it is up."""

    def __init__(
        self, *arguments: str | Path, log: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._environment = environment or {}
        self._arguments = [*map(str, arguments)]
        self._log = log
        self._process: Forked | None = None
        #: What it said when it came up: a gateway its port.
        self.line = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with contextlib.ExitStack() as stack:
            errors = None if self._log is None else stack.enter_context(self._log.open("a"))
            environment = {**os.environ, **self._environment}
            begin = forked_with(self._environment)
            self._process = begin(PROCESSES, *self._arguments, stdout=subprocess.PIPE, stderr=errors, env=environment)
        assert self._process.stdout is not None
        self.line = self._process.stdout.readline()
        if not self.line:
            raise AssertionError(f"it did not come up: exit code {self.end(signal.SIGKILL)}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it with a signal, and returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        with process:
            return process.wait(STEP_S)


class Central(Program):
    """The target's queue manager."""

    def __init__(self, data: Path) -> None:
        super().__init__("central", data)
        self.data = data

    def bodies(self, queue: str = "STOCK") -> list[bytes]:
        with SocketClient(self.data) as queue_manager:
            return [message.body for message in queue_manager.browse(queue)]

    def depth(self, queue: str = "STOCK") -> int:
        with SocketClient(self.data) as queue_manager:
            return queue_manager.depth(queue)

    def put(self, queue: str, *messages: Message) -> None:
        with SocketClient(self.data) as queue_manager:
            for message in messages:
                queue_manager.put(queue, message)


class Gateway(Program):
    """A gateway with one target, CENTRAL: a data folder, or where IBM's library leads with that environment."""

    def __init__(
        self,
        folder: Path,
        central: Path | None,
        *,
        topics: str | None = None,
        environment: Mapping[str, str] | None = None,
        **target: object,
    ) -> None:
        self.topics = topics
        self.data = folder / "data"
        self.config = folder / "rfhbridge.toml"
        self.log = folder / "gateway.log"
        self.set_target(**target)
        places = () if central is None else (central,)
        super().__init__("gateway", self.config, *places, log=self.log, environment=environment)

    def set_target(self, **target: object) -> None:
        """Writes the configuration; it counts from the next start."""
        said = {"name": "CENTRAL", **target}
        values = "".join(
            f'{key} = "{value}"\n' if isinstance(value, str) else f"{key} = {value}\n" for key, value in said.items()
        )
        routes = "" if self.topics is None else f'[[route]]\ntopics = ["{self.topics}"]\ntarget = "CENTRAL"\n'
        self.config.write_text(f'listen = "127.0.0.1:0"\ndata = "{self.data}"\n[[target]]\n{values}{routes}')

    def connected(self) -> SocketClient:
        return SocketClient(self.data)

    def send(self, *bodies: bytes, queue: str = "STOCK", **fields: object) -> None:
        """Puts messages for a queue of the target on the transmission queue, as the bridge does."""
        with self.connected() as queue_manager:
            queue_manager.begin()
            for number, body in enumerate(bodies):
                queue_manager.put(TRANSMISSION_QUEUE, for_target(body, queue=queue, number=number, **fields))
            queue_manager.commit()

    def mqsc(self, command: str) -> tuple[str, ...]:
        with self.connected() as queue_manager:
            answer = queue_manager.mqsc(command)
        assert answer.succeeded, answer.lines
        return answer.lines

    def status(self, channel: str = OUT) -> dict[str, str]:
        """What DISPLAY CHSTATUS shows of a channel."""
        lines = self.mqsc(f"DISPLAY CHSTATUS({channel})")[1:]
        shown = read_command("DISPLAY NOTHING " + " ".join(lines))
        return {parameter.keyword: parameter.text for parameter in shown.parameters}

    def wait_for_state(self, state: str, channel: str = OUT) -> dict[str, str]:
        found: dict[str, str] = {}

        def is_there() -> bool:
            found.update(self.status(channel))
            return found["STATUS"] == state

        wait_until(is_there, f"channel {channel} is {state}, it is {found.get('STATUS')}")
        return found

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def channel_process(self) -> int:
        """The process id of the channel process, which may just be starting."""
        found: list[int] = []

        def is_there() -> bool:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            found[:] = [int(child) for child in children if runs_channels(int(child))]
            return bool(found)

        wait_until(is_there, "there is a channel process")
        return found[0]


def for_target(body: bytes, *, queue: str = "STOCK", number: int = 0, **fields: object) -> Message:
    """A persistent message that asks for a negative notification, behind an MQXQH."""
    said = {
        "persistence": MQPER_PERSISTENT,
        "report": MQRO_NAN,
        "reply_to_q": "RFHBRIDGE.REPLY",
        "msg_id": b"RFHB" + os.urandom(12) + number.to_bytes(8, "big"),
        "format": b"MQSTR   ",
        **fields,
    }
    message = Message(MessageDescriptor(**said), body)
    return transmission_message(message, queue_name=queue, queue_manager_name="", own_name="RFHBRIDGE", now_us=0)


@pytest.fixture
def central(tmp_path: Path) -> Iterator[Central]:
    central = Central(tmp_path / "central")
    central.start()
    yield central
    central.end(signal.SIGKILL)


@pytest.fixture
def gateway(tmp_path: Path, central: Central) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path, central.data)
    gateway.start()
    yield gateway
    gateway.end(signal.SIGKILL)


@pytest.fixture
def new_program() -> Iterator[Callable[..., Gateway]]:
    """Starts a gateway made with these arguments."""
    gateways: list[Gateway] = []

    def start(*arguments: Path, **options: object) -> Gateway:
        gateways.append(Gateway(*arguments, **options))
        gateways[-1].start()
        return gateways[-1]

    yield start
    for gateway in gateways:
        gateway.end(signal.SIGKILL)


@pytest.fixture
def new_gateway(tmp_path: Path, new_program: Callable[..., Gateway]) -> Callable[..., Gateway]:
    """Starts a gateway whose channels use IBM's library in an environment."""

    def start(environment: Mapping[str, str], **target: object) -> Gateway:
        return new_program(tmp_path, None, environment=environment, **target)

    return start


@pytest.fixture
def until() -> Callable[[Callable[[], bool], str], None]:
    return wait_until


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Whether a process has ended."""

    def gone(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"

    return gone
