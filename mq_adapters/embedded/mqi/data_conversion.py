"""MQGMO_CONVERT: message data in the code page and the byte order that the program asks for.

Text (format MQSTR) is converted. Data of every other format stays as it is, with the warning that IBM MQ gives for a
format without a conversion exit. Source: IBM MQ, "MQGMO_CONVERT" and "Processing of data conversion".
"""

from dataclasses import dataclass
from typing import Final

from mappings.errors import HeaderError
from mappings.headers.charset import CODED_CHAR_SET_IDS, decode_text, encode_text
from mq_adapters.message import UTF_8, Message
from mq_adapters.reasons import ReasonCode

_MQFMT_STRING: Final = b"MQSTR   "
#: MQCCSI_Q_MGR: the code page of the queue manager.
_OF_QUEUE_MANAGER: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """The code page (CodedCharSetId) and the byte order (Encoding) of message data."""

    coded_char_set_id: int
    encoding: int


def wanted_format(coded_char_set_id: int, encoding: int) -> DataFormat:
    """What a program asks for, with the code page of the queue manager for MQCCSI_Q_MGR."""
    page = UTF_8 if coded_char_set_id == _OF_QUEUE_MANAGER else coded_char_set_id
    return DataFormat(coded_char_set_id=page, encoding=encoding)


def converted(message: Message, wanted: DataFormat) -> tuple[bytes, ReasonCode]:
    """The data as it is wanted; or as it is, with 2110, 2111, 2115 or 2119."""
    descriptor, target = message.descriptor, wanted.coded_char_set_id
    source = descriptor.coded_char_set_id or UTF_8
    if (source, descriptor.encoding) == (target, wanted.encoding) or not message.body:
        return message.body, ReasonCode.MQRC_NONE
    if descriptor.format != _MQFMT_STRING:
        return message.body, ReasonCode.MQRC_FORMAT_ERROR
    for coded_char_set_id, refusal in (
        (source, ReasonCode.MQRC_SOURCE_CCSID_ERROR),
        (target, ReasonCode.MQRC_TARGET_CCSID_ERROR),
    ):
        if coded_char_set_id not in CODED_CHAR_SET_IDS:
            return message.body, refusal
    try:
        text = decode_text(message.body, source, encoding=descriptor.encoding)
        return encode_text(text, target, encoding=wanted.encoding), ReasonCode.MQRC_NONE
    except HeaderError:
        return message.body, ReasonCode.MQRC_NOT_CONVERTED
