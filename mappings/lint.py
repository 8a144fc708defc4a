"""What a broker and a queue manager would say about a publish/subscribe message, found before anybody puts it.

Three parties check a message. MQPUT checks the folders of an MQRFH2, the broker checks the command, MQGET checks code
pages and byte orders when it converts. `lint` reads the headers as they do. For the command it gives the first error,
as the broker does; for folders of properties it gives every error. The caller may know more than the bytes say: the
queue, the CorrelId, the reply queue. Then `lint` applies the rules about those as well. Pure: bytes in, findings out.

MQPUT takes a folder that is one well-formed element (else MQRC_RFH_FORMAT_ERROR). It takes folder mq only without
groups, escaped characters, null values, names outside ASCII, white space other than U+0020, and without attribute
`content` on its tag (else MQRC_RFH_RESTRICTED_FORMAT_ERR).

Sources: IBM MQ documentation, "NameValueData (MQCHARn)", the command pages of queued publish/subscribe, and the pages
of the reason codes ("2334 (091E) (RC2334): MQRC_RFH_ERROR" and so on).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mappings.commands.command import (
    Command,
    DeletePublication,
    DeregisterSubscriber,
    Publish,
    RequestUpdate,
    find_command,
    read_command,
)
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.commands.response import read_response
from mappings.errors import CommandError, HeaderError, MappingError
from mappings.headers.chain import HeaderChain, HeaderPlace, read_header_chain
from mappings.headers.charset import encode_text
from mappings.headers.detection import announcement_of
from mappings.headers.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2
from mappings.reasons import Reason, reason_name
from mappings.topics.streams import CONTROL_QUEUE, DEFAULT_STREAM

_COMMAND_FOLDERS: Final = frozenset({"psc", "pscr"})


class Speaker(StrEnum):
    """The party that gives a reason code."""

    BROKER = "broker"  # in its answer, after the message was put
    MQPUT = "queue manager, MQPUT"  # before anything is put
    MQGET = "queue manager, MQGET with conversion"  # when an application reads the message


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the caller knows of a message beside its data. `lint` leaves out the rules about a value that is None."""

    queue_name: str | None = None
    correlation_identifier: bytes | None = None
    reply_to_queue: str | None = None
    streams: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. `offset` counts bytes from the beginning of the data.

    `error_position` is the position in the NameValueString, where the broker would report one as MQPSErrorPos.
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
    """Say what is wrong with a message, before anybody puts it: first what MQPUT says, then the broker.

    `data` is the message from its first header on. `format` (8 bytes, blank padded), `coded_char_set_id` and `encoding`
    are those of its MQMD; each that is not given is found from the first bytes. `circumstances` are what is known of
    the message beside its bytes; rules about what is not known are left out.

    Returns no finding for a message that a broker would take. Raises nothing: bytes that cannot be read are a finding.
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
    return (*_folder_findings(chain), *_command_findings(data, chain, circumstances or Circumstances()))


# -- folders, by MQPUT -------------------------------------------------------------------------------------------------

_RESTRICTED: Final = "mq"
_OTHER_SPACE: Final = re.compile(r"[^\S ]")
_NIL: Final = ("xsi:nil", "true")
_CONTENT: Final = re.compile(r"<mq\s[^>]*\bcontent\s*=")


def _folder_findings(chain: HeaderChain) -> Iterator[Finding]:
    """What MQPUT says about the folders beside the command."""
    for header in chain.headers:
        for folder in header.folders if isinstance(header, Mqrfh2) else ():
            if folder.name in _COMMAND_FOLDERS:
                continue
            try:
                _check_property_folder(folder)
            except MappingError as error:
                yield _finding(error, field=folder.name, offset=folder.offset)


def _check_property_folder(folder: Folder) -> None:
    """Raises HeaderError for a folder that MQPUT would refuse."""
    elements = folder.elements
    if folder.name != _RESTRICTED:
        return
    text = folder.text
    for element in elements:
        if element.children:
            raise _restricted(f"{element.name[:64]!a} is a group")
        if _NIL in element.attributes:
            raise _restricted(f"{element.name[:64]!a} is null")
        if not element.name.isascii():
            raise _restricted(f"{element.name[:64]!a} is not in ASCII")
    if "&" in text:
        raise _restricted("a value holds an escaped character")
    if _OTHER_SPACE.search(text):
        raise _restricted("it holds white space other than blanks")
    if _CONTENT.match(text):
        raise _restricted("its tag has the attribute content")


def _restricted(problem: str) -> HeaderError:
    return HeaderError(
        Reason.MQRC_RFH_RESTRICTED_FORMAT_ERR,
        f"folder mq has a restricted format, and {problem}",
        parameter=_RESTRICTED,
    )


# -- the command, by the broker ----------------------------------------------------------------------------------------


def _command_findings(data: bytes, chain: HeaderChain, circumstances: Circumstances) -> Iterator[Finding]:
    try:
        if _is_response(chain):
            read_response(chain)
            return
        command = read_command(chain)
    except MappingError as error:
        yield _finding(error, offset=_offset_of(error, chain), remark=_ignored_text(data, chain, error))
        return
    yield from map(_finding, _circumstantial_errors(command, chain, circumstances))


def _is_response(chain: HeaderChain) -> bool:
    """Whether a broker wrote the message. Its pscr stands in front of the failing command that it sends back."""
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
    """What breaks the rules about the MQMD and the queue, as far as the caller knows them."""
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
    """Whether a queue is part of the identity of the publisher or subscriber, and the command names none."""
    if isinstance(command, DeletePublication) or command.queue_name is not None:
        return False
    if isinstance(command, DeregisterSubscriber | RequestUpdate) and command.subscription_name is not None:
        return bool(command.topics)  # a SubName alone is identity enough
    if not isinstance(command, Publish):
        return True
    registers = PublicationOption.NO_REGISTRATION not in command.publication_options
    return registers and find_command(chain)[1] is not None  # MQRFH2 knows no registration of publishers


def _ignored_text(data: bytes, chain: HeaderChain, error: MappingError) -> str:
    """A remark on text behind a NUL, which may be the missing part: IBM's Java class writes NUL between pairs."""
    if error.reason_code not in (Reason.MQRC_RFH_PARM_MISSING, Reason.MQRC_RFH_STRING_ERROR):
        return ""
    for header, place in zip(chain.headers, chain.places, strict=True):
        start = place.offset + FIXED_LENGTH_BYTES
        if isinstance(header, Mqrfh) and data[start : place.offset + header.struc_length].partition(b"\0")[2].strip(
            b"\0 "
        ):
            return (
                "; a NUL ends the NameValueString, and text stands behind it: with IBM's Java class MQRFH use"
                " setNameValueString, because addNameValuePair writes a NUL between pairs"
            )
    return ""


