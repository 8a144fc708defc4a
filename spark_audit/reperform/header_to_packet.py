"""A publication became a PUBLISH for a client: its header, predicted from the publication's own header chain.

Topic: one of the publication's, plain, and without the prefix of a target's stream. QoS: the lower of published and
granted; a publication that carries its QoS was published with that. RETAIN: IsRetainedPub, set by the
broker on copies of retained publications. Remaining length: from topic, packet identifier and length of the payload.
DUP and packet identifier are the session's own. At level 5 a subscription may ask for RETAIN as it was published, and
for identifiers among the properties: neither stands in the publication, so both are taken as they are.
Source: MQTT 3.1.1 sections 3.3 and 3.8.4; MQTT 5.0 section 3.8.3.1.
"""

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import read_meaning
from spark_audit.reperform.mqtt import PublishHeader, read_publish, write_publish
from spark_audit.reperform.outcome import Outcome, Status, UnreadableBytes, compared
from spark_audit.reperform.target import carried_qos, prefix_of


def reperform_delivery(facts: Facts) -> Outcome:
    """Judge the PUBLISH header that was made from a publication."""
    publication = read_meaning(facts.input, facts.input_described)
    try:
        packet = read_publish(facts.output)
    except UnreadableBytes as error:
        return Outcome(status=Status.DIFFERENCE, detail=f"the packet cannot be read: {error}", same_bytes=False)
    prefix = prefix_of(facts)
    topics = tuple(topic.removeprefix(prefix) for topic in publication.values("Topic"))
    carried = carried_qos(publication.folders, publication.unmapped)
    retain = "IsRetainedPub" in publication.options("PubOpt")
    qos = min(facts.granted_qos, facts.published_qos)
    differences: list[str] = []
    if publication.command != "Publish":
        differences.append(f"command {publication.command} was delivered")
    if carried is not None and carried != facts.published_qos:
        differences.append(f"it was published with QoS {carried}, not {facts.published_qos}")
    if packet.topic not in topics:
        differences.append(f"topic {packet.topic!r} is not the publication's")
    if packet.qos != qos:
        differences.append(f"QoS is {packet.qos}, the lower of granted and published is {qos}")
    may_be_as_published = packet.retain and bool(packet.properties)
    if (packet.retain != retain and not may_be_as_published) or facts.is_retained != retain:
        differences.append(f"RETAIN is {int(packet.retain)}, IsRetainedPub says {int(retain)}")
    expected = _expected(packet, topics, qos, retain or may_be_as_published, facts.payload_bytes)
    if expected != facts.output and not differences:
        differences.append(f"the remaining length is {packet.remaining_length}, or is not written as short as can be")
    return compared(expected, facts.output, differences)


def _expected(packet: PublishHeader, topics: tuple[str, ...], qos: int, retain: bool, payload_bytes: int) -> bytes:
    return write_publish(
        qos=qos,
        retain=retain,
        duplicate=packet.duplicate and qos > 0,
        topic=packet.topic if packet.topic in topics else "".join(topics[:1]),
        packet_identifier=packet.packet_identifier,
        payload_bytes=payload_bytes,
        properties=packet.properties,
    )
