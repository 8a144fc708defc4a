"""IBM MQ classes for Java and for JMS, unmodified, as MQ applications use them."""

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from mq_adapters import connect
from mq_adapters.message import Message, MessageDescriptor
from tests.end_to_end.mq_clients.house import PATIENCE_S, TOKEN, House
from tests.end_to_end.paho_client import PahoClient

Java = Callable[..., list[str]]
StartJava = Callable[..., "subprocess.Popen[str]"]


def test_programs_of_the_base_classes_get_what_the_mqi_says(house: House, java: Java) -> None:
    scenarios = ("connect", "sizes", "unit", "browse", "truncated", "wait", "closed", "identity", "reply", "inquire")
    assert java("BaseClasses", *house.as_billing(*scenarios)) == [
        "connect: RFHB 945",
        *(f"sizes: {size} true" for size in (0, 1, 10, 32_000, 32_700, 40_000, 100_000, 1_000_000, 4_000_000)),
        "unit: after back-out 2033",
        "unit: kept 1",
        "unit: after commit 2033",
        "browse: abc 2033",
        "browse: under the cursor b",
        "browse: left ac 2033",
        "truncated: 1 2080",
        "truncated: 2079 1000 9000",
        "truncated: then 2033",
        "wait: 2033 true",
        "closed: NOWHERE 2085",
        "closed: OTHERS 2035",
        "closed: SYSTEM.DEAD.LETTER.QUEUE 2035",
        "identity: billing orders true",
        "reply: answer true 2085",
        "inquire: 1 999999999 ORDERS",
    ]


def test_properties_come_as_the_queue_and_the_get_say(house: House, java: Java) -> None:
    controls = ("COMPAT", "NONE", "ALL", "FORCE", "V6COMPAT")
    with connect(str(house.gateway.data)) as operator:
        for control in controls:
            assert operator.mqsc(f"DEFINE QLOCAL(REPLY.{control}) PROPCTL({control})").succeeded
        said = java("BaseClasses", *house.as_billing("properties"))
        for control in controls:
            assert operator.mqsc(f"DELETE QLOCAL(REPLY.{control})").succeeded
    assert said == [
        "properties: COMPAT MQSTR/blue MQSTR/2471 MQHRF2/2471 MQSTR/blue",
        "properties: NONE MQSTR/blue MQSTR/2471 MQHRF2/2471 MQSTR/blue",
        "properties: ALL MQSTR/blue MQSTR/2471 MQHRF2/2471 MQSTR/blue",
        "properties: FORCE MQHRF2/2471 MQSTR/2471 MQHRF2/2471 MQSTR/blue",
        "properties: V6COMPAT MQSTR/blue MQSTR/2471 MQHRF2/2471 MQSTR/blue",
    ]


def test_headers_and_text_are_converted_for_programs_that_ask(house: House, java: Java) -> None:
    assert java("BaseClasses", *house.as_billing("convert")) == [
        "convert: 500 0 500 273 500 Größe Größe",
        "convert: 819 0 819 273 819 Größe Größe",
        "convert: 1200 2115 1208 546 1208 Größe Größe",
        "convert: 4711 2115 1208 546 1208 Größe Größe",
    ]


def test_programs_of_jms_send_receive_browse_roll_back_and_listen(house: House, java: Java) -> None:
    scenarios = ("kinds", "transacted", "browser", "reply", "priorities", "ahead", "listener")
    assert java("Jms", *house.as_billing(*scenarios)) == [
        "kinds: text true blau 7 true order-7 true billing",
        "kinds: bytes 3 0 1 -1",
        "kinds: map 3 pump",
        "kinds: stream 1.5 x",
        "kinds: object serialized",
        "kinds: none true true",
        "transacted: after rollback true",
        "transacted: kept false true 2",
        "transacted: after commit true",
        "browser: abc abc",
        "reply: answer true",
        "priorities: p99 p44 p11",
        "ahead: a true",
        "listener: true " + " ".join(str(number * 10_000) for number in range(20)),
    ]