# -- who says it, what to do, where it stands --------------------------------------------------------------------------

#: Who gives each reason code about a header, and what to do about it.
_ADVICE: Final = {
    Reason.MQRC_DLH_ERROR: (
        Speaker.MQPUT,
        "Write all 172 bytes of the dead-letter header, with StrucId 'DLH ' and Version 1.",
    ),
    Reason.MQRC_NOT_CONVERTED: (Speaker.MQGET, "Change the text, or use a code page that has all its characters."),
    Reason.MQRC_RFH_COMMAND_ERROR: (
        Speaker.BROKER,
        "Make MQPSCommand the first name that begins with MQPS (in psc: write one Command), and name a "
        "command that the format has.",
    ),
    Reason.MQRC_RFH_DUPLICATE_PARM: (
        Speaker.BROKER,
        "Give this parameter once; only topics, options and publication data may repeat.",
    ),
    Reason.MQRC_RFH_ERROR: (
        Speaker.BROKER,
        "Check StrucId, Version, StrucLength and the lengths behind it. Check that Format, CodedCharSetId "
        "and Encoding of the structure in front describe this one. Send one command in a message.",
    ),
    Reason.MQRC_RFH_FORMAT_ERROR: (
        Speaker.MQPUT,
        "Write each folder as one well-formed element. Escape & and <, and use no declarations, comments or CDATA.",
    ),
    Reason.MQRC_RFH_PARM_ERROR: (
        Speaker.BROKER,
        "Leave the parameter out, or spell it as the page of the command does: case matters.",
    ),
    Reason.MQRC_RFH_PARM_MISSING: (Speaker.BROKER, "Add the parameter; the command needs it."),
    Reason.MQRC_RFH_RESTRICTED_FORMAT_ERR: (
        Speaker.MQPUT,
        "Keep folder mq flat: no groups, no escaped characters, no null values, ASCII names, blanks as the only space.",
    ),
    Reason.MQRC_RFH_STRING_ERROR: (
        Speaker.BROKER,
        "Give every name a value. Quote an item that holds blanks or quotes, double the quotes inside it, "
        "and close it.",
    ),
    Reason.MQRC_SOURCE_CCSID_ERROR: (
        Speaker.MQGET,
        "Set CodedCharSetId to a known code page (1208 is UTF-8), and NameValueCCSID to 1208, 1200, 13488 or 17584.",
    ),
    Reason.MQRC_SOURCE_INTEGER_ENC_ERROR: (Speaker.MQGET, "Set Encoding to 273 (big-endian) or 546 (little-endian)."),
    Reason.MQRC_TARGET_CCSID_ERROR: (Speaker.MQGET, "Ask for a known code page: 1208 is UTF-8, 819 is ISO 8859-1."),
    Reason.MQRCCF_CORREL_ID_ERROR: (
        Speaker.BROKER,
        "Set MQMD.CorrelId to 24 bytes that are not all zero, or leave CorrelAsId out.",
    ),
    Reason.MQRCCF_DEL_OPTIONS_ERROR: (
        Speaker.BROKER,
        "Use Local, or no option. A number must be a sum of MQDELO values.",
    ),
    Reason.MQRCCF_FILTER_ERROR: (Speaker.BROKER, "Correct the filter expression, or leave it out."),
    Reason.MQRCCF_INCORRECT_Q: (
        Speaker.BROKER,
        "Put Publish and DeletePub on the queue of their stream, and all other commands on "
        "SYSTEM.BROKER.CONTROL.QUEUE.",
    ),
    Reason.MQRCCF_INCORRECT_STREAM: (
        Speaker.BROKER,
        "Put the message on the queue that has the stream's name, or name no stream.",
    ),
    Reason.MQRCCF_PUB_OPTIONS_ERROR: (
        Speaker.BROKER,
        "Use tokens as IBM spells them, or a sum of MQPUBO values. Only MQRFH has NoReg.",
    ),
    Reason.MQRCCF_Q_MGR_NAME_ERROR: (
        Speaker.BROKER,
        "Use up to 48 letters, digits and . _ / %, or leave it out: then MQMD.ReplyToQMgr counts.",
    ),
    Reason.MQRCCF_Q_NAME_ERROR: (
        Speaker.BROKER,
        "Use 1 to 48 letters, digits and . _ / %, or leave it out and set MQMD.ReplyToQ.",
    ),
    Reason.MQRCCF_REG_OPTIONS_ERROR: (
        Speaker.BROKER,
        "Use tokens as IBM spells them, or a sum of MQREGO values, and only those that the command and the "
        "format have.",
    ),
    Reason.MQRCCF_STREAM_ERROR: (
        Speaker.BROKER,
        "Name the stream as a queue is named: 1 to 48 letters, digits and . _ / %.",
    ),
    Reason.MQRCCF_SUB_IDENTITY_ERROR: (Speaker.BROKER, "Give SubIdentity 1 to 128 characters."),
    Reason.MQRCCF_SUB_NAME_ERROR: (Speaker.BROKER, "Give SubName 1 to 10240 characters."),
    Reason.MQRCCF_TOPIC_ERROR: (
        Speaker.BROKER,
        "Give 1 to 10240 characters without NUL. In MQRFH write %*, %? and %% for *, ? and % in a topic name.",
    ),
    Reason.MQRCCF_UNKNOWN_STREAM: (Speaker.BROKER, "Define the stream, or name one that is defined."),
}
_OTHER: Final = (Speaker.BROKER, "Look the reason code up in IBM's documentation.")


