"""`rfhbridge convert`: gives messages a header in the other format."""

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.application import CommandFailed
from gateway.cli.files import STANDARD_STREAM, read_input, write_output, write_whole
from gateway.cli.message.descriptor_options import CodedCharSetIdOption, EncodingOption, FormatOption
from gateway.cli.message.folder import FolderConversion
from gateway.cli.settings_options import folder_here
from gateway.cli.terminal import write_line
from gateway.conversion.message import ConversionRequest, ConvertedMessage, converted_message
from mappings.conversion.convert import Folders, Mode
from mappings.table import Dialect

_log = logging.getLogger(__name__)


def convert(
    to: Annotated[Dialect, typer.Option("--to", help="Format of the new header.")],
    message: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="File with the message data, headers first; - for standard input; or a folder of files."
        ),
    ] = STANDARD_STREAM,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUT", help="File for the new message; - for standard output.")
    ] = STANDARD_STREAM,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", parser=folder_here, metavar="DIR", help="Folder for the new messages, if IN is a folder."
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="strict: the nine mapped fields; extended: the subscription's names too.")
    ] = Mode.STRICT,
    folders: Annotated[
        Folders,
        typer.Option("--folders", help="Folders beside psc, such as usr and jms: dropped, or kept behind an MQRFH."),
    ] = Folders.DROPPED,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="File for the result of each field, as JSON; for a folder as JSON lines."
        ),
    ] = None,
    format: FormatOption = None,
    coded_char_set_id: CodedCharSetIdOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Convert a message, or a folder of messages, to MQRFH or MQRFH2.

    The headers are converted, and the body stays as it is. StrucId and Version tell byte order and EBCDIC. A field that
    the other format lacks is dropped; the report and standard error name it. After an error nothing is written to
    standard output.

    With a folder and --out, each file in the folder is one message, and the new file has the same name. The originals
    stay. DIR/report.jsonl (or --report) has a line for each. Exit code 1 if one of them could not be converted.
    """
    wanted = ConversionRequest(
        to=to, mode=mode, folders=folders, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding
    )
    is_folder = message != STANDARD_STREAM and Path(message).is_dir()
    if out is None and not is_folder:
        _check_targets(output, report)
        _convert_message(message, output, report, wanted)
        return
    if not is_folder:
        raise typer.BadParameter(
            f"it is for a folder of messages, and {message!r} is not a folder", param_hint="'--out'"
        )
    if out is None or output != STANDARD_STREAM:
        raise typer.BadParameter(
            "a folder of messages needs another folder for the new ones: IN and --out DIR", param_hint="'--out'"
        )
    _convert_folder(FolderConversion(Path(message), out, report, wanted))


def _convert_message(message: str, output: str, report: Path | None, wanted: ConversionRequest) -> None:
    converted = converted_message(read_input(message), wanted)
    if report is not None:
        write_whole(report, _report_bytes(converted))
    if output == STANDARD_STREAM:
        write_output(converted.data)
    else:
        write_whole(Path(output), converted.data)
    for field in converted.report.dropped:
        _log.warning("field dropped name=%s reason=%s", field.name, field.reason)


def _convert_folder(conversion: FolderConversion) -> None:
    """Converts a folder and prints the result; a terminal shows a progress bar meanwhile."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("converting", total=len(conversion.files))
        conversion.run(lambda: progress.advance(task))
    counts = conversion.counts
    numbers = f"{counts.converted} converted, {counts.unchanged} unchanged, {counts.failed} failed"
    write_line(f"{numbers}; report: {conversion.report}")
    if counts.failed:
        raise CommandFailed(
            f"{counts.failed} of {len(conversion.files)} files could not be converted; the report says why"
        )


def _check_targets(output: str, report: Path | None) -> None:
    """Refuses a report on standard output, or in the file of the new message."""
    if report is not None and (str(report) == STANDARD_STREAM or report == Path(output)):
        raise typer.BadParameter("the report needs a file of its own", param_hint="'--report'")


def _report_bytes(converted: ConvertedMessage) -> bytes:
    """The report, with the Format that belongs into the MQMD of the new message."""
    report = {"format": converted.format, **converted.report.as_dict()}
    return json.dumps(report, ensure_ascii=False, indent=2).encode() + b"\n"
