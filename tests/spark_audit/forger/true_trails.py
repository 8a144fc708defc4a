"""The true trails that the forger changes: real gateways wrote them, of everything that a trail tells of.

plant     QoS 0, 1 and 2 both ways, wildcards, No Local, a shared group, an application with MQRFH, retained, will,
          dead letter, refusals, conversion service, UNSUBSCRIBE, a session's end, and a restart in the middle
central   the same client's messages to a target and back, over the channels of a queue manager that stands in
keyed     plant with names under a key and headers encrypted
upgraded  a store and a trail of the first edition, with a session, what waits for it and a retained value, go on
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from mq_adapters import connect as to_queue_manager
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import MQMT_DATAGRAM, MQMT_REQUEST, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reports import ReportOption
from spark_audit.personal import NAME_PREFIX
from tests.end_to_end.clients.client import Login, Options, Way
from tests.end_to_end.clients.paho import Paho
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.target_gateway import TargetGateway, wait_until
from tests.end_to_end.wire import WireClient
from tests.headers import mqrfh
from tests.trail_lines import trail_records

Record = dict[str, Any]

_CONFIGURATION: Final = """
[access]
publish = ["plant/#", "jobs/#", "spare/#"]
subscribe = ["plant/#", "jobs/#", "spare/#", "$share/#"]

