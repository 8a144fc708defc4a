"""The memory that this process may still take: the least of what the machine, the control group and the limits allow.

Sources: proc(5), "meminfo" and "pid/status"; getrlimit(2); the kernel's documentation, "Control Group v2" and "Memory
Resource Controller" (version 1).
"""

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
_KIB: Final = 1024
#: Where a control group says its limit, and what it uses now: version 2, then version 1.
_LIMIT_FILES: Final = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))


def free_memory_bytes(proc: Path = _PROC, control_groups: Path = _CONTROL_GROUPS) -> int | None:
    """Bytes that the process may still take; None where the system does not say."""
    found = [*_of_machine(proc), *_of_control_groups(proc, control_groups), *_of_address_space(proc)]
    return max(0, min(found)) if found else None


def _of_machine(proc: Path) -> Iterator[int]:
    available = _field(proc / "meminfo", "MemAvailable")
    if available is not None:
        yield available


def _of_address_space(proc: Path) -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _field(proc / "self" / "status", "VmSize")
    if limit != resource.RLIM_INFINITY and used is not None:
        yield limit - used


def _of_control_groups(proc: Path, root: Path) -> Iterator[int]:
    """What each control group around the process leaves: a group has no more than those around it.

    The files that a group has read count as used, although the kernel gives them up first: this errs on the safe side.
    """
    for folder in _folders(proc, root):
        for limit_file, usage_file in _LIMIT_FILES:
            limit, used = _number(folder / limit_file), _number(folder / usage_file)
            if limit is not None and used is not None:
                yield limit - used


def _folders(proc: Path, root: Path) -> Iterator[Path]:
    """The folder of each group that holds the process, and of those around it."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number != "0" and "memory" not in controllers.split(","):
            continue
        top = root if number == "0" else root / "memory"
        folder = top / path.lstrip("/")
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(top))


def _field(path: Path, name: str) -> int | None:
    """A field of a file of proc, in bytes."""
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key == name and value.split()[:1] and value.split()[0].isdigit():
            return int(value.split()[0]) * _KIB
    return None


def _number(path: Path) -> int | None:
    """The number in a file; None for `max`, which is no limit."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
