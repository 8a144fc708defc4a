"""`rfhbridge convert`: one message in, the same message with its header in the other format out."""

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.files import STANDARD_STREAM, read_input, write_output, write_whole
from gateway.cli.message_options import CodedCharSetIdOption, EncodingOption, FormatOption
from mappings.convert import Conversion, Mode
from mappings.convert import convert as convert_header
from mappings.detection import announcement_of
from mappings.table import Dialect

_log = logging.getLogger(__name__)


def convert(
    to: Annotated[Dialect, typer.Option("--to", help="Format of the new header.")],
    message: Annotated[
        str, typer.Argument(metavar="IN", help="File with the message data, headers first; - for standard input.")
    ] = STANDARD_STREAM,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="OUT", help="File for the new message; - for standard output.")
    ] = STANDARD_STREAM,
    mode: Annotated[
        Mode, typer.Option("--mode", help="strict: the nine mapped fields; extended: the subscription's names too.")
    ] = Mode.STRICT,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="File for what became of each field, as JSON.")
    ] = None,
    format: FormatOption = None,
    coded_char_set_id: CodedCharSetIdOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Convert a message to MQRFH or MQRFH2.

    The header chain is converted, the body stays as it is. Byte order and EBCDIC are found from StrucId and Version.
    A field that is dropped is no error: the report and standard error name it. On any error nothing is written to
    standard output.
    """
    _check_targets(output, report)
    data = read_input(message)
    announcement = announcement_of(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    conversion = convert_header(
        data,
        format=announcement.format,
        coded_char_set_id=announcement.coded_char_set_id,
        encoding=announcement.encoding,
        to=to,
        mode=mode,
    )
    if report is not None:
        write_whole(report, _report_bytes(conversion))
    converted = conversion.header + data[conversion.body_offset :]
    if output == STANDARD_STREAM:
        write_output(converted)
    else:
        write_whole(Path(output), converted)
    for field in conversion.report.dropped:
        _log.warning("field dropped name=%s reason=%s", field.name, field.reason)


def _check_targets(output: str, report: Path | None) -> None:
    """Standard output and the new message's file belong to the message alone."""
    if report is not None and (str(report) == STANDARD_STREAM or report == Path(output)):
        raise typer.BadParameter("the report needs a file of its own", param_hint="'--report'")


def _report_bytes(conversion: Conversion) -> bytes:
    """The report, and the Format that the MQMD of the new message must say."""
    report = {"format": conversion.format.decode("ascii").rstrip(), **conversion.report.as_dict()}
    return json.dumps(report, ensure_ascii=False, indent=2).encode() + b"\n"
