"""Folder usr: the properties that a publication carries from its PUBLISH through MQ and back.

A broker makes a new message for each subscriber, with a new MsgId, the subscriber's CorrelId and the subscriber's user.
So the gateway writes properties that must survive into the header, at step 3 on the way of a PUBLISH: into folder `usr`
of an MQRFH2, which queue managers keep, or as its own pairs into an MQRFH. At step 8 it reads them from the header.

    name               type      what it holds
    rfhbQos            i4        QoS of the PUBLISH, 0 to 2
    rfhbClient         string    client identifier; left out where a folder cannot hold it
    rfhbSeq            i8        the session's own number of the exchange, from 1
    rfhbRetain         i4        1 where an empty PUBLISH had RETAIN: it deletes, so no RetainPub says it; else left out
    rfhbUser           string    MQTT user, where UserIdentifier does not say it; left out where a folder cannot hold it
    rfhbPayloadFormat  i4        Payload Format Indicator, 0 or 1; nobody checks whether the payload is UTF-8
    rfhbContentType    string    Content Type
    rfhbRespTopic      string    Response Topic
    rfhbCorrel         bin.hex   Correlation Data
    rfhbUserProps      string    User Properties: a JSON array of [name, value], in order and with repeated names

The first five travel to targets only, because the embedded broker keeps the origin of a publication by itself. Where
`[mqtt] user_properties` is "each", single properties follow (single_properties.py). A folder supports no characters
beyond the Basic Multilingual Plane: a text with one stands under its name with Hex at the end, as the hexadecimal
digits of its UTF-8; in the JSON such characters are escaped. A PUBLISH with control characters, which no folder can
hold, was refused before.

Anyone who may publish in MQ can write these names. Each value is checked; a value that is wrong is left out, the
message is delivered without it, and the audit is told. Properties of an MQ or JMS application that stand beside them
become User Properties of MQTT 5: `boolean` (attribute dt) as true or false, all others as their text. A property that
is null, a group, or a text that MQTT cannot carry is left out in the same way.

Message expiry has no name here: it is MQMD.Expiry, in tenths of a second instead of seconds. Both count what is left.
Topic aliases and subscription identifiers belong to one connection and are not carried.
Sources: MQTT 5.0 section 3.3.2.3; IBM MQ, "NameValueData (MQCHARn)", characters of a folder, attribute dt, folder usr
and "Properties specified as MQRFH2 elements"; "Expiry (MQLONG)".
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import orjson

from gateway.bridge.messages.single_properties import single_properties
from gateway.mqtt import property_codec
from gateway.mqtt.errors import PeerError
from gateway.mqtt.incoming import check_response_topic
from gateway.mqtt.properties import PublishProperties, UserProperties, WillProperties
from gateway.mqtt.wire import MAXIMUM_FIELD_BYTES, Fields, decode_plain_text, decode_remaining_length
from mappings.conversion.jms_folders import JmsFolders
from mappings.errors import MappingError
from mappings.headers.chain import HeaderChain
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Element, Folder, Mqrfh2, elements_text
from mappings.headers.name_value import NameValues
from mq_adapters.message import MQEI_UNLIMITED, Message

#: The folder of an MQRFH2 in which these properties travel.
FOLDER: Final = "usr"
#: The prefix of all names of the gateway.
OWN_PREFIX: Final = "rfhb"
QOS: Final = "rfhbQos"
CLIENT: Final = "rfhbClient"
SEQUENCE: Final = "rfhbSeq"
DELETES: Final = "rfhbRetain"
USER: Final = "rfhbUser"
PAYLOAD_FORMAT: Final = "rfhbPayloadFormat"
CONTENT_TYPE: Final = "rfhbContentType"
RESPONSE_TOPIC: Final = "rfhbRespTopic"
CORRELATION_DATA: Final = "rfhbCorrel"
USER_PROPERTIES: Final = "rfhbUserProps"
_HEX: Final = "Hex"
#: Types of the properties that are not strings (IBM MQ, "MQRFH2 folders", attribute dt).
_TYPES: Final = {
    QOS: "i4",
    SEQUENCE: "i8",
    DELETES: "i4",
    PAYLOAD_FORMAT: "i4",
    CORRELATION_DATA: "bin.hex",
    CONTENT_TYPE + _HEX: "bin.hex",
    RESPONSE_TOPIC + _HEX: "bin.hex",
}

#: The form of user properties: one JSON array, or that array and also each one as its own property.
UserPropertyStyle = Literal["one_json", "each"]


class CarriedPairs(NamedTuple):
    """Names and texts that a header carries, in order; and what it leaves out, with reasons.

    That are user properties that cannot be single properties, and a text that is none (jms_form.py). `jms`: the folders
    of JMS, if the header has them.
    """

    pairs: NameValues = ()
    left_out: NameValues = ()
    jms: JmsFolders | None = None


NOTHING_CARRIED: Final = CarriedPairs()


# -- writing -----------------------------------------------------------------------------------------------------------

#: Characters that a folder of an MQRFH2 cannot hold (XML 1.0, production Char).
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NOT_SUPPORTED: Final = re.compile("[\U00010000-\U0010ffff]")
#: Bytes in a folder for one byte: an ampersand becomes five, and a user property may stand there twice.
_GROWTH: Final = 10
#: At least the bytes of names, tags and types of all five properties.
_NAMES_BYTES: Final = 512


def exchange_pairs(*, qos: int, client: str, sequence: int, deletes: bool, user: str | None) -> NameValues:
    """The pairs for a target that describe the exchange, in the order of the names above; properties follow them."""
    texts = [(QOS, str(qos))]
    if not _NOT_XML.search(client):
        texts.append((CLIENT, client))
    texts.append((SEQUENCE, str(sequence)))
    if deletes:
        texts.append((DELETES, "1"))
    if user and not _NOT_XML.search(user):
        texts.append((USER, user))
    return tuple(texts)


def carried_pairs_of(
    properties: PublishProperties | WillProperties | None, style: UserPropertyStyle = "one_json"
) -> CarriedPairs:
    """The pairs for the properties of a PUBLISH or will; `style` is the configured form of user properties."""
    if properties is None:
        return NOTHING_CARRIED
    pairs = _pairs(properties)
    if style == "one_json" or not properties.user_properties:
        return CarriedPairs(pairs)
    single, left_out = single_properties(properties.user_properties)
    return CarriedPairs(pairs + single, left_out)


def carrier_folder(pairs: NameValues) -> str:
    """The folder `usr` with these properties."""
    inside = "".join(_property(name, value) for name, value in pairs)
    return f"<{FOLDER}>{inside}</{FOLDER}>"


def longest_carried_bytes(header: bytes) -> int:
    """The most bytes that the properties in a PUBLISH header can need in a header of MQ."""
    return _GROWTH * len(header) + _NAMES_BYTES


def _pairs(properties: PublishProperties | WillProperties) -> NameValues:
    pairs: list[tuple[str, str]] = []
    if properties.payload_format_indicator is not None:
        pairs.append((PAYLOAD_FORMAT, str(properties.payload_format_indicator)))
    if properties.content_type is not None:
        pairs.append(_text_pair(CONTENT_TYPE, properties.content_type))
    if properties.response_topic is not None:
        pairs.append(_text_pair(RESPONSE_TOPIC, properties.response_topic))
    if properties.correlation_data is not None:
        pairs.append((CORRELATION_DATA, properties.correlation_data.hex()))
    if properties.user_properties:
        pairs.append((USER_PROPERTIES, _json(properties.user_properties)))
    return tuple(pairs)


def _text_pair(name: str, text: str) -> tuple[str, str]:
    return (name + _HEX, text.encode().hex()) if _NOT_SUPPORTED.search(text) else (name, text)


def _json(user_properties: UserProperties) -> str:
    text = json.dumps(user_properties, ensure_ascii=False, separators=(",", ":"))
    return _NOT_SUPPORTED.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _property(name: str, value: str) -> str:
    """A property with its type; text is escaped."""
    text = elements_text(((name, value),))
    kind = _TYPES.get(name)
    return text if kind is None else text.replace(f"<{name}>", f"<{name} dt='{kind}'>", 1)


# -- reading -----------------------------------------------------------------------------------------------------------

_QOS: Final = re.compile(r"[0-2]")
_SEQUENCE: Final = re.compile(r"[1-9][0-9]{0,18}")
_MAXIMUM_SEQUENCE: Final = 2**63 - 1
#: The gateway does not read a folder with more bytes or more tags than it can have written: properties of 262,144
#: bytes become at most ten times as long, and a folder of ours has at most 1,010 elements, each with two tags.
_LONGEST_READ_FOLDER: Final = 3 * 1024 * 1024
_MOST_READ_TAGS: Final = 2_500
#: The folder and the names of a command, and those of its fields that a PUBLISH says in its own way.
_COMMAND_FOLDER: Final = "psc"
_COMMAND_PREFIX: Final = "MQPS"
_SAID: Final = frozenset({"Command", "Topic", "PubOpt", "PubOpts", "StreamName"})
#: Names in a header that only the gateway uses.
_TAKEN: Final = frozenset({QOS, CLIENT, SEQUENCE, DELETES, USER})
_NO_PLACE: Final = "MQTT has no place for it"
_IS_NULL: Final = "it is null"
#: Reasons that leave out nothing of value. IBM's JMS client writes its client identifier as null if it has none.
_EXPECTED: Final = frozenset({_NO_PLACE, _IS_NULL})
#: Folder jms has the time of its message.
_WITH_TIME: Final = ("jms", _NO_PLACE)
_BEFORE_LEVEL_5: Final = "MQTT has no properties before version 5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The properties that a publication carries from its PUBLISH; `qos` is None if it carries no QoS.

    `client` and `sequence` are "" and 0 if they are missing or wrong. They come from outside and are for information
    only. `deletes` means that the PUBLISH had RETAIN and no payload. `left_out` has the names that a PUBLISH of level 5
    cannot carry, with the reason; `left_out_before_5` is the same for earlier levels, which have no properties.
    """

    qos: int | None = None
    client: str = ""
    sequence: int = 0
    deletes: bool = False
    properties: PublishProperties | None = None
    left_out: NameValues = ()
    left_out_before_5: NameValues = ()

    @property
    def has_unfit_properties(self) -> bool:
        """Whether a property is left out because MQTT cannot carry it.

        Other folders, commands and properties that are null do not count.
        """
        return any(reason not in _EXPECTED for _, reason in self.left_out)

    @property
    def is_of_one_message(self) -> bool:
        """Whether a second message with the same header is unlikely."""
        properties = self.properties
        if _WITH_TIME in self.left_out:
            return True
        if self.sequence or properties is None:
            return self.sequence > 0
        return properties.correlation_data is not None or bool(properties.user_properties)


