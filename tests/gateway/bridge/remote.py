"""A target that is another embedded queue manager with a broker, and a channel that is a method call."""

from pathlib import Path

from gateway.audit_trail.notes.notes import BrokerNotes
from gateway.channels.target import Target
from mq_adapters.broker.broker import Broker, BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import MQRO_NAN, Message, MessageDescriptor
from mq_adapters.transmission import Transmission, read_transmission
from tests.gateway.bridge.conftest import REPLY_QUEUE, SUBSCRIBER_QUEUE, World

#: Tenths of a second that a copy of what was delivered is kept.
GRACE_TENTHS = 600


def transmissions(world: World, target: str = "QM1") -> list[Transmission]:
    """What waits for a target, in order."""
    queue = f"RFHBRIDGE.XMIT.{target}.0"
    return [read_transmission(message, now_us=world.now_us) for message in world.messages(queue)]


def headers(world: World, target: str = "QM1") -> list[str]:
    """The headers that wait for a target, as text, from the command on."""
    bodies = [each.message.body.decode("latin-1") for each in transmissions(world, target)]
    return [body[body.index("<psc>") if "<psc>" in body else 32 :] for body in bodies]


class Remote:
    """The queue manager of target QM1, with its broker, and everything that a channel does in between."""

    def __init__(self, folder: Path, name: str = "QM1", *, dialect: str = "mq6", inputs: tuple[str, ...] = ()) -> None:
        self.name = name
        self.engine = Engine.open(folder, name=name)
        self.engine.ensure(SUBSCRIBER_QUEUE, "")
        self.engine.ensure(REPLY_QUEUE, "")
        for queue in inputs:
            self.engine.ensure(queue, "")
        rules = BrokerRules(dialect=BrokerDialect(dialect), input_queues=inputs)
        Broker(self.engine, listener=BrokerNotes(self.engine.now_us), rules=rules).attach()

    def connect(self, world: World, identifier: str = "QM1_2026-11-20") -> None:
        """The channels have their connections."""
        target = world.targets["QM1"]
        target.heard_from(self.name, identifier, {})
        target.is_connected = True
        world.run()

    def carry(self, world: World) -> None:
        """Takes what waits to the queue manager and back, until nothing is left."""
        target = world.targets["QM1"]
        moved = 1
        while moved:
            moved = sum(self._deliver(world, target, queue) for queue in target.transmission_queues)
            moved += sum(self._fetch(world, name) for name in (SUBSCRIBER_QUEUE, REPLY_QUEUE))
            world.run()

    def _deliver(self, world: World, target: Target, queue: Queue) -> int:
        count = 0
        while (message := world.engine.take(queue)) is not None:
            sent = read_transmission(message, now_us=world.now_us)
            self.put(sent.queue_name, sent.message)
            unit = world.engine.begin()
            unit.remove(queue, message, Departure.TAKEN)
            if sent.message.is_persistent and sent.message.descriptor.report & MQRO_NAN:
                kept = Message(sent.message.descriptor.replace(expiry=GRACE_TENTHS), sent.message.body, message.origin)
                world.engine.put(unit, target.sent_queue, kept)
            world.engine.submit(unit)
            count += 1
        world.run()
        return count

    def _fetch(self, world: World, queue_name: str) -> int:
        """What applications get has its MsgId, and nothing of where it came from."""
        queue, count = self.engine.queue(queue_name), 0
        while (message := self.engine.take(queue)) is not None:
            unit = self.engine.begin()
            unit.remove(queue, message, Departure.TAKEN)
            self.engine.submit(unit)
            unit = world.engine.begin()
            arrived = Message(message.descriptor.replace(msg_id=message.msg_id), message.body)
            world.engine.put(unit, world.engine.queue(queue_name), arrived)
            world.engine.submit(unit)
            count += 1
        world.run()
        return count

    def put(self, queue_name: str, message: Message) -> None:
        """An application puts a message there; ReplyToQMgr is filled in, as every queue manager does."""
        descriptor = message.descriptor
        if descriptor.reply_to_q and not descriptor.reply_to_q_mgr:
            descriptor = descriptor.replace(reply_to_q_mgr=self.name)
        unit = self.engine.begin()
        self.engine.put(unit, self.engine.queue(queue_name), Message(descriptor, message.body))
        self.engine.submit(unit)

    def publish(self, body: bytes, queue_name: str = "SYSTEM.BROKER.DEFAULT.STREAM", *, persistence: int = 1) -> None:
        """An application publishes there, in MQRFH2."""
        self.put(queue_name, Message(MessageDescriptor(format=b"MQHRF2  ", persistence=persistence), body))

    def close(self) -> None:
        self.engine.close()
