"""Examines a captured message: its headers, whether the other format can hold it, and the losses of a conversion.

If the archive also has the converted message, the conversion is performed again and compared.

A message may come without its MQMD. Then the first bytes tell the format and encoding of the first header:

    bytes 0 to 3    StrucId: "RFH " or "DLH ", in ASCII or in EBCDIC, whose pages agree in these letters
    bytes 4 to 7    Version, in the byte order of the header

A header in EBCDIC has the page of its own CodedCharSetId if that names an EBCDIC page, else page 500. (The field
describes the data behind the header.) Source: IBM MQ, "MQRFH", "MQRFH2", "MQDLH".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from spark_audit.record import ConversionKind
from spark_audit.reperform.broker_response import BrokerResponse, broker_response_of
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import Reason, UnreadableBytes
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header import MQDLH, MQRFH, MQRFH2, Header, Surroundings, read_headers
from spark_audit.reperform.meaning import Meaning, meaning_of
from spark_audit.reperform.refusal import refusals
from spark_audit.reperform.service import EXTENDED_NAMES, VERSIONS, has_header_of, left_out_options
from spark_audit.reperform.table import NEEDING, ONLY_IN_MQRFH, OPTION_ELEMENTS, TO_NAME

_UTF_8: Final = 1208
_EBCDIC_PAGES: Final = frozenset({37, 273, 500, 1140})
_EBCDIC_INTERNATIONAL: Final = 500
_BYTE_ORDERS: Final[tuple[tuple[Literal["big", "little"], int], ...]] = (("big", 273), ("little", 546))
_FORMATS: Final = {("RFH ", 1): MQRFH, ("RFH ", 2): MQRFH2, ("DLH ", 1): MQDLH}
#: Offset of the field in which a structure names the code page of the data behind it.
_CODED_CHAR_SET_ID: Final = {"RFH ": 16, "DLH ": 112}
#: Headers that may stand in front, and that this module cannot skip.
_OTHERS: Final = ("CIH ", "IIH ", "DH  ", "MDE ", "RMH ", "WIH ")
_STRUC_IDS: Final = {
    name.encode(codec): (name, codec == "cp500")
    for name in (*_CODED_CHAR_SET_ID, *_OTHERS)
    for codec in ("ascii", "cp500")
}
_DETECTABLE_BYTES: Final = 8


class UnknownHeader(Exception):
    """A header that this module cannot skip stands in front, so the message cannot be judged."""


def announced(
    data: bytes, *, format: str | None = None, coded_char_set_id: int | None = None, encoding: int | None = None
) -> Surroundings:
    """Format, code page and encoding of the first header. Known values go before values found in the bytes.

    Raises UnreadableBytes if values are missing in both, and UnknownHeader for a header that this module cannot skip.
    """
    check_known(format or "")
    if format is not None and coded_char_set_id is not None and encoding is not None:
        return Surroundings(format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    found = _found(data)
    return Surroundings(
        format=found.format if format is None else format,
        coded_char_set_id=found.coded_char_set_id if coded_char_set_id is None else coded_char_set_id,
        encoding=found.encoding if encoding is None else encoding,
    )


def check_known(format: str) -> None:
    """Raises UnknownHeader if a Format announces a header that this module cannot skip."""
    if format in ("MQCICS", "MQIMS") or (format.startswith("MQH") and format not in (MQRFH, MQRFH2)):
        raise UnknownHeader(f"Format {format} announces a header that the audit does not walk over")


def _found(data: bytes) -> Surroundings:
    name, in_ebcdic = _STRUC_IDS.get(data[:4], ("", False))
    if name in _OTHERS:
        raise UnknownHeader(f"the message begins with StrucId {name!r}, a header that the audit does not walk over")
    for order, encoding in _BYTE_ORDERS if len(data) >= _DETECTABLE_BYTES else ():
        format = _FORMATS.get((name, int.from_bytes(data[4:8], order)))
        if format is not None:
            page = _ebcdic_page(data, name, order) if in_ebcdic else _UTF_8
            return Surroundings(format=format, coded_char_set_id=page, encoding=encoding)
    if not data:
        raise UnreadableBytes("the message is empty")
    if not name:
        raise UnreadableBytes(f"the message begins with {data[:4].hex(' ')}, which is the StrucId of no header")
    raise UnreadableBytes(f"StrucId {name!r} without a Version that there is", 4)


def _ebcdic_page(data: bytes, name: str, order: Literal["big", "little"]) -> int:
    offset = _CODED_CHAR_SET_ID[name]
    following = int.from_bytes(data[offset : offset + 4], order)
    return following if following in _EBCDIC_PAGES else _EBCDIC_INTERNATIONAL


_PREFIX: Final = "MQPS"
_FORMAT_NAMES: Final = {1: MQRFH, 2: MQRFH2}
_EXTENDED: Final = "extended"

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Message data from its first header on, with the known fields of its MQMD (None: find it in the bytes)."""

    data: bytes
    format: str | None = None
    coded_char_set_id: int | None = None
    encoding: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedConversion:
    """The conversion to examine: `target` is mqrfh or mqrfh2; "": the format that the message does not have."""

    target: str = ""
    mode: str = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a message cannot be read or converted: IBM MQ's reason code, and the byte at fault (-1: none)."""

    reason: Reason
    what: str
    offset: int = -1

    def __str__(self) -> str:
        where = "" if self.offset < 0 else f" at byte {self.offset}"
        return f"{self.reason.name} ({self.reason.value}){where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The result for a message: its `command` ("" if it has none), and the `target` format that was examined.

    `fault`: why the message cannot be read. `refusal`: why the target cannot hold it. `unjudged`: why this module
    cannot tell. `losses`: names (fields, options, folders) that the target does not take, with the reason.
    """

    format: str = ""
    command: str = ""
    target: str = ""
    fault: Fault | None = None
    refusal: Fault | None = None
    unjudged: str = ""
    losses: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A message taken apart: its headers, the last header's description of the body, and where the body begins."""

    described: Surroundings
    headers: tuple[Header, ...]
    body: Surroundings
    body_offset: int
    answer: BrokerResponse | None
    meaning: Meaning | None


