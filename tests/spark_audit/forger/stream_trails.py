"""True trails of brokers with streams and subscription points: real gateways wrote them.

streams    dialect mq6: two streams with the same topics, commands with several topics, DupsOK, and retained values
prefixes   dialect wmb with implicit stream naming: streams as prefixes of topics, and a subscription point
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mq_adapters import connect as to_queue_manager
from mq_adapters.message import MQMT_DATAGRAM, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.ibm_mq.target_gateway import wait_until
from tests.headers import mqrfh, mqrfh2
from tests.spark_audit.forger.true_trails import Record, clients, records_of

_STREAMS: Final = """
[broker]
streams = ["NEWS"]
"""
_PREFIXES: Final = """
[broker]
dialect = "wmb"
input_queues = ["NEWS"]
implicit_stream_naming = true
[broker.subscription_points]
"PRICES" = "EUR"
"""
_ACCESS: Final = """
[access]
subscribe = ["#"]
"""
_CONTROL, _DEFAULT = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
_QUEUES: Final = ("ALL", "DAILY", "MANY", "PLAIN", "POINT")


class _Application:
    """An application that puts commands, one after the other."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def define(self) -> None:
        """Its queues."""
        for name in _QUEUES:
            self._application.define(name)

    def old(self, queue: str, command: str) -> None:
        """A command in MQRFH."""
        self._put(queue, b"MQHRF   ", mqrfh(command))

    def new(self, queue: str, psc: str) -> None:
        """A command in MQRFH2."""
        self._put(queue, b"MQHRF2  ", mqrfh2(f"<psc>{psc}</psc>"))

    def _put(self, queue: str, format: bytes, header: bytes) -> None:
        descriptor = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=format, persistence=MQPER_PERSISTENT)
        self._application.put(queue, Message(descriptor, header + b"|body"))
        wait_until(lambda: self._application.depth(queue) == 0, "the broker has taken the command")

    def depth(self, queue: str) -> int:
        """How many messages wait for a subscriber."""
        return int(self._application.depth(queue))


def streams(folder: Path) -> list[Record]:
    """The records of the gateway in dialect mq6."""
    return _made(folder, _STREAMS, _on_streams)


def prefixes(folder: Path) -> list[Record]:
    """The records of the gateway in dialect wmb."""
    return _made(folder, _PREFIXES, _on_prefixes)


def _made(folder: Path, broker: str, act: Callable[[_Application, Any], None]) -> list[Record]:
    folder.mkdir()
    config = folder / "rfhbridge.toml"
    config.write_text(_ACCESS + broker)
    gateway = Gateway(folder / "data", "--config", str(config)).start()
    try:
        with to_queue_manager(gateway.data) as application, clients(gateway.port) as connect:
            made = _Application(application)
            made.define()
            act(made, connect)
        assert gateway.restart()
        with to_queue_manager(gateway.data) as application, clients(gateway.port) as connect:
            _second_run(_Application(application), connect)
        assert gateway.stop() == 0, gateway.log
    finally:
        gateway.clean_up()
    return records_of(gateway.data)


def _on_streams(application: _Application, connect: Any) -> None:
    wall = connect("wall")
    wall.subscribe("a/#", 1)
    registration = "MQPSCommand RegSub MQPSStreamName NEWS MQPSQName"
    application.old("NEWS", "MQPSCommand Publish MQPSPubOpts NoReg MQPSPubOpts RetainPub MQPSTopic a/kept")
    application.old(_CONTROL, f"{registration} ALL MQPSTopic a/* MQPSTopic b")
    application.old(_CONTROL, f"{registration} DAILY MQPSRegOpts NewPubsOnly MQPSTopic a/1 MQPSTopic a/2 MQPSTopic b")
    application.old(_CONTROL, f"{registration} MANY MQPSRegOpts DupsOK MQPSTopic a/* MQPSTopic a/1")
    application.old(_CONTROL, "MQPSCommand RegSub MQPSQName PLAIN MQPSTopic a/*")
    assert [application.depth(each) for each in ("ALL", "DAILY", "MANY", "PLAIN")] == [1, 0, 1, 0]
    _publish_everywhere(application, connect, wall)
    application.old(_CONTROL, "MQPSCommand DeregSub MQPSStreamName NEWS MQPSQName DAILY MQPSTopic a/1 MQPSTopic b")
    application.old("NEWS", "MQPSCommand DeletePub MQPSTopic a/*")
    _publish_everywhere(application, connect, wall)


