"""The memory that a process may still take, read from files as the kernel writes them."""

import resource
from pathlib import Path

import pytest

from gateway.free_memory import free_memory_bytes

MEMINFO = "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n"
STATUS = "Name:\tpython\nVmPeak:\t    9000 kB\nVmSize:\t    2000 kB\n"


class System:
    """The files of proc and of the control groups, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.groups = folder / "proc", folder / "cgroup"
        self.write("proc/meminfo", MEMINFO)
        self.write("proc/self/status", STATUS)

    def write(self, path: str, text: str) -> None:
        file = self.proc.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    @property
    def free_bytes(self) -> int | None:
        return free_memory_bytes(self.proc, self.groups)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return System(tmp_path)


def test_the_machine_says_what_is_available(system: System) -> None:
    assert system.free_bytes == 8_000 * 1024


def test_the_narrowest_control_group_around_the_process_counts(system: System) -> None:
    system.write("proc/self/cgroup", "0::/house/gateway\n")
    system.write("cgroup/house/gateway/memory.max", "max\n")
    system.write("cgroup/house/gateway/memory.current", "100\n")
    system.write("cgroup/house/memory.max", "5000\n")
    system.write("cgroup/house/memory.current", "2000\n")
    assert system.free_bytes == 3_000


def test_a_control_group_of_version_1_counts(system: System) -> None:
    system.write("proc/self/cgroup", "7:cpu:/\n4:memory,hugetlb:/box\n")
    system.write("cgroup/memory/box/memory.limit_in_bytes", "7000\n")
    system.write("cgroup/memory/box/memory.usage_in_bytes", "6000\n")
    assert system.free_bytes == 1_000


def test_a_limit_on_the_address_space_counts(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (2_048_000 + 500, resource.RLIM_INFINITY))
    assert system.free_bytes == 500


def test_a_system_that_says_nothing_has_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert free_memory_bytes(tmp_path, tmp_path) is None


def test_this_machine_has_memory() -> None:
    found = free_memory_bytes()
    assert found is None or found > 0