def read_carried(chain: HeaderChain) -> Carried:
    """The carried properties from all headers of a publication."""
    elements, placeless = _contents(chain)
    texts: dict[str, str] = {}
    for element in elements:
        texts.setdefault(element.name, element.text)
    properties, unreadable = read_properties(texts)
    others = [each for each in elements if each.name not in CARRIED_NAMES and each.name not in _TAKEN]
    unfit: NameValues = ()
    if others:
        own = () if properties is None else properties.user_properties
        user_properties, unfit = with_application_properties(own, others)
        properties = (properties or PublishProperties())._replace(user_properties=user_properties)
    sequence = int(texts[SEQUENCE]) if _SEQUENCE.fullmatch(texts.get(SEQUENCE, "")) else 0
    names = {each.name: None for each in elements if each.name not in _TAKEN}
    return Carried(
        qos=int(texts[QOS]) if _QOS.fullmatch(texts.get(QOS, "")) else None,
        client=texts.get(CLIENT, "").partition("\0")[0],
        sequence=sequence if sequence <= _MAXIMUM_SEQUENCE else 0,
        deletes=texts.get(DELETES) == "1",
        properties=properties,
        left_out=placeless + unreadable + unfit,
        left_out_before_5=placeless + tuple((name, _BEFORE_LEVEL_5) for name in names),
    )


