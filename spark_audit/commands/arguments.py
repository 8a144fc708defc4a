"""The arguments of every command."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from spark_audit.commands.terminal import USAGE
from spark_audit.period import moment_of

_MEMORY: Final = "2g"
_PROGRAM: Final = "python -m spark_audit"


class _Parser(argparse.ArgumentParser):
    """Exit code 3 and one line for wrong usage, as every audit command has it."""

    def error(self, message: str) -> NoReturn:
        command = self.prog if self.prog.endswith("convert") else self.prog.replace(_PROGRAM, "rfhbridge audit")
        self.exit(USAGE, f"{command}: {message} (see `{command} --help`)\n")


def parsed(arguments: Sequence[str] | None, description: str) -> argparse.Namespace:
    """The options of a command line; wrong use ends the process with 3."""
    parser = _Parser(prog=_PROGRAM, description=description, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_run(commands.add_parser("run", help="audit trails with every control"))
    _add_ingest(commands.add_parser("ingest", help="trails to Parquet"))
    _add_bulk(commands.add_parser("bulk", help="audit an archive of messages"))
    _add_stream(commands.add_parser("stream", help="audit closed segments as they come"))
    _add_convert(commands.add_parser("convert", help="convert an archive of messages"))
    options = parser.parse_args(arguments)
    command = commands.choices[options.command]
    if options.command == "run":
        _check_run(command, options)
    if options.command == "bulk" and options.master and options.remote:
        command.error("name --master or --remote, not both")
    if options.command in ("ingest", "stream"):
        _check_trails(command, options)
    return options


def _add_run(run: argparse.ArgumentParser) -> None:
    _add_trails(run)
    run.add_argument("--parquet", type=Path, metavar="DIR", help="what `ingest` made, in the place of trails")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="where result.json and report.html go")
    run.add_argument("--policy", type=Path, metavar="FILE", help="scope, thresholds and severities (TOML)")
    for name, words in (("--from", "of records noted at or after"), ("--until", "of records noted before")):
        run.add_argument(
            name, dest=f"{name[2:]}_us", type=_moment, default=0, metavar="TIME", help=f"findings {words} (ISO 8601)"
        )
    run.add_argument("--public-key", type=Path, metavar="FILE", help="the gateway's, as it was kept elsewhere")
    run.add_argument("--digests", type=Path, metavar="DIR", help="the digests, as they were copied elsewhere")
    run.add_argument("--personal-key", type=Path, metavar="FILE", help="opens headers that are encrypted")
    run.add_argument("--json", action="store_true", help="print result.json instead of the summary")
    _add_spark(run)


def _moment(text: str) -> int:
    try:
        return moment_of(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2026-11-20, or 2026-11-20T07:00:00Z with its zone"
        ) from None


def _add_ingest(ingest: argparse.ArgumentParser) -> None:
    _add_trails(ingest)
    ingest.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder of the Parquet, of its own")
    ingest.add_argument("--compact", action="store_true", help="leave no two small files of a date and gateway")
    ingest.add_argument("--json", action="store_true", help="print what was done as JSON")
    _add_spark(ingest)


def _add_stream(stream: argparse.ArgumentParser) -> None:
    _add_trails(stream)
    stream.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder for each batch goes there")
    stream.add_argument("--checkpoint", type=Path, required=True, metavar="DIR", help="what is known; of its own")
    stream.add_argument("--once", action="store_true", help="end when there is no more")
    stream.add_argument("--every-s", type=_positive, default=10, metavar="N", help="look so often, seconds")
    stream.add_argument("--history-hours", type=_positive, default=6, metavar="N", help="looked at before a batch")
    stream.add_argument("--policy", type=Path, metavar="FILE", help="scope, thresholds and severities (TOML)")
    stream.add_argument("--personal-key", type=Path, metavar="FILE", help="opens headers that are encrypted")
    stream.add_argument("--json", action="store_true", help="a line of JSON for each batch")
    _add_spark(stream)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(f"{text} is less than 1")
    return number


def _add_trails(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data", type=Path, action="append", default=[], metavar="DIR", help="a gateway's data folder"
    )
    command.add_argument("--trail", type=Path, action="append", default=[], metavar="DIR", help="a folder of segments")


def _add_spark(command: argparse.ArgumentParser) -> None:
    command.add_argument("--master", default="", metavar="URL", help="Spark's master; without it this machine")
    command.add_argument("--remote", default="", metavar="URL", help="Spark Connect, sc://host:15002")
    command.add_argument("--memory", default=_MEMORY, metavar="SIZE", help="of Spark's driver (without --master: all)")
    command.add_argument("--log-format", default="text", choices=("text", "json"), help="form of the lines on stderr")


def _check_trails(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if not options.data and not options.trail:
        parser.error("the following arguments are required: --data or --trail")
    if options.master and options.remote:
        parser.error("name --master or --remote, not both")


def _check_run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    trails = len(options.data) + len(options.trail)
    if not trails and options.parquet is None:
        parser.error("the following arguments are required: --data, --trail or --parquet")
    if trails and options.parquet is not None:
        parser.error("name trails or --parquet, not both")
    if options.master and options.remote:
        parser.error("name --master or --remote, not both")
    if (options.public_key or options.digests) and trails != 1:
        parser.error("--public-key and --digests are of one gateway: name one trail")
    if options.from_us and options.until_us and options.from_us >= options.until_us:
        parser.error("--until is not later than --from")


def _add_bulk(bulk: argparse.ArgumentParser) -> None:
    _add_archive(bulk)
    bulk.add_argument("--converted", type=Path, metavar="DIR", help="what was made of them, under the same names")
    bulk.add_argument("--to", default="", choices=("mqrfh", "mqrfh2"), help="format that was wanted")
    bulk.add_argument("--out", type=Path, required=True, metavar="DIR", help="where result.json and report.html go")
    bulk.add_argument("--json", action="store_true", help="print result.json instead of the summary")
    _add_spark(bulk)


def _add_convert(convert: argparse.ArgumentParser) -> None:
    _add_archive(convert)
    convert.add_argument("--to", required=True, choices=("mqrfh", "mqrfh2"), help="format of the new headers")
    convert.add_argument("--out", type=Path, required=True, metavar="DIR", help="new folder for the result, Parquet")


def _add_archive(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--in",
        dest="source",
        type=Path,
        required=True,
        metavar="DIR",
        help="Parquet with the columns path or id, data, and where known format, ccsid, encoding; or a file a message",
    )
    command.add_argument("--mode", default="strict", choices=("strict", "extended"), help="strict: the nine fields")
