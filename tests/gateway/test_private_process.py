"""A process that forbids inspection shows no other program of its user its memory: gateway, exporter, channels."""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway import daemon
from gateway.audit_trail import exporter
from gateway.channels import process
from gateway.config import Settings
from gateway.private_process import forbid_inspection

pytestmark = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="/proc shows processes on Linux alone")

PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4
#: Not root's: root may look into every process.
ANYBODY = 65_534


def prctl(*arguments: int) -> int:
    return int(ctypes.CDLL(None).prctl(*arguments, 0, 0, 0))


def in_child(call: Callable[[], int]) -> int:
    """What a call returns, 0 to 255, in a child process of its own."""
    child = os.fork()
    if child == 0:
        os._exit(call())
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def as_anybody() -> None:
    if os.geteuid() == 0:
        os.setuid(ANYBODY)
    prctl(PR_SET_DUMPABLE, 1)  # another user's process is not, until it says so


def _looked_at_by_a_neighbour(prepare: Callable[[], None]) -> int:
    """0 where another process of the same user may open the memory of one that has prepared itself."""
    ready, is_ready = os.pipe()
    done, is_done = os.pipe()
    looked_at = os.fork()
    if looked_at == 0:
        as_anybody()
        prepare()
        os.write(is_ready, b".")
        os.read(done, 1)
        os._exit(0)
    os.read(ready, 1)

    def look() -> int:
        as_anybody()
        try:
            os.close(os.open(f"/proc/{looked_at}/mem", os.O_RDONLY))
        except OSError as error:
            return error.errno or 1
        return 0

    try:
        return in_child(look)
    finally:
        os.write(is_done, b".")
        os.waitpid(looked_at, 0)
        for descriptor in (ready, is_ready, done, is_done):
            os.close(descriptor)


def test_another_program_of_the_same_user_cannot_read_the_memory_of_a_process_that_forbids_it() -> None:
    if _looked_at_by_a_neighbour(lambda: None) != 0:
        pytest.skip("this system lets no program look into another one")
    assert _looked_at_by_a_neighbour(forbid_inspection) == errno.EACCES


def test_the_gateway_forbids_inspection_before_it_opens_its_store(tmp_path: Path) -> None:

    def run() -> int:
        prctl(PR_SET_DUMPABLE, 1)
        settings = Settings.model_validate({"data": str(tmp_path / "file" / "var")})
        (tmp_path / "file").write_text("")
        try:
            daemon.run(settings)
        except Exception:
            return prctl(PR_GET_DUMPABLE)
        return 9

    assert in_child(run) == 0


def test_a_channel_process_forbids_inspection_before_it_reads_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> int:
        prctl(PR_SET_DUMPABLE, 1)
        seen: list[int] = []
        monkeypatch.setattr("gateway.channels.process.Lines", lambda: seen.append(prctl(PR_GET_DUMPABLE)))
        monkeypatch.setattr("gateway.channels.process._first", lambda _lines: [])
        return process.run() or seen[0]

    assert in_child(run) == 0


def test_the_exporter_forbids_inspection_before_it_uses_its_connection(tmp_path: Path) -> None:
    def run() -> int:
        prctl(PR_SET_DUMPABLE, 1)
        code = exporter.main(["--data", str(tmp_path), "--socket", "1000000"])
        return 9 if code != 1 else prctl(PR_GET_DUMPABLE)

    assert in_child(run) == 0
