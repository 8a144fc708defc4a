"""The buffers of TLS connections cost what is used of them."""

import ctypes
import subprocess
import sys

import pytest

from gateway.listener.allocation import map_large_buffers

#: In a process of its own: a freed large piece teaches glibc to take the next ones from the heap, which then grows.
_PROGRAM = """
import ctypes, sys
from gateway.listener.allocation import map_large_buffers
c_library = ctypes.CDLL(None)
c_library.malloc.restype = c_library.sbrk.restype = ctypes.c_void_p
c_library.malloc.argtypes, c_library.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "mapped":
    assert map_large_buffers()
c_library.free(c_library.malloc(8_000_000))
before = c_library.sbrk(0)
for _ in range(100):
    assert c_library.malloc(262_144)
print(c_library.sbrk(0) - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no mallopt: it is not glibc")
@pytest.mark.parametrize(("mode", "grows"), [("as it is", True), ("mapped", False)])
def test_large_buffers_are_taken_from_the_heap_until_it_is_told_otherwise(mode: str, grows: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, mode], capture_output=True, text=True, timeout=60, check=True
    )
    assert (int(done.stdout) > 10_000_000) is grows


def test_a_c_library_that_cannot_be_told_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert not map_large_buffers()
