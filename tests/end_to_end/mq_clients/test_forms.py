"""What sensors publish, as IBM MQ classes for JMS read it where folders of JMS are written."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from mq_adapters import connect
from tests.end_to_end.hub_and_spoke.hub import Hub, Spoke
from tests.end_to_end.mq_clients.house import PATIENCE_S, House
from tests.end_to_end.paho_client import PahoClient
from tests.processes.forked import rfhbridge

Java = Callable[..., list[str]]
Pairs = tuple[tuple[str, str], ...]
StartJava = Callable[..., "subprocess.Popen[str]"]
MORE: Final = """
[publish]
jms_folders = true

[mqtt]
user_properties = "each"

[subscribe]
jms_maps = "json"
"""
QUEUED: Final = ("QUEUED", "-", "-")
#: Nothing that a sensor can do makes a message that JMS cannot read.
HOSTILE: Final = {
    "plant/f/<&>'\"": "topic://plant/f/<&>'\"",
    "plant/f/p%41%zz%": "topic://plant/f/p%41%zz%",
    "plant//f//?": "topic://plant//f//?",
    "plant/f/ö\U0001f600\U0010fffd": "topic://plant/f/ö\U0001f600\U0010fffd",
    "plant/f/a?brokerVersion=9": "JMSCMQ0004",
}
SAID: Final = (
    "text Größe; topic://plant/f/t; mode 2; age seconds; rfhbPayloadFormat=1; "
    'rfhbUserProps=[["unit","bar"],["site","7"]]; site=7; unit=bar'
)


class Sensor:
    """A client of MQTT 5."""

    def __init__(self, port: int, level: int = mqtt.MQTTv5) -> None:
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, "sensor", protocol=level)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int = 1,
        *,
        is_text: bool = False,
        pairs: tuple[tuple[str, str], ...] = (),
    ) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        if is_text:
            properties.PayloadFormatIndicator = 1
        if pairs:
            properties.UserProperty = list(pairs)
        self._client.publish(topic, payload, qos, properties=properties).wait_for_publish(PATIENCE_S)

    def publish_all(self) -> None:
        """A payload of each kind; the bytes of half a surrogate pair are no UTF-8."""
        self.publish("plant/f/b", b"\x00\xff", 0)
        self.publish("plant/f/t", "Größe".encode(), is_text=True, pairs=(("unit", "bar"), ("site", "7")))
        self.publish("plant/f/t", b"\xed\xa0\x80", 2, is_text=True)
        self.publish("plant/f/t", b"", 2, is_text=True)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def sensor(house: House) -> Iterator[Sensor]:
    sensor = Sensor(house.gateway.port)
    yield sensor
    sensor.close()


#: What a program says of `publish_all`.
EXPECTED: Final = [
    "bytes 00ff; topic://plant/f/b; mode 1; age seconds",
    SAID,
    "bytes eda080; topic://plant/f/t; mode 2; age seconds; rfhbPayloadFormat=1",
    "text ; topic://plant/f/t; mode 2; age seconds; rfhbPayloadFormat=1",
]


@pytest.mark.parametrize(
    ("provider", "topics"), [("new", "topic://plant/f/#"), ("V1", "topic://plant/f/*"), ("V2", "topic://plant/f/#")]
)
def test_a_reading_is_a_text_or_bytes_on_its_topic_to_subscribers_of_every_kind(
    house: House, sensor: Sensor, start_java: StartJava, tmp_path: Path, provider: str, topics: str
) -> None:
    given = house.as_billing(provider) if provider == "new" else (house.port, *QUEUED, provider)
    program = start_java("Forms", *given, "receive", "4", topics, folder=tmp_path)
    assert program.stdout is not None
    assert program.stdout.readline().strip() == "ready"
    sensor.publish_all()
    assert program.communicate(timeout=PATIENCE_S)[0].splitlines() == EXPECTED


def test_a_queue_has_them_too_and_selectors_select_them(house: House, sensor: Sensor, java: Java) -> None:
    with connect(str(house.gateway.data)) as operator:
        assert operator.mqsc("DEFINE SUB(FORMS) TOPICSTR('plant/#') DEST(ORDERS)").succeeded
        sensor.publish_all()
        sensor.publish_all()
        for topic in HOSTILE:
            sensor.publish(topic, b"4.2")
        assert operator.mqsc("DELETE SUB(FORMS)").succeeded
    selector = "unit = 'bar' AND JMSDestination = 'topic://plant/f/t' AND JMSDeliveryMode = 'PERSISTENT'"
    assert java("Forms", *house.as_billing("new", "receive", "1", "queue:///ORDERS", selector)) == ["ready", SAID]
    first, text, *rest = EXPECTED
    read = [first, *rest, first, text, *rest]
    read += [f"bytes 342e32; {destination}; mode 2; age seconds" for destination in HOSTILE.values()]
    given = house.as_billing("new", "receive", str(len(read)), "queue:///ORDERS")
    assert java("Forms", *given) == ["ready", *read]


def test_a_client_of_mqtt_3_1_kills_no_program_with_a_carriage_return(
    house: House, start_java: StartJava, tmp_path: Path
) -> None:
    """IBM's client ends with StringIndexOutOfBoundsException where JMSDestination ends with one."""
    program = start_java("Forms", *house.as_billing("new", "receive", "2", "topic://plant/#"), folder=tmp_path)
    assert program.stdout is not None
    assert program.stdout.readline().strip() == "ready"
    sensor = Sensor(house.gateway.port, mqtt.MQTTv31)
    sensor.publish("plant/f/a\r", b"1")
    sensor.publish("plant/f/a", b"2")
    sensor.close()
    said = program.communicate(timeout=PATIENCE_S)[0].splitlines()
    assert [line.split(";")[0] for line in said] == ["bytes 31", "bytes 32"]
    assert "topic://plant/f/a;" in said[1]


