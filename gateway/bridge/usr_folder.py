"""The properties of MQTT 5.0 that a publication carries from the PUBLISH or will that it was to those that it becomes.

MQ has no place for them that a broker keeps: it replaces CorrelId, and ReplyToQ is blank. So they are texts under names
of their own, which `carrier` puts into folder `usr` or among the pairs of an MQRFH:

    rfhbPayloadFormat    i4       Payload Format Indicator, 0 or 1; whether the payload is UTF-8 is not looked at
    rfhbContentType      string   Content Type
    rfhbRespTopic        string   Response Topic
    rfhbCorrel           bin.hex  Correlation Data
    rfhbUserProps        string   User Properties: a JSON array of [name, value], in order and with repeated names

Folders do not support characters beyond the Basic Multilingual Plane: a text with one stands under the name with Hex
at its end instead, as the hexadecimal digits of its UTF-8; in the JSON they are escaped. Control characters, which no
folder can hold at all, are refused before a PUBLISH or will gets here. Where the configuration says "each", user
properties stand behind these as single properties too (single_properties.py).
Message expiry is MQMD.Expiry (message_expiry.py); topic aliases and subscription identifiers belong to one connection.

What comes back is from outside: what is no such property is left out, the message is delivered without it, and the
audit is told.
Source: MQTT 5.0 section 3.3.2.3; IBM MQ, "NameValueData (MQCHARn)", characters of a folder and attribute dt.

What an MQ or JMS application says of its publication: as User Properties of MQTT 5.0, or the reason why not.

A part of step 8 on the way of a PUBLISH. Its properties stand in folder usr of an MQRFH2, beside what the gateway
carries there (carrier.py), or as its own pairs of an MQRFH. By their type (attribute dt):

    boolean      true or false; an application writes 1 or 0
    bin.hex      the hexadecimal digits
    all others   the text

A property that is null (xsi:nil), a group, and a text that MQTT cannot carry are left out, and the audit is told.
Source: MQTT 5.0 section 3.3.2.3.7; IBM MQ, "NameValueData (MQCHARn)", "Properties specified as MQRFH2 elements".

Message expiry of MQTT 5 as MQMD.Expiry: seconds there, tenths of a second here; both count what is left.

Source: MQTT 5.0 section 3.3.2.3.3; IBM MQ, "Expiry (MQLONG)".

What a publication carries of MQTT, because a broker would lose it: QoS, client, exchange, user, and properties.

A delivered publication has a new MsgId, the subscriber's CorrelId and the subscriber's user. So this travels in the
header: in MQRFH2 as properties in folder `usr`, which queue managers keep, in MQRFH as pairs of the publisher's own:

    rfhbQos     i4       QoS of the PUBLISH, 0 to 2
    rfhbClient  string   MQTT client identifier; left out where a folder cannot hold it
    rfhbSeq     i8       the session's own number of the exchange, from 1
    rfhbRetain  i4       1 where an empty PUBLISH had RETAIN: it deletes, so no RetainPub says it; else left out
    rfhbUser    string   MQTT user, where UserIdentifier does not say it; left out where a folder cannot hold it

and the properties of MQTT 5.0 (carried_properties.py). The embedded broker keeps a publication's private origin, so
there the properties alone are carried, where there are any.

What comes back is from outside, and anyone who may publish there can write it: it is checked, and used for the QoS and
the properties of the delivery and as information for the audit. Beside it may stand properties of an MQ or JMS
application (application_properties.py). What has no place in a PUBLISH is named, so that the audit hears of it.
Source: IBM MQ, "NameValueData (MQCHARn)", folder usr.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import orjson

from gateway.bridge.single_properties import single_properties
from gateway.mqtt import property_codec
from gateway.mqtt.errors import PeerError
from gateway.mqtt.incoming import check_response_topic
from gateway.mqtt.properties import PublishProperties, UserProperties, WillProperties
from gateway.mqtt.wire import MAXIMUM_FIELD_BYTES, Fields, decode_plain_text, decode_remaining_length
from mappings.errors import MappingError
from mappings.headers.chain import HeaderChain
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Element, Folder, Mqrfh2, elements_text
from mappings.headers.name_value import NameValues
from mq_adapters.message import MQEI_UNLIMITED, Message

PAYLOAD_FORMAT: Final = "rfhbPayloadFormat"
CONTENT_TYPE: Final = "rfhbContentType"
RESPONSE_TOPIC: Final = "rfhbRespTopic"
CORRELATION_DATA: Final = "rfhbCorrel"
USER_PROPERTIES: Final = "rfhbUserProps"
_HEX: Final = "Hex"
#: Types of those that are no strings (IBM MQ, "MQRFH2 folders", attribute dt).
TYPES: Final = {
    PAYLOAD_FORMAT: "i4",
    CORRELATION_DATA: "bin.hex",
    CONTENT_TYPE + _HEX: "bin.hex",
    RESPONSE_TOPIC + _HEX: "bin.hex",
}
#: The longest JSON that is read, in characters: a user property of five bytes becomes eight, and a quotation mark two.
_LONGEST_JSON: Final = 2 * property_codec.LONGEST_PROPERTIES_BYTES
_NOT_SUPPORTED: Final = re.compile("[\U00010000-\U0010ffff]")
_HEXADECIMAL: Final = re.compile("(?:[0-9A-Fa-f]{2})*")
#: An ampersand becomes five bytes in a folder; a user property may stand there twice, its name in two tags.
_GROWTH: Final = 10
#: Names, tags and types of all five, generously.
_NAMES_BYTES: Final = 512


#: How user properties are carried: as one JSON array, or as that and each as a property of its own.
UserPropertyStyle = Literal["one_json", "each"]


class CarriedPairs(NamedTuple):
    """Names and texts that a header carries, in their order; and names of user properties that "each" cannot name."""

    pairs: NameValues = ()
    left_out: NameValues = ()


NOTHING_CARRIED: Final = CarriedPairs()


class _Unreadable(ValueError):
    """A text is no such property."""


def carried_pairs_of(
    properties: PublishProperties | WillProperties | None, style: UserPropertyStyle = "one_json"
) -> CarriedPairs:
    """What a header carries of properties, with user properties in the style that the configuration names."""
    if properties is None:
        return NOTHING_CARRIED
    pairs = _pairs(properties)
    if style == "one_json" or not properties.user_properties:
        return CarriedPairs(pairs)
    single, left_out = single_properties(properties.user_properties)
    return CarriedPairs(pairs + single, left_out)


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


def longest_carried_bytes(header: bytes) -> int:
    """What the properties in a PUBLISH header may need in a header of MQ, at the most."""
    return _GROWTH * len(header) + _NAMES_BYTES


def read_properties(texts: Mapping[str, str]) -> tuple[PublishProperties | None, NameValues]:
    """What is carried, None for nothing; and the names of what is no such property, with the reason."""
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
    """The properties in the header of a PUBLISH of level 5, which has been read before."""
    _, start = decode_remaining_length(header, 1)
    position = start + 2 + int.from_bytes(header[start : start + 2], "big") + (2 if header[0] & 6 else 0)
    return property_codec.PUBLISH.read(Fields(header, position, len(header)))


def _text_pair(name: str, text: str) -> tuple[str, str]:
    return (name + _HEX, text.encode().hex()) if _NOT_SUPPORTED.search(text) else (name, text)


def _json(user_properties: UserProperties) -> str:
    text = json.dumps(user_properties, ensure_ascii=False, separators=(",", ":"))
    return _NOT_SUPPORTED.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _read_indicator(text: str) -> int:
    if text not in ("0", "1"):
        raise _Unreadable("a payload format indicator is 0 or 1")
    return int(text)


def plain_text(text: str) -> str:
    """A text that MQTT can carry. Raises ValueError past 65,535 bytes, PeerError for characters that it forbids."""
    data = text.encode()
    if len(data) > MAXIMUM_FIELD_BYTES:
        raise _Unreadable("a text of MQTT has at most 65,535 bytes")
    return decode_plain_text(data)


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
    """Raises ValueError for what is no JSON, too."""
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


#: Field of `PublishProperties`, name, and what reads its text; of two for a field the later one counts.
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


#: The names that are the gateway's own begin so.
OWN_PREFIX: Final = "rfhb"
_BOOLEANS: Final = {"1": "true", "0": "false"}
_TRUE: Final = frozenset({"1", "true"})
#: A user property in a PUBLISH: its identifier, and the lengths of name and value.
_OVERHEAD_BYTES: Final = 5


def with_application_properties(
    carried: UserProperties, elements: Iterable[Element]
) -> tuple[UserProperties, NameValues]:
    """The user properties that the gateway carries and then those of the application; and names with why they are none.

    A name that the gateway carries is the gateway's: the application can only have repeated it.
    """
    found = list(carried)
    names = frozenset(name for name, _ in carried)
    room = property_codec.LONGEST_PROPERTIES_BYTES - sum(_bytes(*each) for each in carried)
    left_out: list[tuple[str, str]] = []
    for element in elements:
        value = _value(element)
        reason = _reason(element, value)
        if element.name in names:
            reason = "" if (element.name, value) in carried else "rfhbUserProps has another value"
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
    """Why an element is no user property; empty where it is one."""
    if element.name.startswith(OWN_PREFIX):
        return "the name is the gateway's"
    if element.children:
        return "it is a group of properties"
    if any(name == "xsi:nil" and text in _TRUE for name, text in element.attributes):
        return "it is null"
    try:
        plain_text(element.name)
        plain_text(value)
    except (ValueError, PeerError):
        return "MQTT cannot carry its characters, or so many"
    return ""


def _bytes(name: str, value: str) -> int:
    return _OVERHEAD_BYTES + len(name.encode()) + len(value.encode())


_TENTHS: Final = 10
_TENTH_US: Final = 100_000
_SECOND_US: Final = 1_000_000
#: An MQLONG holds no more; what lasts longer, some seven years, does not expire.
_LONGEST_TENTHS: Final = 2**31 - 1


def expiry_of(properties: PublishProperties | WillProperties | None) -> int:
    """MQMD.Expiry of a PUBLISH or will with these properties; at least a tenth, which an expiry of 0 s becomes."""
    if properties is None or properties.message_expiry_s is None:
        return MQEI_UNLIMITED
    tenths = properties.message_expiry_s * _TENTHS
    return max(1, tenths) if tenths <= _LONGEST_TENTHS else MQEI_UNLIMITED


def expires_us(expiry: int, now_us: int) -> int:
    """When what has that MQMD.Expiry now expires, microseconds since 1970; 0: never."""
    return 0 if expiry == MQEI_UNLIMITED else now_us + expiry * _TENTH_US


def expiry_until(due_us: int, now_us: int) -> int:
    """MQMD.Expiry of what expires then (0: never); at least a tenth."""
    return MQEI_UNLIMITED if not due_us else max(1, (due_us - now_us) // _TENTH_US)


def remaining_s(message: Message, now_us: int) -> int | None:
    """Seconds that are left of a message, rounded up; None where it does not expire."""
    if not message.expires_us:
        return None
    return max(0, -((now_us - message.expires_us) // _SECOND_US))


QOS: Final = "rfhbQos"
CLIENT: Final = "rfhbClient"
SEQUENCE: Final = "rfhbSeq"
DELETES: Final = "rfhbRetain"
USER: Final = "rfhbUser"
#: The folder that it travels in.
FOLDER: Final = "usr"
#: Types of properties that are no strings (IBM MQ, "MQRFH2 folders", attribute dt).
_TYPES: Final = {QOS: "i4", SEQUENCE: "i8", DELETES: "i4", **TYPES}
#: What a folder of an MQRFH2 cannot hold (XML 1.0, production Char).
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_QOS: Final = re.compile(r"[0-2]")
_SEQUENCE: Final = re.compile(r"[1-9][0-9]{0,18}")
_MAXIMUM_SEQUENCE: Final = 2**63 - 1
#: Folders that are longer (bytes), or that have more tags, are not read for their carrier: properties of 262,144 bytes
#: may become ten times as long, and ours have at most 1,010 elements, of two tags.
_LONGEST_READ_FOLDER: Final = 3 * 1024 * 1024
_MOST_READ_TAGS: Final = 2_500
#: The folder and the names of a command; the names of it that a PUBLISH says in its own way.
_COMMAND_FOLDER: Final = "psc"
_COMMAND_PREFIX: Final = "MQPS"
_SAID: Final = frozenset({"Command", "Topic", "PubOpt", "PubOpts", "StreamName"})
#: What the gateway takes from a header for itself.
_TAKEN: Final = frozenset({QOS, CLIENT, SEQUENCE, DELETES, USER})
_NO_PLACE: Final = "MQTT has no place for it"
_BEFORE_LEVEL_5: Final = "MQTT has no properties before version 5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a publication says of the PUBLISH that it was; `qos` is None where it says nothing.

    `client` and `sequence` are "" and 0 where they are missing or no such thing. From outside: for information only.
    `deletes`: it had RETAIN and no payload. `left_out` are names, with the reason, of what a PUBLISH of level 5 does
    not say; `left_out_before_5` is the same of earlier levels, which have no properties at all.
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
        """Whether a property is left out for what it is: a command's own fields and other folders never are any."""
        return any(reason is not _NO_PLACE for _, reason in self.left_out)

    @property
    def is_of_one_message(self) -> bool:
        """Whether other messages will hardly have the same header."""
        properties = self.properties
        if self.sequence or properties is None:
            return self.sequence > 0
        return properties.correlation_data is not None or bool(properties.user_properties)


