"""A message as a message selector sees it: fields of the MQMD, the headers of JMS, and its properties.

Properties are those of the MQRFH2 in front of the data. The name `site` is that of a property in folder usr; `a.b` is
one of a group in usr, or of another folder, as in mqps.Top. The header is read only if a condition asks for it.
Source: IBM MQ, "Message selector syntax", "Mapping JMS fields onto IBM MQ fields", "NameValueData".
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mappings.errors import MappingError
from mappings.headers.charset import is_big_endian
from mappings.headers.layout import MQRFH2
from mappings.headers.mqrfh2 import Element, Mqrfh2, read_mqrfh2
from mq_adapters.message import MQCI_NONE, UTF_8, Message
from mq_adapters.mqmd import ATTRIBUTES
from mq_adapters.selection.conditions import ContentError, Reference, ReferenceSource, Value
from mq_adapters.selection.properties import property_value

#: A longer MQRFH2 is not read for a selector. So a message takes some 10 ms at most.
MAXIMUM_HEADER_BYTES: Final = 32_768
#: The headers of JMS whose values are identifiers, `ID:` and hexadecimal digits.
IDENTIFIERS: Final = ("JMSMessageID", "JMSCorrelationID")
#: JMSDeliveryMode by the constants of JMS, as selectors write it.
MODES: Final = {1: "NON_PERSISTENT", 2: "PERSISTENT"}
_FORMAT_MQRFH2: Final = b"MQHRF2  "
_MQMD_PREFIX: Final = "JMS_IBM_MQMD_"
_US_OF_A_MS: Final = 1_000


class MessageContent:
    """The values of one message, as conditions.Content asks for them."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._header: Mqrfh2 | None = None
        self._is_read = False
        self._folders: dict[str, dict[str, Value]] = {}

    def value(self, reference: Reference) -> Value:
        """The value of a reference; None if it is missing. ContentError if the header cannot be read."""
        name = reference.path[0]
        if reference.source is ReferenceSource.MQMD:
            return descriptor_value(self.message, name)
        if reference.source is not ReferenceSource.PROPERTY:
            return None
        told = HEADERS.get(name)
        if told is not None:
            return told(self)
        if name.startswith(_MQMD_PREFIX):
            return descriptor_value(self.message, ATTRIBUTES[name.removeprefix(_MQMD_PREFIX)])
        return self.of_name(name)

    def of_name(self, name: str) -> Value:
        """The property of that name."""
        found = self.in_folder("usr", name)
        folder, point, rest = name.partition(".")
        return self.in_folder(folder, rest) if found is None and point else found

    def in_folder(self, folder: str, name: str) -> Value:
        """A property of a folder by its name there."""
        values = self._folders.get(folder)
        if values is None:
            values = self._folders[folder] = self._read(folder)
        return values.get(name)

    @property
    def header(self) -> Mqrfh2 | None:
        """The MQRFH2 in front of the data, if there is one."""
        if not self._is_read:
            self._header, self._is_read = _header(self.message), True
        return self._header

    def _read(self, folder: str) -> dict[str, Value]:
        header = self.header
        if header is None:
            return {}
        try:
            return dict(_named(each for found in header.folders if found.name == folder for each in found.elements))
        except MappingError as error:
            raise ContentError(f"folder {folder} cannot be read: {error}") from None


def descriptor_value(message: Message, name: str) -> Value:
    """A field of the MQMD, without the blanks behind it; `name` is that of the attribute."""
    if name == "msg_id":
        return message.msg_id
    value: str | int | bytes = getattr(message.descriptor, name)
    if name == "format" and isinstance(value, bytes):
        return value.decode("latin-1").rstrip(" \0")
    return value.rstrip(" ") if isinstance(value, str) else value


def is_known(name: str) -> bool:
    """Whether a property of that name can be told. Names that begin with JMS are the standard's and IBM's."""
    if name.startswith(_MQMD_PREFIX):
        return name.removeprefix(_MQMD_PREFIX) in ATTRIBUTES
    return name in HEADERS or not name.startswith("JMS")


def _header(message: Message) -> Mqrfh2 | None:
    descriptor, body = message.descriptor, message.body
    if descriptor.format != _FORMAT_MQRFH2:
        return None
    at = MQRFH2.offsets["StrucLength"]
    try:
        length = int.from_bytes(body[at : at + 4], "big" if is_big_endian(descriptor.encoding) else "little")
        if length > MAXIMUM_HEADER_BYTES:
            raise ContentError(f"the header has {length} bytes; up to {MAXIMUM_HEADER_BYTES} are read for a selector")
        return read_mqrfh2(body, coded_char_set_id=descriptor.coded_char_set_id or UTF_8, encoding=descriptor.encoding)
    except MappingError as error:
        raise ContentError(f"the header cannot be read: {error}") from None


def _named(elements: Iterable[Element], before: str = "") -> Iterator[tuple[str, Value]]:
    for element in elements:
        if element.children:
            yield from _named(element.children, f"{before}{element.name}.")
        else:
            yield before + element.name, property_value(element)


# -- headers of JMS ----------------------------------------------------------------------------------------------------


def _correlation_id(content: MessageContent) -> Value:
    said = content.in_folder("jms", "Cid")
    correl_id = content.message.descriptor.correl_id
    if isinstance(said, str):
        return said
    return None if correl_id == MQCI_NONE else "ID:" + correl_id.hex()


def _timestamp(content: MessageContent) -> Value:
    said = content.in_folder("jms", "Tms")
    is_number = isinstance(said, str) and said.isascii() and said.isdigit() and len(said) < len(str(1 << 63))
    return int(str(said)) if is_number else content.message.put_us // _US_OF_A_MS


def _destination(content: MessageContent) -> Value:
    said, topic = content.in_folder("jms", "Dst"), content.in_folder("psc", "Topic")
    return f"topic://{topic}" if said is None and isinstance(topic, str) else said


def _body_format(content: MessageContent) -> Value:
    header = content.header
    format = content.message.descriptor.format if header is None else header.format
    return format.decode("latin-1").rstrip(" \0")


def _of_folder(folder: str, name: str) -> Callable[[MessageContent], Value]:
    return lambda content: content.in_folder(folder, name)


def _of_descriptor(name: str) -> Callable[[MessageContent], Value]:
    return lambda content: descriptor_value(content.message, name)


#: The headers of JMS that can be told, and how.
HEADERS: Final[dict[str, Callable[[MessageContent], Value]]] = {
    "JMSMessageID": lambda content: "ID:" + content.message.msg_id.hex(),
    "JMSCorrelationID": _correlation_id,
    "JMSType": _of_folder("mcd", "Type"),
    "JMSTimestamp": _timestamp,
    "JMSPriority": _of_descriptor("priority"),
    "JMSDeliveryMode": lambda content: MODES[1 + content.message.is_persistent],
    "JMSExpiration": lambda content: content.message.expires_us // _US_OF_A_MS,
    "JMSDestination": _destination,
    "JMSReplyTo": _of_folder("jms", "Rto"),
    "JMSRedelivered": lambda content: content.message.backout_count > 0,
    "JMSXDeliveryCount": lambda content: content.message.backout_count + 1,
    "JMSXUserID": _of_descriptor("user_identifier"),
    "JMSXAppID": _of_descriptor("put_appl_name"),
    "JMS_IBM_Format": _body_format,
    "JMS_IBM_MsgType": _of_descriptor("msg_type"),
    "JMS_IBM_Feedback": _of_descriptor("feedback"),
    "JMS_IBM_PutApplType": _of_descriptor("put_appl_type"),
}
