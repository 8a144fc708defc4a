"""Test modules as pytest rewrites them for its assertions, kept beside __pycache__'s other files.

In a fresh clone each worker of pytest-xdist would rewrite all of them: eight seconds of CPU time in each. They are
rewritten once instead, before the workers start, by as many processes as there are cores.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import assertstate_key

PATTERNS = ("test_*.py", "conftest.py")


def rewrite_stale_modules(config: pytest.Config, places: list[str]) -> int:
    """Rewrite what has changed at these places of the command line; how many modules that was.

    A module that cannot be rewritten stays as it is: the worker that imports it says what is wrong.
    """
    stale = [] if sys.dont_write_bytecode else [module for module in _modules(places) if _is_stale(module)]
    cores = len(os.sched_getaffinity(0))
    processes = [_begin(config, stale[core::cores]) for core in range(cores) if stale[core::cores]]
    for process in processes:
        os.waitpid(process, 0)
    return len(stale)


def _modules(places: list[str]) -> Iterator[Path]:
    for place in places:
        path = Path(place.partition("::")[0])
        if path.is_file():
            yield path.absolute()
        for pattern in PATTERNS:
            yield from path.absolute().rglob(pattern)


def _rewritten(module: Path) -> Path:
    return rewrite.get_cache_dir(module) / (module.stem + rewrite.PYC_TAIL)


def _is_stale(module: Path) -> bool:
    try:
        return _rewritten(module).stat().st_mtime < module.stat().st_mtime
    except FileNotFoundError:
        return True


def _begin(config: pytest.Config, modules: list[Path]) -> int:
    """Forks a process that rewrites these; its identifier."""
    process = os.fork()
    if not process:
        try:
            for module in modules:
                _rewrite(config, module)
        finally:
            os._exit(0)
    return process


def _rewrite(config: pytest.Config, module: Path) -> None:
    folder = _rewritten(module).parent
    if rewrite.try_makedirs(folder):
        source, code = rewrite._rewrite_test(module, config)
        rewrite._write_pyc(config.stash[assertstate_key], code, source, _rewritten(module))
