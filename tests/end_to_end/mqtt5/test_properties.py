"""Properties of MQTT 5 from client to client, to MQ applications and back, by the gateway as a process of its own.

Each test has topics and clients of its own on one gateway for each header; at the end its trail is judged whole.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters import connect as connect_queue_manager
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.reperform.comparison import Status
from tests.end_to_end.clients.client import PATIENCE_S, Login, Options, Properties, Way, Will
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.gateway_process import Gateway
from tests.gateway.bridge.audited import judged
from tests.gateway.bridge.commands.test_target_messages import mqrfh, mqrfh2
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_records

#: All of them: the last one judges what those before it have done.
pytestmark = pytest.mark.proof

ALL: Properties = {
    "payload_format_indicator": 1,
    "content_type": "text/<b>&amp;</b>",
    "response_topic": 'answers/"1" \u00e4',
    "correlation_data": bytes(range(256)),
    "user_property": [("unit", "\u00b0C"), ("unit", "K"), ("", ""), ("\U0001f600", '[["a","b"]]')],
}
USR = (
    "<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat>"
    "<rfhbContentType>text/&lt;b&gt;&amp;amp;&lt;/b&gt;</rfhbContentType>"
    '<rfhbRespTopic>answers/"1" \u00e4</rfhbRespTopic>'
    f"<rfhbCorrel dt='bin.hex'>{bytes(range(256)).hex()}</rfhbCorrel>"
    '<rfhbUserProps>[["unit","\u00b0C"],["unit","K"],["",""],["\\ud83d\\ude00","[[\\"a\\",\\"b\\"]]"]]</rfhbUserProps></usr>'
)
PAIRS = (
    'rfhbPayloadFormat 1 rfhbContentType text/<b>&amp;</b> rfhbRespTopic "answers/""1"" \u00e4"'
    f" rfhbCorrel {bytes(range(256)).hex()}"
    ' rfhbUserProps "[[""unit"",""\u00b0C""],[""unit"",""K""],["""",""""],'
    '[""\\ud83d\\ude00"",""[[\\""a\\"",\\""b\\""]]""]]"'
)
FORMATS = {"mqrfh": b"MQHRF   ", "mqrfh2": b"MQHRF2  "}
STREAM_QUEUE, CONTROL_QUEUE = "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.BROKER.CONTROL.QUEUE"
#: A client with a will, which says when it is connected, and ends by kill -9 alone.
DOOMED = """
import sys
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
properties = Properties(PacketTypes.WILLMESSAGE)
properties.ContentType, properties.CorrelationData = "text/plain", b"\\x00\\xff"
properties.UserProperty, properties.MessageExpiryInterval = [("a", "1"), ("a", "2")], 600
client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="doomed", protocol=mqtt.MQTTv5)
client.will_set("will/t", b"gone", 1, True, properties)
client.on_connect = lambda *_arguments: print("connected", flush=True)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""

NewClient = Callable[..., Paho]


