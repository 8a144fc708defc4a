"""Properties of MQTT 5 to a queue manager in the data centre, through its broker, and back; and its applications'."""

from collections.abc import Callable, Iterator

import pytest

from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.reperform.comparison import Status
from tests.end_to_end.clients.client import Login, Options, Properties, Way
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.ibm_mq.central import MQRFH, MQRFH2, STREAM_QUEUE, Central
from tests.end_to_end.ibm_mq.conftest import NewGateway
from tests.end_to_end.ibm_mq.conftest import Way as MqWay
from tests.end_to_end.ibm_mq.target_gateway import TargetGateway, wait_until
from tests.gateway.bridge.audited import judged
from tests.gateway.bridge.commands.test_target_messages import mqrfh, mqrfh2
from tests.trail_lines import trail_records

PLAIN_QUEUE = "PLANT.INPUT"
GIVEN: Properties = {
    "payload_format_indicator": 0,
    "content_type": "text/plain",
    "response_topic": "answers/1",
    "correlation_data": b"\x00\xff",
    "user_property": [("unit", "\u00b0C"), ("unit", "K")],
}
USR = (
    "<rfhbPayloadFormat dt='i4'>0</rfhbPayloadFormat><rfhbContentType>text/plain</rfhbContentType>"
    "<rfhbRespTopic>answers/1</rfhbRespTopic><rfhbCorrel dt='bin.hex'>00ff</rfhbCorrel>"
    '<rfhbUserProps>[["unit","\u00b0C"],["unit","K"]]</rfhbUserProps></usr>'
)
PAIRS = (
    "rfhbPayloadFormat 0 rfhbContentType text/plain rfhbRespTopic answers/1 rfhbCorrel 00ff"
    ' rfhbUserProps "[[""unit"",""\u00b0C""],[""unit"",""K""]]"'
)

NewPaho = Callable[[TargetGateway, str], Paho]


@pytest.fixture
def connected() -> Iterator[NewPaho]:
    """Makes clients of level 5 that are connected."""
    made: list[Paho] = []

    def connect(gateway: TargetGateway, name: str) -> Paho:
        made.append(Paho())
        made[-1].connect(Way(port=gateway.port), Login(client_identifier=name, version="5"))
        return made[-1]

    yield connect
    for client in made:
        client.close()


def test_properties_go_there_and_come_back(
    new_target_gateway: NewGateway, central: Central, way: MqWay, connected: NewPaho
) -> None:
    versions = {"mqtt": {"versions": ["3.1.1", "5"]}}
    routes = ({"topics": ["plain/#"], "queue": PLAIN_QUEUE}, {"topics": ["#"]})
    gateway = new_target_gateway(way, settings=versions, routes=routes).start()
    gateway.wait_for_running()
    teller, hearer = connected(gateway, "tell"), connected(gateway, "hear")
    hearer.subscribe("echo/#", 2, Options(retain_as_published=True, subscription_identifier=9))
    teller.subscribe("echo/#", 2, Options(no_local=True))
    for qos in (0, 1, 2):
        teller.publish("echo/a", b"21.5", qos, retain=qos == 1, properties=GIVEN | {"message_expiry_interval": 600})
        message = hearer.next_message()
        assert message.essence == ("echo/a", b"21.5", qos, qos == 1)
        assert 500 <= message.properties.pop("message_expiry_interval") <= 600
        assert message.properties == GIVEN | {"subscription_identifier": [9]}
    _application_there_gets_them(central, teller, way)
    _application_there_gives_them(central, hearer, way)
    assert teller.next_message().payload == b"4.3", "its own never came back to it"
    assert gateway.stop() == 0, gateway.log
    outcomes = judged(trail_records(gateway.data / "trail"))
    assert [outcome for _, outcome in outcomes if outcome.status is not Status.MATCH] == []


def _application_there_gets_them(central: Central, teller: Paho, way: MqWay) -> None:
    teller.publish("plain/a", b"|5", 1, properties=GIVEN | {"message_expiry_interval": 600})
    wait_until(lambda: central.depth(PLAIN_QUEUE) == 1, "it has arrived")
    (message,) = central.messages(PLAIN_QUEUE)
    assert (USR if way.header == "mqrfh2" else PAIRS).encode() in message.body
    assert 5_000 <= message.descriptor.expiry <= 6_000, "tenths of a second"


def _application_there_gives_them(central: Central, hearer: Paho, way: MqWay) -> None:
    if way.header == "mqrfh2":
        header = mqrfh2("<psc><Command>Publish</Command><Topic>echo/b</Topic></psc>", f"<usr>{USR}")
    else:
        header = mqrfh(f"MQPSCommand Publish MQPSTopic echo/b {PAIRS}")
    descriptor = MessageDescriptor(
        format=MQRFH2 if way.header == "mqrfh2" else MQRFH, persistence=MQPER_PERSISTENT, expiry=6_000
    )
    with central.client() as application:
        application.put(STREAM_QUEUE, Message(descriptor, header + b"4.3"))
    message = hearer.next_message()
    assert message.essence == ("echo/b", b"4.3", 1, False)
    assert 500 <= message.properties.pop("message_expiry_interval") <= 600
    assert message.properties == GIVEN | {"subscription_identifier": [9]}
