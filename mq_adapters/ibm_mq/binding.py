"""The one module that names IBM's Python packages. It loads ibmmq or pymqi, or says what is missing.

"native" is the client of mq_adapters/native, which has the same names. Nobody gets it without asking for it.

It loads the C library first, because the packages hide a failure to load it behind a second import error. Also, ibmmq
looks for the library in a folder below the working directory, which others may be able to write. Nobody looks for a
library that is loaded already.
"""

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from mq_adapters.native import library
from mq_adapters.reasons import QueueManagerError, ReasonCode

Package = Literal["auto", "ibmmq", "pymqi", "native"]

#: Names of the C library that a package was linked with, the usual one first (pymqi may be built for either).
_LIBRARIES: Final = {"ibmmq": ("libmqm_r.so",), "pymqi": ("libmqic_r.so", "libmqm_r.so")}
#: Where IBM MQ and its client packages put their libraries.
_INSTALLATION: Final = "/opt/mqm"
_HOW_TO_GET: Final = (
    "install IBM MQ's client (the redistributable client for C holds {library}) and name its folder in MQ_FILE_PATH, or"
    " its libraries' in LD_LIBRARY_PATH; then pip install ibmmq, or pymqi, which is compiled with the client's headers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One of the packages, loaded. Its classes are used by both alike; connection.py knows where they differ."""

    package: str
    #: The version of the distribution, because pymqi's own __version__ lags behind.
    version: str
    module: Any


class _UnusablePackage(Exception):
    """A package that cannot be used. The text says why."""


_LOADING: Final = threading.Lock()


def load(package: Package = "auto") -> Binding:
    """The package to use. With "auto" it is ibmmq if both load. QueueManagerError 2495 if none loads."""
    if package == "native":
        return Binding(package=package, version=version("rfhbridge"), module=library)
    candidates = ("ibmmq", "pymqi") if package == "auto" else (package,)
    complaints: list[str] = []
    for candidate in candidates:
        try:
            with _LOADING:  # channels load it at the same time, and a failing import leaves half a module for a moment
                return _loaded(candidate)
        except _UnusablePackage as error:
            complaints.append(str(error))
    raise QueueManagerError(
        ReasonCode.MQRC_MODULE_NOT_FOUND,
        f"load IBM MQ's client: {'; '.join(complaints)}",
        _HOW_TO_GET.format(library=_LIBRARIES[candidates[0]][0]),
    )


@cache
def _loaded(package: str) -> Binding:
    if importlib.util.find_spec(package) is None:
        raise _UnusablePackage(f"Python package {package} is not installed")
    complaint = _load_library(_LIBRARIES[package])
    if complaint and package == "ibmmq":  # otherwise it would look below the working directory
        raise _UnusablePackage(f"{package} does not load: {complaint}")
    try:
        module = _IMPORTS[package]()
    except ImportError as error:
        raise _UnusablePackage(f"{package} does not load: {complaint or error}") from error
    except OSError as error:  # ibmmq with two halves of different versions
        raise _UnusablePackage(f"{package} does not load: {error}") from error
    return Binding(package=package, version=version(package), module=module)


def _load_library(names: Iterable[str]) -> str:
    """Loads the first of these C libraries that loads; returns "", or why none does."""
    complaints = []
    for path in _places(names):
        try:
            ctypes.CDLL(path)
        except OSError as error:
            complaints.append(str(error))
        else:
            return ""
    return "; ".join(complaints)


def _places(names: Iterable[str]) -> list[str]:
    """The places where a library may be: MQ_FILE_PATH, the system's places, and IBM MQ's places."""
    chosen = os.environ.get("MQ_FILE_PATH")
    folders = [Path(folder) / "lib64" for folder in (chosen, _INSTALLATION) if folder]
    places = []
    for name in names:
        there = [str(folder / name) for folder in folders if (folder / name).exists()]
        places += [*there[:1], name, *there[1:]] if chosen else [name, *there]
    return places


def _import_ibmmq() -> ModuleType:
    import ibmmq

    return ibmmq  # type: ignore[no-any-return]  # a package without types


def _import_pymqi() -> ModuleType:
    import pymqi

    return pymqi  # type: ignore[no-any-return]  # a package without types


_IMPORTS: Final[dict[str, Callable[[], ModuleType]]] = {"ibmmq": _import_ibmmq, "pymqi": _import_pymqi}