def read_properties(texts: Mapping[str, str]) -> tuple[PublishProperties | None, NameValues]:
    """The properties in these texts, or None if there are none; and the names of wrong ones, with the reason."""
    found: dict[str, Any] = {}
    left_out: list[tuple[str, str]] = []
    for field, name, read in _READERS:
        text = texts.get(name)
        if text is None:
            continue
        try:
            found[field] = read(text)
        except (ValueError, PeerError):
            left_out.append((name, "it is no such property of MQTT"))
    return (PublishProperties()._replace(**found) if found else None), tuple(left_out)


def properties_of_header(header: bytes) -> PublishProperties | None:
    """The properties in the header of a PUBLISH of level 5, which the gateway has read successfully before."""
    _, start = decode_remaining_length(header, 1)
    position = start + 2 + int.from_bytes(header[start : start + 2], "big") + (2 if header[0] & 6 else 0)
    return property_codec.PUBLISH.read(Fields(header, position, len(header)))


def _contents(chain: HeaderChain) -> tuple[list[Element], NameValues]:
    """All properties in the headers of a chain; and all other contents, which a PUBLISH cannot carry."""
    elements: list[Element] = []
    placeless: list[tuple[str, str]] = []
    for header in chain.headers:
        if isinstance(header, Mqrfh):
            for name, value in header.pairs:
                if not name.startswith(_COMMAND_PREFIX):
                    elements.append(Element(name=name, text=value))
                elif name.removeprefix(_COMMAND_PREFIX) not in _SAID:
                    placeless.append((name, _NO_PLACE))
        for folder in header.folders if isinstance(header, Mqrfh2) else ():
            reason = _read_folder(folder, elements, placeless)
            if reason:
                placeless.append((folder.name, reason))
    return elements, tuple(placeless)