def test_programs_of_jms_publish_and_subscribe_to_their_topics_alone(house: House, java: Java) -> None:
    assert java("Jms", *house.as_billing("topics", "forbidden")) == [
        *["topics: 4.2 Größe topic://plant/pump 7/bar bar true"] * 2,
        "topics: true true",
        "forbidden: topic://secret/# 2035",
        "forbidden: topic://# 2035",
        "forbidden: publish 2035",
    ]


def test_a_sensor_reaches_jms_and_jms_a_panel(house: House, start_java: StartJava, tmp_path: Path) -> None:
    panel, sensor = PahoClient("panel"), mqtt.Client(CallbackAPIVersion.VERSION2, "sensor", protocol=mqtt.MQTTv5)
    panel.connect(house.gateway.port)
    panel.subscribe("panel/#", 2)
    sensor.connect("127.0.0.1", house.gateway.port)
    sensor.loop_start()
    program = start_java("Jms", *house.as_billing("sensor"), folder=tmp_path)
    assert program.stdout is not None
    assert program.stdout.readline().strip() == "sensor: ready"
    sensor.publish("plant/pump 7/bar", b"4.2", 1).wait_for_publish(PATIENCE_S)
    text = Properties(PacketTypes.PUBLISH)
    text.PayloadFormatIndicator, text.UserProperty = 1, ("unit", "bar")
    sensor.publish("plant/\U0001f600/bar", b"4.3", 2, properties=text).wait_for_publish(PATIENCE_S)
    assert program.communicate(timeout=PATIENCE_S)[0].splitlines() == [
        "sensor: 4.2 topic://plant/pump 7/bar 1",
        'sensor: 4.3 topic://plant/\U0001f600/bar [["unit","bar"]]',
    ]
    assert panel.next_message()[:2] == ("panel/command", b"open")
    panel.close()
    sensor.disconnect()
    sensor.loop_stop()


def test_jms_is_told_of_what_is_not_there_as_the_reference_says(house: House, java: Java) -> None:
    said = java("Jms", *house.as_billing("absent"))
    assert [line for line in said if line.startswith("absent")] == [
        "absent: selector 2459",
        "absent: function 2551",
        "absent: topic 2459",
        "absent: ahead 2046",
        "absent: group 2026",
        "absent: delay 2298",
        "absent: asynchronous 2298",
    ]


def test_selectors_of_jms_select(house: House, java: Java) -> None:
    assert java("Jms", *house.as_billing("selectors")) == [
        "selectors: n BETWEEN 3 AND 5 -> 5 4 3",
        "selectors: colour = 'blue' AND weight >= 4.0 -> 18 16",
        "selectors: last -> 19",
        "selectors: JMSPriority = 9 AND NOT last -> 9",
        "selectors: JMSDeliveryMode = 'PERSISTENT' AND n < 7 -> 6 3 0",
        "selectors: JMSCorrelationID = 'order-4' -> 4",
        "selectors: JMSType = 'reading' AND n = 2 * 3 -> 6",
        "selectors: colour LIKE 'dark!_%' ESCAPE '!' AND n IN (1, 3) -> 3 1",
        "selectors: JMSMessageID -> 8 7",
        "selectors: nothing IS NULL AND n = 0 -> 0",
        "selectors: JMSTimestamp > 1700000000000 AND n = 10 -> 10",
        "selectors: colour <> 'blue' AND n > 16 -> 19 17",
        "selectors: nothing = 1 -> ",
        "selectors: receive 5 true",
        "selectors: listen true 18 16 14 late",
        "selectors: topic 6 8 10 12 14 16 18",
        "selectors: left 16",
    ]


def test_a_subscriber_may_leave_out_what_its_own_connection_publishes(house: House, java: Java) -> None:
    assert java("Jms", *house.as_billing("local")) == ["local: other"]


