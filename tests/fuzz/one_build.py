"""One build of the gateway in a process of its own, which `two_builds.py` starts and sends inputs.

    python -m tests.fuzz.one_build DESCRIPTOR PLACE [MODULE:FUNCTION]

RFHBRIDGE_COMPILED says which build. DESCRIPTOR is that of a Connection of `multiprocessing`: name of a subject and a
list of inputs in, one text for each input and one for the end out. First the process says which modules are compiled.
PLACE is that of a file, where 8 bytes say which input is read: the process may die of it.
FUNCTION plants a difference; a test of the comparison names one.
"""

import faulthandler
import importlib
import os
import sys
from multiprocessing.connection import Connection
from typing import Final

from gateway import compiled

#: A batch takes a second. One that takes this long hangs, and the process ends with a traceback.
PATIENCE_S: Final = 60.0


def main() -> None:
    descriptor, place, *planted = sys.argv[1:]
    compiled.use()  # before anything is imported that may be compiled
    from tests.fuzz.subjects import SUBJECTS, outcomes

    for module, _, function in (each.partition(":") for each in planted):
        getattr(importlib.import_module(module), function)()
    connection = Connection(int(descriptor))
    connection.send({name: _is_compiled(name) for name in compiled.modules() if name in sys.modules})
    while True:
        try:
            name, inputs = connection.recv()
        except EOFError:
            return
        faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
        connection.send(outcomes(SUBJECTS[name], inputs, lambda at: os.pwrite(int(place), at.to_bytes(8, "big"), 0)))
        faulthandler.cancel_dump_traceback_later()


def _is_compiled(module: str) -> bool:
    return not (sys.modules[module].__file__ or "").endswith(".py")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # without the waits of an interpreter's end
