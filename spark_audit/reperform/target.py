"""The parts of a header for a target beside the command: its stream, and the data of MQTT that it carries.

    streams "queue"           MQPSStreamName if the stream is not the default one; MQRFH2 cannot name it
    "message_broker"          prefix $SYS/STREAM/<stream>/ in front of each topic
    "queue_manager"           prefix <stream>/

A Publish carries QoS, client and exchange of its packet, RETAIN of an empty one, the user if the record has one, and
then the properties of a packet of level 5. To the embedded broker it carries only the properties. They are properties
of folder usr in MQRFH2, and pairs behind the command in MQRFH. On the way back anybody may have written them, so
unreadable ones count as missing. Source: IBM MQ, "Streams and topics"; Message Broker, "Streams".
"""

import re
from typing import Final

from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.folder import Folder, OuterElement, read_elements, read_outer_elements
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.properties import TYPES

USR: Final = "usr"
STREAM_NAME: Final = "MQPSStreamName"
#: The beginning of a command's names in MQRFH.
_COMMAND_PREFIX: Final = "MQPS"
_DEFAULT_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
_PREFIXES: Final = {"message_broker": "$SYS/STREAM/{}/", "queue_manager": "{}/"}
_QOS, _CLIENT, _SEQUENCE, _DELETES, _USER = "rfhbQos", "rfhbClient", "rfhbSeq", "rfhbRetain", "rfhbUser"
#: Characters outside XML 1.0. A client identifier or user with one of them is not carried.
_OUTSIDE_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
#: A folder with more bytes or tags is not searched for carried elements.
_LONGEST_FOLDER: Final = 3 * 1024 * 1024
_MOST_TAGS: Final = 2_500
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")

Pairs = tuple[tuple[str, str], ...]


def prefix_of(facts: Facts) -> str:
    """The prefix of each topic of the stream."""
    return stream_prefix(facts.stream, facts.stream_style)


def stream_prefix(stream: str, style: str) -> str:
    """The prefix of a stream, in a style of naming streams."""
    return "" if stream == _DEFAULT_STREAM else _PREFIXES.get(style, "").format(stream)


def said_stream(facts: Facts, version: int) -> Pairs:
    """The stream as MQRFH names it, if it must."""
    is_said = version == 1 and facts.stream_style == "queue" and facts.stream != _DEFAULT_STREAM
    return ((STREAM_NAME, facts.stream),) if is_said else ()


def expected_carrier(facts: Facts, qos: int, *, retain: bool, written: Pairs) -> Pairs:
    """The elements that a Publish must carry.

    RETAIN is among them if there is no payload, because then RetainPub is missing.

    No record has the exchange of a will, so any number is right there.
    """
    sequence = str(facts.exchange) if facts.exchange >= 0 else dict(written).get(_SEQUENCE, "")
    if facts.exchange < 0 and not _NUMBER.fullmatch(sequence):
        sequence = "1"
    pairs = [(_QOS, str(qos))]
    pairs += _text(_CLIENT, facts.client)
    pairs.append((_SEQUENCE, sequence))
    if retain and facts.payload_bytes == 0:
        pairs.append((_DELETES, "1"))
    pairs += _text(_USER, facts.user)
    return tuple(pairs)


def read_carrier(folders: tuple[Folder, ...], unmapped: Pairs) -> Pairs:
    """The carried elements of a header: the properties of folder usr, or its own pairs beside the command."""
    for folder in folders:
        if folder.name == USR:
            return read_elements(folder)
    return tuple(pair for pair in unmapped if pair[0] != STREAM_NAME)


def carrier_differences(expected: Pairs, actual: Pairs) -> list[str]:
    """Sentences about differences of the carried elements."""
    if expected == actual:
        return []
    words = [f"{name} {value!r} is not carried" for name, value in expected if (name, value) not in actual]
    words += [f"{name} {value!r} is carried" for name, value in actual if (name, value) not in expected]
    return words or ["the carried properties are in another order, or doubled"]


def delivered_elements(publication: Meaning) -> tuple[OuterElement, ...]:
    """The elements of any publication: an MQRFH's own pairs, then the properties of each folder usr."""
    pairs = publication.unmapped if publication.version == 1 else ()
    elements = [OuterElement(name=name, text=value) for name, value in pairs if not name.startswith(_COMMAND_PREFIX)]
    for folder in publication.folders:
        elements += usr_elements(folder) or () if folder.name == USR else ()
    return tuple(elements)


def usr_elements(folder: Folder) -> tuple[OuterElement, ...] | None:
    """The elements of a folder that anybody may have written; None if it is unreadable or too large."""
    if len(folder.text.encode()) > _LONGEST_FOLDER or folder.text.count("<") > _MOST_TAGS:
        return None
    try:
        return read_outer_elements(folder)
    except UnreadableBytes:
        return None


def carried_qos(pairs: Pairs) -> int | None:
    """The QoS that a publication carries, 0 to 2; None without a valid one."""
    text = next((value for name, value in pairs if name == _QOS), "")
    return int(text) if text in ("0", "1", "2") else None


def typed(pairs: Pairs) -> Pairs:
    """The properties as start tags: numbers have a type (IBM MQ, attribute dt)."""
    types = {_QOS: "i4", _SEQUENCE: "i8", _DELETES: "i4", **TYPES}
    return tuple((f"{name} dt='{types[name]}'" if name in types else name, value) for name, value in pairs)


def is_within(narrowed: str, topic_filter: str) -> bool:
    """Whether a filter matches only topics that another matches, level by level (MQTT 3.1.1 section 4.7)."""
    ours, theirs = narrowed.split("/"), topic_filter.split("/")
    if ours[0].startswith("$") and theirs[0] in ("+", "#"):
        return False
    for place, level in enumerate(theirs):
        if level == "#":
            return True
        if place >= len(ours) or ours[place] == "#" or level not in (ours[place], "+"):
            return False
    return len(ours) == len(theirs)


def _text(name: str, value: str) -> list[tuple[str, str]]:
    return [(name, value)] if value and not _OUTSIDE_XML.search(value) else []
