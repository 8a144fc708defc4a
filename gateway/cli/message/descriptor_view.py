"""How the MQMD of a message on a queue is shown, as lines and as JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from gateway.cli.terminal import Json
from mq_adapters.message import Message, MessageDescriptor

_FIELDS: Final = (
    ("Report", "report"),
    ("MsgType", "msg_type"),
    ("Expiry", "expiry"),
    ("Feedback", "feedback"),
    ("Encoding", "encoding"),
    ("CodedCharSetId", "coded_char_set_id"),
    ("Format", "format"),
    ("Priority", "priority"),
    ("Persistence", "persistence"),
    ("MsgId", "msg_id"),
    ("CorrelId", "correl_id"),
    ("BackoutCount", "backout_count"),
    ("ReplyToQ", "reply_to_q"),
    ("ReplyToQMgr", "reply_to_q_mgr"),
    ("UserIdentifier", "user_identifier"),
    ("AccountingToken", "accounting_token"),
    ("ApplIdentityData", "appl_identity_data"),
    ("PutApplType", "put_appl_type"),
    ("PutApplName", "put_appl_name"),
    ("ApplOriginData", "appl_origin_data"),
    ("PutAt", "put_at"),
)
_US: Final = 1_000_000


def descriptor_json(message: Message) -> dict[str, Json]:
    """The MQMD under the names that the Python API uses; identifiers in hexadecimal, Format without its padding."""
    return {name: _value(message, name) for _, name in _FIELDS}


def descriptor_lines(message: Message) -> Iterator[str]:
    """The MQMD under IBM's names, without what is empty."""
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
