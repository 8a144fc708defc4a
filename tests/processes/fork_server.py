"""Runs modules as `python -m MODULE ARGUMENTS` does, without its second of imports: each run is a fork of this process.

`python -P -m tests.processes.fork_server NUMBER`. NUMBER is a Unix socket of packets. A packet asks for a run: module,
arguments, and what a child inherits, with four descriptors: its three standard streams, and a pipe for its wait status.
The answer is the process identifier. The server has one thread and changes no signal, so that a run begins as a fresh
process does. The hash seed alone is the same in all runs of a server.
"""

import atexit
import contextlib
import gc
import importlib.metadata
import os
import runpy
import select
import socket
import sys
from collections.abc import Callable
from typing import Final

from gateway import compiled
from tests.processes.nursery import with_nursery
from tests.processes.runs import LONGEST_REQUEST, NUMBER, STATUS, STREAMS, Run

#: Loaded here once, so that no run has to.
LOADED: Final = (
    "encodings.idna",
    "gateway.audit_trail.exporter",
    "gateway.channels.process",
    "gateway.cli.commands",
    "gateway.cli.standard_streams",
    "gateway.daemon",
    "mq_adapters.embedded.balance",
    "mq_adapters.embedded.store.verification",
    "pydantic.type_adapter",
    "rich.console",
    "rich.table",
    "rich.text",
    "spark_audit.verify.restores",
    "tests.written_headers",
)


class Server:
    """The server's side: forks, and tells how each run ended."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._poll = select.epoll()
        self._poll.register(asked, select.EPOLLIN)
        #: By the descriptor of a run's process: its identifier, and where its wait status goes.
        self._runs: dict[int, tuple[int, int]] = {}

    def serve(self) -> Run | None:
        """In the server None, once nobody asks any more; in each of its runs what is to be run."""
        while True:
            for ready, _ in self._poll.poll():
                if ready in self._runs:
                    self._tell(ready)
                    continue
                request, descriptors, _, _ = socket.recv_fds(self._asked, LONGEST_REQUEST, STREAMS + 1)
                if not request:
                    return None
                if run := self._fork(Run.from_json(request), descriptors):
                    return run

    def _fork(self, run: Run, descriptors: list[int]) -> Run | None:
        *streams, told = descriptors
        process = os.fork()
        if not process:
            self._close()
            os.close(told)
            run.begin(streams)
            return run
        for stream in streams:
            os.close(stream)
        ended = os.pidfd_open(process)
        self._runs[ended] = (process, told)
        self._poll.register(ended, select.EPOLLIN)
        self._asked.send(NUMBER.pack(process))
        return None

    def _tell(self, ended: int) -> None:
        process, told = self._runs.pop(ended)
        self._poll.unregister(ended)
        os.close(ended)
        _, status = os.waitpid(process, 0)
        with open(told, "wb", buffering=0) as answer:  # noqa: PTH123 - a descriptor
            answer.write(STATUS.pack(status))

    def _close(self) -> None:
        self._poll.close()
        self._asked.close()
        for ended, (_, told) in self._runs.items():
            os.close(ended)
            os.close(told)


class Ending:
    """How a run ends: as Python ends, without taking apart all that the server has loaded.

    Python has joined threads, and called what was registered with atexit behind this, when `leave` is called.
    """

    def __init__(self) -> None:
        #: None in the server, and for what ends by a signal.
        self.exit_code: int | None = None
        atexit.register(self.leave)

    def run(self, run: Run) -> None:
        self.exit_code = 1
        try:
            runpy.run_module(run.module, run_name="__main__", alter_sys=True)
            self.exit_code = 0
        except SystemExit as end:
            self.exit_code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
            raise
        except KeyboardInterrupt:
            self.exit_code = None
            raise

    def leave(self) -> None:
        if self.exit_code is None:
            return
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # where it cannot, Python goes on to its own end, and says so
        os._exit(self.exit_code & 0xFF)


def main(prepare: Callable[[], None] = lambda: None, *, has_nurseries: bool = True) -> None:
    """`prepare`: is called in each run before its module. `has_nurseries`: whether gateways fork their exporters."""
    ending = Ending()
    compiled.use()
    for name in LOADED:
        importlib.import_module(name)
    from gateway.config.settings import Settings  # here, because a build can only be taken before its sources

    Settings.load()  # pydantic builds what checks them with the first ones
    importlib.metadata.version("rfhbridge")
    gc.collect()
    gc.freeze()  # a run that collects garbage leaves the server's memory alone, and shares it
    with socket.socket(fileno=int(sys.argv[1])) as asked, contextlib.suppress(KeyboardInterrupt):
        run = Server(asked).serve()
        if run is None:
            return
    prepare()
    ending.run(with_nursery(run) if has_nurseries else run)


if __name__ == "__main__":
    main()