def examine(message: Captured, asked: AskedConversion) -> Examination:
    """Examines a message and the conversion that is asked for."""
    try:
        read = _read(message)
    except UnreadableBytes as error:
        return Examination(fault=Fault(reason=error.reason, what=error.what, offset=error.offset))
    except (UnknownCodePage, UnknownHeader) as error:
        return Examination(unjudged=str(error))
    version = VERSIONS.get(asked.target) or _other_version(read)
    target = next(name for name, number in VERSIONS.items() if number == version)
    command = "" if read.meaning is None else read.meaning.command
    known = Examination(format=read.described.format, command=command or ("Response" if read.answer else ""))
    if has_header_of(version, read.headers):
        return Examination(format=known.format, command=known.command, target=target)
    return Examination(
        format=known.format,
        command=known.command,
        target=target,
        refusal=_refusal(read, version, asked.mode),
        losses=tuple(_losses(read.meaning, version, asked.mode)) if read.meaning else (),
    )


def facts_of(message: Captured, made: Captured, asked: AskedConversion, reported: Pairs | None) -> tuple[Facts, bool]:
    """The facts with which a conversion is performed again, and whether the body stayed the same.

    A conversion keeps CodedCharSetId and Encoding of the MQMD (Message formats (aq19780_), note 2), so `made` takes
    them from `message` if it has none. Without a report, every missing name counts as reported. Raises the errors of
    `announced`.
    """
    described = announced(
        message.data, format=message.format, coded_char_set_id=message.coded_char_set_id, encoding=message.encoding
    )
    made_described = _described_like(made, described, asked)
    before, after = _split(message.data, described), _split(made.data, made_described)
    dropped = _gone(message, made, made_described) if reported is None else reported
    facts = Facts(
        conversion=ConversionKind.SERVICE.value,
        command="",
        topic="",
        queue="",
        packet_type=-1,
        granted_qos=-1,
        published_qos=-1,
        is_retained=False,
        payload_bytes=-1,
        dropped_fields=dropped,
        input=before[0],
        input_format=described.format,
        input_ccsid=described.coded_char_set_id,
        input_encoding=described.encoding,
        output=after[0],
        output_format=made_described.format,
        output_ccsid=made_described.coded_char_set_id,
        output_encoding=made_described.encoding,
        target=asked.target,
        mode=asked.mode,
    )
    return facts, None in (before[1], after[1]) or before[1] == after[1]


def _read(message: Captured) -> _Read:
    described = announced(
        message.data, format=message.format, coded_char_set_id=message.coded_char_set_id, encoding=message.encoding
    )
    headers, body, offset = read_headers(message.data, described)
    check_known(body.format)
    answer = broker_response_of(headers)
    return _Read(
        described=described,
        headers=headers,
        body=body,
        body_offset=offset,
        answer=answer,
        meaning=_command_of(headers, body) if answer is None else None,
    )


