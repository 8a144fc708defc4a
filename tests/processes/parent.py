"""Starts a probe as a gateway starts its exporter: `python -m tests.processes.parent ENDING`. It says how it ended."""

import asyncio
import os
import socket
import sys


async def main() -> None:
    here, there = socket.socketpair()
    command = (sys.executable, "-P", "-m", "tests.processes.probe", *sys.argv[1:])
    probe = await asyncio.create_subprocess_exec(*command, start_new_session=True, pass_fds=(there.fileno(),))
    there.close()
    exit_code = await probe.wait()
    here.close()
    print(exit_code, file=sys.stderr)


if __name__ == "__main__":
    os.environ["PROBED_FROM"] = os.environ["PARENT"] = str(os.getpid())
    asyncio.run(main())
