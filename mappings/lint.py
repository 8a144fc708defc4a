"""What a broker or a queue manager would say about a publish/subscribe message, before anybody puts it.

The headers are read as a broker reads them; the first error of a command is what the broker answers. Beside it every
folder of properties is held to the rules that a queue manager's MQPUT applies, and where the caller knows more than the
bytes (the queue, the CorrelId, the reply queue) the rules about those too. Pure: bytes in, findings out.
Sources: IBM MQ documentation, the command pages of queued publish/subscribe and the pages of the reason codes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mappings.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RequestUpdate,
    find_command,
    read_command,
)
from mappings.detection import announcement_of
from mappings.errors import CommandError, MappingError
from mappings.header_chain import HeaderChain, read_header_chain
from mappings.lint_advice import Speaker, advice_on, speaker_of
from mappings.lint_folders import check_property_folder
from mappings.lint_place import place_of
from mappings.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.mqrfh2 import Mqrfh2
from mappings.options import PublicationOption, RegistrationOption
from mappings.reasons import Reason, reason_name
from mappings.response import read_response
from mappings.streams import DEFAULT_STREAM

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
_COMMAND_FOLDERS = frozenset({"psc", "pscr"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a message beside its data; None where it is not known, and then nothing is said about it."""

    queue_name: str | None = None
    correlation_identifier: bytes | None = None
    reply_to_queue: str | None = None
    streams: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. `offset` counts bytes from the beginning of the data.

    `error_position` is the position in the NameValueString that a broker reports as MQPSErrorPos, where it does.
    """

    reason_code: int
    speaker: Speaker
    field: str | None
    offset: int | None
    error_position: int | None
    problem: str
    advice: str

    @property
    def reason_name(self) -> str:
        """IBM's name of the reason code."""
        return reason_name(self.reason_code)

    def as_dict(self) -> dict[str, object]:
        """The finding as plain values, for JSON."""
        return {
            "reason_code": self.reason_code,
            "reason_name": self.reason_name,
            "speaker": self.speaker.value,
            "field": self.field,
            "offset": self.offset,
            "error_position": self.error_position,
            "problem": self.problem,
            "advice": self.advice,
        }


