"""Message properties of a get: in an MQRFH2 in front of the data, or left out.

The properties of a message stand in folders of its MQRFH2. PROPCTL of the queue, or an option of the get, says whether
a program gets them. A client that makes handles of properties asks for the MQRFH2 (MQGMO_PROPERTIES_FORCE_MQRFH2), and
does the rest by itself: it is told PROPCTL at the open.
Folder mqext tells the moment before which a message must not be delivered (JMS: setDeliveryDelay).
Source: IBM MQ, "Property control and MQGET options", "MQRFH2 folders that are message properties".
"""

from typing import Final

from mappings.errors import MappingError
from mappings.headers.mqrfh2 import Folder, read_mqrfh2, write_mqrfh2
from mq_adapters.embedded.mqi.options import GetOption
from mq_adapters.message import UTF_8, Message

#: MQPROP_*: the words of PROPCTL as MQINQ and a client know them.
PROPERTY_CONTROL: Final = {"COMPAT": 0, "NONE": 1, "ALL": 2, "FORCE": 3, "V6COMPAT": 4}
_FORMAT_MQRFH2: Final = b"MQHRF2  "
_ANY: Final = (
    GetOption.PROPERTIES_FORCE_MQRFH2
    | GetOption.NO_PROPERTIES
    | GetOption.PROPERTIES_IN_HANDLE
    | GetOption.PROPERTIES_COMPATIBILITY
)
#: Folders of properties. Another folder has properties if it says so in an attribute.
_OF_PROPERTIES: Final = frozenset({"usr", "mcd", "jms", "mq", "mqext", "mqps", "mq_usr"})
_SAYS_PROPERTIES: Final = ("content='properties'", 'content="properties"')
_START_CHARACTERS: Final = 512
_MOST_DIGITS: Final = 18


def leaves_out_properties(options: int, property_control: str) -> bool:
    """Whether a get with these options gives a message without its properties."""
    return bool(options & GetOption.NO_PROPERTIES) or (not options & _ANY and property_control == "NONE")


def without_properties(message: Message) -> Message:
    """A copy of a message without its properties; the same message if it has none, or if nobody can read them."""
    descriptor = message.descriptor
    if descriptor.format != _FORMAT_MQRFH2:
        return message
    try:
        header = read_mqrfh2(
            message.body, coded_char_set_id=descriptor.coded_char_set_id or UTF_8, encoding=descriptor.encoding
        )
        kept = tuple(folder for folder in header.folders if not _has_properties(folder))
        if len(kept) == len(header.folders):
            return message
        data = message.body[header.struc_length :]
        page = header.coded_char_set_id if header.coded_char_set_id > 0 else descriptor.coded_char_set_id
        if not kept:
            said = {"format": header.format, "coded_char_set_id": page, "encoding": header.encoding}
            return copy_of(message, data, **said)
        rest = write_mqrfh2(
            kept,
            format=header.format,
            next_coded_char_set_id=header.coded_char_set_id,
            next_encoding=header.encoding,
            coded_char_set_id=descriptor.coded_char_set_id or UTF_8,
            encoding=descriptor.encoding,
            flags=header.flags,
            name_value_ccsid=header.name_value_ccsid,
        )
    except MappingError:  # it is the program's to read, whatever it is
        return message
    return copy_of(message, rest + data)


def delivery_time_ms(message: Message) -> int:
    """When the message may be delivered, ms since 1970, as a JMS program with a delivery delay says; 0: at once.

    Raises no error: a header that cannot be read says nothing.
    """
    descriptor = message.descriptor
    if descriptor.format != _FORMAT_MQRFH2 or b"<mqext" not in message.body:
        return 0
    try:
        header = read_mqrfh2(
            message.body, coded_char_set_id=descriptor.coded_char_set_id or UTF_8, encoding=descriptor.encoding
        )
        folder = header.folder("mqext")
        said = [] if folder is None else [each.text for each in folder.elements if each.name == "Dtm"]
    except MappingError:
        return 0
    is_number = bool(said) and said[0].isascii() and said[0].isdigit() and len(said[0]) <= _MOST_DIGITS
    return int(said[0]) if is_number else 0


def copy_of(message: Message, body: bytes, **changes: object) -> Message:
    """The same message on the same queue with another body, and with some fields of its MQMD changed."""
    made = Message(message.descriptor.replace(msg_id=message.msg_id, **changes), body)
    made.sequence, made.put_us, made.expires_us = message.sequence, message.put_us, message.expires_us
    made.backout_count, made.identifier_prefix = message.backout_count, message.identifier_prefix
    return made


def _has_properties(folder: Folder) -> bool:
    if folder.name in _OF_PROPERTIES:
        return True
    start = folder.text[:_START_CHARACTERS].partition(">")[0]
    return any(said in start for said in _SAYS_PROPERTIES)
