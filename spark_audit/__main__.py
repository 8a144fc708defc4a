"""What runs on Spark, as processes.

python -m spark_audit run --data DIR --out DIR [--json]
    Reads DIR/trail, runs every control, writes result.json, report.html, junit.xml, audit.sarif and every violation as
    exceptions.parquet, and prints a summary.
    Exit 0: clean; 1: violations; 2: not evaluable (nothing to read, unreadable, no Java); 3: usage.

python -m spark_audit convert --to mqrfh|mqrfh2 --in DIR --out DIR [--mode strict|extended]
    Converts an archive of messages (Parquet, or one message a file) and writes Parquet.
    Exit 0: all converted; 1: some could not be, and have an error; 2: Spark could not do it; 3: usage.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import orjson
from rich.console import Console

from spark_audit.interruption import Interruption
from spark_audit.report import check_report_folder, print_summary, write_report
from spark_audit.report.integrity import integrity_of
from spark_audit.result import AuditResult
from spark_audit.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRAIL_FOLDER: Final = "trail"
SOME_FAILED: Final = 1
NOT_DONE: Final = 2
USAGE: Final = 3
#: 128 + SIGINT, as shells count.
INTERRUPTED: Final = 130
_PIPE_COLUMNS: Final = 160


class Tell(Protocol):
    """Says a line on stderr."""

    def __call__(self, line: str, level: str = "info") -> None: ...


class _Parser(argparse.ArgumentParser):
    """Exit code 3 for wrong usage, as every audit command has it."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the audit, or converts an archive; returns the exit code."""
    options = _options(arguments)
    with Interruption() as interruption:
        try:
            return _convert(options, interruption) if options.command == "convert" else _run(options, interruption)
        except BaseException:  # what comes of an interruption within a call of Java is an error of any kind
            if interruption.has_come:
                return INTERRUPTED
            raise


def _run(options: argparse.Namespace, interruption: Interruption) -> int:
    tell = _tell_json if options.log_format == "json" else _tell
    data: Path = options.data
    if not data.is_dir():
        tell(f"{data} is no folder", "error")
        return USAGE
    try:
        check_report_folder(options.out)  # now, not when Spark has done its work
    except OSError as error:
        return _not_written(options.out, error, tell)
    result = _audited(data / TRAIL_FOLDER, options.out, tell, interruption)
    integrity = integrity_of(verify(data / TRAIL_FOLDER))
    result = replace(result, integrity=integrity, command=_repeatable(options))
    try:
        files = write_report(result, options.out)
    except OSError as error:
        return _not_written(options.out, error, tell)
    tell(f"wrote {', '.join(file.name for file in files)} in {options.out}")
    if options.json:
        sys.stdout.write(result.as_json())
    else:
        width = None if sys.stdout.isatty() else _PIPE_COLUMNS
        print_summary(result, Console(width=width, highlight=False))
    return result.verdict.exit_code


def _repeatable(options: argparse.Namespace) -> tuple[str, ...]:
    """The command that audits the same trail again."""
    return ("rfhbridge", "audit", "run", "--data", str(options.data), "--out", str(options.out))


def _not_written(folder: Path, error: OSError, tell: Tell) -> int:
    place = error.filename if isinstance(error.filename, str) else folder
    tell(f"{place} cannot be written: {error.strerror} (name another folder with --out)", "error")
    return NOT_DONE


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m spark_audit", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    run = commands.add_parser("run", help="audit a trail with every control")
    run.add_argument("--data", type=Path, required=True, metavar="DIR", help="the gateway's data folder")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="where result.json and report.html go")
    run.add_argument("--json", action="store_true", help="print result.json instead of the summary")
    run.add_argument("--log-format", default="text", choices=("text", "json"), help="form of the lines on stderr")
    convert = commands.add_parser("convert", help="convert an archive of messages")
    convert.add_argument("--to", required=True, choices=("mqrfh", "mqrfh2"), help="format of the new headers")
    convert.add_argument(
        "--in",
        dest="source",
        type=Path,
        required=True,
        metavar="DIR",
        help="Parquet with the columns path or id, data, and where known format, ccsid, encoding; or a file a message",
    )
    convert.add_argument("--out", type=Path, required=True, metavar="DIR", help="new folder for the result, Parquet")
    convert.add_argument("--mode", default="strict", choices=("strict", "extended"), help="strict: the nine fields")
    return parser.parse_args(arguments)


def _convert(options: argparse.Namespace, interruption: Interruption) -> int:
    source: Path = options.source
    target: Path = options.out
    if not source.is_dir() or target.exists():
        problem = f"{target} is there already" if source.is_dir() else f"{source} is no folder"
        print(f"python -m spark_audit: {problem}", file=sys.stderr)
        return USAGE
    from pyspark.errors import PySparkException

    from spark_audit.bulk import ArchiveError, convert_archive
    from spark_audit.session import start_session

    size_bytes = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory(prefix="rfhbridge-convert-") as name:
        try:
            _tell("starting Spark")
            with interruption.held():
                spark = start_session(Path(name), trail_bytes=size_bytes)
            try:
                archive = convert_archive(spark, source, target, to=options.to, mode=options.mode)
            finally:
                _stop(spark, interruption)
        except ArchiveError as error:
            print(f"python -m spark_audit: {error}", file=sys.stderr)
            return USAGE
        except (PySparkException, OSError) as error:
            print(f"python -m spark_audit: Spark gave up: {_first_line(error)}", file=sys.stderr)
            return NOT_DONE
    print(f"{archive.messages} messages, {archive.failed} could not be converted, {target}")
    return SOME_FAILED if archive.failed else 0


def _audited(trail_dir: Path, report_folder: Path, tell: Tell, interruption: Interruption) -> AuditResult:
    """The result; what keeps Spark from starting or the trail from being read makes it `not evaluable`."""
    from pyspark.errors import PySparkException

    from spark_audit.audit import audit, not_evaluable
    from spark_audit.read import trail_files
    from spark_audit.session import start_session

    with tempfile.TemporaryDirectory(prefix="rfhbridge-audit-") as name:
        scratch = Path(name)
        try:
            files = trail_files(trail_dir, scratch)
        except OSError as error:
            return not_evaluable(f"{trail_dir} cannot be read: {error.strerror}")
        if not files.size_bytes:
            return not_evaluable("the trail holds no whole line: it is empty, or this is not a trail")
        try:
            tell("starting Spark")
            with interruption.held():
                spark = start_session(scratch, trail_bytes=files.size_bytes)
        except (PySparkException, OSError) as error:
            return not_evaluable(f"Spark does not start (it needs Java 17 or 21): {error}")
        try:
            return audit(spark, files, tell, report_folder)
        except PySparkException as error:
            return not_evaluable(f"Spark gave up: {_first_line(error)}")
        finally:
            _stop(spark, interruption)


def _stop(spark: "SparkSession", interruption: Interruption) -> None:
    """An interrupted Spark is dead already."""
    if not interruption.has_come:
        spark.stop()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _tell(line: str, level: str = "info") -> None:
    """Progress and errors for people, on stderr."""
    speaker = "rfhbridge audit run" if level == "error" else "audit"
    print(f"{speaker}: {line}", file=sys.stderr, flush=True)


def _tell_json(line: str, level: str = "info") -> None:
    """The same for a program, as the gateway's log has it: one object a line."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"at": at, "level": level, "module": "spark_audit", "event": line}
    print(orjson.dumps(event).decode(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
