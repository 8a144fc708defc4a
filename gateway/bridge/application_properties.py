"""What an MQ or JMS application says of its publication: as User Properties of MQTT 5.0, or the reason why not.

A part of step 8 on the way of a PUBLISH. Its properties stand in folder usr of an MQRFH2, beside what the gateway
carries there (carrier.py), or as its own pairs of an MQRFH. By their type (attribute dt):

    boolean      true or false; an application writes 1 or 0
    bin.hex      the hexadecimal digits
    all others   the text

A property that is null (xsi:nil), a group, and a text that MQTT cannot carry are left out, and the audit is told.
Source: MQTT 5.0 section 3.3.2.3.7; IBM MQ, "NameValueData (MQCHARn)", "Properties specified as MQRFH2 elements".
"""

from collections.abc import Iterable
from typing import Final

from gateway.bridge.carried_properties import plain_text
from gateway.mqtt import property_codec
from gateway.mqtt.errors import PeerError
from gateway.mqtt.properties import UserProperties
from mappings.mqrfh2 import Element
from mappings.name_value import NameValues

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