def test_messages_of_every_kind_reach_an_mqtt_client(house: House, java: Java) -> None:
    panel = PahoClient("panel")
    panel.connect(house.gateway.port)
    panel.subscribe("panel/#", 2)
    assert java("Forms", *house.as_billing("new", "send", "topic://panel/forms")) == ["sent"]
    text, raw, mapped, stream, serialized, empty, nothing = [panel.next_message()[1] for _ in range(7)]
    panel.close()
    assert (text.decode(), raw) == ("Größe \U0001f600", b"\x00\x01\xff")
    assert json.loads(mapped) == {
        "name": "Größe <&> \U0001f600\t",
        "level": -3,
        "large": 2**63 - 1,
        "bar": 4.2,
        "few": 1.5,
        "none": "NaN",
        "open": True,
        "small": 7,
        "short": 300,
        "letter": "ß",
        "raw": "00ff",
        "nothing": None,
        "a b$": "x",
    }
    assert stream == b"<stream><elt dt='r8'>1.5</elt><elt>x</elt></stream>"
    assert serialized.startswith(b"\xac\xed\x00\x05")  # the gateway never reads a serialized object
    assert (empty, nothing) == (b"{}", b"")


def test_the_audit_finds_no_fault_in_it(house: House, sensor: Sensor, tmp_path: Path) -> None:
    sensor.publish_all()
    assert house.gateway.stop() == 0, house.gateway.log
    _audit(house.gateway.data, tmp_path / "report")


def test_a_target_gets_them_where_its_option_says_so(start_java: StartJava, java: Java, tmp_path: Path) -> None:
    hub = Hub(tmp_path / "hub")
    hub.config.write_text(hub.config.read_text() + '[[mq_listener]]\nname = "jms"\nlisten = "127.0.0.1:0"\n')
    spoke = Spoke(tmp_path / "spoke", hub, jms_folders=True)
    try:
        hub.start()
        (opened,) = (each for each in hub.logged("listener opened") if each["name"] == "jms")
        hub.set_up(spoke.set_up_mqsc())
        hub.set_up("DEFINE CHANNEL(JMS) CHLTYPE(SVRCONN) MCAUSER('spoke1')")
        spoke.start()
        spoke.wait_for_running()
        given = (str(opened["port"]), "JMS", "-", "-", "new", "receive", "4", "topic://plant/f/#")
        program = start_java("Forms", *given, folder=tmp_path)
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "ready"
        sensor = Sensor(spoke.port)
        sensor.publish_all()
        sensor.close()
        said = program.communicate(timeout=PATIENCE_S)[0].splitlines()
        assert said == [line.replace("; site=7; unit=bar", "") for line in EXPECTED]
        for gateway in (spoke, hub):
            assert gateway.stop() == 0, gateway.log
            _audit(gateway.data, tmp_path / f"report of {gateway.data.parent.name}")
    finally:
        spoke.clean_up()
        hub.clean_up()


def _audit(data: Path, report: Path) -> None:
    ended = rfhbridge("audit", "run", "--engine", "duckdb", "--data", data, "--out", report, timeout=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    balance = rfhbridge("balance", "--data", data, timeout=None)
    assert balance.returncode == 0, balance.stdout + balance.stderr
