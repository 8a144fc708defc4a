"""Clients and applications that do anything at any time, for gateways that are killed, put back and stormed.

Each is a thread with a seed of its own. What it does next is by chance; when the gateway goes, it waits for the next
one. Its packets are written from the specification, by nobody's encoder.
"""

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mq_adapters import connect as to_queue_manager
from mq_adapters.message import MQMT_DATAGRAM, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from tests.headers import mqrfh

_TOPICS: Final = ("a", "a/b", "a/c", "b/b", "c")
_FILTERS: Final = ("a/+", "a/#", "#", "+/b", "a/b", "c", "$share/g/a/#", "secret")
_OPTIONS: Final = ("", "Pers", "NonPers", "PersAsPub", "PersAsQueue", "NewPubsOnly")
_CONTROL, _STREAM = "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM"
#: How long a client waits for what comes to it, seconds.
_LOOKS_S: Final = 0.01
_PATIENCE_S: Final = 40.0


def text(value: str) -> bytes:
    """A text of MQTT: its length in two bytes, and UTF-8."""
    return len(value).to_bytes(2, "big") + value.encode()


def packet(first: int, body: bytes) -> bytes:
    """A packet; its remaining length has one byte or two."""
    length = len(body)
    return bytes((first, length) if length < 128 else (first, length & 127 | 128, length >> 7)) + body


class _Restless(threading.Thread):
    """Does what it does until it is told to stop; `error` is what ended it, if it was not that."""

    def __init__(self, name: str, seed: object) -> None:
        super().__init__(name=name, daemon=True)
        self.chance = random.Random(f"{name} {seed}")
        self.error: BaseException | None = None
        #: How much it has done.
        self.steps = 0
        self._told = threading.Event()

    def stop(self) -> None:
        self._told.set()

    def run(self) -> None:
        try:
            while not self._told.is_set():
                with suppress(OSError):  # the gateway is down, or going
                    self.live()
                self._told.wait(0.02)
        except BaseException as error:
            self.error = error
            raise

    def live(self) -> None:
        """From one connection to its end."""
        raise NotImplementedError

    def goes_on(self) -> bool:
        self.steps += 1
        return not self._told.is_set()


class Sensor(_Restless):
    """An MQTT client: it connects at any level, with or without a session that stays and a will."""

    def __init__(self, port: int, name: str, seed: object = 0) -> None:
        super().__init__(name, seed)
        self._port = port

    def live(self) -> None:
        chance = self.chance
        level = chance.choice((3, 4, 5))
        self._is_new, self._data, self._identifier = level == 5, b"", 0
        with socket.create_connection(("127.0.0.1", self._port), _PATIENCE_S) as self._socket:
            self._socket.settimeout(_LOOKS_S)
            self._socket.sendall(self._connect(level))
            acts = (self._publish,) * 8 + (self._subscribe,) * 2 + (self._unsubscribe,)
            while self.goes_on() and chance.random() > 0.01:
                chance.choice(acts)()
                self._answer()
            if chance.random() < 0.5:
                self._socket.sendall(b"\xe0\x00")

    def _connect(self, level: int) -> bytes:
        flags, will = self.chance.choice((0, 2)), b""
        if self.chance.random() < 0.3:
            flags |= 4 | self.chance.randrange(3) << 3
            will = (b"\0" if self._is_new else b"") + text(self.chance.choice(_TOPICS)) + text("gone")
        properties = b"\x05\x11\x00\x00\x0e\x10" if self._is_new else b""
        name = text("MQIsdp" if level == 3 else "MQTT")
        return packet(0x10, name + bytes((level, flags, 0, 0)) + properties + text(self.name) + will)

    def _publish(self) -> None:
        qos, retain = self.chance.randrange(3), self.chance.random() < 0.3
        payload = b"" if retain and self.chance.random() < 0.3 else b"%d" % self.steps
        body = text(self.chance.choice(_TOPICS)) + (self._next() if qos else b"") + self._no_properties() + payload
        self._socket.sendall(packet(0x30 | qos << 1 | retain, body))

    def _subscribe(self) -> None:
        filters = self.chance.choices(_FILTERS, k=self.chance.choice((1, 1, 2)))
        entries = b"".join(text(each) + bytes((self.chance.randrange(3),)) for each in filters)
        self._socket.sendall(packet(0x82, self._next() + self._no_properties() + entries))

    def _unsubscribe(self) -> None:
        topic_filter = text(self.chance.choice(_FILTERS))
        self._socket.sendall(packet(0xA2, self._next() + self._no_properties() + topic_filter))

    def _no_properties(self) -> bytes:
        return b"\0" if self._is_new else b""

    def _next(self) -> bytes:
        self._identifier = self._identifier % 65_535 + 1
        return self._identifier.to_bytes(2, "big")

    def _answer(self) -> None:
        """Answers what has come, most of it."""
        with suppress(TimeoutError):
            while True:
                data = self._socket.recv(65_536)
                if not data:
                    raise ConnectionResetError
                self._data += data
                if len(data) < 65_536:
                    break
        for each in self._packets():
            kind, qos = each[0] >> 4, each[0] >> 1 & 3
            if kind == 3 and qos and self.chance.random() < 0.9:
                body = each[2 if each[1] < 128 else 3 :]
                end = 2 + int.from_bytes(body[:2], "big")
                self._socket.sendall(packet(0x40 if qos == 1 else 0x50, body[end : end + 2]))
            elif kind == 5:  # PUBREC
                self._socket.sendall(packet(0x62, each[2:4]))
            elif kind == 6:  # PUBREL
                self._socket.sendall(packet(0x70, each[2:4]))

    def _packets(self) -> Iterator[bytes]:
        while len(self._data) >= 2:
            header = 2 if self._data[1] < 128 else 3
            if len(self._data) < header:
                return
            length = self._data[1] & 127 | (self._data[2] << 7 if header == 3 else 0)
            if len(self._data) < header + length:
                return
            yield self._data[: header + length]
            self._data = self._data[header + length :]


