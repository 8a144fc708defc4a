"""The kernel's word on its clock, read from struct timex as the system lays it out."""

import ctypes
import platform
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mq_adapters import kernel_clock
from mq_adapters.kernel_clock import STATES, ClockReading, is_synchronised, read_clock

#: struct __kernel_timex of linux/timex.h, which is that of every Linux with 64 bits: offset of a field, bytes.
OFFSETS = {"modes": 0, "offset": 8, "freq": 16, "maxerror": 24, "esterror": 32, "status": 40}
TIMEX_BYTES = 208
IS_64_BITS = struct.calcsize("l") == 8


class Kernel:
    """An adjtimex that fills the struct by its offsets, and keeps the modes that it was called with."""

    def __init__(self, state: int, maximum_error_us: int = 0, estimated_error_us: int = 0) -> None:
        self._answer = state, maximum_error_us, estimated_error_us
        self.modes: list[int] = []

    def __call__(self, pointer: Any) -> int:
        state, maximum_error_us, estimated_error_us = self._answer
        timex = (ctypes.c_char * TIMEX_BYTES).from_address(ctypes.cast(pointer, ctypes.c_void_p).value or 0)
        self.modes.append(*struct.unpack_from("I", timex, OFFSETS["modes"]))
        struct.pack_into("q", timex, OFFSETS["maxerror"], maximum_error_us)
        struct.pack_into("q", timex, OFFSETS["esterror"], estimated_error_us)
        struct.pack_into("i", timex, OFFSETS["status"], 64 if state == 5 else 0x2001)
        return state


@pytest.mark.skipif(not IS_64_BITS, reason="the offsets are those of 64 bits")
def test_the_fields_stand_where_the_kernel_writes_them() -> None:
    assert {name: getattr(kernel_clock._Timex, name).offset for name in OFFSETS} == OFFSETS
    assert ctypes.sizeof(kernel_clock._Timex) >= TIMEX_BYTES


def test_the_fields_stand_where_the_systems_own_header_has_them(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or platform.system() != "Linux":
        pytest.skip("there is no C compiler, or no Linux")
    printed = "".join(f'printf("%zu ", offsetof(struct timex, {name}));' for name in OFFSETS)
    size = 'printf("%zu", sizeof(struct timex));'
    source = tmp_path / "timex.c"
    source.write_text(
        f"#include <stdio.h>\n#include <stddef.h>\n#include <sys/timex.h>\nint main(void) {{{printed}{size}}}"
    )
    program = tmp_path / "timex"
    subprocess.run([compiler, "-o", program, source], check=True)
    *offsets, size_bytes = map(int, subprocess.run([program], check=True, capture_output=True).stdout.split())
    assert [getattr(kernel_clock._Timex, name).offset for name in OFFSETS] == offsets
    assert ctypes.sizeof(kernel_clock._Timex) >= size_bytes


@pytest.mark.skipif(not IS_64_BITS, reason="the offsets are those of 64 bits")
def test_state_and_errors_are_the_kernels_and_nothing_is_changed() -> None:
    for number, state in enumerate(STATES):
        kernel = Kernel(number, 21_000, 340)
        told = read_clock(kernel)
        assert told == ClockReading(state=state, maximum_error_us=21_000, estimated_error_us=340)
        assert told.is_synchronised == (state != "error")
        assert kernel.modes == [0]


def test_where_the_kernel_refuses_or_says_what_nobody_knows_the_clock_is_unknown() -> None:
    for answer in (-1, 6):
        assert read_clock(Kernel(answer, 5, 5)) == ClockReading(state="unknown")
    assert not ClockReading().is_synchronised


def test_where_the_kernel_cannot_be_asked_nothing_is_synchronised(monkeypatch) -> None:
    monkeypatch.setattr(kernel_clock.ctypes, "CDLL", lambda _name: object())
    kernel_clock._adjtimex.cache_clear()
    try:
        assert read_clock() == ClockReading()
        assert not is_synchronised()
    finally:
        kernel_clock._adjtimex.cache_clear()


@pytest.mark.skipif(platform.system() != "Linux", reason="adjtimex is Linux's")
def test_this_machines_kernel_is_asked() -> None:
    told = read_clock()
    assert told.state in (*STATES, "unknown")
    assert is_synchronised() == told.is_synchronised
    if told.state == "error":
        assert told.maximum_error_us > 0
