"""Shows the MQMD of a message on a queue, as lines and as JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from gateway.cli.terminal import Json
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.mqmd import FIELDS

#: The fields that are shown, by IBM's names: those of the descriptor, and those that the queue manager has set.
_OF_QUEUE_MANAGER: Final = {"BackoutCount": "backout_count", "PutDate": "put_at"}
_FIELDS: Final = tuple(
    ("PutAt" if field.name == "PutDate" else field.name, field.attribute or _OF_QUEUE_MANAGER[field.name])
    for field in FIELDS
    if field.attribute or field.name in _OF_QUEUE_MANAGER
)
_US: Final = 1_000_000


def descriptor_json(message: Message) -> dict[str, Json]:
    """The MQMD under the names that the Python API uses; identifiers in hexadecimal, Format without its padding."""
    return {name: _value(message, name) for _, name in _FIELDS}


def descriptor_lines(message: Message) -> Iterator[str]:
    """The MQMD under IBM's names, without empty fields."""
    for shown, name in _FIELDS:
        value = _value(message, name)
        if value != "":
            yield f"  {shown:<16} {value}"


def _value(message: Message, name: str) -> str | int:
    descriptor: MessageDescriptor = message.descriptor
    if name == "msg_id":
        return message.msg_id.hex()
    if name == "backout_count":
        return message.backout_count
    if name == "put_at":
        return datetime.fromtimestamp(message.put_us / _US, UTC).isoformat(timespec="milliseconds")
    value: bytes | str | int = getattr(descriptor, name)
    if name == "format":
        return descriptor.format.decode("latin-1").rstrip(" \0")
    return value.hex() if isinstance(value, bytes) else value
