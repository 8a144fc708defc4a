"""The stand-in for tests: its queue manager process, and the two bindings over its library.

    with StandInQueueManager(tmp_path / "data") as queue_manager:
        queue_manager.control.mqsc("DEFINE QLOCAL(ORDERS)")
        queue_manager.control.plant("MQCMIT", 2009, "after")
        subprocess.run([sys.executable, ...], env=os.environ | queue_manager.environment("pymqi"))

or in the test's own process: `queue_manager.use(monkeypatch)` and `load("ibmmq")`.
"""

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final, Literal, Self

import pytest

from mq_adapters.embedded.socket.client import SocketClient
from tests.ibm_mq_stand_in.control import Control
from tests.processes.forked import Forked

Binding = Literal["pymqi", "ibmmq"]
BINDINGS: Final[tuple[Binding, ...]] = ("pymqi", "ibmmq")
VARIABLE: Final = "RFHBRIDGE_MQ_STAND_IN"
#: Where deploy/setup/ibm-mq-stand-in.sh builds.
BUILT: Final = Path(sys.prefix) / "ibm-mq-stand-in"
_LIBRARIES: Final = {"pymqi": "libmqic_r.so", "ibmmq": "libmqm_r.so"}
_ROOT: Final = Path(__file__).resolve().parents[2]
_STOP_LIMIT_S: Final = 60.0


def why_unavailable() -> str:
    """Why the stand-in cannot be used here; empty where it can."""
    if (BUILT / "unavailable").exists():
        return (BUILT / "unavailable").read_text().strip()
    return "" if (BUILT / "stamp").exists() else "the stand-in is not built: deploy/setup/ibm-mq-stand-in.sh"


#: For tests that need the stand-in: skipped, with the reason, where it cannot be built.
needs_stand_in = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "-")


def python_folder(binding: Binding) -> Path:
    """The folder that has this binding, and it alone."""
    return BUILT / f"python-{binding}"


def load(binding: Binding) -> ModuleType:
    """Imports a binding over the stand-in into this process. `StandInQueueManager.use` says where it connects."""
    if binding not in sys.modules:
        os.environ.setdefault(VARIABLE, "nowhere")  # the library does not load without it
        ctypes.CDLL(str(BUILT / "lib64" / _LIBRARIES[binding]), mode=ctypes.RTLD_LOCAL)
        sys.path.append(str(python_folder(binding)))
    return importlib.import_module(binding)


def environment(binding: Binding, sockets: str) -> dict[str, str]:
    """What a process needs for `import pymqi` or `import ibmmq`; `sockets` is the value of the stand-in's variable."""
    return {
        VARIABLE: sockets,
        "LD_LIBRARY_PATH": str(BUILT / "lib64"),
        "PYTHONPATH": os.pathsep.join((str(python_folder(binding)), str(_ROOT))),
    }


def wait_until(is_so: Callable[[], bool], *, limit_s: float = 60.0) -> None:
    """Asks again and again until it is so."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"not so within {limit_s} s"
        time.sleep(0.01)


class StandInQueueManager:
    """A queue manager process of the stand-in on a data folder. Start it, or use it as a context manager."""

    def __init__(
        self, data_folder: Path, *, name: str = "STANDIN", dialect: str = "mq6", streams: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.data_folder = data_folder
        self._sockets = Path(tempfile.mkdtemp(prefix="mqs"))
        self._options = ["--name", name, "--dialect", dialect, "--streams", *streams]
        self._process: Forked | None = None
        self._control: Control | None = None

    @property
    def socket(self) -> Path:
        """Where programs connect: a value for the stand-in's variable."""
        return self._sockets / "mqi"

    @property
    def control(self) -> Control:
        assert self._control is not None, "start the queue manager first"
        return self._control

    def client(self) -> SocketClient:
        """The same queue manager as an embedded one: to define, put, look and get without the MQI."""
        return SocketClient(self.data_folder, application_name="test")

    def environment(self, binding: Binding) -> dict[str, str]:
        """What a process needs to reach this queue manager through a binding."""
        return environment(binding, str(self.socket))

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on connects of this process come here."""
        monkeypatch.setenv(VARIABLE, str(self.socket))

    def start(self) -> None:
        """Starts the process, or starts it again; returns when programs can connect."""
        arguments = ["--data", str(self.data_folder), "--sockets", str(self._sockets), *self._options]
        self._process = Forked("tests.ibm_mq_stand_in.queue_manager", *arguments, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != "ready\n":
            self.kill()
            raise AssertionError(f"the queue manager did not start: {line!r}")
        self._control = Control(self._sockets / "control")

    def kill(self) -> None:
        """Kills the process: what was not committed is gone."""
        self._end(kill=True)

    def stop(self) -> None:
        """Ends the process in good order."""
        self._end(kill=False)

    def _end(self, *, kill: bool) -> None:
        if self._control is not None:
            self._control.close()
        process, self._process, self._control = self._process, None, None
        if process is None:
            return
        process.kill() if kill else process.terminate()
        with process:
            process.wait(_STOP_LIMIT_S)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        shutil.rmtree(self._sockets, ignore_errors=True)
