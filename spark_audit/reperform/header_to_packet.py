"""A publication became a PUBLISH for a client: its header, predicted from the publication's own header chain.

Topic: one of the publication's, plain, and without the prefix of a target's stream. QoS: the lower of published and
granted; a publication that carries its QoS was published with that. RETAIN: IsRetainedPub, set by the broker on copies
of retained publications. Remaining length: from topic, packet identifier and length of the payload. DUP and packet
identifier are the session's own. At level 5 the properties are those that the publication carries. Behind its user
properties come the other properties of an application, as far as MQTT has a place for them. The report must name the
missing ones (report.py). The publication's header does not tell expiry, topic alias and subscription identifiers, so
they are accepted as they are. So is RETAIN, which a subscription may want as it was published. Source: MQTT 3.1.1
sections 3.3 and 3.8.4; MQTT 5.0 sections 3.3.2.3 and 3.8.3.1.
"""

from spark_audit.reperform.comparison import Comparison, Status, UnreadableBytes, compared
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.jms import is_map
from spark_audit.reperform.meaning import read_meaning
from spark_audit.reperform.mqtt import FIRST_LEVEL_WITH_PROPERTIES, PublishHeader, read_publish, write_publish
from spark_audit.reperform.properties import Pairs, Properties, carried_back, property_differences, read_properties
from spark_audit.reperform.target import carried_qos, delivered_elements, prefix_of
from spark_audit.reperform.user_properties import application_properties, is_part_of


def reperform_delivery(facts: Facts) -> Comparison:
    """Judges the PUBLISH header that was made from a publication."""
    publication = read_meaning(facts.input, facts.input_described)
    try:
        packet = read_publish(facts.output, facts.protocol_level)
        properties = read_properties(packet.properties) if packet.properties else Properties()
    except UnreadableBytes as error:
        return Comparison(status=Status.DIFFERENCE, detail=f"the packet cannot be read: {error}", same_bytes=False)
    prefix = prefix_of(facts)
    topics = tuple(topic.removeprefix(prefix) for topic in publication.values("Topic"))
    elements = delivered_elements(publication)
    carrier = tuple((element.name, element.text) for element in elements)
    carried = carried_qos(carrier)
    topic = facts.topic if properties.has_alias and not packet.topic else packet.topic
    retain = "IsRetainedPub" in publication.options("PubOpt")
    qos = min(facts.granted_qos, facts.published_qos)
    differences: list[str] = []
    if publication.command != "Publish":
        differences.append(f"command {publication.command} was delivered")
    if carried is not None and carried != facts.published_qos:
        differences.append(f"it was published with QoS {carried}, not {facts.published_qos}")
    if topic not in topics:
        differences.append(f"topic {topic!r} is not the publication's")
    if packet.qos != qos:
        differences.append(f"QoS is {packet.qos}, the lower of granted and published is {qos}")
    has_properties = facts.protocol_level >= FIRST_LEVEL_WITH_PROPERTIES
    if has_properties:
        expected_properties = carried_back(carrier)
        differences += property_differences(expected_properties, properties)
        own = expected_properties.user_properties
        differences += _user_property_differences(facts, own, application_properties(elements, own), properties)
    may_be_as_published = packet.retain and has_properties
    if (packet.retain != retain and not may_be_as_published) or facts.is_retained != retain:
        differences.append(f"RETAIN is {int(packet.retain)}, IsRetainedPub says {int(retain)}")
    if facts.sent_bytes >= 0 and not is_map(publication):
        differences.append("the payload was sent in another form, though it is that of no MapMessage in UTF-8")
    sent_bytes = facts.sent_bytes if facts.sent_bytes >= 0 else facts.payload_bytes
    expected = _expected(packet, topics, qos, retain or may_be_as_published, sent_bytes)
    if expected != facts.output and not differences:
        differences.append(f"the remaining length is {packet.remaining_length}, or is not written as short as can be")
    return compared(expected, facts.output, differences)


def _user_property_differences(facts: Facts, own: Pairs, others: Pairs, actual: Properties) -> list[str]:
    """Differences of user properties. The gateway carries `own`; the application's `others` stand behind them."""
    given = actual.user_properties[len(own) :]
    if actual.user_properties[: len(own)] != own or not is_part_of(given, others):
        return [f"the user properties are {actual.user_properties!r}, the publication carries {own + others!r}"]
    reported = {name for name, _ in facts.dropped_fields}
    return [
        f"property {name} was left out, though MQTT can say it"
        for name, value in others
        if (name, value) not in given and name in reported and name not in dict(given)
    ]


def _expected(packet: PublishHeader, topics: tuple[str, ...], qos: int, retain: bool, payload_bytes: int) -> bytes:
    return write_publish(
        qos=qos,
        retain=retain,
        duplicate=packet.duplicate and qos > 0,
        topic=packet.topic if packet.topic in ("", *topics) else "".join(topics[:1]),
        packet_identifier=packet.packet_identifier,
        payload_bytes=payload_bytes,
        properties=packet.properties,
    )
