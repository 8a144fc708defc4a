"""RETAIN and the options that stand for it, on each way.

    packet to header    RetainPub where the PUBLISH has RETAIN and a payload, and nowhere else
    header to header    IsRetainedPub only in copies of what was retained before the subscription
    header to packet    RETAIN where the publication has IsRetainedPub, and elsewhere only at level 5, where a
                        subscription may ask for it as published

Source: "Message formats" (RetainPub is the publisher's, IsRetainedPub the broker's); MQTT 3.1.1 section 3.3.1.3.
"""

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.mqtt import CONNECT, FIRST_LEVEL_WITH_PROPERTIES, read_publish, read_will


def publish_faults(facts: Facts, actual: Meaning) -> list[str]:
    """A command that was made from a PUBLISH or a will."""
    is_retained = "RetainPub" in actual.options("PubOpt")
    read = read_will(facts.input, facts.protocol_level) if facts.packet_type == CONNECT else None
    retain = read_publish(facts.input, facts.protocol_level).retain if read is None else read[1]
    if actual.command != "Publish":
        return ["RetainPub in a command that publishes nothing"] if is_retained else []
    if is_retained and not retain:
        return ["RetainPub, though the packet has no RETAIN"]
    if is_retained and facts.payload_bytes == 0:
        return ["RetainPub, though an empty payload deletes what is retained"]
    if retain and facts.payload_bytes > 0 and not is_retained:
        return ["the packet has RETAIN and a payload, the command has no RetainPub"]
    return []


def copy_faults(facts: Facts, actual: Meaning) -> list[str]:
    """A broker's copy for a subscriber."""
    if "IsRetainedPub" in actual.options("PubOpt") and not facts.is_retained:
        return ["IsRetainedPub in a copy of what was just published"]
    return []


def delivery_faults(facts: Facts, source: Meaning) -> list[str]:
    """A PUBLISH for a client."""
    packet = read_publish(facts.output, facts.protocol_level)
    is_retained, retain = "IsRetainedPub" in source.options("PubOpt"), packet.retain
    if is_retained == retain or (retain and facts.protocol_level >= FIRST_LEVEL_WITH_PROPERTIES):
        return []
    return [f"RETAIN is {int(retain)}, IsRetainedPub says {int(is_retained)}"]
