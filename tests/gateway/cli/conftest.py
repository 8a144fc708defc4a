"""Fixtures of the command line's tests: messages typed from the specification, and two ways to run a command."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import Ended, command
from tests.processes import forked

MQRFH_LITTLE_ENDIAN = """
    52 46 48 20 01 00 00 00 58 00 00 00 22 02 00 00
    b8 04 00 00 4d 51 53 54 52 20 20 20 00 00 00 00
    4d 51 50 53 43 6f 6d 6d 61 6e 64 20 50 75 62 6c
    69 73 68 20 4d 51 50 53 50 75 62 4f 70 74 73 20
    52 65 74 61 69 6e 50 75 62 20 4d 51 50 53 54 6f
    70 69 63 20 61 2f 62 20
"""
MQRFH_BIG_ENDIAN = """
    52 46 48 20 00 00 00 01 00 00 00 5c 00 00 01 11
    00 00 04 b8 4d 51 53 54 52 20 20 20 00 00 00 00
    4d 51 50 53 43 6f 6d 6d 61 6e 64 20 50 75 62 6c
    69 73 68 20 4d 51 50 53 50 75 62 4f 70 74 73 20
    52 65 74 61 69 6e 50 75 62 20 4d 51 50 53 54 6f
    70 69 63 20 22 61 20 62 22 20 20 20
"""
MQRFH2_LITTLE_ENDIAN = """
    52 46 48 20 02 00 00 00 7c 00 00 00 22 02 00 00
    b8 04 00 00 4d 51 53 54 52 20 20 20 00 00 00 00
    b8 04 00 00 54 00 00 00 3c 70 73 63 3e 3c 43 6f
    6d 6d 61 6e 64 3e 50 75 62 6c 69 73 68 3c 2f 43
    6f 6d 6d 61 6e 64 3e 3c 50 75 62 4f 70 74 3e 52
    65 74 61 69 6e 50 75 62 3c 2f 50 75 62 4f 70 74
    3e 3c 54 6f 70 69 63 3e 61 2f 62 3c 2f 54 6f 70
    69 63 3e 3c 2f 70 73 63 3e 20 20 20
"""
# The publication of MQRFH_BIG_ENDIAN, topic "a b", by the layout of an MQRFH2.
MQRFH2_OF_BIG_ENDIAN = """
    52 46 48 20 00 00 00 02 00 00 00 7c 00 00 01 11
    00 00 04 b8 4d 51 53 54 52 20 20 20 00 00 00 00
    00 00 04 b8 00 00 00 54 3c 70 73 63 3e 3c 43 6f
    6d 6d 61 6e 64 3e 50 75 62 6c 69 73 68 3c 2f 43
    6f 6d 6d 61 6e 64 3e 3c 50 75 62 4f 70 74 3e 52
    65 74 61 69 6e 50 75 62 3c 2f 50 75 62 4f 70 74
    3e 3c 54 6f 70 69 63 3e 61 20 62 3c 2f 54 6f 70
    69 63 3e 3c 2f 70 73 63 3e 20 20 20
"""
MQRFH2_BIG_ENDIAN_TWO_FOLDERS = """
    52 46 48 20 00 00 00 02 00 00 00 a0 00 00 01 11
    00 00 04 b8 20 20 20 20 20 20 20 20 00 00 00 00
    00 00 04 b8 00 00 00 20 3c 6d 63 64 3e 3c 4d 73
    64 3e 6a 6d 73 5f 62 79 74 65 73 3c 2f 4d 73 64
    3e 3c 2f 6d 63 64 3e 20 00 00 00 54 3c 70 73 63
    3e 3c 43 6f 6d 6d 61 6e 64 3e 52 65 67 53 75 62
    3c 2f 43 6f 6d 6d 61 6e 64 3e 3c 52 65 67 4f 70
    74 3e 43 6f 72 72 65 6c 41 73 49 64 3c 2f 52 65
    67 4f 70 74 3e 3c 54 6f 70 69 63 3e 61 2f 23 3c
    2f 54 6f 70 69 63 3e 3c 2f 70 73 63 3e 20 20 20
"""
# MQPSCommand Publish MQPSTopic a/b in code page 500, big-endian; what follows is in code page 500, Format MQSTR.
MQRFH_EBCDIC = """
    d9 c6 c8 40 00 00 00 01 00 00 00 44 00 00 01 11
    00 00 01 f4 d4 d8 e2 e3 d9 40 40 40 00 00 00 00
    d4 d8 d7 e2 c3 96 94 94 81 95 84 40 d7 a4 82 93
    89 a2 88 40 d4 d8 d7 e2 e3 96 97 89 83 40 81 61
    82 40 40 40
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Messages without a body, from the worked bytes of MQRFH and MQRFH2 in IBM's layout."""

    mqrfh: bytes
    mqrfh_big_endian: bytes
    mqrfh_ebcdic: bytes
    mqrfh2: bytes
    mqrfh2_of_big_endian: bytes
    mqrfh2_two_folders: bytes


Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def vectors() -> Vectors:
    """The messages of the specification."""
    return Vectors(
        mqrfh=bytes.fromhex(MQRFH_LITTLE_ENDIAN),
        mqrfh_big_endian=bytes.fromhex(MQRFH_BIG_ENDIAN),
        mqrfh_ebcdic=bytes.fromhex(MQRFH_EBCDIC),
        mqrfh2=bytes.fromhex(MQRFH2_LITTLE_ENDIAN),
        mqrfh2_of_big_endian=bytes.fromhex(MQRFH2_OF_BIG_ENDIAN),
        mqrfh2_two_folders=bytes.fromhex(MQRFH2_BIG_ENDIAN_TWO_FOLDERS),
    )


@pytest.fixture
def rfhbridge() -> Command:
    """Runs a command in this process: `rfhbridge("queue", "list", stdin=b"")`."""
    return command


@pytest.fixture
def rfhbridge_process() -> Command:
    """Runs a command as a process of its own."""

    def run(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> Ended:
        ended = forked.rfhbridge(*arguments, input=stdin, cwd=cwd)
        return Ended(exit_code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr.decode())

    return run
