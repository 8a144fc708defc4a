"""Headers alone: a Publish written as the gateway writes it, read as the broker reads it, and converted.

The bridge calls `write` for a topic whose header it has not kept (gateway/bridge/publish/publish_command.py). For a
topic whose header it has kept, it calls nothing. The broker calls `read_command` for a message from outside, and
`convert` for a subscriber of the other format. The conversion service calls `convert` too. Beside them stand the MQRFH2
classes of pymqi and ibmmq, where they can be imported. Their `write` takes the folder ready made, and their `read`
gives the folder as one text, so they do less.
"""

import importlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.figures import Measure, Report, Row
from gateway.bridge.commands.requests import OwnCommands
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, read_command
from mappings.conversion.convert import convert
from mappings.headers.chain import read_header_chain

NAME: Final = "headers"
#: No topic comes twice before all others have come.
TOPICS: Final = tuple(f"plant/hall-{hall}/boiler-{boiler}/temperature" for hall in range(10) for boiler in range(100))
LIBRARIES: Final = ("pymqi", "ibmmq")
_UTF_8: Final = 1208
_LITTLE_ENDIAN: Final = 546
#: Calls between two looks at the clock.
_ROUND: Final = 200
#: Three calls for each of two formats, two for each of two libraries.
_CALLS: Final = 10
_FORMATS: Final = {Dialect.MQRFH2: FORMAT_MQRFH2, Dialect.MQRFH: FORMAT_MQRFH}


def run(seconds: float) -> Report:
    """Measures each call for its share of the time."""
    share_s = seconds / _CALLS
    classes, missing = importable()
    rows = tuple(measure(dialect, share_s) for dialect in _FORMATS)
    others = tuple(measure_class(each, share_s) for each in classes)
    return Report(
        name=NAME,
        title="headers of a Publish with one topic, another topic each time, CPU time of one core",
        rows=(*rows, *others),
        notes=(*_ratios(rows[0], others), *missing),
    )


def measure(dialect: Dialect, seconds: float) -> Row:
    """The calls of the gateway and its broker for one format."""
    format = _FORMATS[dialect]
    other = Dialect.MQRFH if dialect is Dialect.MQRFH2 else Dialect.MQRFH2
    commands = own_commands(dialect)
    headers = [commands.write_publish(topic, retain=False).data for topic in TOPICS]

    def write(topic: str) -> None:
        commands.write_publish(topic, retain=False)

    def read(header: bytes) -> None:
        read_command(read_header_chain(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN))

    def convert_to_other(header: bytes) -> None:
        convert(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN, to=other)

    calls: dict[str, Iterator[object]] = {
        "write": map(write, itertools.cycle(TOPICS)),
        "read_command": map(read, itertools.cycle(headers)),
        "convert": map(convert_to_other, itertools.cycle(headers)),
    }
    return Row(subject=f"rfhbridge, {dialect.value.upper()}", measures=_measured(calls, seconds))


def own_commands(dialect: Dialect) -> OwnCommands:
    """What writes the gateway's commands, as the daemon builds it."""
    return OwnCommands(
        dialect=dialect,
        queue_manager_name="RFHB",
        subscriber_queue="RFHBRIDGE.SUBSCRIBER",
        reply_queue="RFHBRIDGE.REPLY",
    )


def calls_per_s(call: Callable[[], object], seconds: float) -> float:
    """How often a call can be made in a second of CPU time."""
    calls = 0
    started = time.process_time()
    while (elapsed_s := time.process_time() - started) < seconds:
        for _ in range(_ROUND):
            call()
        calls += _ROUND
    return calls / elapsed_s


def _measured(calls: dict[str, Iterator[object]], seconds: float) -> tuple[Measure, ...]:
    return tuple(
        Measure(name=name, value=calls_per_s(results.__next__, seconds), unit="calls/s")
        for name, results in calls.items()
    )


def _ratios(ours: Row, others: tuple[Row, ...]) -> Iterator[str]:
    for other in others:
        for name, theirs in (("write", "write"), ("read_command", "read")):
            ratio = ours.value(name) / other.value(theirs)
            yield f"{ours.subject}: {name} {ratio:.2f} times as fast as {theirs} of {other.subject}."


# -- other libraries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderClass:
    """The class RFH2 of pymqi or ibmmq, as its documentation uses it."""

    library: str
    version: str
    rfh2: Callable[[], Any]  # the libraries have no types

    def write(self, folder: bytes) -> bytes:
        """An MQRFH2 around one folder."""
        header = self.rfh2()
        header["NameValueCCSID"] = _UTF_8
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
    """The classes that are there, and a sentence for each that is not: both need IBM's C libraries to be built."""
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


def measure_class(other: HeaderClass, seconds: float) -> Row:
    """The calls of another library's class."""
    commands = own_commands(Dialect.MQRFH2)
    headers = [commands.write_publish(topic, retain=False).data for topic in TOPICS]
    folders = [header[40:].rstrip(b" ") for header in headers]
    calls: dict[str, Iterator[object]] = {
        "write": map(other.write, itertools.cycle(folders)),
        "read": map(other.read, itertools.cycle(headers)),
    }
    return Row(subject=f"{other.library} {other.version}, MQRFH2", measures=_measured(calls, seconds))
