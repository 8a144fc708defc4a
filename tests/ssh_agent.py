"""A real ssh-agent on a socket of its own, without a key until one is added."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class SshAgent:
    """A running agent."""

    socket: Path

    def add(self, key: Ed25519PrivateKey) -> None:
        data = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        environment = {**os.environ, "SSH_AUTH_SOCK": str(self.socket)}
        subprocess.run(["ssh-add", "-q", "-"], input=data, env=environment, check=True, capture_output=True)


@contextmanager
def running_agent(folder: Path) -> Iterator[SshAgent]:
    """An agent; the test is skipped where there is no such program."""
    if shutil.which("ssh-agent") is None or shutil.which("ssh-add") is None:
        pytest.skip("ssh-agent is not installed (apt install openssh-client)")
    socket = folder / "agent"
    running = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
    assert running.stdout is not None
    try:
        running.stdout.readline()  # it has its socket
        yield SshAgent(socket)
    finally:
        running.terminate()
        running.wait()
        running.stdout.close()
