"""Prints what a process finds at its start, and ends as its arguments say: `python -m tests.processes.probe ENDING`."""

import atexit
import json
import os
import random
import resource
import signal
import sys
import threading
import uuid
from pathlib import Path

status = Path("/proc/self/status").read_text()
found = {
    #: The same in each process with the same parent, by proc(5): signals that are blocked, ignored and caught.
    "signals": [line for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn", "SigCgt"))],
    #: The last one is the listing's.
    "descriptors": sorted(int(each.name) for each in Path("/proc/self/fd").iterdir())[:-1],
    "threads": len(list(Path("/proc/self/task").iterdir())),
    "arguments": sys.argv[1:],
    "program": sys.argv[0],
    "module": __name__,
    "folder": str(Path.cwd()),
    "variable": os.environ.get("PROBE"),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "mask": os.umask(0o22),
    "nice": os.nice(0),
    "streams": [
        [each.encoding, each.errors, each.line_buffering, each.isatty(), each.fileno()]
        for each in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "is_child": os.environ.get("PARENT") == str(os.getppid()),
    "group": os.getpgid(0) == os.getpgid(int(os.environ["PROBED_FROM"])),
    "read": sys.stdin.read(),
}
#: Another one in each process.
found["own"] = [os.getpid(), random.random(), str(uuid.uuid4())]
print(json.dumps(found))


def _late() -> None:
    print("late", file=sys.stderr)


def _registered() -> None:
    print("registered", file=sys.stderr)


ending = sys.argv[1]
atexit.register(_registered)
if ending == "thread":
    threading.Timer(0.05, _late).start()
elif ending == "fault":
    raise ValueError("a fault")
elif ending == "interrupted":
    signal.raise_signal(signal.SIGINT)
elif ending == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif ending != "end":
    sys.exit(int(ending) if ending.isdigit() else None if ending == "none" else ending)