def _finding(error: MappingError, *, field: str | None = None, offset: int | None = None, remark: str = "") -> Finding:
    speaker, advice = _ADVICE.get(Reason(error.reason_code), _OTHER)
    return Finding(
        reason_code=error.reason_code,
        speaker=speaker,
        field=field or error.parameter,
        offset=error.offset if offset is None else offset,
        error_position=error.error_position,
        problem=error.hint + remark,
        advice=advice,
    )


def _offset_of(error: MappingError, chain: HeaderChain) -> int | None:
    """Where the text that an error is about stands, or else its string or folder; None without a command."""
    for header, place in zip(chain.headers, chain.places, strict=True):
        if isinstance(header, Mqrfh):
            return _in_string(error, header, place)
        if isinstance(header, Mqrfh2) and (folder := header.folder("psc") or header.folder("pscr")) is not None:
            return _in_folder(error.parameter or "", folder)
    return None


def _in_folder(text: str, folder: Folder) -> int:
    try:
        position = folder.text.find(text)
    except HeaderError:  # the bytes of the folder are no text
        return folder.offset
    return folder.offset if position < 1 else next(folder.byte_offsets([position]))


def _in_string(error: MappingError, header: Mqrfh, place: HeaderPlace) -> int:
    string = header.name_value_string
    position = error.error_position
    if position is None:
        position = max(string.find(error.parameter) if error.parameter else 0, 0)
    before = encode_text(string[:position], place.coded_char_set_id)
    return place.offset + FIXED_LENGTH_BYTES + len(before)
