"""User properties of MQTT 5.0 and the properties of MQ and JMS applications, as the audit expects them of each other.

To MQ, if each user property gets a property of its own: the name must be an identifier of Java and a name of XML
without `.`, `:` and `-`. It stands there once, is not reserved (rfhb, JMS, MQ in front), and is no word of selectors.
The value is within the Basic Multilingual Plane. From MQ: behind the JSON in rfhbUserProps come the other properties of
folder usr, or an application's own pairs of an MQRFH. A boolean is true or false, and any other value its text. A null,
a group, a name of the gateway, and a text that MQTT cannot carry are left out. The report names all that are left out.
Source: JMS 1.1 sections 3.5.1 and 3.8.1.1; MQTT 5.0 section 3.3.2.3.7; IBM MQ, "NameValueData (MQCHARn)".
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from spark_audit.reperform.folder import OuterElement
from spark_audit.reperform.mqtt import FIRST_LEVEL_WITH_PROPERTIES
from spark_audit.reperform.properties import (
    CARRIED_NAMES,
    MOST_USER_PROPERTIES,
    MOST_USER_PROPERTY_BYTES,
    Pairs,
    Properties,
    carried_back,
    mqtt_text,
)

#: Names that are carried for the gateway itself.
_TAKEN: Final = frozenset({"rfhbQos", "rfhbClient", "rfhbSeq", "rfhbRetain", "rfhbUser"})
#: The beginning of the gateway's own names.
OWN_PREFIX: Final = "rfhb"
_RESERVED: Final = re.compile("rfhb|jms|mq", re.IGNORECASE)
_WORDS: Final = frozenset(["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"])
#: XML 1.0, NameStartChar of the Basic Multilingual Plane without the colon, as ranges.
_NAME_STARTS: Final = (
    (0x41, 0x5A),
    (0x5F, 0x5F),
    (0x61, 0x7A),
    (0xC0, 0xD6),
    (0xD8, 0xF6),
    (0xF8, 0x2FF),
    (0x370, 0x37D),
    (0x37F, 0x1FFF),
    (0x200C, 0x200D),
    (0x2070, 0x218F),
    (0x2C00, 0x2FEF),
    (0x3001, 0xD7FF),
    (0xF900, 0xFDCF),
    (0xFDF0, 0xFFFD),
)
#: The further characters of NameChar, without the hyphen and the full stop.
_NAME_PARTS: Final = ((0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))


def named_singly(user_properties: Pairs) -> Pairs:
    """The user properties that get a property of their own, if the gateway gives one to each that can have it."""
    counts = Counter(name for name, _ in user_properties)
    return tuple((name, value) for name, value in user_properties if counts[name] == 1 and _is_single(name, value))


def application_properties(elements: Iterable[OuterElement], carried: Pairs) -> Pairs:
    """A publication's other properties behind those that the gateway carries, as far as MQTT has a place for them."""
    found: list[tuple[str, str]] = []
    known = frozenset(name for name, _ in carried)
    count, size = len(carried), sum(_bytes(pair) for pair in carried)
    for element in elements:
        pair = element.name, _value(element)
        if element.name in known or not _is_user_property(element, pair):
            continue
        if count < MOST_USER_PROPERTIES and size + _bytes(pair) <= MOST_USER_PROPERTY_BYTES:
            found.append(pair)
            count, size = count + 1, size + _bytes(pair)
    return tuple(found)


def unsaid_names(elements: Sequence[OuterElement], given: Pairs, level: int) -> list[str]:
    """Names of a publication's properties that a PUBLISH of a level with these user properties lacks; each once.

    Before level 5 nobody expects the properties of MQTT.
    """
    names: dict[str, None] = {}
    has_properties = level >= FIRST_LEVEL_WITH_PROPERTIES
    own = carried_back((element.name, element.text) for element in elements).user_properties if has_properties else ()
    others = Counter(given[len(own) :])
    for element in elements:
        pair = element.name, _value(element)
        if element.name in _TAKEN or pair in own:
            continue
        if others[pair]:
            others[pair] -= 1
            continue
        if element.name not in CARRIED_NAMES or (has_properties and not _is_of_mqtt(element)):
            names[element.name] = None
    return list(names)


def is_part_of(few: Sequence[tuple[str, str]], many: Sequence[tuple[str, str]]) -> bool:
    """Whether `many` has all of `few` in the same order."""
    rest = iter(many)
    return all(each in rest for each in few)


def _is_of_mqtt(element: OuterElement) -> bool:
    """Whether an element with one of the gateway's names really is that property."""
    return carried_back([(element.name, element.text)]) != Properties()


def _is_single(name: str, value: str) -> bool:
    is_name = bool(name) and name.isidentifier() and _is_xml_name(name)
    is_free = not _RESERVED.match(name) and name.upper() not in _WORDS
    return is_name and is_free and all(each <= "\uffff" for each in value)


def _is_xml_name(name: str) -> bool:
    return _is_in(name[0], _NAME_STARTS) and all(_is_in(each, _NAME_STARTS + _NAME_PARTS) for each in name[1:])


def _is_in(character: str, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)


def _value(element: OuterElement) -> str:
    if element.type == "boolean":
        return {"1": "true", "0": "false"}.get(element.text, element.text)
    return element.text


def _is_user_property(element: OuterElement, pair: tuple[str, str]) -> bool:
    if element.name.startswith(OWN_PREFIX) or element.is_group or element.is_null:
        return False
    return all(mqtt_text(text) is not None for text in pair)


def _bytes(pair: tuple[str, str]) -> int:
    return 5 + len(pair[0].encode()) + len(pair[1].encode())