class Application(_Restless):
    """An MQ application: it registers, publishes, puts and gets, alone and in units of work, and defines queues."""

    def __init__(self, data: Path, name: str, seed: object = 0) -> None:
        super().__init__(name, seed)
        self._folder = data
        self._queue = f"Q.{name.upper()}"
        #: A queue that nobody registers for, and no broker serves.
        self._store = f"STORE.{name.upper()}"

    def live(self) -> None:
        try:
            with to_queue_manager(self._folder, may_own=False) as application:
                self._go_on_with(application)
        except QueueManagerError:
            return  # the gateway is down, or has been told to stop

    def _go_on_with(self, application: Any) -> None:
        for queue in (self._queue, self._store):
            with suppress(QueueManagerError):
                application.define(queue)
        acts: tuple[Callable[[Any], None], ...] = (self._publish, self._register, self._put, self._get, self._alter)
        while self.goes_on():
            chosen = self.chance.choices(acts, (6, 2, 4, 6, 1), k=self.chance.choice((1, 1, 3)))
            is_unit = len(chosen) > 1
            if is_unit:
                application.begin()
            for act in chosen:
                act(application)
            if is_unit:
                self.chance.choice((application.commit, application.commit, application.back_out))()
            self._told.wait(_LOOKS_S)

    def _command(self, application: Any, queue: str, command: str) -> None:
        descriptor = MessageDescriptor(
            msg_type=MQMT_DATAGRAM, format=b"MQHRF   ", persistence=self.chance.choice((0, 1))
        )
        application.put(queue, Message(descriptor, mqrfh(command) + b"|%d" % self.steps))

    def _publish(self, application: Any) -> None:
        option = self.chance.choice(("", "MQPSPubOpts RetainPub "))
        verb = self.chance.choice(("Publish", "Publish", "Publish", "DeletePub"))
        option = option if verb == "Publish" else ""
        self._command(application, _STREAM, f"MQPSCommand {verb} {option}MQPSTopic {self.chance.choice(_TOPICS)}")

    def _register(self, application: Any) -> None:
        verb = self.chance.choice(("RegSub", "RegSub", "DeregSub", "ReqUpdate"))
        option = self.chance.choice(_OPTIONS)
        options = f"MQPSRegOpts {option} " if option and verb == "RegSub" else ""
        topic = self.chance.choice((*_TOPICS, "a/*", "*"))
        self._command(application, _CONTROL, f"MQPSCommand {verb} {options}MQPSQName {self._queue} MQPSTopic {topic}")

    def _put(self, application: Any) -> None:
        persistence, expiry = self.chance.choice((0, 1, 2)), self.chance.choice((-1, -1, -1, 1))
        descriptor = MessageDescriptor(msg_type=MQMT_DATAGRAM, persistence=persistence, expiry=expiry)
        application.put(self._store, Message(descriptor, b"|%d" % self.steps))

    def _get(self, application: Any) -> None:
        with suppress(QueueManagerError):
            application.get(self.chance.choice((self._queue, self._store)), wait_s=0)

    def _alter(self, application: Any) -> None:
        if self.chance.random() < 0.3:
            with suppress(QueueManagerError):
                application.clear(self._store)
        else:
            application.mqsc(f"ALTER QLOCAL({self._queue}) DEFPSIST({self.chance.choice(('YES', 'NO'))})")


def end(*everyone: _Restless) -> None:
    """Stops them, and sees that nothing else has ended any of them."""
    for each in everyone:
        each.stop()
    for each in everyone:
        each.join(_PATIENCE_S)
        assert not each.is_alive(), f"{each.name} does not end"
        assert each.error is None, f"{each.name}: {each.error!r}"
