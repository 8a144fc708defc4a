"""Headers alone, without any cache: a Publish written, read back, and converted to the other format."""

import time
from collections.abc import Callable
from typing import Final

from benchmarks.figures import Measure, Report, Row
from mappings.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, Publish, read_command, write_command
from mappings.convert import convert
from mappings.header_chain import read_header_chain

NAME: Final = "headers"
_COMMAND: Final = Publish(topics=("plant/hall-4/boiler-2/temperature",))
_UTF_8: Final = 1208
_LITTLE_ENDIAN: Final = 546
#: Calls between two looks at the clock.
_ROUND: Final = 200
_CALLS: Final = 6
_FORMATS: Final = {Dialect.MQRFH2: FORMAT_MQRFH2, Dialect.MQRFH: FORMAT_MQRFH}


def run(seconds: float) -> Report:
    """Measures each call for its share of the time."""
    share_s = seconds / _CALLS
    return Report(
        name=NAME,
        title="headers of a Publish with one topic, calls without a cache in front",
        rows=tuple(measure(dialect, share_s) for dialect in _FORMATS),
    )


def measure(dialect: Dialect, seconds: float) -> Row:
    format = _FORMATS[dialect]
    header = write_command(_COMMAND, dialect)
    other = Dialect.MQRFH if dialect is Dialect.MQRFH2 else Dialect.MQRFH2

    def write() -> None:
        write_command(_COMMAND, dialect)

    def read() -> None:
        read_command(read_header_chain(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN))

    def convert_to_other() -> None:
        convert(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN, to=other)

    calls = {"write_command": write, "read_command": read, "convert": convert_to_other}
    return Row(
        subject=dialect.value,
        case=f"convert to {other.value}",
        measures=tuple(
            Measure(name=name, value=calls_per_s(call, seconds), unit="calls/s") for name, call in calls.items()
        ),
    )


def calls_per_s(call: Callable[[], None], seconds: float) -> float:
    calls = 0
    started = time.perf_counter()
    while (elapsed_s := time.perf_counter() - started) < seconds:
        for _ in range(_ROUND):
            call()
        calls += _ROUND
    return calls / elapsed_s
