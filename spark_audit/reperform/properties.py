"""Properties of MQTT 5.0 as the audit reads them in packets and writes and reads them in headers of MQ.

In a PUBLISH, and behind a will, they are a length (one to four bytes of seven bits) and then identifier and value:

    01  payload format, a byte       08  response topic, text          23  topic alias, two bytes
    02  expiry, four bytes           09  correlation data, binary      26  user property, two texts; may repeat
    03  content type, text           0B  subscription identifier, a number of one to four bytes; may repeat
    18  will delay, four bytes

Text and binary have a length of two bytes. Five of them are properties of the message, and a header carries them:

    rfhbPayloadFormat (i4), rfhbContentType, rfhbRespTopic, rfhbCorrel (bin.hex), rfhbUserProps (JSON: [[name, value]])

A content type or response topic with a character beyond the Basic Multilingual Plane stands in hexadecimal digits under
the name with Hex at its end (bin.hex); in the JSON such characters are escaped. A text with control characters or
noncharacters (Unicode section 23.7) is no valid text. Source: MQTT 5.0 sections 2.2.2.2, 3.1.3.2 and 3.3.2.3; IBM MQ,
"NameValueData (MQCHARn)".
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from spark_audit.reperform.comparison import UnreadableBytes

PAYLOAD_FORMAT, CONTENT_TYPE, RESPONSE_TOPIC = "rfhbPayloadFormat", "rfhbContentType", "rfhbRespTopic"
CORRELATION_DATA, USER_PROPERTIES = "rfhbCorrel", "rfhbUserProps"
_HEX: Final = "Hex"
TYPES: Final = {
    PAYLOAD_FORMAT: "i4",
    CORRELATION_DATA: "bin.hex",
    CONTENT_TYPE + _HEX: "bin.hex",
    RESPONSE_TOPIC + _HEX: "bin.hex",
}
_LONGEST_FIELD_BYTES: Final = 65_535
_DIGITS: Final = re.compile("(?:[0-9a-fA-F][0-9a-fA-F])*")
#: The gateway's own limits: the most user properties of a packet, and the most bytes of all its properties.
MOST_USER_PROPERTIES: Final = 1_000
MOST_USER_PROPERTY_BYTES: Final = 262_144
_LONGEST_JSON: Final = 2 * MOST_USER_PROPERTY_BYTES
#: The names under which a header carries properties.
CARRIED_NAMES: Final = frozenset(
    {*TYPES, PAYLOAD_FORMAT, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA, USER_PROPERTIES}
)

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """The properties in a packet, None or empty if it lacks them; and whether it has a topic alias."""

    payload_format: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: Pairs = ()
    has_alias: bool = False


def read_properties(section: bytes) -> Properties:
    """The properties in a section that has only their length and the properties."""
    length, offset = variable_number(section, 0)
    if offset + length != len(section):
        raise UnreadableBytes("the length of the properties is not theirs")
    found = Properties()
    while offset < len(section):
        reader = _READERS.get(section[offset])
        if reader is None:
            raise UnreadableBytes(f"property {section[offset]:02X} has no place in a PUBLISH or will", offset)
        found, offset = reader(found, section, offset + 1)
    return found


def carried(properties: Properties) -> Pairs:
    """The names and values with which a header carries properties."""
    pairs: list[tuple[str, str]] = []
    if properties.payload_format is not None:
        pairs.append((PAYLOAD_FORMAT, str(properties.payload_format)))
    pairs += _carried_text(CONTENT_TYPE, properties.content_type)
    pairs += _carried_text(RESPONSE_TOPIC, properties.response_topic)
    if properties.correlation_data is not None:
        pairs.append((CORRELATION_DATA, properties.correlation_data.hex()))
    if properties.user_properties:
        rows = json.dumps(
            [list(each) for each in properties.user_properties], ensure_ascii=False, separators=(",", ":")
        )
        pairs.append((USER_PROPERTIES, "".join(_escaped(each) if each > "\uffff" else each for each in rows)))
    return tuple(pairs)


def carried_back(pairs: Iterable[tuple[str, str]]) -> Properties:
    """The properties of a PUBLISH of level 5 from a header.

    The first of two equal names counts; an invalid value is ignored.
    """
    texts: dict[str, str] = {}
    for name, value in pairs:
        texts.setdefault(name, value)
    content_type = mqtt_text(texts.get(CONTENT_TYPE)), mqtt_text(_of_hex(texts.get(CONTENT_TYPE + _HEX)))
    topic = _topic(texts.get(RESPONSE_TOPIC)), _topic(_of_hex(texts.get(RESPONSE_TOPIC + _HEX)))
    indicator = texts.get(PAYLOAD_FORMAT)
    return Properties(
        payload_format=int(indicator) if indicator in ("0", "1") else None,
        content_type=content_type[0] if content_type[1] is None else content_type[1],
        response_topic=topic[0] if topic[1] is None else topic[1],
        correlation_data=_binary(texts.get(CORRELATION_DATA)),
        user_properties=_user_properties(texts.get(USER_PROPERTIES)),
    )


def property_differences(expected: Properties, actual: Properties) -> list[str]:
    """Sentences about differences between the properties of a delivery and its publication, except user properties."""
    names = ("payload_format", "content_type", "response_topic", "correlation_data")
    return [
        f"property {name} is {getattr(actual, name)!r}, the publication carries {getattr(expected, name)!r}"
        for name in names
        if getattr(actual, name) != getattr(expected, name)
    ]


def variable_number(data: bytes, offset: int) -> tuple[int, int]:
    """A number of one to four bytes with seven bits each, and the bytes behind it."""
    length = 0
    for index, byte in enumerate(data[offset : offset + 4]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return length, offset + index + 1
    raise UnreadableBytes("a length has no end", offset)


def _part(data: bytes, offset: int, length: int) -> tuple[bytes, int]:
    if offset + length > len(data):
        raise UnreadableBytes("the properties end inside a value", offset)
    return data[offset : offset + length], offset + length


def _field(data: bytes, offset: int) -> tuple[bytes, int]:
    length, offset = _part(data, offset, 2)
    return _part(data, offset, int.from_bytes(length, "big"))


def _text_field(data: bytes, offset: int) -> tuple[str, int]:
    field, behind = _field(data, offset)
    try:
        return field.decode(), behind
    except UnicodeDecodeError:
        raise UnreadableBytes("a property is not UTF-8", offset) from None


_Reader = Callable[[Properties, bytes, int], tuple[Properties, int]]


def _read_payload_format(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    value, offset = _part(data, offset, 1)
    return replace(found, payload_format=value[0]), offset


def _read_content_type(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    text, offset = _text_field(data, offset)
    return replace(found, content_type=text), offset


def _read_response_topic(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    text, offset = _text_field(data, offset)
    return replace(found, response_topic=text), offset


def _read_correlation_data(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    value, offset = _field(data, offset)
    return replace(found, correlation_data=value), offset


def _read_user_property(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    name, offset = _text_field(data, offset)
    value, offset = _text_field(data, offset)
    return replace(found, user_properties=(*found.user_properties, (name, value))), offset


def _read_alias(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    return replace(found, has_alias=True), _part(data, offset, 2)[1]


def _skip_four_bytes(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    return found, _part(data, offset, 4)[1]


def _skip_number(found: Properties, data: bytes, offset: int) -> tuple[Properties, int]:
    return found, variable_number(data, offset)[1]


_READERS: Final[dict[int, _Reader]] = {
    0x01: _read_payload_format,
    0x02: _skip_four_bytes,
    0x03: _read_content_type,
    0x08: _read_response_topic,
    0x09: _read_correlation_data,
    0x0B: _skip_number,
    0x18: _skip_four_bytes,
    0x23: _read_alias,
    0x26: _read_user_property,
}


def _is_character(character: str) -> bool:
    number = ord(character)
    is_control = number < 0x20 or 0x7F <= number <= 0x9F
    return not (is_control or 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _carried_text(name: str, text: str | None) -> list[tuple[str, str]]:
    if text is None:
        return []
    if any(each > "\uffff" for each in text):
        return [(name + _HEX, text.encode().hex())]
    return [(name, text)]


def _binary(digits: str | None) -> bytes | None:
    if digits is None or len(digits) > 2 * _LONGEST_FIELD_BYTES or not _DIGITS.fullmatch(digits):
        return None
    return bytes.fromhex(digits)


def _of_hex(digits: str | None) -> str | None:
    data = _binary(digits)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def mqtt_text(text: object) -> str | None:
    if not isinstance(text, str) or not all(map(_is_character, text)):
        return None
    try:
        return text if len(text.encode()) <= _LONGEST_FIELD_BYTES else None
    except UnicodeEncodeError:
        return None


def _topic(text: str | None) -> str | None:
    return None if not text or "#" in text or "+" in text else mqtt_text(text)


def _user_properties(text: str | None) -> Pairs:
    if text is None or len(text) > _LONGEST_JSON:
        return ()
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(rows, list) or len(rows) > MOST_USER_PROPERTIES:
        return ()
    found = [(mqtt_text(row[0]), mqtt_text(row[1])) for row in rows if isinstance(row, list) and len(row) == 2]
    pairs = tuple((name, value) for name, value in found if name is not None and value is not None)
    return pairs if len(pairs) == len(rows) else ()
