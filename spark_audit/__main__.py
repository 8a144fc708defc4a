"""The commands that run on Spark, as processes: `python -m spark_audit COMMAND`, or `spark-submit` with this file.

run [--data DIR]... [--trail DIR]... --out DIR
    Runs every control over one or several trails; writes result.json, report.html, junit.xml, audit.sarif and every
    violation as exceptions.parquet, and prints a summary.
    Exit 0: clean; 1: violations; 2: not evaluable (nothing to read, unreadable, no Java); 3: usage.

ingest [--data DIR]... [--trail DIR]... --to DIR
    Closed segments to Parquet, by date and gateway, each once; `run --parquet DIR` audits it.
    Exit 0: there; 1: a segment was changed after it was ingested; 2: nothing that could be ingested; 3: usage.

bulk --in DIR [--converted DIR] --out DIR
    Judges an archive of captured messages and their conversions; writes the same files as `run`. Exit codes of `run`.

stream [--data DIR]... [--trail DIR]... --out DIR --checkpoint DIR [--once]
    Every control over closed segments as they come, each finding once: findings.jsonl, result.json and seal.json in
    OUT/NNNNNNNN.
    Exit 0: no violation; 1: violations, or a trail was rewritten; 2: nothing that could be judged; 3: usage.

convert --to mqrfh|mqrfh2 --in DIR --out DIR [--mode strict|extended]
    Converts an archive of messages (Parquet, or one message a file) and writes Parquet.
    Exit 0: all converted; 1: some could not be, and have an error; 2: Spark could not do it; 3: usage.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from spark_audit.commands.arguments import parsed
from spark_audit.commands.bulk import bulk
from spark_audit.commands.convert import convert
from spark_audit.commands.ingest import ingest
from spark_audit.commands.run import run
from spark_audit.commands.stream import stream
from spark_audit.commands.terminal import INTERRUPTED, NOT_EVALUABLE
from spark_audit.interruption import Interruption
from spark_audit.options import MASKS

_COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "run": run,
    "ingest": ingest,
    "stream": stream,
    "bulk": bulk,
    "convert": convert,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    options = parsed(arguments, __doc__ or "")
    with _masked(MASKS[options.readable_by]), Interruption() as interruption:
        try:
            interruption.listen()
            exit_code = _COMMANDS[options.command](options, interruption)
            return INTERRUPTED if interruption.has_come else exit_code
        except BaseException as error:  # an interruption within a call of Java may end in any error
            if interruption.has_come:
                return INTERRUPTED
            if not isinstance(error, Exception):
                raise
            traceback.print_exc()
            return NOT_EVALUABLE  # Python's own code would be 1, which means violations


@contextmanager
def _masked(mask: int) -> Iterator[None]:
    """Files written meanwhile get none of these bits, even those of a Java that is started meanwhile."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


if __name__ == "__main__":
    sys.exit(main())
