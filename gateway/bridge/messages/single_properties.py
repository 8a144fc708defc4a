"""User Properties of MQTT 5.0 as single properties of a message, which MQ and JMS applications select by.

A part of step 3 on the way of a PUBLISH, where `[mqtt] user_properties` is "each". They stand behind the JSON array in
rfhbUserProps, because only that keeps their order and repeated names. A User Property stands in the JSON alone if JMS
or a folder cannot name it, and the audit is told.
Source: JMS 1.1 section 3.5.1, property names; 3.8.1.1, identifiers; XML 1.0, production Name; IBM MQ, "Property names".
"""

import re
from collections import Counter
from typing import Final

from gateway.mqtt.properties import UserProperties
from mappings.headers.name_value import NameValues

#: XML 1.0, productions NameStartChar and NameChar, within the Basic Multilingual Plane, and without `.`, `:` and `-`.
_XML_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd"
)
_XML_NAME: Final = re.compile(f"[{_XML_START}][{_XML_START}0-9\u00b7\u0300-\u036f\u203f-\u2040]*")
#: Prefixes, in any case, of names that belong to the gateway, to JMS or to IBM MQ.
_RESERVED_PREFIXES: Final = ("rfhb", "jms", "mq")
#: Words of selectors (JMS 1.1 section 3.8.1.1), in any case.
_SELECTOR_WORDS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
)
_NOT_SUPPORTED: Final = re.compile("[\U00010000-\U0010ffff]")


def single_properties(user_properties: UserProperties) -> tuple[NameValues, NameValues]:
    """The possible single properties, in their order; and the names of all others, each once, with the reason."""
    counts = Counter(name for name, _ in user_properties)
    found: list[tuple[str, str]] = []
    left_out: dict[str, str] = {}
    for name, value in user_properties:
        reason = _reason(name, value, counts[name])
        if reason:
            left_out.setdefault(name, reason)
        else:
            found.append((name, value))
    return tuple(found), tuple(
        (name, f"{reason}: it stands in rfhbUserProps alone") for name, reason in left_out.items()
    )


def _reason(name: str, value: str, count: int) -> str:
    """Why a user property cannot be a single property; "" if it can."""
    if count > 1:
        return "the name stands there more than once"
    if not (name.isidentifier() and _XML_NAME.fullmatch(name)):
        return "the name is no identifier of Java and XML"
    if name.lower().startswith(_RESERVED_PREFIXES):
        return "the name is reserved"
    if name.upper() in _SELECTOR_WORDS:
        return "the name is a word of selectors"
    if _NOT_SUPPORTED.search(value):
        return "the value has a character that a folder does not support"
    return ""
