"""The MQRFH2 classes of pymqi and ibmmq, where they can be imported: both need IBM's C libraries to be built."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

LIBRARIES: Final = ("pymqi", "ibmmq")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderClass:
    """The class RFH2 of a library, as its documentation uses it."""

    library: str
    version: str
    rfh2: Callable[[], Any]  # the libraries have no types

    def build(self, folder: bytes) -> bytes:
        """An MQRFH2 around one folder."""
        header = self.rfh2()
        header["NameValueCCSID"] = 1208
        header.add_folder(folder)
        packed: bytes = header.pack()
        return packed

    def read(self, data: bytes) -> dict[str, object]:
        """The fields and the folders of an MQRFH2, by name."""
        header = self.rfh2()
        header.unpack(data)
        values: dict[str, object] = header.get()
        return values


def importable() -> tuple[list[HeaderClass], list[str]]:
    """The classes that are there, and a sentence for each that is not."""
    found, missing = [], []
    for library in LIBRARIES:
        try:
            module = importlib.import_module(library)
        except (ImportError, OSError) as problem:  # OSError: their own sign that C library and package do not fit
            missing.append(f"{library} is not measured: it cannot be imported ({problem}).")
            continue
        version = getattr(module, "__version__", "of an unknown version")
        found.append(HeaderClass(library=library, version=str(version), rfh2=module.RFH2))
    return found, missing
