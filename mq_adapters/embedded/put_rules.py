"""The rules by which a queue takes and keeps a message. The engine asks if its own quick check is not enough."""

from typing import Final

from mq_adapters.embedded.queue import Queue
from mq_adapters.message import (
    MQPER_NOT_PERSISTENT,
    MQPER_PERSISTENCE_AS_Q_DEF,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError, ReasonCode

_TENTH_US: Final = 100_000
#: MQMD.Format, blank padded.
FORMAT_BYTES: Final = 8


def check_put(queue: Queue, message: Message, *, uncommitted: int) -> None:
    """Checks a put that may have to be refused. Its unit has put `uncommitted` messages there before."""
    operation = f"put on {queue.name}"
    if queue.is_deleted:
        raise QueueManagerError(ReasonCode.MQRC_Q_DELETED, operation)
    check_form(queue, message)
    if queue.is_put_inhibited and not queue.is_gateways:
        raise QueueManagerError(ReasonCode.MQRC_PUT_INHIBITED, operation)
    if queue.is_temporary and message.is_persistent:
        raise QueueManagerError(ReasonCode.MQRC_PERSISTENT_NOT_ALLOWED, operation)
    is_watched = queue.is_temporary or queue.is_put_inhibited  # then `maximum_depth` is 0 only to get this check made
    if queue.depth + uncommitted >= (queue.definition.number("MAXDEPTH") if is_watched else queue.maximum_depth):
        raise QueueManagerError(ReasonCode.MQRC_Q_FULL, operation)


def check_form(queue: Queue, message: Message) -> None:
    """Checks what is wrong with a message at any time: 2026 for its Format, 2030 for its length."""
    operation, format_name = f"put on {queue.name}", message.descriptor.format
    if len(format_name) != FORMAT_BYTES:
        complaint = f"Format {format_name!r:.40} has not {FORMAT_BYTES} bytes; pad it with blanks"
        raise QueueManagerError(ReasonCode.MQRC_MD_ERROR, f"{operation}: {complaint}")
    if len(message.body) > queue.maximum_message_bytes:
        raise QueueManagerError(ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q, operation)


def resolved_persistence(descriptor: MessageDescriptor, queue: Queue) -> MessageDescriptor:
    """The descriptor with MQPER_PERSISTENCE_AS_Q_DEF resolved."""
    if descriptor.persistence == MQPER_NOT_PERSISTENT:
        return descriptor
    if descriptor.persistence != MQPER_PERSISTENCE_AS_Q_DEF:
        raise QueueManagerError(ReasonCode.MQRC_PERSISTENCE_ERROR, f"put on {queue.name}")
    return descriptor.replace(persistence=queue.default_persistence)


def expiry_time(message: Message, queue: Queue) -> int:
    """The end of a message with an expiry, microseconds since 1970; 2013 for an invalid expiry."""
    expiry = message.descriptor.expiry
    if expiry <= 0:
        raise QueueManagerError(ReasonCode.MQRC_EXPIRY_ERROR, f"put on {queue.name}")
    return message.put_us + expiry * _TENTH_US