class Plant:
    """A gateway that writes one of the two headers, and an application's view of it."""

    def __init__(self, folder: Path, header: str) -> None:
        config = folder / "rfhbridge.toml"
        config.write_text('[mqtt]\nversions = ["3.1", "3.1.1", "5"]\n')
        self.header = header
        self.gateway = Gateway(folder / "data", "--config", str(config), "--header", header).start()

    def publication(self, topic: str, properties: bool) -> bytes:
        """The header of a Publish with all properties, or with none, as an application or a broker writes it."""
        if self.header == "mqrfh":
            return mqrfh(f"MQPSCommand Publish MQPSTopic {topic} {PAIRS if properties else ''}".rstrip())
        folders = (USR,) if properties else ()
        return mqrfh2(f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>", *folders)

    def register(self, queue_name: str, topic: str) -> None:
        """An application has publications on a topic put on its queue, in the gateway's own format."""
        if self.header == "mqrfh":
            command = mqrfh(f"MQPSCommand RegSub MQPSQName {queue_name} MQPSTopic {topic}")
        else:
            psc = f"<psc><Command>RegSub</Command><QName>{queue_name}</QName><Topic>{topic}</Topic></psc>"
            command = mqrfh2(psc)
        self.put(CONTROL_QUEUE, command, define=queue_name)

    def put(self, queue_name: str, body: bytes, *, expiry: int = -1, define: str = "") -> None:
        descriptor = MessageDescriptor(format=FORMATS[self.header], persistence=MQPER_PERSISTENT, expiry=expiry)
        with connect_queue_manager(self.gateway.data) as application:
            if define:
                application.define(define)
            application.put(queue_name, Message(descriptor, body))

    def get(self, queue_name: str) -> Message:
        with connect_queue_manager(self.gateway.data) as application:
            return application.get(queue_name, wait_s=PATIENCE_S)


@pytest.fixture(scope="module", params=["mqrfh2", "mqrfh"])
def plant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    made = Plant(tmp_path_factory.mktemp("properties"), request.param)
    yield made
    made.gateway.clean_up()


@pytest.fixture
def new_client(plant: Plant) -> Iterator[NewClient]:
    made: list[Paho] = []

    def connect(name: str, *, version: str = "5", stays: bool = False, will: Will | None = None) -> Paho:
        made.append(Paho())
        login = Login(client_identifier=name, version=version, stays=stays, will=will)
        made[-1].connect(Way(port=plant.gateway.port), login)
        return made[-1]

    yield connect
    for client in made:
        client.close()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_property_comes_as_it_was_given_and_clients_before_level_5_see_none(
    new_client: NewClient, qos: int
) -> None:
    """MQTT-3.3.2-4, -15, -16, -17, -20."""
    topic = f"all/{qos}"
    teller, hearer, old = new_client("tell"), new_client("hear"), new_client("old", version="3.1.1")
    for each in (hearer, old):
        each.subscribe(topic, qos)
    teller.publish(topic, b"21.5", qos, properties=ALL)
    message = hearer.next_message()
    assert (message.essence, message.properties) == ((topic, b"21.5", qos, False), ALL)
    assert old.next_message().essence == (topic, b"21.5", qos, False)


def test_a_payload_that_is_no_utf_8_is_not_looked_at(new_client: NewClient) -> None:
    """MQTT 5.0 section 3.3.2.3.2: the server may look whether it is; here payloads are never decoded."""
    client = new_client("both")
    client.subscribe("raw", 1)
    client.publish("raw", b"\xff\xfe", 1, properties={"payload_format_indicator": 1})
    message = client.next_message()
    assert (message.payload, message.properties) == (b"\xff\xfe", {"payload_format_indicator": 1})


def test_an_application_gets_the_properties_and_the_expiry(plant: Plant, new_client: NewClient) -> None:
    plant.register("APP.ALL", "to/app")
    new_client("tell").publish("to/app", b"4.3", 1, properties=ALL | {"message_expiry_interval": 600})
    message = plant.get("APP.ALL")
    assert message.body == plant.publication("to/app", properties=True) + b"4.3"
    assert 5_000 < message.descriptor.expiry <= 6_000, "tenths of a second"


def test_an_application_gives_properties_and_an_expiry(plant: Plant, new_client: NewClient) -> None:
    client, old = new_client("hear"), new_client("old", version="3.1")
    for each in (client, old):
        each.subscribe("from/app", 1)
    plant.put(STREAM_QUEUE, plant.publication("from/app", properties=True) + b"4.3", expiry=6_000)
    message = client.next_message()
    left = message.properties.pop("message_expiry_interval")
    assert (message.essence, message.properties) == (("from/app", b"4.3", 1, False), ALL)
    assert isinstance(left, int)
    assert 500 <= left <= 600
    assert old.next_message().essence == ("from/app", b"4.3", 1, False)


def test_a_question_is_answered_by_an_application(plant: Plant, new_client: NewClient) -> None:
    """What MQTT 5.0 section 4.10 describes, over a queue; the broker takes CorrelId and ReplyToQ away."""
    plant.register("APP.QUESTIONS", "question")
    client = new_client("ask")
    client.subscribe("answer/1", 1)
    client.publish("question", b"?", 1, properties={"response_topic": "answer/1", "correlation_data": b"\x07"})
    asked = plant.get("APP.QUESTIONS").body
    assert (b"answer/1" in asked, b"07" in asked) == (True, True)
    if plant.header == "mqrfh":
        answer = mqrfh("MQPSCommand Publish MQPSTopic answer/1 rfhbCorrel 07")
    else:
        usr = "<usr><rfhbCorrel dt='bin.hex'>07</rfhbCorrel></usr>"
        answer = mqrfh2("<psc><Command>Publish</Command><Topic>answer/1</Topic></psc>", usr)
    plant.put(STREAM_QUEUE, answer + b"!")
    message = client.next_message()
    assert (message.payload, message.properties) == (b"!", {"correlation_data": b"\x07"})


@pytest.mark.parametrize("hostile", ["rfhbUserProps [[[", "rfhbRespTopic #", "rfhbCorrel xyz", "rfhbPayloadFormat 7"])
def test_what_an_application_writes_wrongly_is_left_out(plant: Plant, new_client: NewClient, hostile: str) -> None:
    client = new_client("hear")
    client.subscribe("hostile", 1)
    name, value = hostile.split()
    if plant.header == "mqrfh":
        header = mqrfh(f"MQPSCommand Publish MQPSTopic hostile {hostile} rfhbContentType a/b")
    else:
        usr = f"<usr><{name}>{value}</{name}><rfhbContentType>a/b</rfhbContentType></usr>"
        header = mqrfh2("<psc><Command>Publish</Command><Topic>hostile</Topic></psc>", usr)
    plant.put(STREAM_QUEUE, header + b"X")
    message = client.next_message()
    assert (message.payload, message.properties) == (b"X", {"content_type": "a/b"})


def test_what_is_retained_keeps_its_properties_and_loses_its_time(new_client: NewClient) -> None:
    new_client("tell").publish("kept", b"on", 1, retain=True, properties=ALL | {"message_expiry_interval": 600})
    client = new_client("hear")
    time.sleep(1.1)  # that a second passes is what is tried
    client.subscribe("kept", 1)
    message = client.next_message()
    left = message.properties.pop("message_expiry_interval")
    assert (message.essence, message.properties) == (("kept", b"on", 1, True), ALL)
    assert isinstance(left, int)
    assert left < 600


def test_what_expires_while_its_subscriber_is_away_never_comes(new_client: NewClient) -> None:
    away = new_client("away", stays=True)
    away.subscribe("short", 1)
    away.close()
    teller = new_client("tell")
    teller.publish("short", b"A", 1, properties={"message_expiry_interval": 1})
    teller.publish("short", b"B", 1, properties={"message_expiry_interval": 600})
    time.sleep(1.5)  # that a second passes is what is tried
    assert new_client("away", stays=True).next_message().payload == b"B"


def test_no_local_retain_as_published_and_identifiers_of_overlapping_subscriptions(new_client: NewClient) -> None:
    client, teller = new_client("hear"), new_client("tell")
    client.subscribe("over/#", 1, Options(no_local=True, retain_as_published=True, subscription_identifier=7))
    client.subscribe("over/+", 0, Options(no_local=True, subscription_identifier=300))
    client.publish("over/lap", b"own", 1)
    teller.publish("over/lap", b"X", 1, retain=True, properties=ALL)
    message = client.next_message()
    assert message.essence == ("over/lap", b"X", 1, True)
    assert message.properties == ALL | {"subscription_identifier": [7, 300]}
    assert client.messages.empty(), "one copy, for both subscriptions"


def test_the_will_of_a_client_that_is_killed_has_its_properties(plant: Plant, new_client: NewClient) -> None:
    hearer = new_client("hear")
    hearer.subscribe("will/t", 1)
    command = [sys.executable, "-c", DOOMED, str(plant.gateway.port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "connected\n"
        doomed.kill()
    message = hearer.next_message()
    left = message.properties.pop("message_expiry_interval")
    assert isinstance(left, int)
    assert 500 <= left <= 600
    given = {"content_type": "text/plain", "correlation_data": b"\x00\xff", "user_property": [("a", "1"), ("a", "2")]}
    assert (message.essence, message.properties) == (("will/t", b"gone", 1, False), given)


def test_a_will_with_properties_survives_a_kill_of_the_gateway(plant: Plant, new_client: NewClient) -> None:
    hearer = new_client("stay", stays=True)
    hearer.subscribe("will/g", 1)
    hearer.close()
    new_client("gone", will=Will(topic="will/g", payload=b"gone", qos=1, properties=ALL))
    plant.gateway.kill_and_restart()
    message = new_client("stay", stays=True).next_message()
    assert (message.essence, message.properties) == (("will/g", b"gone", 1, False), ALL)


@pytest.mark.timeout(600)
def test_the_audit_predicts_every_conversion_of_all_this(plant: Plant, tmp_path: Path) -> None:
    """Must be the last one: it stops the gateway."""
    assert plant.gateway.stop() == 0, plant.gateway.log
    assert "Traceback" not in plant.gateway.log
    records = trail_records(plant.gateway.data / "trail")
    outcomes = judged(records)
    assert [outcome for _, outcome in outcomes if outcome.status is not Status.MATCH] == []
    done = rfhbridge(
        "audit", "run", "--engine", "duckdb", "--data", plant.gateway.data, "--out", tmp_path, timeout=None
    )
    assert done.returncode == 0, done.stdout + done.stderr
