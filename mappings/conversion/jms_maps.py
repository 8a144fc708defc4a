"""The body of a MapMessage of JMS as JSON, for MQTT clients.

A part of step 9 on the way of a publication to MQTT, where `[subscribe] jms_maps` asks for it. The body of a MapMessage
is XML: `<map><elt name="level" dt='i4'>3</elt></map>`, or `<map><level dt='i4'>3</level></map>` from older programs. It
becomes one JSON object, in UTF-8, without blanks, with the names in their order:

    no dt               string                  i1, i2, i4, i8, int     number
    boolean             true or false           r4, r8                  number; NaN and the infinities as strings
    char                string                  bin.hex                 string of hexadecimal digits, small letters
    xsi:nil='true'      null

Numbers stand as JMS has written them; readers with 64-bit floats lose digits of an i8 beyond 2^53. A body that is none
of a map, has a name twice, or is too large stays as it is.
Source: IBM MQ, "The MQRFH2 header and JMS"; "Mapping JMS messages", MapMessage; RFC 8259.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from mappings.errors import MappingError
from mappings.headers.charset import ENCODING_REVERSED, UTF_8
from mappings.headers.mqrfh2 import Element, read_folder

#: Bodies with more bytes or tags stay as they are: reading one takes memory and time of every MQTT client.
LONGEST_BODY_BYTES: Final = 262_144
MOST_TAGS: Final = 4_096
#: A map reaches many subscribers one after another.
_KEPT: Final = 16
_NAME_AND_TYPES: Final = frozenset({"name", "dt", "xsi:nil"})
_TRUE: Final = frozenset({"1", "true"})
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
#: What Java writes, and JSON reads.
_REAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,20})?(?:E-?[0-9]{1,3})?")
_NO_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_HEXADECIMAL: Final = re.compile("(?:[0-9A-Fa-f]{2})*")


class _NoMap(ValueError):
    """The body is not that of a MapMessage."""


def map_json(body: bytes) -> bytes | None:
    """The JSON of a MapMessage's body in UTF-8; None where it stays as it is."""
    if len(body) > LONGEST_BODY_BYTES or body.count(b"<") > MOST_TAGS:
        return None
    return _map_json(body)


@lru_cache(maxsize=_KEPT)
def _map_json(body: bytes) -> bytes | None:
    try:
        folder = read_folder(body, 0, UTF_8, ENCODING_REVERSED)
        if folder is None or folder.name != "map":
            return None
        pairs = [_pair(element) for element in folder.elements]
        return _object(pairs).encode()
    except (MappingError, _NoMap):
        return None


def _object(pairs: list[tuple[str, str]]) -> str:
    if len(dict(pairs)) != len(pairs):
        raise _NoMap("a name stands there twice")
    return "{" + ",".join([f"{_string(name)}:{value}" for name, value in pairs]) + "}"


def _pair(element: Element) -> tuple[str, str]:
    """The name of an entry, and its value as JSON."""
    attributes = dict(element.attributes)
    if element.children or not attributes.keys() <= _NAME_AND_TYPES:
        raise _NoMap("an entry of a map has a value alone")
    name = attributes.get("name", "") if element.name == "elt" else element.name
    if not name:
        raise _NoMap("an entry has no name")
    if attributes.get("xsi:nil") in _TRUE:
        return name, "null"
    write = _WRITERS.get(attributes.get("dt", "string"))
    if write is None:
        raise _NoMap("the type is none of JMS")
    return name, write(element.text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _boolean(text: str) -> str:
    return "true" if text in _TRUE else "false"


def _integer(text: str) -> str:
    if not _INTEGER.fullmatch(text):
        raise _NoMap("it is no integer of Java")
    return text


def _real(text: str) -> str:
    if text in _NO_NUMBERS:
        return _string(text)
    if not _REAL.fullmatch(text):
        raise _NoMap("it is no number of Java")
    return text


def _hexadecimal(text: str) -> str:
    if not _HEXADECIMAL.fullmatch(text):
        raise _NoMap("these are no hexadecimal digits")
    return _string(text.lower())


#: How a value of each type is written.
_WRITERS: Final[dict[str, Callable[[str], str]]] = {
    "string": _string,
    "boolean": _boolean,
    "char": _string,
    "bin.hex": _hexadecimal,
    **dict.fromkeys(("i1", "i2", "i4", "i8", "int"), _integer),
    **dict.fromkeys(("r4", "r8"), _real),
}