def lint(
    data: bytes,
    *,
    format: bytes | None = None,
    coded_char_set_id: int | None = None,
    encoding: int | None = None,
    circumstances: Circumstances | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with a message, first what the broker would answer first; nothing for one that it would take.

    The three arguments describe the message as its MQMD does; what is not given is found from the first bytes.
    """
    try:
        announced = announcement_of(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        chain = read_header_chain(
            data,
            format=announced.format,
            coded_char_set_id=announced.coded_char_set_id,
            encoding=announced.encoding,
        )
    except MappingError as error:
        return (_finding(error),)
    return (*_folder_findings(data, chain), *_command_findings(data, chain, circumstances or Circumstances()))


def _folder_findings(data: bytes, chain: HeaderChain) -> Iterator[Finding]:
    """What MQPUT says of the folders beside the command."""
    for header, place in zip(chain.headers, chain.places, strict=True):
        for folder in header.folders if isinstance(header, Mqrfh2) else ():
            if folder.name in _COMMAND_FOLDERS:
                continue
            try:
                check_property_folder(folder)
            except MappingError as error:
                yield _finding(error, field=folder.name, offset=data.find(folder.raw, place.offset))


def _command_findings(data: bytes, chain: HeaderChain, circumstances: Circumstances) -> Iterator[Finding]:
    try:
        if _is_response(chain):
            read_response(chain)
            return
        command = read_command(chain)
    except MappingError as error:
        yield _finding(error, offset=place_of(error, data, chain), remark=_ignored_text(data, chain, error))
        return
    yield from map(_finding, _circumstantial_errors(command, chain, circumstances))


def _is_response(chain: HeaderChain) -> bool:
    """Whether a broker wrote the message: its pscr stands in front of the failing command that comes with it."""
    for header in chain.headers:
        for folder in header.folders if isinstance(header, Mqrfh2) else ():
            if folder.name in _COMMAND_FOLDERS:
                return folder.name == "pscr"
        if isinstance(header, Mqrfh):
            return header.name_value_string.lstrip(" ").startswith("MQPSCompCode")
    return False


def _circumstantial_errors(
    command: Command, chain: HeaderChain, circumstances: Circumstances
) -> Iterator[CommandError]:
    """The rules about a message's MQMD and queue, as far as those are known."""
    queue, stream = circumstances.queue_name, command.stream_name
    if queue is not None:
        yield from _queue_errors(command, queue)
    if stream is not None and circumstances.streams is not None and stream not in circumstances.streams:
        yield CommandError(Reason.MQRCCF_UNKNOWN_STREAM, f"there is no stream {stream}", parameter=stream)
    identifier = circumstances.correlation_identifier
    if _correlates(command) and identifier is not None and not identifier.strip(b"\0"):
        yield CommandError(
            Reason.MQRCCF_CORREL_ID_ERROR, "CorrelAsId makes CorrelId part of the identity, and it is all zeros"
        )
    if circumstances.reply_to_queue == "" and _needs_queue(command, chain):
        yield CommandError(Reason.MQRCCF_Q_NAME_ERROR, "neither QName nor MQMD.ReplyToQ names a queue")


def _queue_errors(command: Command, queue: str) -> Iterator[CommandError]:
    publishes = isinstance(command, Publish | DeletePublication)
    if publishes == (queue == CONTROL_QUEUE):
        right = f"the queue of its stream, {command.stream_name or DEFAULT_STREAM}" if publishes else CONTROL_QUEUE
        yield CommandError(Reason.MQRCCF_INCORRECT_Q, f"{command.verb} belongs on {right}", parameter=queue)
    elif publishes and command.stream_name not in (None, queue):
        yield CommandError(
            Reason.MQRCCF_INCORRECT_STREAM,
            f"the stream is {command.stream_name} and the queue {queue}",
            parameter=command.stream_name,
        )


def _correlates(command: Command) -> bool:
    if isinstance(command, DeletePublication):
        return False
    publication = command.publication_options if isinstance(command, Publish) else PublicationOption(0)
    return (
        RegistrationOption.CORREL_ID_AS_IDENTITY in command.registration_options
        or PublicationOption.CORREL_ID_AS_IDENTITY in publication
    )


def _needs_queue(command: Command, chain: HeaderChain) -> bool:
    """Whether the identity of a publisher or subscriber needs a queue that the command does not name."""
    if isinstance(command, DeletePublication) or command.queue_name is not None:
        return False
    if isinstance(command, DeregisterSubscriber | RequestUpdate) and command.subscription_name is not None:
        return bool(command.topics)  # a SubName alone is identity enough
    if not isinstance(command, Publish):
        return True
    registers = PublicationOption.NO_REGISTRATION not in command.publication_options
    return registers and find_command(chain)[1] is not None  # MQRFH2 knows no registration of publishers


def _ignored_text(data: bytes, chain: HeaderChain, error: MappingError) -> str:
    """A word about text behind a NUL, which may be what is missing: IBM's Java class writes NUL between pairs."""
    if error.reason_code not in (Reason.MQRC_RFH_PARM_MISSING, Reason.MQRC_RFH_STRING_ERROR):
        return ""
    for header, place in zip(chain.headers, chain.places, strict=True):
        start = place.offset + FIXED_LENGTH_BYTES
        if isinstance(header, Mqrfh) and data[start : place.offset + header.struc_length].partition(b"\0")[2].strip(
            b"\0 "
        ):
            return (
                "; NUL ends a NameValueString, and there is text behind one: with IBM's Java class MQRFH use"
                " setNameValueString, since addNameValuePair writes NUL between pairs"
            )
    return ""


def _finding(error: MappingError, *, field: str | None = None, offset: int | None = None, remark: str = "") -> Finding:
    return Finding(
        reason_code=error.reason_code,
        speaker=speaker_of(error.reason_code),
        field=field or error.parameter,
        offset=error.offset if offset is None else offset,
        error_position=error.error_position,
        problem=error.hint + remark,
        advice=advice_on(error.reason_code),
    )
