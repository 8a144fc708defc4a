"""A broker's answer to a command, in both formats.

In MQRFH each reason is `MQPSCompCode n MQPSReason n MQPSReasonText name` and the names that identify its cause. The
string ends with NUL, and the string of the failing command follows as data. In MQRFH2 folder pscr has Completion and
one Response for each reason, and the psc folder of the failing command comes with it. Sources: IBM MQ documentation,
"Broker Response message"; WebSphere MQ V6 Publish/Subscribe User's Guide, "Error codes"; IBM's samples AMQSRESA and
AMQSPR2A.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

from mappings.errors import NameValueError
from mappings.headers.chain import FORMAT_NONE, FORMAT_STRING, HeaderChain
from mappings.headers.charset import UTF_8, encode_text
from mappings.headers.mqrfh import Mqrfh, write_mqrfh_string
from mappings.headers.mqrfh2 import Element, Folder, Mqrfh2, elements_text, write_mqrfh2
from mappings.headers.name_value import NameValues, format_name_value_string
from mappings.reasons import Reason, reason_name
from mappings.table import ROWS_BY_NAME, Dialect

_WITHOUT_COMMAND = frozenset({Reason.MQRC_RFH_ERROR, Reason.MQRCCF_MSG_LENGTH_ERROR})  # the command is not sent back
MQRFH_DETAILS = frozenset({"ErrorId", "ErrorPos", "ParmId"})  # MQRFH2 defines no elements for them
_NOT_IN_PSCR = MQRFH_DETAILS - {"ParmId"}  # a parameter at fault is named all the same, as other causes are
_NUMBER = re.compile(r"[0-9]{1,10}")
_WORDS = ("ok", "warning", "error")


class Completion(IntEnum):
    """How a command ended; the values of MQPSCompCode."""

    OK = 0
    WARNING = 1
    FAILED = 2

    @property
    def word(self) -> str:
        """The same in folder pscr."""
        return _WORDS[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseReason:
    """One reason, and the values that identify its cause under their psc names (Topic, RegOpt, ParmId, ...)."""

    reason_code: int
    fields: NameValues = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer. `verb` is the command answered; `fields` are what FullResp returns, under psc names.

    `command_folder` is, on reading an MQRFH2 that is not ok, the psc folder of the failing command.
    """

    completion: Completion
    reasons: tuple[ResponseReason, ...] = ()
    verb: str | None = None
    fields: NameValues = ()
    command_folder: bytes = b""


def write_response(
    response: Response, dialect: Dialect, *, coded_char_set_id: int, encoding: int, failing_command: bytes = b""
) -> bytes:
    """Write a broker's answer: the whole data of the message.

    `coded_char_set_id` and `encoding` are those of the MQMD in front. `failing_command` is the NameValueString (MQRFH,
    already encoded) or the psc folder (MQRFH2, UTF-8) of a command that did not end well; it is left out where IBM
    leaves it out (ok, and reasons 2334 and 3016).
    Raises ConversionError, NameValueError or HeaderError for a value that the format or the code page cannot hold.
    Source: IBM MQ documentation, "Broker Response message".
    """
    command = failing_command or response.command_folder
    first = response.reasons[0].reason_code if response.reasons else Reason.MQRC_NONE
    if response.completion is Completion.OK or first in _WITHOUT_COMMAND:
        command = b""
    if dialect is Dialect.MQRFH:
        return _write_mqrfh_response(response, command, coded_char_set_id=coded_char_set_id, encoding=encoding)
    pscr = pscr_folder(response).encode()
    return write_mqrfh2(
        (pscr, command) if command else (pscr,),
        format=FORMAT_NONE,
        next_coded_char_set_id=UTF_8,
        next_encoding=encoding,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
    )


def read_response(chain: HeaderChain) -> Response:
    """Read a broker's answer: the pscr folder of a message, or else its MQRFH.

    Reason codes are IBM's numbers; values have their psc names, whichever format they came in.
    Raises NameValueError (MQRC_RFH_STRING_ERROR) where there is no answer, or a number in it is not a number, and
    HeaderError for a malformed folder.
    Source: IBM MQ documentation, "Broker Response message".
    """
    for header in chain.headers:
        if isinstance(header, Mqrfh2) and (folder := header.folder("pscr")) is not None:
            return read_pscr(folder, header.folder("psc"))
        if isinstance(header, Mqrfh):
            return read_response_pairs(header.pairs)
    raise _response_error("no header in this message carries a response")


def response_string(response: Response, coded_char_set_id: int) -> bytes:
    """The NameValueString of an answer: encoded, always ended by NUL, filled with NULs to a multiple of 4 bytes."""
    string = encode_text(format_name_value_string(_mqrfh_pairs(response)), coded_char_set_id)
    return string + bytes(1 + -(len(string) + 1) % 4)


def pscr_folder(response: Response) -> str:
    """The folder pscr of an answer."""
    return f"<pscr>{_pscr_text(response)}</pscr>"


