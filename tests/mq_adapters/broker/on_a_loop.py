"""A station whose broker has an event loop: what is retained is sent a little in each turn."""

from collections import deque

from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.system_queues import DEFAULT_STREAM

#: The most copies of a unit of work here.
UNIT = 15


class OnALoop:
    """What makes a station one whose broker has an event loop: `turn` carries out what it was asked to do soon."""

    def open(self) -> None:
        self.calls = deque()
        self.engine = Engine.open(self.folder, name="QM1", now_us=lambda: self.now_us)
        for name in ("OLD", "NEW", "REPLY"):
            self.engine.ensure(name, "")
        self.broker = Broker(
            self.engine, listener=self.listener, rules=self.rules, call_soon=lambda call: self.calls.append(call)
        )
        self.broker.attach()

    def turn(self) -> int:
        """One turn of the loop; how many copies it made."""
        before = len(self.listener.copies)
        for _ in range(len(self.calls)):
            self.calls.popleft()()
        return len(self.listener.copies) - before

    def run(self) -> None:
        while self.calls:
            self.turn()

    def retain(self, topic: str, body: bytes = b"old", **fields: object) -> None:
        header = f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{topic}</Topic></psc>"
        self.publish(header, body, **fields)

    def retain_all(self, topics: list[str], body: bytes = b"old") -> None:
        """In one commit."""
        unit = self.engine.begin()
        for topic in topics:
            header = f"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>{topic}</Topic></psc>"
            message = Message(MessageDescriptor(format=b"MQHRF2  ", persistence=1), self.mqrfh2(header, body=body))
            self.engine.put(unit, self.engine.queue(DEFAULT_STREAM), message)
        self.engine.submit(unit)

    def live(self, topic: str, body: bytes = b"new") -> None:
        self.publish(f"<psc><Command>Publish</Command><Topic>{topic}</Topic></psc>", body)

    def delete(self, topic: str) -> None:
        self.publish(f"<psc><Command>DeletePub</Command><Topic>{topic}</Topic></psc>")

    def register(
        self, topic: str, correl_id: int = 1, command: str = "RegSub", options: str = "", **fields: object
    ) -> Message:
        options = f"<RegOpt>CorrelAsId</RegOpt>{options}"
        return self.control(
            f"<psc><Command>{command}</Command>{options}<QName>NEW</QName><Topic>{topic}</Topic></psc>",
            correl_id=correl_id.to_bytes(24, "big"),
            **fields,
        )

    def subscribe(self, topic: str, correl_id: int = 1) -> Message:
        """A RegSub of the gateway for an MQTT session."""
        return self.register(topic, correl_id, origin=b"a session")

    def run_until_copies(self, copies: int = 1) -> None:
        """Turns until so many copies have been made in all."""
        while len(self.listener.copies) < copies:
            self.turn()

    def received(self, correl_id: int = 1) -> list[tuple[str, bytes]]:
        """Topic and body of each copy for a subscriber since the last call."""
        found = []
        queue, wanted = self.engine.queue("NEW"), correl_id.to_bytes(24, "big")
        while (message := self.engine.take(queue, wanted)) is not None:
            unit = self.engine.begin()
            unit.remove(queue, message, Departure.TAKEN)
            self.engine.submit(unit)
            head, _, body = message.body.rpartition(b">")
            found.append((head.partition(b"<Topic>")[2].partition(b"</Topic>")[0].decode(), body.strip()))
        return found

    def answers(self) -> list[bytes]:
        return [answer.partition(b"<Completion>")[2].partition(b"<")[0] for answer in self.bodies("REPLY")]