def _read_folder(folder: Folder, elements: list[Element], placeless: list[tuple[str, str]]) -> str:
    """Adds the contents of a folder to one of the lists. Returns why the folder is not read; "" if it is."""
    if folder.name not in (FOLDER, _COMMAND_FOLDER):
        return _NO_PLACE
    if len(folder.raw) > _LONGEST_READ_FOLDER or folder.raw.count(b"<") > _MOST_READ_TAGS:
        return "it is too long to be read"
    try:
        found = folder.elements
    except MappingError:
        return "it cannot be read"
    if folder.name == FOLDER:
        elements += found
    else:
        placeless += [(each.name, _NO_PLACE) for each in found if each.name not in _SAID]
    return ""


# -- one value of MQTT 5 -----------------------------------------------------------------------------------------------

#: The longest JSON that is read, in characters: a user property of five bytes becomes eight, and a quotation mark two.
_LONGEST_JSON: Final = 2 * property_codec.LONGEST_PROPERTIES_BYTES
_HEXADECIMAL: Final = re.compile("(?:[0-9A-Fa-f]{2})*")


class _Unreadable(ValueError):
    """A text is not a valid value of the property with its name."""


def plain_text(text: str) -> str:
    """A text that MQTT can carry. Raises ValueError past 65,535 bytes, PeerError for characters that it forbids."""
    data = text.encode()
    if len(data) > MAXIMUM_FIELD_BYTES:
        raise _Unreadable("a text of MQTT has at most 65,535 bytes")
    return decode_plain_text(data)


def _read_indicator(text: str) -> int:
    if text not in ("0", "1"):
        raise _Unreadable("a payload format indicator is 0 or 1")
    return int(text)


def _read_hex(text: str) -> bytes:
    if len(text) > 2 * MAXIMUM_FIELD_BYTES or not _HEXADECIMAL.fullmatch(text):
        raise _Unreadable("binary data are at most 65,535 pairs of hexadecimal digits")
    return bytes.fromhex(text)


def _read_hex_text(text: str) -> str:
    return decode_plain_text(_read_hex(text))


def _read_topic(text: str) -> str:
    check_response_topic(plain_text(text))
    return text


def _read_hex_topic(text: str) -> str:
    return _read_topic(_read_hex_text(text))


def _read_user_properties(text: str) -> UserProperties:
    """User properties from their JSON. Raises ValueError for other text or another array."""
    if len(text) > _LONGEST_JSON:
        raise _Unreadable("the JSON is too long")
    rows = orjson.loads(text)
    if not isinstance(rows, list) or len(rows) > property_codec.MAXIMUM_REPEATED:
        raise _Unreadable("user properties are an array")
    return tuple(_user_property(row) for row in rows)


def _user_property(row: object) -> tuple[str, str]:
    if not isinstance(row, list) or len(row) != 2 or not all(isinstance(each, str) for each in row):
        raise _Unreadable("a user property is a name and a value")
    name, value = row
    return plain_text(name), plain_text(value)