def _write_mqrfh_response(response: Response, command: bytes, *, coded_char_set_id: int, encoding: int) -> bytes:
    header = write_mqrfh_string(
        response_string(response, coded_char_set_id),
        format=FORMAT_STRING if command else FORMAT_NONE,
        next_coded_char_set_id=coded_char_set_id,
        next_encoding=encoding,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
    )
    return header + command


def _mqrfh_pairs(response: Response) -> NameValues:
    verb: NameValues = () if response.verb is None else (("MQPSCommand", response.verb),)
    pairs: list[tuple[str, str]] = []
    for reason in response.reasons or (ResponseReason(reason_code=Reason.MQRC_NONE),):
        pairs += (
            ("MQPSCompCode", str(int(response.completion))),
            ("MQPSReason", str(int(reason.reason_code))),
            ("MQPSReasonText", reason_name(reason.reason_code)),
            *verb,
            *((mqrfh_name(name), value) for name, value in reason.fields),
        )
        verb = ()
    return (*pairs, *((mqrfh_name(name), value) for name, value in response.fields))


def _pscr_text(response: Response) -> str:
    text = elements_text((("Completion", response.completion.word),))
    if response.fields:
        verb: NameValues = () if response.verb is None else (("Command", response.verb),)
        text += elements_text((*verb, *response.fields))
    for reason in response.reasons:
        fields = tuple(pair for pair in reason.fields if pair[0] not in _NOT_IN_PSCR)
        text += f"<Response>{elements_text((('Reason', str(int(reason.reason_code))), *fields))}</Response>"
    return text


def mqrfh_name(name: str) -> str:
    """The MQRFH name of what psc or pscr calls by another."""
    row = ROWS_BY_NAME[Dialect.MQRFH2].get(name)
    return (row.mqrfh if row is not None else None) or f"MQPS{name}"


def psc_name(name: str) -> str:
    """The psc name of what MQRFH calls by another."""
    row = ROWS_BY_NAME[Dialect.MQRFH].get(name)
    return row.key if row is not None else name.removeprefix("MQPS")


def read_pscr(pscr: Folder, psc: Folder | None = None) -> Response:
    """The answer in a folder pscr, and the failing command that came with it."""
    completion: Completion | None = None
    verb: str | None = None
    reasons: list[ResponseReason] = []
    fields: list[tuple[str, str]] = []
    for element in pscr.elements:
        if element.name == "Completion":
            completion = _completion_of_word(element.text)
        elif element.name == "Response":
            reasons.append(_read_reason(element))
        elif element.name == "Command":
            verb = element.text
        else:
            fields.append((element.name, element.text))
    if completion is None:
        raise _response_error("pscr has no Completion")
    return Response(
        completion=completion,
        reasons=tuple(reasons),
        verb=verb,
        fields=tuple(fields),
        command_folder=psc.raw if psc is not None else b"",
    )


def _read_reason(response: Element) -> ResponseReason:
    pairs = tuple((element.name, element.text) for element in response.children)
    code = next((value for name, value in pairs if name == "Reason"), "")
    return ResponseReason(reason_code=_number(code), fields=tuple(pair for pair in pairs if pair[0] != "Reason"))


def read_response_pairs(pairs: NameValues) -> Response:
    """The answer in the pairs of an MQRFH; each MQPSCompCode begins the group of another reason."""
    if not pairs or pairs[0][0] != "MQPSCompCode":
        raise _response_error("the NameValueString does not begin with MQPSCompCode")
    completion, verb = Completion.OK, None
    groups: list[tuple[int, list[tuple[str, str]]]] = []
    for name, padded in pairs:
        value = padded.rstrip(" ")
        if name == "MQPSCompCode":
            completion = max(completion, _completion_of_number(value))
            groups.append((0, []))
        elif name == "MQPSReason":
            groups[-1] = (_number(value), groups[-1][1])
        elif name == "MQPSCommand":
            verb = value if verb is None else verb
        elif name != "MQPSReasonText":
            groups[-1][1].append((psc_name(name), value))
    if completion is Completion.OK:
        return Response(completion=completion, verb=verb, fields=tuple(pair for _, group in groups for pair in group))
    reasons = tuple(ResponseReason(reason_code=code, fields=tuple(fields)) for code, fields in groups)
    return Response(completion=completion, reasons=reasons, verb=verb)


def _completion_of_word(word: str) -> Completion:
    if word not in _WORDS:
        raise _response_error(f"Completion {word[:64]!a} is none of ok, warning, error")
    return Completion(_WORDS.index(word))


def _completion_of_number(value: str) -> Completion:
    number = _number(value)
    if number > Completion.FAILED:
        raise _response_error(f"MQPSCompCode {number} is none of 0, 1, 2")
    return Completion(number)


def _number(value: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise _response_error(f"{value[:64]!a} is not a decimal number")
    return int(value)


def _response_error(problem: str) -> NameValueError:
    return NameValueError(Reason.MQRC_RFH_STRING_ERROR, f"not a response: {problem}")
