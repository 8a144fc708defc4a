"""Runs `rfhbridge` again and again without its second of start-up: each run is a fork of this process.

`python -m tests.crash_matrix.fork_server NUMBER`, with library crash_points preloaded. NUMBER is a Unix socket of
packets; each asks for a run: arguments, the control file of its points (none: its changes are no points), variables of
the environment, and three descriptors: standard output, standard error, and where the exit code goes. The answer is the
process identifier. The run itself is a child of a process that waits for it and tells its exit code.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import sys
from typing import Any, Final

import gateway.audit_trail.exporter
import gateway.cli.application
import gateway.daemon
import mq_adapters.embedded.store.verification
import spark_audit.verify
from gateway.cli import main as run_command
from tests.crash_matrix.points import VARIABLE

LONGEST_REQUEST: Final = 65_536
EXIT_CODE: Final = struct.Struct("<i")
#: Loaded here once, so that no run has to.
_LOADED: Final = (gateway.audit_trail.exporter, gateway.cli.application, gateway.daemon, spark_audit.verify)
_ALSO_LOADED: Final = (mq_adapters.embedded.store.verification,)


def main() -> None:
    asked = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who wait for the runs need nobody to wait for them
    while True:
        data, descriptors, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, 3)
        if not data:
            return
        if not os.fork():
            _wait_for_run(json.loads(data), *descriptors, asked)
        for descriptor in descriptors:
            os.close(descriptor)


def _wait_for_run(request: dict[str, Any], output: int, error: int, told: int, asked: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run = os.fork()
    if not run:
        asked.close()
        os.close(told)
        _run(request, output, error)
    asked.send(struct.pack("<i", run))
    asked.close()
    for descriptor in (output, error):
        os.close(descriptor)
    _, status = os.waitpid(run, 0)
    os.write(told, EXIT_CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _run(request: dict[str, Any], output: int, error: int) -> None:
    code = 70
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(error, 2)
        for descriptor in (output, error):
            os.close(descriptor)
        os.environ.update(request["environment"])
        if request["control"]:
            os.environ[VARIABLE] = request["control"]
            attached = ctypes.CDLL(None).crash_points_attach(request["control"].encode())
            assert attached == 0, "the points cannot be counted"
        sys.argv = ["rfhbridge", *request["arguments"]]
        run_command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
