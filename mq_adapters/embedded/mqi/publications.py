"""Publications as subscribers of MQSUB get them: with folder mqps in the place of psc, and the folders that JMS reads.

Folder psc is the broker's. Folder mqps has the topic, and the user data of the subscription. The folders of a program
that publishes with JMS stay as it wrote them. A publication without these, such as a sensor's, gets folders mcd and
jms: then JMS makes a message of it, with its topic as JMSDestination, and properties from folder usr.
Source: IBM MQ, "The MQRFH2 header and JMS"; folder mqps: IBM MQ, "Publish/subscribe message properties".
"""

from typing import Final

from mappings.conversion.jms_folders import FORMAT_STRING, is_utf_8, jms_folders
from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_REVERSED
from mappings.headers.mqrfh2 import Mqrfh2, read_mqrfh2, write_mqrfh2
from mq_adapters.embedded.mqi.properties import copy_of
from mq_adapters.message import UTF_8, Message
from mq_adapters.subscription_mark import is_marked_copy

_FORMAT_MQRFH2: Final = b"MQHRF2  "
_US_OF_A_MS: Final = 1_000
#: The property of folder usr that says that a payload is UTF-8 (MQTT 5 section 3.3.2.3.2).
_SAYS_TEXT: Final = ("rfhbPayloadFormat", "1")


def delivered(message: Message) -> Message:
    """A message as its receiver gets it: a copy for a subscriber of MQSUB has message properties."""
    return published(message) if is_marked_copy(message.descriptor) else message


def published(message: Message) -> Message:
    """A copy of a publication as MQSUB delivers it. A message that is no such copy stays as it is."""
    descriptor = message.descriptor
    if descriptor.format != _FORMAT_MQRFH2:
        return message
    try:
        header = read_mqrfh2(
            message.body, coded_char_set_id=descriptor.coded_char_set_id or UTF_8, encoding=descriptor.encoding
        )
        psc = header.folder("psc")
        if psc is None:
            return message
        said = {element.name: element.text for element in reversed(psc.elements)}  # of two topics the first
        return _without_psc(message, header, said.get("Topic", ""), said.get("SubUserData", ""))
    except MappingError:  # it is the program's to read, whatever it is
        return message


def _without_psc(message: Message, header: Mqrfh2, topic: str, user_data: str) -> Message:
    data = message.body[header.struc_length :]
    folders = tuple(folder for folder in header.folders if folder.name not in ("psc", "mqps"))
    is_of_jms = any(folder.name in ("mcd", "jms") for folder in folders)
    is_text = not is_of_jms and _is_text(header, data)
    made_of_jms = jms_folders(
        topic,
        is_text=is_text,
        time_ms=message.put_us // _US_OF_A_MS,
        priority=message.descriptor.priority,
        is_persistent=message.is_persistent,
        user_data=user_data,
    )
    *own, mqps = [folder.encode() for folder in made_of_jms.folders]
    made = write_mqrfh2(
        (*folders, mqps) if is_of_jms else (*own, mqps, *folders),
        format=FORMAT_STRING if is_text else header.format,
        next_coded_char_set_id=header.coded_char_set_id,
        next_encoding=header.encoding,
        coded_char_set_id=UTF_8,
        encoding=ENCODING_REVERSED,
    )
    changes = {"coded_char_set_id": UTF_8, "encoding": ENCODING_REVERSED, "appl_origin_data": ""}
    return copy_of(message, made + data, **changes)


def _is_text(header: Mqrfh2, data: bytes) -> bool:
    """Whether the publisher says that its data are text: by their format, or by MQTT's payload format indicator."""
    if header.format == FORMAT_STRING:
        return True
    usr = header.folder("usr")
    is_said = usr is not None and any((each.name, each.text) == _SAYS_TEXT for each in usr.elements)
    return is_said and header.coded_char_set_id == UTF_8 and is_utf_8(data)