[[conversion]]
from = "ORDERS.OLD"
to = "ORDERS.NEW"
header = "mqrfh2"
"""
_CONTROL, _STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
_REGISTER: Final = mqrfh("MQPSCommand RegSub MQPSQName PLANT.HISTORY MQPSTopic plant/*")
_ORDER: Final = mqrfh("MQPSCommand Publish MQPSTopic orders/7 MQPSTimestamp 2026112007000000")
#: How late the record of a refusal may come, as the audit judges it, and a tenth more.
_RECORDED_LATE_US: Final = 1_100_000
#: Store and trail that the code of 2026-11-21 wrote: it took no stock, kept no rules of its broker, and no head.
FIRST_EDITION: Final = Path(__file__).with_name("first_edition")


def records_of(data: Path) -> list[Record]:
    """The records of a gateway so far, in their order."""
    return trail_records(data / "trail")


@contextmanager
def clients(port: int) -> Iterator[Any]:
    """Connects clients; what is still connected at the end disconnects."""
    with ExitStack() as stack:

        def connect(name: str, version: str = "3.1.1", **login: Any) -> Paho:
            client = Paho()
            client.connect(Way(port=port), Login(client_identifier=name, version=version, **login))
            stack.callback(client.close)
            return client

        yield connect


def plant(folder: Path, further: str = "") -> list[Record]:
    """One gateway with its own broker; `further` lines of its configuration."""
    folder.mkdir()
    config = folder / "rfhbridge.toml"
    config.write_text(_CONFIGURATION + further)
    gateway = Gateway(folder / "data", "--config", str(config)).start()
    try:
        _set_up(gateway)
        with clients(gateway.port) as connect:
            _first_shift(gateway, connect)
        assert gateway.stop() == 0, gateway.log
        _make_inventory_due(gateway.data)
        gateway.start()
        with clients(gateway.port) as connect:
            _second_shift(gateway, connect)
        assert gateway.stop() == 0, gateway.log
    finally:
        gateway.clean_up()
    return records_of(gateway.data)


def _make_inventory_due(data: Path) -> None:
    """As if the last one had been complete a day ago."""
    engine = Engine.open(data)
    unit = engine.begin()
    unit.set_state(StateKind.GATEWAY, b"inventory", bytes(8))
    engine.submit(unit)
    engine.close()


def _set_up(gateway: Gateway) -> None:
    """An application with MQRFH, a subscription whose queue is full, and a message for the conversion service."""
    with to_queue_manager(gateway.data) as application:
        application.define("PLANT.HISTORY")
        for command in ("DEFINE QLOCAL(FULL) MAXDEPTH(0)", "DEFINE SUB(S) TOPICSTR('plant/full') DEST(FULL)"):
            assert application.mqsc(command).succeeded, command
        old = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=b"MQHRF   ", persistence=MQPER_PERSISTENT)
        application.put(_CONTROL, Message(old, _REGISTER))
        application.put("ORDERS.OLD", Message(old, _ORDER + b"order 7"))
        application.put("ORDERS.OLD", Message(old, _ORDER + b"order 8"))
        wait_until(lambda: application.depth("ORDERS.NEW") == 2, "both orders are converted")
        for queue, option, topic in (("SAFE", "Pers", "plant/one/heat"), ("FAST", "NonPers", "plant/alarm")):
            application.define(f"PLANT.{queue}")
            text = f"MQPSCommand RegSub MQPSRegOpts {option} MQPSQName PLANT.{queue} MQPSTopic {topic}"
            application.put(_CONTROL, Message(old, mqrfh(text)))
        for queue, default in (("KEPT", "YES"), ("BRIEF", "NO")):
            assert application.mqsc(f"DEFINE QLOCAL(PLANT.{queue}) DEFPSIST({default})").succeeded
            text = f"MQPSCommand RegSub MQPSRegOpts PersAsQueue MQPSQName PLANT.{queue} MQPSTopic plant/one/heat"
            application.put(_CONTROL, Message(old, mqrfh(text)))
        wait_until(lambda: application.depth(_CONTROL) == 0, "the applications are registered")
        _applications(application)


def _applications(application: Any) -> None:
    """What applications put, get and ask, what operators do, what expires, and what goes with a temporary queue."""
    for name in ("STORE", "ANSWERS"):
        application.define(name)
    kept = MessageDescriptor(msg_type=MQMT_DATAGRAM, persistence=MQPER_PERSISTENT)
    asking = kept.replace(msg_type=MQMT_REQUEST, reply_to_q="ANSWERS", format=b"MQHRF   ")
    for number in range(3):
        application.put("STORE", Message(kept, b"|%d" % number))
    assert application.get("STORE", wait_s=0) is not None
    assert application.clear("STORE") == 2
    application.put("STORE", Message(kept, b"|left"))
    application.put("STORE", Message(MessageDescriptor(msg_type=MQMT_DATAGRAM, persistence=0), b"|volatile"))
    short = kept.replace(expiry=1, report=int(ReportOption.EXPIRATION), reply_to_q="ANSWERS")
    application.put("STORE", Message(short, b"|short"))
    application.put(_CONTROL, Message(asking, mqrfh("MQPSCommand RegSub MQPSQName STORE MQPSTopic none")))
    wait_until(lambda: application.depth("ANSWERS") == 2, "what expired is reported, and the command is answered")
    assert application.mqsc("DEFINE QMODEL(BRIEF)").succeeded
    brief = application.create_dynamic("BRIEF", "BRIEF.*")
    application.put(brief, Message(MessageDescriptor(msg_type=MQMT_DATAGRAM, persistence=0), b"|goes with it"))


def _first_shift(gateway: Gateway, connect: Any) -> None:
    pump = connect("pump")
    desk = connect("desk", stays=True)
    wall = connect("wall")
    assert (desk.subscribe("plant/+/heat", 2), desk.subscribe("plant/alarm", 1), wall.subscribe("plant/#", 0)) == (
        2,
        1,
        0,
    )
    assert wall.subscribe("secret/#", 0) == 128
    _codes(gateway)
    for qos in (0, 1, 2):
        pump.publish("plant/one/heat", b"%d" % qos, qos)
        assert desk.next_message().qos == qos
    pump.publish("plant/alarm", b"hot", 2)
    assert desk.next_message().qos == 1
    pump.publish("plant/full", b"lost", 1)
    _retained(pump, connect)
    _groups(pump, connect)
    lamp = WireClient(gateway.port, "lamp")
    lamp.send("connects with a will", "10 22 0004 'MQTT' 04 0E 0000 0004 'lamp' 000A 'plant/will' 0004 'gone'")
    lamp.expect("is accepted", "20 02 00 00")
    desk.unsubscribe("plant/alarm")
    pump.publish("plant/alarm", b"cold", 1)
    assert [wall.next_message().payload for _ in range(11)][-1] == b"cold"
    lamp.drop()
    assert wall.next_message().topic == "plant/will"
    desk.close()
    for number in range(3):
        pump.publish("plant/two/heat", b"later %d" % number, 1)


def _codes(gateway: Gateway) -> None:
    """What a client of MQTT 5 is told: a session that goes on, filters, nobody who subscribes, refusals, a login."""
    probe = WireClient(gateway.port, "probe")
    probe.send("connects for an hour", "10 17 0004 'MQTT' 05 02 0000 05 11 00000E10 0005 'probe'")
    assert probe.receive_packet()[:4].hex()[4:] == "0000", "there was no session"
    probe.send("subscribes", "82 18 0001 00 0007 'spare/+' 02 0008 'secret/+' 00")
    probe.expect("may have one of them", "90 05 0001 00 02 87")
    probe.send("unsubscribes twice", "A2 0C 0002 00 0007 'spare/+'", "A2 0C 0003 00 0007 'spare/+'")
    probe.expect("had it once", "B0 04 0002 00 00", "B0 04 0003 00 11")
    probe.send("publishes to nobody", "32 0D 0007 'spare/x' 0004 00 'n'")
    probe.expect("is told so", "40 03 0004 10")
    probe.drop()
    probe = WireClient(gateway.port, "probe")
    probe.send("is back", "10 17 0004 'MQTT' 05 00 0000 05 11 00000E10 0005 'probe'")
    assert probe.receive_packet()[:4].hex()[4:] == "0100", "there is its session"
    probe.send("publishes where it may not", "32 0E 0008 'secret/x' 0005 00 'n'")
    probe.expect("is told so", "40 03 0005 87")
    probe.drop()
    lamp = WireClient(gateway.port, "bulb")
    lamp.send("wants a will", "10 1F 0004 'MQTT' 04 06 0000 0004 'bulb' 0008 'secret/x' 0003 'out'")
    lamp.expect("may not", "20 02 00 05")
    lamp.drop()
    _refused_connects(gateway)


def _refused_connects(gateway: Gateway) -> None:
    """CONNECTs that are refused for another reason than their login: a limit, a level, and what MQTT does not allow."""
    topic = "plant" + "/" * 201
    will = f"00CE '{topic}' 0001 'x'"
    deep = [f"10 E601 0004 'MQTT' 05 06 0000 00 0005 'deep{number}' 00 {will}" for number in range(3)]
    for packet, code in (
        *((each, 0x90) for each in deep),
        ("10 10 0004 'MQTT' 05 02 0000 00 0003 'a' 00 'b'", 0x81),
        ("10 0D 0004 'MQTT' 06 02 0000 0001 'a'", 0x01),
        ("10 0C 0004 'MQTT' 04 00 0000 0000", 0x02),
    ):
        probe = WireClient(gateway.port, "stranger")
        probe.send("sends CONNECT", packet)
        assert probe.receive_packet()[3] == code
        probe.drop()


def _retained(pump: Paho, connect: Any) -> None:
    """Kept, sent to a new subscription, replaced, deleted."""
    pump.publish("plant/one/state", b"on", 1, retain=True)
    late = connect("late")
    late.subscribe("plant/+/state", 1)
    assert late.next_message().essence == ("plant/one/state", b"on", 1, True)
    pump.publish("plant/one/state", b"off", 1, retain=True)
    assert late.next_message().essence == ("plant/one/state", b"off", 1, False)
    later = connect("later")
    later.subscribe("plant/one/state", 0)
    assert later.next_message().essence == ("plant/one/state", b"off", 0, True)
    pump.publish("plant/one/state", b"", 1, retain=True)
    assert (late.next_message().payload, later.next_message().payload) == (b"", b"")


def _groups(pump: Paho, connect: Any) -> None:
    """No Local, and two members of a group."""
    echo = connect("echo", "5")
    echo.subscribe("plant/echo", 1, Options(no_local=True))
    echo.publish("plant/echo", b"own", 1, properties={"content_type": "text/plain", "user_property": [("unit", "K")]})
    pump.publish("plant/echo", b"foreign", 1)
    assert echo.next_message().payload == b"foreign"
    crew = [connect(name, "5") for name in ("crew-1", "crew-2")]
    for member in crew:
        member.subscribe("$share/crew/jobs/#", 2)
    for number in range(4):
        pump.publish(f"jobs/{number}", b"job", 2)
    wait_until(lambda: sum(member.messages.qsize() for member in crew) == 4, "the crew has every job")


def _second_shift(gateway: Gateway, connect: Any) -> None:
    """The desk gets what waited; then its session ends with what comes next."""
    desk = connect("desk", stays=True)
    assert [desk.next_message().payload for _ in range(3)] == [b"later 0", b"later 1", b"later 2"]
    assert desk.subscribe("secret/#", 1) == 128
    refused_us = time.time_ns() // 1_000
    wait_until(
        lambda: any(record.get("event") == "complete" for record in records_of(gateway.data)),
        "the inventory is complete",
    )
    # Only commits behind that time show that a refusal has no record. The inventory often takes as long.
    wait_until(lambda: time.time_ns() // 1_000 > refused_us + _RECORDED_LATE_US, "the refusal's record is late")
    desk.close()
    connect("pump").publish("plant/three/heat", b"for nobody", 1)
    connect("desk").close()


def keyed(folder: Path) -> list[Record]:
    """The same with personal data under a key."""
    records = plant(folder, '[audit]\npersonal_data = "keyed"\n')
    assert {each["topic"][:2] for each in records if each.get("topic")} == {NAME_PREFIX}
    return records


def upgraded(folder: Path) -> list[Record]:
    """The store of the first edition under this one; it has a restart more behind it."""
    shutil.copytree(FIRST_EDITION, folder / "data")
    gateway = Gateway(folder / "data").start()
    try:
        with clients(gateway.port) as connect:
            desk, late = connect("desk", stays=True), connect("late")
            assert {desk.next_message().payload for _ in range(3)} == {b"later 1", b"later 2", b"hot"}
            late.subscribe("plant/#", 1)
            assert late.next_message().essence == ("plant/one/state", b"on", 1, True)
            pump = connect("pump")
            pump.publish("plant/one/heat", b"new", 1)
            assert desk.next_message().payload == late.next_message().payload == b"new"
            pump.publish("plant/one/state", b"", 1, retain=True)
            assert late.next_message().payload == b""
        gateway.restart()
        with clients(gateway.port) as connect:
            desk = connect("desk", stays=True)
            connect("pump").publish("plant/alarm", b"cold", 1)
            assert desk.next_message().payload == b"cold"
        assert gateway.stop() == 0, gateway.log
    finally:
        gateway.clean_up()
    return records_of(gateway.data)


def central(folder: Path) -> list[Record]:
    """A gateway whose topics all go to a target."""
    folder.mkdir()
    with Central(folder / "central") as target:
        routes = ({"topics": ["plain/#"], "queue": "PLANT.INPUT"}, {"topics": ["#"]})
        gateway = TargetGateway(
            folder / "gateway",
            target.environment("ibmmq"),
            target={"binding": "ibmmq", "header": "mqrfh2"},
            routes=routes,
            settings={"mqtt": {"versions": ["3.1.1", "5"]}},
        )
        target.set_up(gateway.set_up_mqsc())
        gateway.start()
        try:
            gateway.wait_for_running()
            with clients(gateway.port) as connect:
                _to_and_from(target, connect)
            wait_until(lambda: gateway.waiting() == 0, "all has gone over the channel")
            assert gateway.stop() == 0, gateway.log
        finally:
            gateway.clean_up()
    return records_of(gateway.data)


def _to_and_from(target: Central, connect: Any) -> None:
    tell, hear = connect("tell"), connect("hear", "5")
    hear.subscribe("far/#", 2)
    for qos in (0, 1, 2):
        tell.publish("far/heat", b"|%d" % qos, qos)
        assert hear.next_message().qos == qos
    target.publish(b"|9", topic="far/application")
    assert hear.next_message().payload == b"|9"
    for number in range(3):
        tell.publish("plain/order", b"|%d" % number, 1)
    hear.publish("far/tags", b"|t", 1, properties={"content_type": "text/plain", "user_property": [("unit", "K")]})
    assert hear.next_message().topic == "far/tags"
    wait_until(lambda: target.depth("PLANT.INPUT") == 3, "the orders have arrived")
    hear.unsubscribe("far/#")
