"""The options of every command on the command line: those of the table (options.py), and the rules between them."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from spark_audit.commands.terminal import USAGE
from spark_audit.location import Location, UnknownLocation, local_folder
from spark_audit.options import COMMANDS, Kind, Option
from spark_audit.period import moment_of, moment_text
from spark_audit.remote_location import location_of

_PROGRAM: Final = "python -m spark_audit"
#: Commands that print one result and have no log.
_WITHOUT_LOG: Final = "convert"


class _Parser(argparse.ArgumentParser):
    """A parser whose wrong use ends with exit code 3 and one line, as in every audit command."""

    def error(self, message: str) -> NoReturn:
        command = self.prog if self.prog.endswith("convert") else self.prog.replace(_PROGRAM, "rfhbridge audit")
        self.exit(USAGE, f"{command}: {message} (see `{command} --help`)\n")


def parsed(arguments: Sequence[str] | None, description: str) -> argparse.Namespace:
    """The options of a command line. Wrong use ends the process with 3."""
    parser = _Parser(prog=_PROGRAM, description=description, formatter_class=argparse.RawTextHelpFormatter)
    parsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name, command in COMMANDS.items():
        of_command = parsers.add_parser(name, help=command.help)
        for option in command.options:
            _add(of_command, option)
        if name != _WITHOUT_LOG:
            of_command.add_argument(
                "--log-format", default="text", choices=("text", "json"), help="Form of the lines on standard error."
            )
    options = parser.parse_args(arguments)
    _check(parsers.choices[options.command], options)
    return options


def _add(parser: argparse.ArgumentParser, option: Option) -> None:
    if option.kind is Kind.FLAG:
        parser.add_argument(option.flag, dest=option.key, action="store_true", help=option.help)
        return
    is_path = option.kind in (Kind.FOLDER, Kind.LOCATION, Kind.FILE)
    parser.add_argument(
        option.flag,
        dest=option.key,
        type=_TYPES[option.kind],
        action="append" if option.repeats else "store",
        default=[] if option.repeats else None if is_path else option.default,
        required=option.is_required,
        choices=option.choices or None,
        metavar=None if option.choices else option.metavar or option.kind.value,
        help=option.help,
    )


def _location(text: str) -> Location:
    try:
        return location_of(text)
    except UnknownLocation as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _folder(text: str) -> Path:
    try:
        return local_folder(text)
    except UnknownLocation as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _size(text: str) -> str:
    if not re.fullmatch("[1-9][0-9]*[kmgtKMGT]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of memory such as 512m or 2g")
    return text


def _moment(text: str) -> str:
    """A time in one form. A missing time stays missing."""
    try:
        return moment_text(moment_of(text)) if text else ""
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time (write 2026-11-20, or 2026-11-20T07:00:00Z with its zone)"
        ) from None


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(f"{text} is less than 1")
    return number


_TYPES: Final[dict[Kind, Callable[[str], object]]] = {
    Kind.FOLDER: _folder,
    Kind.LOCATION: _location,
    Kind.FILE: Path,
    Kind.TEXT: str,
    Kind.MOMENT: _moment,
    Kind.COUNT: _count,
    Kind.SIZE: _size,
}


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Checks the rules between options. A broken rule ends the process."""
    given = vars(options)
    if given.get("master") and given.get("remote"):
        parser.error("give --master or --remote, not both")
    if "trail" not in given:
        return
    trails, parquet = len(options.data) + len(options.trail), given.get("parquet")
    if not trails and parquet is None:
        one_of = "--data, --trail or --parquet" if "parquet" in given else "--data or --trail"
        parser.error(f"the following arguments are required: {one_of}")
    if trails and parquet is not None:
        parser.error("give trails or --parquet, not both")
    if (given.get("public_key") or given.get("digests")) and trails != 1:
        parser.error("--public-key and --digests belong to one gateway: name one trail")
    _check_state(parser, given)
    begin, end = given.get("from_time"), given.get("until_time")
    if begin and end and moment_of(begin) >= moment_of(end):
        parser.error("--until must be later than --from")


def _check_state(parser: argparse.ArgumentParser, given: Mapping[str, object]) -> None:
    """Checks the rules for an audit that keeps its state."""
    wanted = [flag for flag in ("with_state", "since_state") if given.get(flag)]
    if not wanted:
        return
    name = f"--{wanted[-1].replace('_', '-')}"
    if not given.get("sign"):
        parser.error(f"{name} needs --sign: a state that nobody signed could be anybody's")
    if given.get("parquet"):
        parser.error(f"{name} is for trails, not for --parquet")
    if given.get("from_time") or given.get("until_time"):
        parser.error(f"{name} is for whole trails, not for a period")
