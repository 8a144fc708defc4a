"""What a forked process is to run, and what it inherits."""

import fcntl
import io
import json
import os
import resource
import struct
import sys
from dataclasses import asdict, dataclass, field
from typing import Final, Self, TextIO

LONGEST_REQUEST: Final = 100_000
STREAMS: Final = 3
STATUS: Final = struct.Struct("<i")
NUMBER: Final = struct.Struct("<i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be run, and what it inherits."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    open_files: tuple[int, int]
    starts_session: bool
    #: The numbers that its descriptors have.
    numbers: list[int] = field(default_factory=lambda: [*range(STREAMS)])

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        return cls(**json.loads(text))

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def begin(self, descriptors: list[int]) -> None:
        """Makes this process the one that is asked for; nothing but the module is left to run."""
        if self.starts_session:
            os.setsid()
        for number, descriptor in zip(self.numbers, _beyond(descriptors, max(self.numbers)), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        _open_streams()
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        resource.setrlimit(resource.RLIMIT_NOFILE, self.open_files)
        sys.argv = [self.module, *self.arguments]


def _beyond(descriptors: list[int], number: int) -> list[int]:
    """The same descriptors with numbers above `number`, so that none is in the way of another."""
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, number + 1) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    return moved


def _open_streams() -> None:
    """Standard streams as Python makes them at its start, for what the descriptors are now."""
    sys.stdin = sys.__stdin__ = _reopened(sys.stdin, "rb")
    sys.stdout = sys.__stdout__ = _reopened(sys.stdout, "wb")
    sys.stderr = sys.__stderr__ = _reopened(sys.stderr, "wb")


def _reopened(stream: TextIO, mode: str) -> TextIO:
    is_raw = isinstance(stream.buffer, io.RawIOBase)  # with PYTHONUNBUFFERED
    file = open(stream.fileno(), mode, buffering=0 if is_raw else -1, closefd=False)  # noqa: SIM115
    is_by_lines = file.isatty() or (stream is sys.stderr and not is_raw)
    return io.TextIOWrapper(file, stream.encoding, stream.errors, line_buffering=is_by_lines, write_through=is_raw)
