"""The value of a property of an MQRFH2, by its type (attribute dt).

Source: IBM MQ documentation, "NameValueData", the types of a property.
"""

from collections.abc import Callable
from typing import Final

from mappings.headers.mqrfh2 import Element
from mq_adapters.selection.conditions import Value, number_of

#: The most characters of a property that is a number: an i8 with its sign, or an r8.
_MAXIMUM_NUMBER_CHARACTERS: Final = 40


def property_value(element: Element) -> Value:
    """The value of a property by its type; None for null, and for text that does not fit the type."""
    attributes = dict(element.attributes)
    if attributes.get("xsi:nil") in ("true", "1"):
        return None
    try:
        return _TYPES.get(attributes.get("dt", "string"), str)(element.text)
    except (ValueError, KeyError):
        return None


def _number(text: str) -> int | float:
    if len(text) > _MAXIMUM_NUMBER_CHARACTERS or "_" in text:
        raise ValueError("not a number of a property")
    return number_of(text.strip())


_TYPES: Final[dict[str, Callable[[str], Value]]] = {
    **dict.fromkeys(("i1", "i2", "i4", "i8", "int", "r4", "r8"), _number),
    "boolean": lambda text: {"1": True, "0": False, "TRUE": True, "FALSE": False}[text.strip().upper()],
    "bin.hex": bytes.fromhex,
}