def test_reports_are_messages_of_jms(house: House, java: Java) -> None:
    assert java("Jms", *house.as_billing("reports")) == [
        "reports: 0 false 259 true",
        "reports: 100 true 259 true",
        "reports: 500 true 259 true",
    ]


@pytest.mark.proof
def test_a_selector_among_very_many_messages_holds_nobody_up(
    house: House, java: Java, start_java: StartJava, tmp_path: Path, proof_scale: str
) -> None:
    many = 100_000 if proof_scale == "full" else 10_000
    body = b"x" * 100
    with connect(str(house.gateway.data)) as operator:
        for first in range(0, many, 5_000):
            operator.begin()
            for number in range(first, first + 5_000):
                correl_id = number.to_bytes(24, "big")
                operator.put("ORDERS", Message(MessageDescriptor(persistence=1, priority=4, correl_id=correl_id), body))
            operator.commit()
        program = start_java("Jms", *house.as_billing("selected"), folder=tmp_path)
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "selected: ready"
        sensor = PahoClient("sensor")
        sensor.connect(house.gateway.port)
        taken = []
        for _ in range(200):
            begun = time.monotonic()
            sensor.publish("plant/pump 7/bar", b"4.2", 1)
            taken.append(time.monotonic() - begun)
        sensor.close()
        operator.put("ORDERS", Message(MessageDescriptor(persistence=1, priority=9), b"wanted"))
        assert program.communicate(timeout=PATIENCE_S)[0].strip() == "selected: true"
        assert sorted(taken)[len(taken) // 2] < 0.1
        assert operator.mqsc("CLEAR QLOCAL(ORDERS)").succeeded


def test_a_sensor_reaches_jms_on_a_queue_too(house: House, java: Java) -> None:
    sensor = PahoClient("sensor")
    sensor.connect(house.gateway.port)
    with connect(str(house.gateway.data)) as operator:
        assert operator.mqsc("DEFINE SUB(READINGS) TOPICSTR('tank/#') DEST(ORDERS)").succeeded
        sensor.publish("tank/größe", b"4.2", 1)
        said = java("Jms", *house.as_billing("reading", "header"))
        assert operator.mqsc("DELETE SUB(READINGS)").succeeded
    sensor.close()
    assert said == ["reading: 4.2 null true null", "header: tank/größe 4.2"]


@pytest.mark.parametrize(
    ("channel", "user", "password", "reason_code"),
    [
        ("NOWHERE", "billing", TOKEN, 2540),
        ("APP.SVRCONN", "billing", "rfhbridge_wrong", 2035),
        ("APP.SVRCONN", "payroll", TOKEN, 2035),
        ("APP.SVRCONN", "-", "-", 2035),
    ],
)
def test_who_may_not_connect_is_told_why(
    house: House, java: Java, channel: str, user: str, password: str, reason_code: int
) -> None:
    assert java("BaseClasses", house.port, channel, user, password, "connect") == [f"connect: refused {reason_code}"]


def test_a_program_that_is_killed_gives_its_message_back(house: House, start_java: StartJava, tmp_path: Path) -> None:
    with connect(str(house.gateway.data)) as operator:
        operator.put("ORDERS", Message(MessageDescriptor(persistence=1), b"held"))
        program = start_java("BaseClasses", *house.as_billing("stay"), folder=tmp_path)
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "stay: taken"
        shown = "\n".join(operator.mqsc("DISPLAY CHSTATUS(APP.SVRCONN)").lines)
        for part in ("STATUS(RUNNING)", "MCAUSER('billing')", "RAPPLTAG('orders')", "CHLTYPE(SVRCONN)"):
            assert part in shown
        programs = "\n".join(operator.mqsc("DISPLAY CONN(*) ALL").lines)
        for part in ("APPLTAG('orders')", "USERID('billing')", "UOWSTATE(ACTIVE)", "CHANNEL(APP.SVRCONN)"):
            assert part in programs
        program.kill()
        message = operator.get("ORDERS", wait_s=PATIENCE_S)
        assert (message.body, message.backout_count) == (b"held", 1)


def test_a_stopped_channel_ends_its_programs_and_starts_again(
    house: House, java: Java, start_java: StartJava, tmp_path: Path
) -> None:
    with connect(str(house.gateway.data)) as operator:
        operator.put("ORDERS", Message(MessageDescriptor(persistence=1), b"held"))
        program = start_java("BaseClasses", *house.as_billing("stay", channel="FEW"), folder=tmp_path)
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "stay: taken"
        assert java("BaseClasses", *house.as_billing("connect", channel="FEW")) == ["connect: refused 2537"]
        assert operator.mqsc("STOP CHANNEL(FEW) MODE(FORCE)").succeeded
        assert operator.get("ORDERS", wait_s=PATIENCE_S).body == b"held"
        assert java("BaseClasses", *house.as_billing("connect", channel="FEW")) == ["connect: refused 2537"]
        assert operator.mqsc("START CHANNEL(FEW)").succeeded
    assert java("BaseClasses", *house.as_billing("connect", channel="FEW")) == ["connect: RFHB 945"]


@pytest.mark.proof
@pytest.mark.parametrize("way", ["send", "receive"])
def test_transacted_jms_loses_and_doubles_nothing_when_the_gateway_is_killed(
    house: House, start_java: StartJava, tmp_path: Path, proof_scale: str, way: str
) -> None:
    units, kills = (1_000, 3) if proof_scale == "full" else (120, 1)
    sent = [f"{unit}/{number}" for unit in range(units) for number in range(10)]
    if way == "receive":
        with connect(str(house.gateway.data)) as operator:
            operator.begin()
            for text in sent:
                descriptor = MessageDescriptor(persistence=1, format=b"MQSTR   ", coded_char_set_id=1208)
                operator.put("ORDERS", Message(descriptor, text.encode()))
            operator.commit()
    program = start_java("Load", *house.as_billing(way, str(units)), folder=tmp_path)
    assert program.stdout is not None
    lines: list[str] = []
    for number in range(kills):
        while len([line for line in lines if line.startswith("committed")]) < (number + 1) * units // (kills + 2):
            lines.append(program.stdout.readline())
            assert lines[-1], lines
        house.gateway.signal(signal.SIGKILL)
        time.sleep(0.1)
        house.gateway.kill_and_restart()
    lines += program.stdout.read().splitlines()  # communicate() would miss what readline() has read ahead
    assert program.wait(timeout=PATIENCE_S) == 0, lines[-20:]
    outcomes = {
        kind: [line.split()[1:] for line in lines if line.split()[0] == kind] for kind in ("committed", "doubt")
    }
    left = Counter(_left(house))
    committed = Counter(text for unit in outcomes["committed"] for text in unit)
    doubtful = [Counter(unit) for unit in outcomes["doubt"]]
    if way == "send":
        rest = left - committed
        assert not committed - left, "committed messages are missing"
        for unit in doubtful:
            present = Counter({text: rest[text] for text in unit if rest[text]})
            assert present in (Counter(), unit), "a unit of work is there in part"
            rest -= present
        assert not rest, "messages are there that were never committed, or twice"
    else:
        assert not committed & left, "messages that were taken are still there"
        gone = Counter(sent) - committed - left
        for unit in doubtful:
            missing = Counter({text: gone[text] for text in unit if gone[text]})
            assert missing in (Counter(), unit), "a unit of work was taken in part"
            gone -= missing
        assert not gone, "messages are gone that nobody took"
        assert max(committed.values(), default=1) == 1


def _left(house: House) -> list[str]:
    """Takes all messages off ORDERS; their texts, which stand behind a header if JMS has put them."""
    texts = []
    with connect(str(house.gateway.data)) as operator:
        for _ in range(operator.depth("ORDERS")):
            found = re.search(rb"[0-9]+/[0-9]+$", operator.get("ORDERS").body)
            assert found is not None
            texts.append(found[0].decode())
    return texts
