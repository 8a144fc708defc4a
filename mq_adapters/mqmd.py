"""MQMD version 2 as bytes: how a message descriptor travels over the gateway's socket, and into IBM MQ's client.

364 bytes: `FIELDS` is the table of them, from which everything here is made. Integers are 32 bits, signed:
little-endian over the socket, in the machine's order for a C library. Text is UTF-8, blank padded, and ends at the
first NUL. PutDate (YYYYMMDD) and PutTime (HHMMSSTH: hours, minutes, seconds, hundredths) are UTC.

A message that a program hands over ends in a value or in QueueManagerError 2026, or 2013 (Expiry), 2029 (MsgType), 2047
(Persistence), 2050 (Priority); never in another exception. A message that a queue manager hands over is taken as it is
(`read_delivered_mqmd`): refusing a message that was got would lose it.
Source: IBM MQ, "MQMD - Message descriptor"; the length is that of IBM's compiled library.
"""

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from mq_adapters.message import (
    IDENTIFIER_BYTES,
    MQEI_UNLIMITED,
    MQMT_DATAGRAM,
    MQMT_REPLY,
    MQMT_REPORT,
    MQMT_REQUEST,
    MQPER_PERSISTENCE_AS_Q_DEF,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError, ReasonCode

MQMD_BYTES: Final = 364
STRUC_ID: Final = b"MD  "
MQMD_VERSION_2: Final = 2


class MqmdField(NamedTuple):
    """A field of MQMD: IBM's name, its bytes in the language of `struct`, and its attribute in MessageDescriptor.

    A field without an attribute is the same in every message, or the queue manager's (BackoutCount, PutDate, PutTime).
    """

    name: str
    code: str
    attribute: str = ""
    is_text: bool = False

    @property
    def length(self) -> int:
        return struct.calcsize(self.code)


#: The fields in their order.
FIELDS: Final = (
    MqmdField("StrucId", "4s"),
    MqmdField("Version", "i"),
    MqmdField("Report", "i", "report"),
    MqmdField("MsgType", "i", "msg_type"),
    MqmdField("Expiry", "i", "expiry"),
    MqmdField("Feedback", "i", "feedback"),
    MqmdField("Encoding", "i", "encoding"),
    MqmdField("CodedCharSetId", "i", "coded_char_set_id"),
    MqmdField("Format", "8s", "format"),
    MqmdField("Priority", "i", "priority"),
    MqmdField("Persistence", "i", "persistence"),
    MqmdField("MsgId", "24s", "msg_id"),
    MqmdField("CorrelId", "24s", "correl_id"),
    MqmdField("BackoutCount", "i"),
    MqmdField("ReplyToQ", "48s", "reply_to_q", is_text=True),
    MqmdField("ReplyToQMgr", "48s", "reply_to_q_mgr", is_text=True),
    MqmdField("UserIdentifier", "12s", "user_identifier", is_text=True),
    MqmdField("AccountingToken", "32s", "accounting_token"),
    MqmdField("ApplIdentityData", "32s", "appl_identity_data", is_text=True),
    MqmdField("PutApplType", "i", "put_appl_type"),
    MqmdField("PutApplName", "28s", "put_appl_name", is_text=True),
    MqmdField("PutDate", "8s"),
    MqmdField("PutTime", "8s"),
    MqmdField("ApplOriginData", "4s", "appl_origin_data", is_text=True),
    MqmdField("GroupId", "24s"),
    MqmdField("MsgSeqNumber", "i"),
    MqmdField("Offset", "i"),
    MqmdField("MsgFlags", "i"),
    MqmdField("OriginalLength", "i"),
)
#: The attributes of MessageDescriptor, by IBM's names.
ATTRIBUTES: Final = {field.name: field.attribute for field in FIELDS if field.attribute}

_CODES: Final = "".join(field.code for field in FIELDS)
_LAYOUT: Final = struct.Struct("<" + _CODES)
#: The same in the byte order of this machine, without its alignment: the fields are aligned as they are.
_NATIVE_LAYOUT: Final = struct.Struct("=" + _CODES)
#: The places of the fields that are a descriptor's own, their attributes, and which are text.
_OWN_AT: Final = tuple(index for index, field in enumerate(FIELDS) if field.attribute)
_NAMES: Final = tuple(ATTRIBUTES.values())
_TEXTS: Final = tuple(
    ([*ATTRIBUTES].index(field.name), field.name, b" " * field.length) for field in FIELDS if field.is_text
)
_FORMAT, _TOKEN = map([*ATTRIBUTES].index, ("Format", "AccountingToken"))
_AT: Final = {field.name: index for index, field in enumerate(FIELDS)}
_BACKOUT_COUNT_AT, _PUT_DATE_AT, _PUT_TIME_AT = _AT["BackoutCount"], _AT["PutDate"], _AT["PutTime"]
#: GroupId, MsgSeqNumber, Offset, MsgFlags, OriginalLength of a message that is neither in a group nor a segment.
_NOT_IN_A_GROUP: Final = (bytes(IDENTIFIER_BYTES), 1, 0, 0, -1)
_MQMT_APPL_FIRST: Final = 65_536
_MQMT_APPL_LAST: Final = 999_999_999
_MESSAGE_TYPES: Final = (MQMT_REQUEST, MQMT_REPLY, MQMT_REPORT, MQMT_DATAGRAM)
_HIGHEST_PRIORITY: Final = 9
_US_OF_A_TENTH: Final = 100_000
_US_OF_A_HUNDREDTH: Final = 10_000
_US_OF_A_SECOND: Final = 1_000_000
#: The last moment that eight digits can name: 9999-12-31 23:59:59 UTC.
_LAST_SECOND: Final = 253_402_300_799

_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
#: As strftime and the C library count seconds.
_LAST_LEAP_SECOND: Final = 61

_OPERATION: Final = "message descriptor"

#: The 29 fields of the layout.
_Fields = tuple[Any, ...]


def write_mqmd(message: Message, *, now_us: int = 0) -> bytes:
    """The 364 bytes of a message's descriptor. `now_us` (microseconds since 1970, UTC) shortens what has an expiry."""
    return _write(_LAYOUT, message, now_us)


def write_native_mqmd(message: Message) -> bytes:
    """The same for a C library of this machine. PutDate and PutTime are those of the message's `put_us`."""
    return _write(_NATIVE_LAYOUT, message, 0)


def _write(layout: struct.Struct, message: Message, now_us: int) -> bytes:
    descriptor = message.descriptor
    put_date, put_time = _date_and_time(message.put_us)
    try:
        return layout.pack(
            STRUC_ID,
            MQMD_VERSION_2,
            descriptor.report,
            descriptor.msg_type,
            _remaining_expiry(message, now_us),
            descriptor.feedback,
            descriptor.encoding,
            descriptor.coded_char_set_id,
            _blank_padded("Format", descriptor.format, 8),
            descriptor.priority,
            descriptor.persistence,
            _identifier("MsgId", message.msg_id if message.sequence else descriptor.msg_id, 24),
            _identifier("CorrelId", descriptor.correl_id, 24),
            message.backout_count,
            _text("ReplyToQ", descriptor.reply_to_q, 48),
            _text("ReplyToQMgr", descriptor.reply_to_q_mgr, 48),
            _text("UserIdentifier", descriptor.user_identifier, 12),
            _at_most("AccountingToken", descriptor.accounting_token, 32),
            _text("ApplIdentityData", descriptor.appl_identity_data, 32),
            descriptor.put_appl_type,
            _text("PutApplName", descriptor.put_appl_name, 28),
            put_date,
            put_time,
            _text("ApplOriginData", descriptor.appl_origin_data, 4),
            *_NOT_IN_A_GROUP,
        )
    except struct.error as error:
        raise QueueManagerError(ReasonCode.MQRC_MD_ERROR, f"{_OPERATION}: {error}") from error


def read_mqmd(mqmd: bytes, body: bytes = b"") -> Message:
    """The message of 364 bytes and a body. Its `put_us` is that of PutDate and PutTime, 0 where they are blank."""
    if len(mqmd) != MQMD_BYTES:
        raise _md_error(f"has {len(mqmd)} bytes, not {MQMD_BYTES}")
    fields = _LAYOUT.unpack(mqmd)
    if fields[0] != STRUC_ID or fields[1] != MQMD_VERSION_2:
        raise _md_error(f"begins with {fields[0]!r} version {fields[1]}, not {STRUC_ID!r} version {MQMD_VERSION_2}")
    if fields[-5:] != _NOT_IN_A_GROUP:
        raise _md_error("is of a group or segment; messages are put whole here")
    message = Message(_descriptor(fields), body)
    message.backout_count = fields[_BACKOUT_COUNT_AT]
    message.put_us = _put_us(fields[_PUT_DATE_AT], fields[_PUT_TIME_AT])
    return message


def read_delivered_mqmd(mqmd: bytes, body: bytes) -> Message:
    """The message that a C library of this machine has got: 364 bytes and a body, whatever their values.

    That it was in a group is forgotten. Text that is not UTF-8 has `?` where it is not; it is context, and never longer
    than before. A PutDate and PutTime that are none become 0.
    """
    fields = _NATIVE_LAYOUT.unpack(mqmd)
    message = Message(_taken_over(fields, _lenient_text), body)
    message.backout_count = fields[_BACKOUT_COUNT_AT]
    with suppress(QueueManagerError):
        message.put_us = _put_us(fields[_PUT_DATE_AT], fields[_PUT_TIME_AT])
    return message


def checked_identifier(identifier: bytes | None) -> bytes | None:
    """A MsgId or CorrelId to match, or None; 2026 for one that has not 24 bytes."""
    return identifier if identifier is None else _identifier("MsgId or CorrelId", identifier, IDENTIFIER_BYTES)


def _descriptor(fields: _Fields) -> MessageDescriptor:
    for at, name, reason_code, is_valid in _CHECKED:
        if not is_valid(fields[at]):
            raise QueueManagerError(reason_code, f"{_OPERATION}: {name} {fields[at]}")
    return _taken_over(fields, _read_text)


def _taken_over(fields: _Fields, read_text: Callable[[str, bytes], str]) -> MessageDescriptor:
    values = [fields[at] for at in _OWN_AT]
    values[_FORMAT] = values[_FORMAT].replace(b"\0", b" ")
    if not any(values[_TOKEN]):
        values[_TOKEN] = b""
    for index, name, blanks in _TEXTS:
        values[index] = "" if values[index] == blanks else read_text(name, values[index])
    return MessageDescriptor(**dict(zip(_NAMES, values, strict=True)))


def _md_error(complaint: str) -> QueueManagerError:
    return QueueManagerError(ReasonCode.MQRC_MD_ERROR, f"{_OPERATION} {complaint}")


def _is_message_type(value: int) -> bool:
    return value in _MESSAGE_TYPES or _MQMT_APPL_FIRST <= value <= _MQMT_APPL_LAST


def _remaining_expiry(message: Message, now_us: int) -> int:
    """The rest of a message's life in tenths of a second, rounded up: at least one if it can be got."""
    if not message.expires_us:
        return message.descriptor.expiry
    left = -((now_us - message.expires_us) // _US_OF_A_TENTH)
    return max(1, min(left, message.descriptor.expiry))


def _at_most(name: str, value: bytes, length: int) -> bytes:
    if len(value) > length:
        raise _md_error(f"field {name} has {len(value)} bytes, at most {length} fit")
    return value


def _blank_padded(name: str, value: bytes, length: int) -> bytes:
    return _at_most(name, value, length).ljust(length)


def _identifier(name: str, value: bytes, length: int) -> bytes:
    if len(value) != length:
        raise _md_error(f"field {name} has {len(value)} bytes, not {length}")
    return value


def _text(name: str, value: str, length: int) -> bytes:
    if not value:
        return b" " * length
    try:
        return _blank_padded(name, value.encode(), length)
    except UnicodeEncodeError as error:
        raise _md_error(f"field {name} is not text: {error}") from error


def _read_text(name: str, value: bytes) -> str:
    try:
        return value.partition(b"\0")[0].rstrip(b" ").decode()
    except UnicodeDecodeError as error:
        raise _md_error(f"field {name} is not UTF-8: {value.hex()}") from error


def _lenient_text(_name: str, value: bytes) -> str:
    return value.partition(b"\0")[0].rstrip(b" ").decode(errors="replace").replace("\ufffd", "?")


def _date_and_time(put_us: int) -> tuple[bytes, bytes]:
    seconds, rest_us = divmod(put_us, _US_OF_A_SECOND)
    if not 0 < seconds <= _LAST_SECOND:
        return b" " * 8, b" " * 8
    date, time_of_day = time.strftime("%Y%m%d %H%M%S", time.gmtime(seconds)).encode().split()
    return date, time_of_day + b"%02d" % (rest_us // _US_OF_A_HUNDREDTH)


def _put_us(put_date: bytes, put_time: bytes) -> int:
    digits = put_date + put_time
    if not digits.strip(b" \0"):
        return 0
    try:
        if not digits.isdigit():
            raise ValueError(digits)
        year, *numbers = [int(digits[at : at + 2]) for at in (2, 4, 6, 8, 10, 12, 14)]
        month, day, hour, minute, second, hundredths = numbers
        moment = datetime(int(digits[:2]) * 100 + year, month, day, hour, minute, tzinfo=UTC)
        if second > _LAST_LEAP_SECOND:
            raise ValueError(digits)
    except ValueError as error:
        raise _md_error(f"has PutDate {put_date!r} and PutTime {put_time!r}, not YYYYMMDD and HHMMSSTH") from error
    seconds = (moment - _BEGIN) // _SECOND + second
    return max(0, seconds * _US_OF_A_SECOND + hundredths * _US_OF_A_HUNDREDTH)


#: The integers that are checked when a program hands them over, and the refusal of each.
_CHECKED: Final[tuple[tuple[int, str, ReasonCode, Callable[[int], bool]], ...]] = (
    (_AT["MsgType"], "MsgType", ReasonCode.MQRC_MSG_TYPE_ERROR, _is_message_type),
    (_AT["Expiry"], "Expiry", ReasonCode.MQRC_EXPIRY_ERROR, lambda value: value == MQEI_UNLIMITED or value > 0),
    (_AT["Priority"], "Priority", ReasonCode.MQRC_PRIORITY_ERROR, lambda value: -1 <= value <= _HIGHEST_PRIORITY),
    (
        _AT["Persistence"],
        "Persistence",
        ReasonCode.MQRC_PERSISTENCE_ERROR,
        lambda value: 0 <= value <= MQPER_PERSISTENCE_AS_Q_DEF,
    ),
)
