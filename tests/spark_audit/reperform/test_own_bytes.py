"""A record that its own bytes contradict: each field is named, and what is right, hashed or unreadable is not."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.own_bytes import COMPARED, differences_from_bytes
from tests.spark_audit.reperform.test_rules import mqrfh, psc

#: PUBLISH of a/b with QoS 1 and packet identifier 10, and two bytes of payload.
PACKET = bytes.fromhex("32 09 0003 612f62 000a")
#: The same at QoS 0 and level 5, by topic alias 1.
BY_ALIAS = bytes.fromhex("30 08 0000 03 23 0001 0000")[:8]
PUBLISH = psc("<Command>Publish</Command><Topic>a/b</Topic>")
OF_PUBLISH = {"qos": 1, "packet_identifier": 10, "persistent": True}
PUT = {"input": PACKET, "output": PUBLISH, "topic": "a/b"}
DELIVERY = {
    "conversion": "header_to_packet",
    "topic": "a/b",
    "input": PUBLISH,
    "input_format": "MQHRF2",
    "input_ccsid": 1208,
    "input_encoding": 546,
    "output": PACKET,
    "output_format": "MQTT",
}
FROM_TARGET = DELIVERY | {
    "input": mqrfh("MQPSCommand Publish MQPSTopic a/b rfhbQos 1 rfhbClient pump rfhbSeq 7"),
    "input_format": "MQHRF",
}
COPY = {
    "conversion": "header_to_header",
    "packet_type": -1,
    "topic": "a/b",
    "input": PUBLISH,
    "output": PUBLISH,
}
WILL = {"packet_type": 1, "topic": "a/b", "input": bytes.fromhex("0003 612f62 02"), "output": PUBLISH}
ASKED = {"command": "RegSub", "packet_type": 8, "output": psc("<Command>RegSub</Command><Topic>a/b</Topic>")}
REGISTER = ASKED | {"topic": "a/b", "input": bytes.fromhex("0003 612f62 01")}
SHARED = REGISTER | {"input": b"\x00\x0c$share/g/a/b\x01"}
TREE = REGISTER | {
    "topic": "a a/*",
    "input": bytes.fromhex("0003 612f23 01"),
    "output": mqrfh("MQPSCommand RegSub MQPSTopic a MQPSTopic a/*"),
    "output_format": "MQHRF",
}
ENDS = {
    "command": "DeregSub",
    "packet_type": 14,
    "topic": "a/# b",
    "output": psc("<Command>DeregSub</Command><Topic>a/#</Topic><Topic>b</Topic>"),
}
END = {"command": "DeregSub", "packet_type": 14, "topic": "", "output": psc("<Command>DeregSub</Command>")}

RIGHT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "put": (PUT, OF_PUBLISH),
    "put, named by a keyed hash": (PUT | {"topic": "k:" + "0a" * 16}, OF_PUBLISH),
    "delivery": (DELIVERY, OF_PUBLISH),
    "delivery from a target": (FROM_TARGET, OF_PUBLISH | {"source_client": "pump", "source_exchange": 7}),
    "delivery by alias": (DELIVERY | {"output": BY_ALIAS, "protocol_level": 5, "payload_bytes": 2}, {"qos": 0}),
    "copy": (COPY, {}),
    "copy in a code page that nobody knows": (COPY | {"output_ccsid": 4711, "topic": "a/c"}, {}),
    "will": (WILL, {"persistent": True}),
    "SUBSCRIBE": (REGISTER, {}),
    "SUBSCRIBE of a group": (SHARED, {}),
    "SUBSCRIBE of two patterns": (TREE, {}),
    "asked by the gateway": (ASKED | {"topic": "a/b"}, {}),
    "two topics asked by the gateway": (ENDS, {}),
    "end of a session": (END, {}),
    "a conversion of the service": (COPY | {"conversion": "service", "topic": ""}, {}),
}
#: What is changed, and the field that must be named.
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "QoS of a put": (PUT, OF_PUBLISH | {"qos": 2}, "qos"),
    "RETAIN of a put": (PUT, OF_PUBLISH | {"retain": True}, "retain"),
    "DUP of a put": (PUT, OF_PUBLISH | {"duplicate": True}, "duplicate"),
    "identifier of a put": (PUT, OF_PUBLISH | {"packet_identifier": 11}, "packet_identifier"),
    "identifier left out": (PUT, OF_PUBLISH | {"packet_identifier": None}, "packet_identifier"),
    "topic of a put": (PUT | {"topic": "a/c"}, OF_PUBLISH, "topic"),
    "payload of a put": (PUT | {"payload_bytes": 3}, OF_PUBLISH, "payload_bytes"),
    "unreadable packet of a put": (PUT | {"input": b"\x36"}, OF_PUBLISH, "packet_type"),
    "packet of a delivery that is left out": (DELIVERY | {"output": b""}, OF_PUBLISH, "packet_type"),
    "persistence of a put": (PUT, OF_PUBLISH | {"persistent": False}, "persistent"),
    "QoS of a delivery": (DELIVERY, OF_PUBLISH | {"qos": 0}, "qos"),
    "topic of a delivery": (DELIVERY | {"topic": "a/c"}, OF_PUBLISH, "topic"),
    "source of a delivery": (FROM_TARGET, OF_PUBLISH | {"source_client": "fan"}, "source_client"),
    "source of a delivery that names none": (DELIVERY, OF_PUBLISH | {"source_client": "fan"}, "source_client"),
    "source exchange": (FROM_TARGET, OF_PUBLISH | {"source_exchange": 8}, "source_exchange"),
    "topic of a copy": (COPY | {"topic": "a/c"}, {}, "topic"),
    "topic of a will": (WILL | {"topic": "a/c"}, {"persistent": True}, "topic"),
    "persistence of a will": (WILL, {"persistent": False}, "persistent"),
    "filter of a SUBSCRIBE": (REGISTER | {"topic": "a/c"}, {}, "topic"),
    "filter of a group": (SHARED | {"topic": "a/c"}, {}, "topic"),
    "filter of two patterns": (TREE | {"topic": "a a/b"}, {}, "topic"),
    "two topics that the gateway asked for": (ENDS | {"topic": "a/# c"}, {}, "topic"),
    "topic that the gateway asked for": (ASKED | {"topic": "a/c"}, {}, "topic"),
}


def _named(facts: Callable[..., Facts], said: dict[str, Any], told: dict[str, Any]) -> list[str]:
    record = dict.fromkeys(COMPARED) | told
    return [found.detail.split(" ")[0] for found in differences_from_bytes(record, facts(**said))]


@pytest.mark.parametrize("case", RIGHT)
def test_a_record_that_says_what_its_bytes_say_raises_nothing(facts: Callable[..., Facts], case: str) -> None:
    assert _named(facts, *RIGHT[case]) == []


@pytest.mark.parametrize("case", WRONG)
def test_a_field_that_the_bytes_contradict_is_named(facts: Callable[..., Facts], case: str) -> None:
    said, told, field = WRONG[case]
    assert _named(facts, said, told) == [field]
