"""Starts a probe as a gateway starts its exporter: `python -m tests.processes.parent ENDING`. It says how it ended.

With the variable PIPED, which names a folder, the probe starts there as a channel process does: through pipes.
"""

import asyncio
import os
import socket
import sys

COMMAND = (sys.executable, "-P", "-m", "tests.processes.probe", *sys.argv[1:])


async def through_pipes(folder: str) -> None:
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    probe = await asyncio.create_subprocess_exec(*COMMAND, **pipes, limit=100_000, cwd=folder, start_new_session=True)
    assert probe.stdin is not None
    assert probe.stdout is not None
    probe.stdin.write(b"what is read\n")
    probe.stdin.close()
    sys.stdout.write((await probe.stdout.readuntil()).decode())
    assert await probe.stdout.read() == b""
    print(await probe.wait(), file=sys.stderr)


async def main() -> None:
    here, there = socket.socketpair()
    probe = await asyncio.create_subprocess_exec(*COMMAND, start_new_session=True, pass_fds=(there.fileno(),))
    there.close()
    exit_code = await probe.wait()
    here.close()
    print(exit_code, file=sys.stderr)


if __name__ == "__main__":
    os.environ["PROBED_FROM"] = os.environ["PARENT"] = str(os.getpid())
    piped = os.environ.get("PIPED")
    asyncio.run(through_pipes(piped) if piped else main())
