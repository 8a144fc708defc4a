"""The stand-in library against its oracles (IBM's compiled wheel, the bindings' constants), and hostile bytes."""

import random
import re
import socket
import struct
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.ibm_mq_stand_in import options
from tests.ibm_mq_stand_in.process import BUILT, StandInQueueManager, load, needs_stand_in, wait_until
from tests.ibm_mq_stand_in.wire import MalformedRequest, next_frame, read_connect

HEADERS = Path(__file__).parent / "library" / "inc"
#: Bytes, as IBM's compiled ibmmq 2.1.2 for 64-bit Linux has them.
SIZES = {
    "MQOD": 424,
    "MQMD": 364,
    "MQPMO": 184,
    "MQGMO": 112,
    "MQSD": 344,
    "MQSRO": 16,
    "MQCMHO": 12,
    "MQSMPO": 20,
    "MQPD": 24,
    "MQCNO": 272,
    "MQSCO": 672,
    "MQCSP": 104,
    "MQCD": 2000,
    "MQIMPO": 64,
}


@needs_stand_in
def test_structures_have_the_sizes_of_ibms_library(tmp_path: Path) -> None:
    asked = "".join(f'    printf("%zu\\n", sizeof({name}));\n' for name in SIZES)
    source = tmp_path / "sizes.c"
    source.write_text(f'#include <stdio.h>\n#include "cmqxc.h"\nint main(void) {{\n{asked}    return 0;\n}}\n')
    program = tmp_path / "sizes"
    subprocess.run(["gcc", f"-I{HEADERS}", str(source), "-o", str(program)], check=True)
    sizes = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert dict(zip(SIZES, map(int, sizes), strict=True)) == SIZES


@needs_stand_in
@pytest.mark.parametrize("name", ["OD", "MD", "PMO", "GMO", "SD", "SRO", "CMHO", "SMPO", "PD", "CNO", "SCO", "CSP"])
def test_ibms_wheel_packs_structures_of_these_sizes(name: str) -> None:
    packed = getattr(load("ibmmq"), name)().pack()
    assert len(packed) == SIZES[f"MQ{name}"]


def _defined() -> dict[str, int]:
    text = "".join(path.read_text() for path in HEADERS.glob("*.h"))
    found = re.findall(r"^#define (MQ\w+) \(?(-?(?:0x[0-9A-F]+|\d+))\)?", text, re.MULTILINE)
    return {name: int(value, 0) for name, value in found}


def _constants(mq: ModuleType) -> dict[str, int]:
    modules = (mq.CMQC, mq.CMQCFC, mq.CMQXC)
    return {name: value for module in modules for name, value in vars(module).items() if isinstance(value, int)}


@needs_stand_in
@pytest.mark.parametrize("binding", ["pymqi", "ibmmq"])
def test_constants_are_those_of_the_bindings(binding: str) -> None:
    defined, known = _defined(), _constants(load(binding))  # type: ignore[arg-type]  # a parameter is a str
    both = (defined.keys() & known.keys()) - {"MQCD_CURRENT_LENGTH"}  # pymqi has that of an older release
    assert len(both) > 60
    assert {name: defined[name] for name in both} == {name: known[name] for name in both}


@needs_stand_in
def test_options_and_reasons_are_ibms() -> None:
    known = _constants(load("ibmmq"))
    for flags in (options.MQOO, options.MQPMO, options.MQGMO, options.MQMO, options.MQCO):
        ours = {f"{flags.__name__}_{each.name}": int(each) for each in flags}
        assert ours == {name: known[name] for name in ours}
    assert {each.name: int(each) for each in options.Reason} == {each.name: known[each.name] for each in options.Reason}


@needs_stand_in
def test_the_library_calls_itself_a_stand_in() -> None:
    for path in (BUILT / "lib64").iterdir():
        assert b"STANDIN_MQ: rfhbridge's stand-in" in path.read_bytes()


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<ii", 2**31 - 1, 1),
        struct.pack("<ii", -1, 1),
        struct.pack("<ii", 4, 99),
        struct.pack("<ii", 4, 1),
        struct.pack("<ii", 4, 7),
        struct.pack("<ii", 4 + 676, 1) + bytes(660) + struct.pack("<4i", 2**31 - 1, 0, 0, -5),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_who_sends_no_request_is_cut_off_and_nobody_else(queue_manager: StandInQueueManager, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.connect(str(queue_manager.socket))
        stranger.settimeout(60)
        stranger.sendall(sent)
        try:
            received = stranger.recv(1)
        except ConnectionResetError:
            received = b""
        assert received == b""
    wait_until(lambda: queue_manager.control.connections() == [])


def test_a_frame_comes_when_it_is_whole() -> None:
    whole = struct.pack("<ii", 8, 9) + b"rest"
    for length in range(len(whole)):
        assert next_frame(bytearray(whole[:length])) is None
    buffer = bytearray(whole + b"more")
    assert next_frame(buffer) == (9, b"rest")
    assert buffer == b"more"


def test_random_connect_requests_end_in_a_value_or_in_our_error() -> None:
    chance = random.Random(5)
    for _ in range(500):
        fields = chance.randbytes(chance.randrange(1_000))
        try:
            read_connect(fields)
        except MalformedRequest:
            continue
