"""MQGMO_CONVERT: message data in the code page and the byte order that the program asks for.

Text (format MQSTR) and the headers that `mappings` knows are converted. Other data stay as they are, with a warning.
Source: IBM MQ, "MQGMO_CONVERT" and "Processing of data conversion".
"""

from dataclasses import dataclass
from typing import Final

from mappings.errors import MappingError
from mappings.headers.recoded import DataFormat as Source
from mappings.headers.recoded import recoded
from mq_adapters.message import UTF_8, Message
from mq_adapters.reasons import ReasonCode

#: MQCCSI_Q_MGR: the code page of the queue manager.
_OF_QUEUE_MANAGER: Final = 0
#: The warnings that a program is told as they are; every other failure is 2119.
_TOLD: Final = (
    ReasonCode.MQRC_FORMAT_ERROR,
    ReasonCode.MQRC_SOURCE_CCSID_ERROR,
    ReasonCode.MQRC_TARGET_CCSID_ERROR,
)


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
    source = Source(
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id or UTF_8,
        encoding=descriptor.encoding,
    )
    if (source.coded_char_set_id, source.encoding) == (target, wanted.encoding) or not message.body:
        return message.body, ReasonCode.MQRC_NONE
    try:
        data = recoded(message.body, source, coded_char_set_id=target, encoding=wanted.encoding)
    except MappingError as error:
        told = error.reason_code in _TOLD
        return message.body, ReasonCode(error.reason_code) if told else ReasonCode.MQRC_NOT_CONVERTED
    return data, ReasonCode.MQRC_NONE