def carried_pairs(*, qos: int, client: str, sequence: int, deletes: bool, user: str | None) -> NameValues:
    """Names and values of a carrier for a target, in their order; properties stand behind them."""
    texts = [(QOS, str(qos))]
    if not _NOT_XML.search(client):
        texts.append((CLIENT, client))
    texts.append((SEQUENCE, str(sequence)))
    if deletes:
        texts.append((DELETES, "1"))
    if user and not _NOT_XML.search(user):
        texts.append((USER, user))
    return tuple(texts)


def carrier_folder(pairs: NameValues) -> str:
    """The folder `usr` with these properties."""
    inside = "".join(_property(name, value) for name, value in pairs)
    return f"<{FOLDER}>{inside}</{FOLDER}>"


def read_carried(chain: HeaderChain) -> Carried:
    """What a publication's headers carry, whichever of them it stands in."""
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
    names = dict.fromkeys(each.name for each in elements if each.name not in _TAKEN)
    return Carried(
        qos=int(texts[QOS]) if _QOS.fullmatch(texts.get(QOS, "")) else None,
        client=texts.get(CLIENT, "").partition("\0")[0],
        sequence=sequence if sequence <= _MAXIMUM_SEQUENCE else 0,
        deletes=texts.get(DELETES) == "1",
        properties=properties,
        left_out=placeless + unreadable + unfit,
        left_out_before_5=placeless + tuple((name, _BEFORE_LEVEL_5) for name in names),
    )


def _property(name: str, value: str) -> str:
    """A property with its type; text is escaped."""
    text = elements_text(((name, value),))
    kind = _TYPES.get(name)
    return text if kind is None else text.replace(f"<{name}>", f"<{name} dt='{kind}'>", 1)


def _contents(chain: HeaderChain) -> tuple[list[Element], NameValues]:
    """The properties in the headers of a chain, whoever wrote them; and what stands there beside them and a command."""
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
    """Adds what a folder holds to either list; returns why nothing of it can be read, empty where it can."""
    if folder.name not in (FOLDER, _COMMAND_FOLDER):
        return _NO_PLACE
    if len(folder.raw) > _LONGEST_READ_FOLDER or folder.raw.count(b"<") > _MOST_READ_TAGS:
        return "it is too long to be read"
    try:
        found = folder.elements
    except MappingError:
        return "it cannot be read"  # what nobody can read carries nothing
    if folder.name == FOLDER:
        elements += found
    else:
        placeless += [(each.name, _NO_PLACE) for each in found if each.name not in _SAID]
    return ""
