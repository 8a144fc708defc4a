"""Headers alone, without any cache in front: a Publish built, read to values, and converted to the other format.

`build` writes the header of another topic each time from what is known of the route (`PublicationTemplate`), `values`
reads names and values, `read_command` a typed command. Beside them stand the MQRFH2 classes of pymqi and ibmmq, where
they are installed: `build` there takes the folder ready made, and `values` gives the folder as one text.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.header_classes import HeaderClass, importable
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, Publish, read_command, write_command
from mappings.commands.options import PublicationOption
from mappings.conversion.convert import convert
from mappings.conversion.publication_template import PublicationTemplate
from mappings.headers.chain import read_header_chain
from mappings.headers.plain import read_plain_mqrfh, read_plain_mqrfh2

NAME: Final = "headers"
#: No topic comes twice before all others have come.
TOPICS: Final = tuple(f"plant/hall-{hall}/boiler-{boiler}/temperature" for hall in range(10) for boiler in range(100))
_UTF_8: Final = 1208
_LITTLE_ENDIAN: Final = 546
#: Calls between two looks at the clock.
_ROUND: Final = 200
_CALLS: Final = 15
_FORMATS: Final = {Dialect.MQRFH2: FORMAT_MQRFH2, Dialect.MQRFH: FORMAT_MQRFH}
_READERS: Final = {Dialect.MQRFH2: read_plain_mqrfh2, Dialect.MQRFH: read_plain_mqrfh}


def run(seconds: float) -> Report:
    """Measures each call for its share of the time."""
    share_s = seconds / _CALLS
    classes, missing = importable()
    rows = tuple(measure(dialect, share_s) for dialect in _FORMATS)
    others = tuple(measure_class(each, share_s) for each in classes)
    return Report(
        name=NAME,
        title="headers of a Publish with one option and one topic, another topic each time, CPU time of one core",
        rows=(*rows, *others),
        notes=(*_ratios(rows[0], others), *missing),
    )


def measure(dialect: Dialect, seconds: float) -> Row:
    """Our own calls for one format."""
    format = _FORMATS[dialect]
    other = Dialect.MQRFH if dialect is Dialect.MQRFH2 else Dialect.MQRFH2
    template = PublicationTemplate(_publish(TOPICS[0]), dialect)
    headers = [template.header(topic) for topic in TOPICS]
    commands = [_publish(topic) for topic in TOPICS]
    reader = _READERS[dialect]
    assert reader(headers[0], _UTF_8, _LITTLE_ENDIAN) is not None

    def read(header: bytes) -> None:
        read_command(read_header_chain(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN))

    def convert_to_other(header: bytes) -> None:
        convert(header, format=format, coded_char_set_id=_UTF_8, encoding=_LITTLE_ENDIAN, to=other)

    calls: dict[str, Iterator[object]] = {
        "build": map(template.header, itertools.cycle(TOPICS)),
        "write_command": (write_command(command, dialect) for command in itertools.cycle(commands)),
        "values": (reader(header, _UTF_8, _LITTLE_ENDIAN) for header in itertools.cycle(headers)),
        "read_command": map(read, itertools.cycle(headers)),
        "convert": map(convert_to_other, itertools.cycle(headers)),
    }
    return Row(subject=dialect.value, measures=_measured(calls, seconds))


def measure_class(other: HeaderClass, seconds: float) -> Row:
    """The same with another library's class."""
    headers = [write_command(_publish(topic), Dialect.MQRFH2) for topic in TOPICS]
    folders = [header[40:].rstrip(b" ") for header in headers]
    calls: dict[str, Iterator[object]] = {
        "build": map(other.build, itertools.cycle(folders)),
        "values": map(other.read, itertools.cycle(headers)),
    }
    return Row(subject=f"{other.library} {other.version}, MQRFH2", measures=_measured(calls, seconds))


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


def _publish(topic: str) -> Publish:
    return Publish(topics=(topic,), publication_options=PublicationOption.RETAIN_PUBLICATION)


def _ratios(ours: Row, others: tuple[Row, ...]) -> Iterator[str]:
    for other in others:
        for name in ("build", "values"):
            yield f"{ours.subject}: {name} {ours.value(name) / other.value(name):.1f} times as fast as {other.subject}."
