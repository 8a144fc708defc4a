"""Folders mcd, jms and mqps: with them a publication in an MQRFH2 is a message of JMS.

A part of step 4 on the way of a PUBLISH, where its option asks for them, and of each publication for a subscriber of
MQSUB. JMS makes a TextMessage or a BytesMessage of it by mcd, whose JMSDestination is in jms. Folder mqps has the topic
for programs that read message properties. Which elements there are, and in which order, is told by fields.toml.
Source: IBM MQ, "The MQRFH2 header and JMS"; "Publish/subscribe message properties".
"""

import codecs
from typing import Final, NamedTuple

from mappings.headers.mqrfh2 import flat_folder
from mappings.table import JMS_ROWS

FORMAT_STRING: Final = b"MQSTR   "
_NO_FORMAT: Final = b" " * 8
_TOPIC_URI: Final = "topic://"
#: IBM's client cannot read the reference that stands for this character in a folder (StringIndexOutOfBoundsException).
#: Only clients of MQTT 3.1 can have it in a topic.
_FATAL: Final = "\r"
_TEXT, _BYTES = "jms_text", "jms_bytes"
_PERSISTENT, _NOT_PERSISTENT = "2", "1"
#: By folder, in order: the element, and what it holds.
_FOLDERS: Final = tuple(
    [
        (name, tuple([(row.element, row.holds) for row in JMS_ROWS if row.folder == name]))
        for name in dict.fromkeys(row.folder for row in JMS_ROWS)
    ]
)
#: Bytes that are decoded at a time: the text of a whole payload would take up to four times its room.
_PART_BYTES: Final = 65_536


class JmsFolders(NamedTuple):
    """The folders, whole and in order, and the Format of the payload behind them."""

    folders: tuple[str, ...]
    body_format: bytes


def jms_folders(
    topic: str, *, is_text: bool, time_ms: int, priority: int, is_persistent: bool, user_data: str = ""
) -> JmsFolders:
    """The folders of a publication on a topic, published at `time_ms` (since 1970). `user_data`: the subscription's.

    A message has no destination if IBM's client could not read it. Raises ConversionError for a topic that no folder
    can hold.
    """
    values = {
        "kind": _TEXT if is_text else _BYTES,
        "destination": "" if _FATAL in topic else _TOPIC_URI + topic,
        "time_ms": str(time_ms),
        "priority": str(priority),
        "delivery_mode": _PERSISTENT if is_persistent else _NOT_PERSISTENT,
        "topic": topic,
        "user_data": user_data,
    }
    folders = [
        flat_folder(name, tuple([(element, values[holds]) for element, holds in elements if values[holds]]))
        for name, elements in _FOLDERS
    ]
    return JmsFolders(tuple(folders), FORMAT_STRING if is_text else _NO_FORMAT)


def is_utf_8(payload: bytes) -> bool:
    """Whether a payload is UTF-8. Its text is never there as a whole."""
    if payload.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(payload), _PART_BYTES):
            decoder.decode(payload[start : start + _PART_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
