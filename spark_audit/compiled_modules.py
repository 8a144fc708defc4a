"""Compiled modules in place of their sources: finds them in a build, in any process that is told of one.

The gateway builds and checks builds (gateway/compiled.py). The command `rfhbridge audit run` names one to the processes
of an audit: the environment goes on to DuckDB's processes and to Spark's workers on the same machine. On other machines
the sources run.
"""

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

#: The environment variable that names the folder of a build of these sources for this interpreter.
BUILD_VARIABLE: Final = "RFHBRIDGE_BUILD"
SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX")


class Finder(MetaPathFinder):
    """Finds the modules of a build, and the library behind them."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            str(file.relative_to(folder)).removesuffix(SUFFIX).replace(os.sep, "."): file
            for file in folder.rglob(f"*{SUFFIX}")
        }

    def has(self, modules: Sequence[str]) -> bool:
        """Whether all of these are there."""
        return self._files.keys() >= set(modules)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See MetaPathFinder."""
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def use_named() -> None:
    """Takes the build that the environment names, unless this process has one already."""
    if not is_used():
        sys.meta_path.insert(0, Finder(Path(os.environ[BUILD_VARIABLE])))


def is_used() -> bool:
    """Whether this process takes compiled modules."""
    return any(isinstance(finder, Finder) for finder in sys.meta_path)