def _publish_everywhere(application: _Application, connect: Any, wall: Any) -> None:
    """On both streams, on one topic and on several, and from MQTT."""
    publication = "MQPSCommand Publish MQPSPubOpts NoReg"
    application.old("NEWS", f"{publication} MQPSTopic a/1")
    application.old("NEWS", f"{publication} MQPSTopic a/2 MQPSTopic b")
    application.old(_DEFAULT, f"{publication} MQPSTopic a/1")
    application.old(_DEFAULT, f"{publication} MQPSTopic a/2 MQPSTopic b")
    connect("pump").publish("a/1", b"|mqtt", 1)
    assert [wall.next_message().topic for _ in range(3)] == ["a/1", "a/2", "a/1"]


def _on_prefixes(application: _Application, connect: Any) -> None:
    wall = connect("wall")
    wall.subscribe("a/#", 1)
    application.new("PRICES", "<Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/kept</Topic>")
    registration = "MQPSCommand RegSub MQPSQName"
    application.old(_CONTROL, f"{registration} ALL MQPSTopic *")
    application.old(_CONTROL, f"{registration} DAILY MQPSStreamName NEWS MQPSTopic a/1 MQPSTopic b")
    application.new(_CONTROL, _new("RegSub", "MANY", "$SYS/STREAM/NEWS/#"))
    application.new(_CONTROL, _new("RegSub", "PLAIN", "a/#"))
    application.new(_CONTROL, _new("RegSub", "POINT", "a/#", "a/1", point="EUR"))
    assert [application.depth(each) for each in _QUEUES] == [0, 0, 0, 0, 1]
    _publish_at_points(application, connect, wall)
    application.new(_CONTROL, _new("DeregSub", "POINT", "a/1", point="EUR"))
    application.old(_CONTROL, "MQPSCommand DeregSub MQPSQName DAILY MQPSStreamName NEWS MQPSTopic a/1")
    _publish_at_points(application, connect, wall)


def _new(verb: str, queue: str, *topics: str, point: str = "") -> str:
    names = "".join(f"<Topic>{topic}</Topic>" for topic in topics)
    at = f"<SubPoint>{point}</SubPoint>" if point else ""
    return f"<Command>{verb}</Command>{names}{at}<QName>{queue}</QName>"


def _publish_at_points(application: _Application, connect: Any, wall: Any) -> None:
    publication = "MQPSCommand Publish MQPSPubOpts NoReg"
    application.old("NEWS", f"{publication} MQPSTopic a/1 MQPSTopic b")
    application.old("NEWS", f"{publication} MQPSStreamName {_DEFAULT} MQPSTopic a/1")
    application.old(_DEFAULT, f"{publication} MQPSStreamName NEWS MQPSTopic b")
    application.new("PRICES", "<Command>Publish</Command><Topic>a/1</Topic>")
    application.new("NEWS", "<Command>Publish</Command><Topic>a/2</Topic>")
    connect("pump").publish("a/1", b"|mqtt", 1)
    assert [wall.next_message().topic for _ in range(3)] == ["a/1", "a/2", "a/1"]


def _second_run(application: _Application, connect: Any) -> None:
    """After a restart."""
    depths = [application.depth(each) for each in _QUEUES]
    wall = connect("wall")
    wall.subscribe("a/#", 1)
    publication = "MQPSCommand Publish MQPSPubOpts NoReg"
    application.old("NEWS", f"{publication} MQPSTopic a/2 MQPSTopic b")
    application.old(_DEFAULT, f"{publication} MQPSTopic a/1")
    assert wall.next_message().topic == "a/1"
    assert [application.depth(each) for each in _QUEUES] > depths
