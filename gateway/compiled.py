"""Compiled modules in place of their sources: `make compile` builds them with mypyc, a gateway and an audit take them.

A build lies in a folder that is named after the interpreter, the C library and all sources. So a build of other sources
is never taken, and the sources run until there is one of them. RFHBRIDGE_COMPILED=0 runs the sources in any case. With
RFHBRIDGE_COMPILED=1 neither a gateway nor an audit starts without a build.
"""

import hashlib
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spark_audit.compiled_modules import BUILD_VARIABLE, SUFFIX, Finder, is_used

__all__ = ["NotCompiled", "build", "builds", "for_processes", "is_used", "modules", "use"]

#: "0": never; "1": always; otherwise where there is a build.
VARIABLE: Final = "RFHBRIDGE_COMPILED"
TABLE: Final = Path(__file__).with_name("compiled.toml")
#: A compiled module takes constants and layouts of others into itself, so a change of any source needs another build.
PACKAGES: Final = ("gateway", "mappings", "mq_adapters", "spark_audit")
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
    digest = hashlib.sha256(repr((sys.version, SUFFIX, _library_of_c(), TABLE.read_bytes())).encode())
    root = Path(__file__).parents[1]
    for package in PACKAGES:
        for name in sorted(_sources(root / package)):
            content = Path(name).read_bytes()
            digest.update(f"{os.path.relpath(name, root)} {len(content)} ".encode())
            digest.update(content)
    return builds() / digest.hexdigest()[:_DIGITS]


def _library_of_c() -> str | None:
    """A build for one version of glibc may not load beside an older one."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError):  # another library of C
        return None


def use() -> bool:
    """Takes compiled modules from now on; returns whether there are some.

    None is taken where the source of one has been loaded already: a compiled module knows only compiled ones of the
    table. Raises NotCompiled where RFHBRIDGE_COMPILED=1 demands them in vain.
    """
    if is_used():
        return True
    found = _wanted_build() if sys.modules.keys().isdisjoint(modules()) else None
    if found is None:
        _require_none()
        return False
    sys.meta_path.insert(0, Finder(found))
    return True


def for_processes() -> dict[str, str]:
    """What the environment of an audit's processes gets: the build that they take, "" where there is none.

    So a build that somebody named before is never taken. Raises NotCompiled as `use` does.
    """
    found = _wanted_build()
    if found is None:
        _require_none()
    return {BUILD_VARIABLE: str(found or "")}


def _wanted_build() -> Path | None:
    """The build of these sources; None where none is whole, or the operator wants none."""
    if os.environ.get(VARIABLE) == "0" or not builds().is_dir():
        return None
    folder = build()
    return folder if Finder(folder).has(modules()) else None


def _require_none() -> None:
    if os.environ.get(VARIABLE) == "1":
        raise NotCompiled(
            f"{VARIABLE}=1, and there is no build of these sources (make compile builds one, and 0 runs them)"
        )


def _sources(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (f"{place}/{name}" for name in names if name.endswith(".py"))
