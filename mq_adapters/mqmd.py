"""MQMD version 2 as bytes: how a message descriptor travels over the gateway's socket, and into IBM MQ's client.

364 bytes; integers are 32 bits, signed: little-endian over the socket, in the machine's order for a C library; text is
UTF-8, blank padded, and ends at the first NUL.
Offset, length and what becomes of each field:

      0   4  StrucId           'MD  '
      4   4  Version           2
      8   4  Report
     12   4  MsgType           1 request, 2 reply, 4 report, 8 datagram, or 65,536 to 999,999,999
     16   4  Expiry            tenths of a second, -1 for ever; on a get what is left of it
     20   4  Feedback
     24   4  Encoding          of the body, 546 for little-endian
     28   4  CodedCharSetId    of the body
     32   8  Format            bytes, blank padded
     40   4  Priority          -1 (as the queue says) to 9
     44   4  Persistence       0 no, 1 yes, 2 as the queue says
     48  24  MsgId             bytes; zeros on a put: the queue manager makes it
     72  24  CorrelId          bytes
     96   4  BackoutCount      set by the queue manager
    100  48  ReplyToQ
    148  48  ReplyToQMgr
    196  12  UserIdentifier
    208  32  AccountingToken   bytes
    240  32  ApplIdentityData
    272   4  PutApplType
    276  28  PutApplName
    304   8  PutDate           YYYYMMDD, UTC, set by the queue manager
    312   8  PutTime           HHMMSSTH: hours, minutes, seconds, hundredths
    320   4  ApplOriginData
    324  24  GroupId           zeros: there are no groups and segments here
    348   4  MsgSeqNumber      1
    352   4  Offset            0
    356   4  MsgFlags          0
    360   4  OriginalLength    -1

Whatever a program hands over ends in a value or in QueueManagerError 2026, or 2013 (Expiry), 2029 (MsgType), 2047
(Persistence), 2050 (Priority); never in another exception. What a queue manager hands over is taken as it is
(`read_delivered_mqmd`): refusing a message that was got would lose it.
Source: IBM MQ, "MQMD - Message descriptor"; the length is that of IBM's compiled library.
"""

import calendar
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

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

_FIELDS: Final = "4s7i8sii24s24si48s48s12s32s32si28s8s8s4s24siiii"
_LAYOUT: Final = struct.Struct("<" + _FIELDS)
#: The same in the byte order of this machine, without its alignment: the fields are aligned as they are.
_NATIVE_LAYOUT: Final = struct.Struct("=" + _FIELDS)
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
            _identifier("MsgId", message.msg_id if message.sequence else descriptor.msg_id),
            _identifier("CorrelId", descriptor.correl_id),
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
    message.backout_count = fields[13]
    message.put_us = _put_us(fields[21], fields[22])
    return message


def read_delivered_mqmd(mqmd: bytes, body: bytes) -> Message:
    """The message that a C library of this machine has got: 364 bytes and a body, whatever their values.

    That it was in a group is forgotten. Text that is not UTF-8 has `?` where it is not; it is context, and never longer
    than before. A PutDate and PutTime that are none become 0.
    """
    fields = _NATIVE_LAYOUT.unpack(mqmd)
    message = Message(_taken_over(fields, _lenient_text), body)
    message.backout_count = fields[13]
    with suppress(QueueManagerError):
        message.put_us = _put_us(fields[21], fields[22])
    return message


def checked_identifier(identifier: bytes | None) -> bytes | None:
    """A MsgId or CorrelId to match, or None; 2026 for one that has not 24 bytes."""
    return identifier if identifier is None else _identifier("MsgId or CorrelId", identifier)


def _descriptor(fields: _Fields) -> MessageDescriptor:
    msg_type, expiry = fields[3:5]
    priority, persistence = fields[9:11]
    _check("MsgType", msg_type, ReasonCode.MQRC_MSG_TYPE_ERROR, _is_message_type(msg_type))
    _check("Expiry", expiry, ReasonCode.MQRC_EXPIRY_ERROR, expiry == MQEI_UNLIMITED or expiry > 0)
    _check("Priority", priority, ReasonCode.MQRC_PRIORITY_ERROR, -1 <= priority <= _HIGHEST_PRIORITY)
    _check(
        "Persistence", persistence, ReasonCode.MQRC_PERSISTENCE_ERROR, 0 <= persistence <= MQPER_PERSISTENCE_AS_Q_DEF
    )
    return _taken_over(fields, _read_text)


def _taken_over(fields: _Fields, read_text: Callable[[str, bytes], str]) -> MessageDescriptor:
    report, msg_type, expiry, feedback, encoding, coded_char_set_id = fields[2:8]
    priority, persistence = fields[9:11]
    return MessageDescriptor(
        report=report,
        msg_type=msg_type,
        expiry=expiry,
        feedback=feedback,
        encoding=encoding,
        coded_char_set_id=coded_char_set_id,
        format=fields[8].replace(b"\0", b" "),
        priority=priority,
        persistence=persistence,
        msg_id=fields[11],
        correl_id=fields[12],
        reply_to_q=read_text("ReplyToQ", fields[14]),
        reply_to_q_mgr=read_text("ReplyToQMgr", fields[15]),
        user_identifier=read_text("UserIdentifier", fields[16]),
        accounting_token=fields[17] if any(fields[17]) else b"",
        appl_identity_data=read_text("ApplIdentityData", fields[18]),
        put_appl_type=fields[19],
        put_appl_name=read_text("PutApplName", fields[20]),
        appl_origin_data=read_text("ApplOriginData", fields[23]),
    )


def _md_error(complaint: str) -> QueueManagerError:
    return QueueManagerError(ReasonCode.MQRC_MD_ERROR, f"{_OPERATION} {complaint}")


def _check(name: str, value: int, reason_code: ReasonCode, is_valid: bool) -> None:
    if not is_valid:
        raise QueueManagerError(reason_code, f"{_OPERATION}: {name} {value}")


def _is_message_type(value: int) -> bool:
    return value in _MESSAGE_TYPES or _MQMT_APPL_FIRST <= value <= _MQMT_APPL_LAST


def _remaining_expiry(message: Message, now_us: int) -> int:
    """What is left, in tenths of a second, rounded up: a message that can be got has at least one left."""
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


def _identifier(name: str, value: bytes) -> bytes:
    if len(value) != IDENTIFIER_BYTES:
        raise _md_error(f"field {name} has {len(value)} bytes, not {IDENTIFIER_BYTES}")
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
        moment = time.strptime(digits[:14].decode(), "%Y%m%d%H%M%S")
        seconds = calendar.timegm(moment)
    except ValueError as error:
        raise _md_error(f"has PutDate {put_date!r} and PutTime {put_time!r}, not YYYYMMDD and HHMMSSTH") from error
    return max(0, seconds * _US_OF_A_SECOND + int(digits[14:]) * _US_OF_A_HUNDREDTH)
