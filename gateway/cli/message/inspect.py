"""`rfhbridge inspect`: shows every header of a message, byte by byte."""

from typing import Annotated

import typer

from gateway.cli.application import ExitCode
from gateway.cli.files import STANDARD_STREAM, read_input
from gateway.cli.message.descriptor_options import CodedCharSetIdOption, EncodingOption, FormatOption
from gateway.cli.message.inspection import Inspection, inspect_message, unreadable_message
from gateway.cli.message.view import inspection_json, inspection_lines
from gateway.cli.settings_options import JsonOption
from gateway.cli.terminal import write_json, write_line
from mappings.errors import MappingError
from mappings.headers.detection import announcement_of


def inspect(
    message: Annotated[
        str, typer.Argument(metavar="IN", help="File with the message data, headers first; - for standard input.")
    ] = STANDARD_STREAM,
    format: FormatOption = None,
    coded_char_set_id: CodedCharSetIdOption = None,
    encoding: EncodingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the meaning of a message's bytes.

    The command shows every header, field, folder, option and problem, each with its offset. StrucId and Version tell
    byte order and EBCDIC. Exit code 1 if the message has a problem.
    """
    data = read_input(message)
    inspection = inspect_data(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    if as_json:
        write_json(inspection_json(inspection, data))
    else:
        for line in inspection_lines(inspection, data):
            write_line(line)
    if inspection.problems:
        raise typer.Exit(ExitCode.FAILED)


def inspect_data(
    data: bytes, *, format: bytes | None = None, coded_char_set_id: int | None = None, encoding: int | None = None
) -> Inspection:
    """What a message holds. An option that is not given is as the message itself says."""
    try:
        announcement = announcement_of(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    except MappingError as error:
        return unreadable_message(error)
    return inspect_message(data, announcement)
