"""A record and its own bytes: what stands in both must be the same.

    put of a PUBLISH    QoS, RETAIN, DUP, packet identifier, topic and the payload's length: from the packet's header;
                        a Publish is persistent unless its QoS is 0
    put of a will       topic, and persistence by the QoS: from the will in its CONNECT
    put of SUBSCRIBE    topic filter: from the packet's entry; of a shared subscription the filter behind the group; in
    and UNSUBSCRIBE     MQRFH the patterns of the header, for which performance.py answers;
                        where the gateway itself asks, the topics of a header in MQRFH2
    copy                topic: the first of the new header
    delivery            as of a PUBLISH; the client and the exchange of its source, where the record names them

performance.py compares the headers before and after with each other, and with the fields that they need. A packet that
names its topic by an alias has none, and a name that stands as a keyed hash is compared with nothing. The gateway read
each PUBLISH that it took and wrote each that it sent, so one that cannot be read is wrong. Other bytes that cannot be
read are for performance.py too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spark_audit.record import ConversionKind
from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import Finding, Rule, UnreadableBytes, findings
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import Meaning, read_meaning
from spark_audit.reperform.mqtt import (
    CONNECT,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PublishHeader,
    read_filter,
    read_publish,
    read_will,
)
from spark_audit.reperform.properties import variable_number
from spark_audit.reperform.target import delivered_elements, prefix_of

#: Fields of a record that are looked at beside its facts.
COMPARED: Final = (
    *("qos", "retain", "duplicate", "packet_identifier", "persistent"),
    *("source_client", "source_exchange"),
)
#: What the gateway writes of a client and a sequence into a header for a target.
_SOURCES: Final = {"source_client": "rfhbClient", "source_exchange": "rfhbSeq"}
_HASHED: Final = re.compile(r"k:[0-9a-f]{32}")
_SHARED: Final = "$share/"

#: Name of a field, what the record says, and what the bytes say.
Compared = Iterator[tuple[str, object, object]]


def differences_from_bytes(record: Mapping[str, Any], facts: Facts) -> list[Finding]:
    """Every field of a conversion's record that its own bytes contradict; of `record` the fields COMPARED are asked."""
    try:
        return findings(
            Rule.BYTES,
            (
                f"{name} is {told!r}, the bytes say {read!r}"
                for name, told, read in _compared(record, facts)
                if told != read and not _is_hashed(told)
            ),
        )
    except (UnreadableBytes, UnknownCodePage, ValueError, LookupError):
        return []


def _compared(record: Mapping[str, Any], facts: Facts) -> Compared:
    if facts.conversion == ConversionKind.HEADER_TO_PACKET:
        yield from _publish(record, facts, facts.output)
        yield from _source(record, read_meaning(facts.input, facts.input_described))
    elif facts.conversion == ConversionKind.HEADER_TO_HEADER:
        yield from _first_topic(facts, read_meaning(facts.output, facts.output_described))
    elif facts.conversion == ConversionKind.PACKET_TO_HEADER:
        yield from _of_packet(record, facts)


def _of_packet(record: Mapping[str, Any], facts: Facts) -> Compared:
    if facts.packet_type == PUBLISH:
        yield from _publish(record, facts, facts.input)
        if facts.command == "Publish":
            yield "persistent", bool(record.get("persistent")), record.get("qos") != 0
    elif facts.packet_type == CONNECT and facts.input:
        topic, _, qos, _ = read_will(facts.input, facts.protocol_level)
        yield "topic", facts.topic, topic
        yield "persistent", bool(record.get("persistent")), qos != 0
    elif facts.packet_type in (SUBSCRIBE, UNSUBSCRIBE) and facts.input:
        topic_filter = read_filter(facts.input, facts.packet_type)
        if facts.topic != topic_filter and facts.topic != _patterns(facts):
            yield "topic", facts.topic, _behind_group(topic_filter)
    elif facts.topic:
        yield from _asked_by_gateway(facts)


def _publish(record: Mapping[str, Any], facts: Facts, header: bytes) -> Compared:
    try:
        packet = read_publish(header, facts.protocol_level)
    except UnreadableBytes as error:
        yield "packet_type", PUBLISH, f"no packet: {error}"
        return
    yield "qos", record.get("qos"), packet.qos
    yield "retain", bool(record.get("retain")), packet.retain
    yield "duplicate", bool(record.get("duplicate")), packet.duplicate
    yield "packet_identifier", record.get("packet_identifier") or 0, packet.packet_identifier
    is_other = facts.sent_bytes >= 0 and facts.conversion == ConversionKind.HEADER_TO_PACKET
    told = ("sent_bytes", facts.sent_bytes) if is_other else ("payload_bytes", facts.payload_bytes)
    yield *told, _payload_bytes(header, packet)
    if packet.topic:
        yield "topic", facts.topic, packet.topic


def _payload_bytes(header: bytes, packet: PublishHeader) -> int:
    """What the remaining length leaves for the payload; the header ends where the payload would begin."""
    _, begin = variable_number(header, 1)
    return packet.remaining_length - (len(header) - begin)


def _behind_group(topic_filter: str) -> str:
    """The filter of $share/GROUP/FILTER; any other filter as it is."""
    if not topic_filter.startswith(_SHARED):
        return topic_filter
    return topic_filter.removeprefix(_SHARED).partition("/")[2]


def _patterns(facts: Facts) -> str:
    """The topics of a header in MQRFH, which may need two patterns for one filter; "" for MQRFH2."""
    meaning = read_meaning(facts.output, facts.output_described)
    return " ".join(meaning.values("Topic")) if meaning.version == 1 else ""


def _asked_by_gateway(facts: Facts) -> Compared:
    meaning = read_meaning(facts.output, facts.output_described)
    topics = [topic.removeprefix(prefix_of(facts)) for topic in meaning.values("Topic")]
    if meaning.version == 2 and facts.topic not in topics:
        yield "topic", facts.topic, " ".join(topics)


def _first_topic(facts: Facts, meaning: Meaning) -> Compared:
    yield "topic", facts.topic, "".join(meaning.values("Topic")[:1])


def _source(record: Mapping[str, Any], publication: Meaning) -> Compared:
    carried = {element.name: element.text for element in delivered_elements(publication)}
    for name, written in _SOURCES.items():
        if (told := record.get(name)) is not None:
            yield name, str(told), carried.get(written, "")


def _is_hashed(told: object) -> bool:
    return isinstance(told, str) and _HASHED.fullmatch(told) is not None
