"""The library: convert, read, write and check the headers of publish/subscribe messages, and connect to queues.

    import rfhbridge
    from rfhbridge import Dialect, Publish

    header = rfhbridge.write_command(Publish(topics=("plant/pump 7/bar",)), Dialect.MQRFH)
    converted = rfhbridge.convert(header + b"4.2", to=Dialect.MQRFH2)
    print(converted.header[:4], converted.report.as_dict()["fields"])

The names in `__all__` are the library; they keep their meaning from one version to the next. The four packages behind
it (`mappings`, `mq_adapters`, `gateway`, `spark_audit`) are the house, and may change. Functions on headers are pure:
bytes in, values out, no file and no clock. Connections belong to one thread each. `python -m rfhbridge` is the command.
"""

from typing import TYPE_CHECKING

from mappings.commands.command import (
    Command,
    DeletePublication,
    DeregisterPublisher,
    DeregisterSubscriber,
    Publish,
    RegisterPublisher,
    RegisterSubscriber,
    RequestUpdate,
    read_command,
    write_command,
)
from mappings.commands.options import DeleteOption, PublicationOption, RegistrationOption
from mappings.commands.response import Completion, Response, ResponseReason, read_response, write_response
from mappings.conversion.convert import Conversion, ConversionReport, FieldOutcome, Folders, Mode, Outcome
from mappings.conversion.convert import convert as _convert
from mappings.errors import CommandError, ConversionError, HeaderError, MappingError, NameValueError
from mappings.headers.chain import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    FORMAT_NONE,
    FORMAT_STRING,
    DeadLetterHeader,
    HeaderChain,
    HeaderPlace,
    TransmissionHeader,
    read_header_chain,
)
from mappings.headers.detection import Announcement, announcement_of
from mappings.headers.mqrfh import Mqrfh, write_mqrfh
from mappings.headers.mqrfh2 import Element, Folder, Mqrfh2, write_mqrfh2
from mappings.headers.opaque import OpaqueHeader
from mappings.lint import Circumstances, Finding, Speaker, lint
from mappings.table import Dialect
from mq_adapters import connect
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.back_out import requeued
from mq_adapters.cursor import Cursor
from mq_adapters.exclusive_queue import ExclusiveQueue
from mq_adapters.message import (
    MQMT_DATAGRAM,
    MQMT_REPLY,
    MQMT_REPORT,
    MQMT_REQUEST,
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENCE_AS_Q_DEF,
    MQPER_PERSISTENT,
    Message,
    MessageDescriptor,
)
from mq_adapters.mqsc import MqscAnswer
from mq_adapters.queue_manager import Compaction, QueueAdministration, QueueManager, QueueStatus
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from mq_adapters.subscribed_queue import SubscribedQueue, SubscriptionOption

if TYPE_CHECKING:
    from mq_adapters.ibm_mq import ConnectionSettings, IbmMq

__all__ = [
    "FORMAT_DEAD_LETTER",
    "FORMAT_MQRFH",
    "FORMAT_MQRFH2",
    "FORMAT_NONE",
    "FORMAT_STRING",
    "MQMT_DATAGRAM",
    "MQMT_REPLY",
    "MQMT_REPORT",
    "MQMT_REQUEST",
    "MQPER_NOT_PERSISTENT",
    "MQPER_PERSISTENCE_AS_Q_DEF",
    "MQPER_PERSISTENT",
    "Announcement",
    "Circumstances",
    "Command",
    "CommandError",
    "Compaction",
    "Completion",
    "ConnectionSettings",
    "Conversion",
    "ConversionError",
    "ConversionReport",
    "Cursor",
    "DeadLetterHeader",
    "Definition",
    "DeleteOption",
    "DeletePublication",
    "DeregisterPublisher",
    "DeregisterSubscriber",
    "Dialect",
    "Element",
    "ExclusiveQueue",
    "FieldOutcome",
    "Finding",
    "Folder",
    "Folders",
    "HeaderChain",
    "HeaderError",
    "HeaderPlace",
    "IbmMq",
    "MappingError",
    "Message",
    "MessageDescriptor",
    "Mode",
    "Mqrfh",
    "Mqrfh2",
    "MqscAnswer",
    "NameValueError",
    "ObjectType",
    "OpaqueHeader",
    "Outcome",
    "PublicationOption",
    "Publish",
    "QueueAdministration",
    "QueueManager",
    "QueueManagerError",
    "QueueStatus",
    "ReasonCode",
    "RegisterPublisher",
    "RegisterSubscriber",
    "RegistrationOption",
    "RequestUpdate",
    "Response",
    "ResponseReason",
    "Speaker",
    "StoreError",
    "SubscribedQueue",
    "SubscriptionOption",
    "TransmissionHeader",
    "connect",
    "convert",
    "detect",
    "lint",
    "read_command",
    "read_headers",
    "read_response",
    "requeued",
    "write_command",
    "write_mqrfh",
    "write_mqrfh2",
    "write_response",
]