def _command_of(headers: tuple[Header, ...], body: Surroundings) -> Meaning | None:
    """The command in a chain; None for a chain without one, such as a chain of JMS."""
    says_command = any(
        any(folder.name == "psc" for folder in header.folders) or any(name == "MQPSCommand" for name, _ in header.pairs)
        for header in headers
    )
    return meaning_of(headers, body) if says_command else None


def _other_version(read: _Read) -> int:
    return 2 if has_header_of(1, read.headers) and not has_header_of(2, read.headers) else 1


def _refusal(read: _Read, version: int, mode: str) -> Fault | None:
    if read.meaning is None:
        if read.answer is not None:
            return None
        return Fault(reason=Reason.MQRC_RFH_ERROR, what="the headers carry no command of publish/subscribe")
    patterns = (topic for topic in read.meaning.values("Topic") if "#" in topic.split("/")[:-1])
    if version == 1 and read.meaning.command != "Publish" and (pattern := next(patterns, None)):
        what = f"pattern {pattern!r} has # before its last level, which MQRFH cannot say"
        return Fault(reason=Reason.MQRCCF_TOPIC_ERROR, what=what)
    refused = next(refusals(read.meaning, version, is_extended=mode == _EXTENDED), None)
    if refused is None:
        return None
    return Fault(reason=refused.reason, what=f"{read.meaning.command} would be converted{refused.how}")


def _losses(source: Meaning, version: int, mode: str) -> Iterator[tuple[str, str]]:
    is_extended = mode == _EXTENDED
    for name in dict.fromkeys(name for name, _ in source.unmapped):
        if not (is_extended and name.removeprefix(_PREFIX) in EXTENDED_NAMES):
            yield name, "it has no row in the table of Message formats (aq19780_)"
    for name, token in source.fields:
        if name in OPTION_ELEMENTS and token in left_out_options(version, is_extended):
            own_name = TO_NAME[name] if source.version == 1 else name
            is_missing = version == 2 and token in ONLY_IN_MQRFH
            why = f"MQRFH2 has no {token}" if is_missing else f"{token} means nothing without {NEEDING[token]}"
            yield own_name, why
    if version == 1:
        for folder in source.folders:
            yield folder.name, "MQRFH has no folders"


def _described_like(made: Captured, before: Surroundings, asked: AskedConversion) -> Surroundings:
    """The description of the first header of `made`, which was converted from a message described by `before`."""
    format = made.format
    if format is None:
        try:
            format = announced(made.data).format
        except (UnreadableBytes, UnknownHeader):
            format = _FORMAT_NAMES[VERSIONS.get(asked.target, 2)]
    return Surroundings(
        format=format,
        coded_char_set_id=before.coded_char_set_id if made.coded_char_set_id is None else made.coded_char_set_id,
        encoding=before.encoding if made.encoding is None else made.encoding,
    )


def _split(data: bytes, described: Surroundings) -> tuple[bytes, bytes | None]:
    """Headers and body. Unreadable data counts as headers without a body; re-performance then reports it."""
    try:
        _headers, _body, offset = read_headers(data, described)
    except (UnreadableBytes, UnknownCodePage):
        return data, None
    return data[:offset], data[offset:]


def _gone(message: Captured, made: Captured, made_described: Surroundings) -> Pairs:
    """Names in a message that the converted message does not have. A report must name each of them."""
    try:
        before = _read(message)
        headers, body, _offset = read_headers(made.data, made_described)
        actual = _command_of(headers, body)
    except (UnreadableBytes, UnknownCodePage, UnknownHeader):
        return ()
    if before.meaning is None or actual is None:
        return before.answer.named if before.answer else ()
    kept = {name.removeprefix(_PREFIX) for name, _ in actual.unmapped} | {folder.name for folder in actual.folders}
    names = [name for name, _ in before.meaning.unmapped if name.removeprefix(_PREFIX) not in kept]
    names += [folder.name for folder in before.meaning.folders if folder.name not in kept]
    names += [
        TO_NAME[name] if before.meaning.version == 1 else name
        for name, token in before.meaning.fields
        if name in OPTION_ELEMENTS and (name, token) not in actual.fields
    ]
    return tuple((name, "") for name in dict.fromkeys(names))
