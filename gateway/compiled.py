"""Compiled modules in place of their sources: `make compile` builds them with mypyc, `rfhbridge run` takes them.

A build lies in a folder that is named after the interpreter and all sources. So a build of other sources is never
taken, and the sources run as they are until there is one of them. RFHBRIDGE_COMPILED=0 runs the sources in any case;
with RFHBRIDGE_COMPILED=1 a gateway does not start without a build.
"""

import hashlib
import os
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

#: "0": never; "1": always; otherwise where there is a build.
VARIABLE: Final = "RFHBRIDGE_COMPILED"
TABLE: Final = Path(__file__).with_name("compiled.toml")
#: A compiled module takes constants and layouts of others into itself, so a change of any source needs another build.
PACKAGES: Final = ("gateway", "mappings", "mq_adapters", "spark_audit")
_SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX")
_DIGITS: Final = 24


class NotCompiled(Exception):
    """A build was demanded, and there is none of these sources for this interpreter."""


def modules() -> list[str]:
    """The modules that are compiled, in full."""
    named: list[str] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["modules"]
    return named


def builds() -> Path:
    """Where builds lie: in the environment of this interpreter."""
    return Path(sys.prefix) / "compiled"


def build() -> Path:
    """Where the build of these sources for this interpreter lies, or would lie."""
    digest = hashlib.sha256(repr((sys.version, _SUFFIX, TABLE.read_bytes())).encode())
    root = Path(__file__).parents[1]
    for package in PACKAGES:
        for name in sorted(_sources(root / package)):
            content = Path(name).read_bytes()
            digest.update(f"{os.path.relpath(name, root)} {len(content)} ".encode())
            digest.update(content)
    return builds() / digest.hexdigest()[:_DIGITS]


def use() -> bool:
    """Takes compiled modules from now on; returns whether there are some.

    None is taken where the source of one has been loaded already: a compiled module knows only compiled ones of the
    table. Raises NotCompiled where RFHBRIDGE_COMPILED=1 demands them in vain.
    """
    if is_used():
        return True
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "0":
        return False
    if builds().is_dir() and sys.modules.keys().isdisjoint(modules()):
        finder = _Finder(build())
        if finder.is_complete:
            sys.meta_path.insert(0, finder)
            return True
    if wanted == "1":
        raise NotCompiled(f"{VARIABLE}=1, and there is no build of these sources (make compile builds one)")
    return False


def is_used() -> bool:
    """Whether this process takes compiled modules."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder(MetaPathFinder):
    """Finds the modules of a build, and the library behind them."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            str(file.relative_to(folder)).removesuffix(_SUFFIX).replace(os.sep, "."): file
            for file in folder.rglob(f"*{_SUFFIX}")
        }

    @property
    def is_complete(self) -> bool:
        return self._files.keys() >= set(modules())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def _sources(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (f"{place}/{name}" for name in names if name.endswith(".py"))
