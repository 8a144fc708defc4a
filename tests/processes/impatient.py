"""Kills a child as soon as the nursery tells its number; the process in between ends late. Prints the exit code."""

import asyncio
import os
import resource
import signal
import sys
import time
from pathlib import Path

from tests.processes.nursery import PARENTS, with_nursery
from tests.processes.runs import Run

#: How much later each process ends that a fork has left behind, seconds.
_LATER_S = 0.2
_PATIENCE_S = 20.0


def _end_later(exit_code: int, end=os._exit) -> None:
    time.sleep(_LATER_S)
    end(exit_code)


async def main() -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-P", "-m", "tests.processes.probe", "end")
    child.send_signal(signal.SIGKILL)
    print(await asyncio.wait_for(child.wait(), _PATIENCE_S))


if __name__ == "__main__":
    os._exit = _end_later
    own = Run(
        module=PARENTS[-1],
        arguments=[],
        environment=dict(os.environ),
        folder=str(Path.cwd()),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE),
        starts_session=False,
    )
    if with_nursery(own) is own:
        asyncio.run(main())
    else:
        signal.pause()
