"""`python -m benchmarks`: runs benchmarks, prints their tables, and writes their figures as JSON."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import (
    attacks,
    audit,
    channel,
    channel_ibm_mq,
    comparison,
    export,
    fan_out,
    growth,
    headers,
    idle,
    increment,
    latency,
    matching,
    one_to_one,
    publishes,
    qos1_offline,
    queues,
    rates,
    retained,
    sessions,
    sizes,
    subscriptions,
    ways,
)
from benchmarks.figures import Report, print_report
from benchmarks.load.wire import BenchmarkError
from benchmarks.machine import this_machine

#: Measured for a time each.
_TIMED: Final[dict[str, Callable[[float], Report]]] = {
    module.NAME: module.run
    for module in (
        qos1_offline,
        export,
        one_to_one,
        fan_out,
        publishes,
        latency,
        rates,
        sizes,
        idle,
        attacks,
        queues,
        channel,
        channel_ibm_mq,
        subscriptions,
        retained,
        sessions,
        growth,
        matching,
        ways,
        headers,
    )
}
#: Measured with a trail of a size each.
_OF_TRAILS: Final[dict[str, Callable[[int], Report]]] = {module.NAME: module.run for module in (audit, increment)}
BENCHMARKS: Final = (*_TIMED, *_OF_TRAILS)
_DEFAULT_SECONDS: Final = 10.0
#: Columns of the output where it goes to a file.
_FILE_COLUMNS: Final = 120

_EXAMPLE: Final = """\
example: python -m benchmarks --seconds 5 --json figures.json qos1_offline latency
         python -m benchmarks --records 1000000 audit
         python -m benchmarks --against main --seconds 3 --pairs 8 --fail-under 0.95 qos1_offline

Nothing else should run on the machine meanwhile. mosquitto and RabbitMQ are measured beside
the gateway where they are installed.

--against measures the last commit here and another one in turns, both from their sources, and prints for each measure
how they stand to each other: new / old, and the interval that holds this ratio with a confidence of 95 %. What is not
committed is not measured.
"""


def seconds_text(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a time in seconds above 0")


def records_number(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (records := int(text)) > 0:
            return records
    raise argparse.ArgumentTypeError(f"{text} is not a number of records above 0")


def pairs_number(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (pairs := int(text)) >= comparison.LEAST_PAIRS:
            return pairs
    raise argparse.ArgumentTypeError(f"{text} is not a number of pairs from {comparison.LEAST_PAIRS} on")


def ratio(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (limit := float(text)) < float("inf"):
            return limit
    raise argparse.ArgumentTypeError(f"{text} is not a ratio above 0")


def writable_file(text: str) -> Path:
    """A file that can be written when all is measured, which may be hours later."""
    file = Path(text)
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} is no file that can be written")
    return file


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the gateway, beside mosquitto and RabbitMQ where they are, and the audit on both engines.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure, default all: {', '.join(BENCHMARKS)}")
    made.add_argument(
        "--seconds", type=seconds_text, default=_DEFAULT_SECONDS, help="length of each single run (default %(default)s)"
    )
    made.add_argument(
        "--records",
        type=records_number,
        default=audit.RECORDS,
        help=f"size of the trail that {' and '.join(_OF_TRAILS)} read (default %(default)s)",
    )
    made.add_argument("--json", type=writable_file, metavar="FILE", help="also write the figures there")
    made.add_argument(
        "--against",
        metavar="REV",
        help=f"compare the last commit with this one; by default {', '.join(comparison.COMPARED)}",
    )
    made.add_argument(
        "--pairs", type=pairs_number, default=6, help="of --against: runs of each commit (default %(default)s)"
    )
    made.add_argument(
        "--fail-under",
        type=ratio,
        metavar="RATIO",
        help="of --against: exit 1 where a measure has surely fallen under so many times the other commit's;"
        " a cost that doubles has fallen to 0.5",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Exit 0: measured, 1: a benchmark failed or a measure has fallen under the limit, 2: asked wrongly."""
    made = parser()
    asked = made.parse_args(arguments)
    unknown = [name for name in asked.names if name not in BENCHMARKS]
    if unknown:
        made.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if asked.fail_under is not None and asked.against is None:
        made.error("--fail-under needs --against")
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_COLUMNS)
    if asked.against is not None:
        return compare(asked, console)
    machine = this_machine()
    console.print(f"{machine}\n", highlight=False)
    reports: list[Report] = []
    failed = False
    for name in asked.names or BENCHMARKS:
        try:
            made_of = _OF_TRAILS.get(name)
            reports.append(_TIMED[name](asked.seconds) if made_of is None else made_of(asked.records))
        except BenchmarkError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        print_report(reports[-1], console)
    if asked.json is not None:
        figures = {"machine": machine.as_dict(), "reports": [report.as_dict() for report in reports]}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if failed else 0


def compare(asked: argparse.Namespace, console: Console) -> int:
    """The exit code of --against."""
    try:
        old, new = comparison.commit_of(asked.against), comparison.commit_of("HEAD")
    except comparison.UnknownRevision as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 2
    console.print(f"{this_machine()}\n", highlight=False)
    if comparison.is_changed():
        console.print("What is not committed here is not measured.", highlight=False)
    names = asked.names or comparison.COMPARED
    arguments = ["--seconds", str(asked.seconds), "--records", str(asked.records), *names]
    try:
        found = comparison.compare(old, new, arguments, asked.pairs, console)
    except BenchmarkError as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 1
    comparison.print_differences(found, old, new, console)
    if asked.json is not None:
        figures = {"old": old, "new": new, "differences": [each.as_dict() for each in found]}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    fallen = comparison.fallen_under(found, asked.fail_under) if asked.fail_under is not None else []
    for each in fallen:
        named = ", ".join(filter(None, (each.key.benchmark, each.key.case, each.key.measure)))
        print(f"{named}: {each.verdict}, {each.ratio:.3f} times the old one", file=sys.stderr)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
