"""The queue manager in the data centre: the stand-in's process, set up as the operator would, and its applications.

What is set up is what `rfhbridge explain --mqsc` prints: its queues are defined, and what it does not grant is denied.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQMT_DATAGRAM, MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.mqsc import commands_of
from tests.end_to_end.wire import packet
from tests.ibm_mq_stand_in.process import StandInQueueManager

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
STREAM_QUEUE = "SYSTEM.BROKER.DEFAULT.STREAM"
MQRFH, MQRFH2 = b"MQHRF   ", b"MQHRF2  "
#: AUTHADD of SET AUTHREC, and what the stand-in calls it.
_AUTHORITIES = {"PUT": "put", "GET": "get", "BROWSE": "browse", "INQ": "inquire", "SETID": "setid", "SETALL": "setall"}
_GRANT = re.compile(r"SET AUTHREC PROFILE\(([^)]+)\) OBJTYPE\(QUEUE\).*AUTHADD\(([A-Z,]+)\)")
_TOPIC_STRING = re.compile(r"TOPICSTR\('([^']*)'\)")
#: In front of every payload of these tests: what stands behind the last one is the payload.
MARK = b"|"


class Applications:
    """Applications of a queue manager with a broker, on this machine."""

    def client(self) -> SocketClient:
        """A connection of one."""
        raise NotImplementedError

    def subscribe(self, queue_name: str, pattern: str) -> None:
        """An application registers, with an MQRFH, for the topics of a pattern: what comes is on that queue."""
        text = b"MQPSCommand RegSub MQPSQName %s MQPSTopic %s" % (queue_name.encode(), pattern.encode())
        with self.client() as application:
            application.define(queue_name)
            application.mqsc(f"ALTER QLOCAL({queue_name}) MAXDEPTH(999999999) MSGDLVSQ(FIFO)")
            descriptor = MessageDescriptor(msg_type=MQMT_DATAGRAM, format=MQRFH, persistence=MQPER_PERSISTENT)
            application.put(CONTROL_QUEUE, Message(descriptor, mqrfh(text)))

    def publish(self, *payloads: bytes, topic: str, format: bytes = MQRFH2, persistent: bool = True) -> None:
        """An application publishes on the default stream, in one unit of work."""
        header = mqrfh_publish(topic) if format == MQRFH else mqrfh2_publish(topic)
        persistence = MQPER_PERSISTENT if persistent else MQPER_NOT_PERSISTENT
        with self.client() as application:
            application.begin()
            for payload in payloads:
                descriptor = MessageDescriptor(format=format, persistence=persistence)
                application.put(STREAM_QUEUE, Message(descriptor, header + payload))
            application.commit()

    def depth(self, queue_name: str) -> int:
        with self.client() as application:
            return application.depth(queue_name)

    def messages(self, queue_name: str) -> list[Message]:
        """What is on a queue, in order; it stays there."""
        with self.client() as application:
            return list(application.browse(queue_name))

    def payloads(self, queue_name: str) -> list[bytes]:
        """What stands behind the last mark of each message of a queue."""
        return [message.body.rpartition(MARK)[2] for message in self.messages(queue_name)]

    def subscribed_topics(self) -> list[str]:
        """The topics of all subscriptions of MQTT sessions: they have their publications on the gateway's queue."""
        with self.client() as application:
            lines = application.mqsc("DISPLAY SUB(*) TOPICSTR DEST").lines
        shown = " ".join(lines).split("AMQ8096I")
        return [
            topic for each in shown if "DEST(RFHBRIDGE.SUBSCRIBER)" in each for topic in _TOPIC_STRING.findall(each)
        ]


class Central(StandInQueueManager, Applications):
    """The queue manager of a target, CENTRAL unless it is told otherwise."""

    def __init__(self, data: Path, *, name: str = "CENTRAL", streams: tuple[str, ...] = ()) -> None:
        super().__init__(data, name=name, streams=streams)

    def set_up(self, mqsc: str) -> None:
        """Defines the queues of a set-up, and takes from the gateway's user all that it does not grant."""
        commands = list(commands_of(mqsc.splitlines()))
        self.control.mqsc(*(command for command in commands if command.startswith("DEFINE QLOCAL")))
        granted: dict[str, set[str]] = defaultdict(set)
        for grant in filter(None, map(_GRANT.match, commands)):
            granted[grant[1]] |= {_AUTHORITIES[word] for word in grant[2].split(",")}
        denied = [
            (name, authority)
            for name, authorities in granted.items()
            for authority in _AUTHORITIES.values()
            if authority not in authorities
        ]
        self.control.deny(*denied)


def mqrfh(text: bytes) -> bytes:
    """An MQRFH around a command (IBM MQ, "MQRFH - Rules and formatting header"): little-endian, UTF-8, padded."""
    text += b" " * (-len(text) % 4)
    length = (32 + len(text)).to_bytes(4, "little")
    return packet("'RFH ' 01000000") + length + packet("22020000 B8040000 '        ' 00000000") + text


def mqrfh_publish(topic: str) -> bytes:
    return mqrfh(b"MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic %s" % topic.encode())


def mqrfh2_publish(topic: str) -> bytes:
    """An MQRFH2 with a Publish (IBM MQ, "MQRFH2 - Rules and formatting header 2"): little-endian, UTF-8, padded."""
    folder = b"<psc><Command>Publish</Command><Topic>%s</Topic></psc>" % topic.encode()
    folder += b" " * (-len(folder) % 4)
    length = (36 + 4 + len(folder)).to_bytes(4, "little")
    fixed = packet("'RFH ' 02000000") + length + packet("22020000 B8040000 '        ' 00000000 B8040000")
    return fixed + len(folder).to_bytes(4, "little") + folder


def by_client(payloads: list[bytes]) -> dict[bytes, list[bytes]]:
    """Payloads `CLIENT NUMBER` by their client, in their order."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for payload in payloads:
        found[payload.partition(b" ")[0]].append(payload)
    return found


def numbered(client: bytes, count: int, start: int = 0) -> Iterator[bytes]:
    return (b"%s %d" % (client, number) for number in range(start, start + count))
