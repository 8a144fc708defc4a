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
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import orjson

from gateway.bridge.single_properties import single_properties
from gateway.mqtt import property_codec
from gateway.mqtt.errors import PeerError
from gateway.mqtt.incoming import check_response_topic
from gateway.mqtt.properties import PublishProperties, UserProperties, WillProperties
from gateway.mqtt.wire import MAXIMUM_FIELD_BYTES, Fields, decode_plain_text, decode_remaining_length
from mappings.name_value import NameValues

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