#: Field of `PublishProperties`, name, and reader of its text. Of two names for one field the later one counts.
_READERS: Final = (
    ("payload_format_indicator", PAYLOAD_FORMAT, _read_indicator),
    ("content_type", CONTENT_TYPE, plain_text),
    ("content_type", CONTENT_TYPE + _HEX, _read_hex_text),
    ("response_topic", RESPONSE_TOPIC, _read_topic),
    ("response_topic", RESPONSE_TOPIC + _HEX, _read_hex_topic),
    ("correlation_data", CORRELATION_DATA, _read_hex),
    ("user_properties", USER_PROPERTIES, _read_user_properties),
)
#: The names under which a header carries properties.
CARRIED_NAMES: Final = frozenset(name for _, name, _ in _READERS)


# -- properties of an application --------------------------------------------------------------------------------------

_BOOLEANS: Final = {"1": "true", "0": "false"}
_TRUE: Final = frozenset({"1", "true"})
#: A user property in a PUBLISH: its identifier, and the lengths of name and value.
_OVERHEAD_BYTES: Final = 5


def with_application_properties(
    carried: UserProperties, elements: Iterable[Element]
) -> tuple[UserProperties, NameValues]:
    """The user properties that the gateway carries, then those of the application; and the ones left out, and why.

    If both have a name, only the gateway's property counts: the application can only have repeated it.
    """
    found = list(carried)
    names, pairs = frozenset(name for name, _ in carried), frozenset(carried)
    room = property_codec.LONGEST_PROPERTIES_BYTES - sum(_bytes(*each) for each in carried)
    left_out: list[tuple[str, str]] = []
    for element in elements:
        value = _value(element)
        reason = _reason(element, value)
        if element.name in names:
            reason = "" if (element.name, value) in pairs else "rfhbUserProps has another value"
        elif not reason and (len(found) >= property_codec.MAXIMUM_REPEATED or _bytes(element.name, value) > room):
            reason = "a PUBLISH has no room for more user properties"
        elif not reason:
            found.append((element.name, value))
            room -= _bytes(element.name, value)
        if reason:
            left_out.append((element.name, reason))
    return tuple(found), tuple(left_out)


def _value(element: Element) -> str:
    is_boolean = ("dt", "boolean") in element.attributes
    return _BOOLEANS.get(element.text, element.text) if is_boolean else element.text


def _reason(element: Element, value: str) -> str:
    """Why an element cannot be a user property; "" if it can."""
    if element.name.startswith(OWN_PREFIX):
        return "the name is the gateway's"
    if element.children:
        return "it is a group of properties"
    if any(name == "xsi:nil" and text in _TRUE for name, text in element.attributes):
        return _IS_NULL
    try:
        plain_text(element.name)
        plain_text(value)
    except (ValueError, PeerError):
        return "MQTT cannot carry its characters, or so many"
    return ""


def _bytes(name: str, value: str) -> int:
    return _OVERHEAD_BYTES + len(name.encode()) + len(value.encode())


# -- message expiry ----------------------------------------------------------------------------------------------------

_TENTHS: Final = 10
_TENTH_US: Final = 100_000
_SECOND_US: Final = 1_000_000
#: The largest MQLONG. A message with a longer expiry, of some seven years, does not expire.
_LONGEST_TENTHS: Final = 2**31 - 1


def expiry_of(properties: PublishProperties | WillProperties | None) -> int:
    """MQMD.Expiry of a PUBLISH or will with these properties; 0 s becomes a tenth of a second, the shortest of MQ."""
    if properties is None or properties.message_expiry_s is None:
        return MQEI_UNLIMITED
    tenths = properties.message_expiry_s * _TENTHS
    return max(1, tenths) if tenths <= _LONGEST_TENTHS else MQEI_UNLIMITED


def expires_us(expiry: int, now_us: int) -> int:
    """The time when a message with this MQMD.Expiry expires, in microseconds since 1970; 0 is never."""
    return 0 if expiry == MQEI_UNLIMITED else now_us + expiry * _TENTH_US


def expiry_until(due_us: int, now_us: int) -> int:
    """MQMD.Expiry of a message that expires at `due_us` (0 is never); at least a tenth."""
    return MQEI_UNLIMITED if not due_us else max(1, (due_us - now_us) // _TENTH_US)


def remaining_s(message: Message, now_us: int) -> int | None:
    """The seconds until a message expires, rounded up; None where it does not expire."""
    if not message.expires_us:
        return None
    return max(0, -((now_us - message.expires_us) // _SECOND_US))