def detect(data: bytes) -> Announcement:
    """What the MQMD in front of a message must say of its first header, found from StrucId and Version.

    `data` is the message from its first header on; 8 bytes are enough, in EBCDIC the whole header. Byte order and
    EBCDIC are found; an ASCII header is taken for UTF-8 (1208).

    Returns the Format (8 bytes, blank padded), the CodedCharSetId and the Encoding (273 big-endian, 546 little-endian).
    Raises HeaderError (MQRC_RFH_ERROR) for data that begins with no header of IBM MQ.
    Source: IBM MQ documentation, the fields StrucId and Version of "MQRFH", "MQRFH2" and "MQDLH".
    """
    return announcement_of(data)


def read_headers(
    data: bytes, *, format: bytes | None = None, coded_char_set_id: int | None = None, encoding: int | None = None
) -> HeaderChain:
    """Read the headers of a message up to its body.

    `data` is the message from its first header on. `format` (8 bytes, blank padded), `coded_char_set_id` and `encoding`
    are those of its MQMD; each that is not given is found as `detect` finds it.

    Returns the headers in order, the place of each (`offset` in bytes), and where the body begins and what it is:
    `data[chain.body_offset:]` is the body. Hand the chain to `read_command` or `read_response`.
    Raises HeaderError, with the offset in bytes, for the first header that is not what the one in front announces.
    Source: IBM MQ documentation, "MQRFH", "MQRFH2" and "MQDLH".
    """
    found = announcement_of(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    return read_header_chain(
        data, format=found.format, coded_char_set_id=found.coded_char_set_id, encoding=found.encoding
    )


def convert(
    data: bytes,
    *,
    to: Dialect,
    mode: Mode = Mode.STRICT,
    folders: Folders = Folders.DROPPED,
    format: bytes | None = None,
    coded_char_set_id: int | None = None,
    encoding: int | None = None,
) -> Conversion:
    """Convert the header of a message to the format `to`; the body stays as it is, byte for byte.

    `data` is the message from its first header on. `mode` says which names are copied, `folders` what becomes of usr,
    jms and the other folders beside psc, for which an MQRFH has no place. `format` (8 bytes, blank padded),
    `coded_char_set_id` and `encoding` are those of the MQMD; each that is not given is found as `detect` finds it.

    Returns the new header and the Format that the MQMD must say from now on; nothing else of the MQMD changes. The new
    message is `conversion.header + data[conversion.body_offset:]`. The report has one outcome for each field, in the
    order of the message. A header that is in the format already comes back unchanged, with a report without fields.
    Raises HeaderError, NameValueError or CommandError for a header that is wrong, ConversionError for what the other
    format cannot say. Each has IBM's reason code.
    Source: the field-mapping table, `mappings/fields.toml`, whose rows name their pages of IBM's documentation.
    """
    found = announcement_of(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
    return _convert(
        data,
        format=found.format,
        coded_char_set_id=found.coded_char_set_id,
        encoding=found.encoding,
        to=to,
        mode=mode,
        folders=folders,
    )


def __getattr__(name: str) -> object:
    """The two names of IBM MQ, loaded when they are used: most programs need neither."""
    if name in ("ConnectionSettings", "IbmMq"):
        from mq_adapters import ibm_mq

        return getattr(ibm_mq, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
