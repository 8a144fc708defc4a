"""`rfhbridge lint`: tells the answers of a broker and a queue manager before anybody puts the message."""

import json
from typing import Annotated, Final

import typer

from gateway.cli.files import STANDARD_STREAM, read_input, write_output
from gateway.cli.message.descriptor_options import CodedCharSetIdOption, EncodingOption, FormatOption, identifier
from mappings.lint import Circumstances, Finding
from mappings.lint import lint as lint_message

#: The exit code of a message with findings; 0 is a clean one, 2 wrong use.
_FINDINGS: Final = 1


def lint(
    message: Annotated[
        str, typer.Argument(metavar="IN", help="File with the message data, headers first; - for standard input.")
    ] = STANDARD_STREAM,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: an array of findings.")] = False,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="QUEUE", help="The queue on which the message will be put.")
    ] = None,
    correl_id: Annotated[
        bytes | None,
        typer.Option("--correl-id", parser=identifier, metavar="HEX", help="MQMD.CorrelId of the message."),
    ] = None,
    reply_to: Annotated[
        str | None, typer.Option("--reply-to", metavar="QUEUE", help="MQMD.ReplyToQ, an empty text for none.")
    ] = None,
    format: FormatOption = None,
    coded_char_set_id: CodedCharSetIdOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Show a broker's answer to a message.

    Each finding names the reason code, the program that would return it, the field and its offset, and what to do. Exit
    code 0: a broker would take the message; 1: there are findings; 2: wrong use.
    """
    findings = lint_message(
        read_input(message),
        format=format,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
        circumstances=Circumstances(queue_name=queue, correlation_identifier=correl_id, reply_to_queue=reply_to),
    )
    write_output(_json_of(findings) if as_json else _text_of(findings))
    if findings:
        raise typer.Exit(_FINDINGS)


def _json_of(findings: tuple[Finding, ...]) -> bytes:
    return json.dumps([finding.as_dict() for finding in findings], ensure_ascii=False, indent=2).encode() + b"\n"


def _text_of(findings: tuple[Finding, ...]) -> bytes:
    if not findings:
        return b"clean: a broker would take this message\n"
    return "\n".join(_lines(finding) for finding in findings).encode()


def _lines(finding: Finding) -> str:
    where = [] if finding.offset is None else [f"byte {finding.offset}"]
    where += [] if finding.error_position is None else [f"ErrorPos {finding.error_position}"]
    where += [] if finding.field is None else [f"field {finding.field[:64]!a}"]
    return (
        f"{finding.reason_name} ({finding.reason_code}), said by: {finding.speaker.value}\n"
        f"  where: {', '.join(where) or 'the message as a whole'}\n"
        f"  what:  {finding.problem}\n"
        f"  do:    {finding.advice}\n"
    )
