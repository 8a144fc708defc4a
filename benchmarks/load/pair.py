"""Load generator: one publisher and one subscriber, both connected, a window of messages under way between them.

At QoS 0 the window counts what the subscriber has not received yet, at QoS 1 and 2 what the server has not finished
acknowledging. Packets are told apart by their first byte; those of one type all have one length.
"""

import gc
import select
import socket
import time
from typing import Final

from benchmarks.load.latencies import Latencies, percentiles_ms
from benchmarks.load.task import Outcome, Task, serve_task
from benchmarks.load.wire import ANSWER_WAIT_S, BenchmarkError, connect, publish_ring, subscribe
from gateway.mqtt.levels import PacketType

_READ_BYTES: Final = 65_536
_ANSWER_BYTES: Final = 4
_PUBACK: Final = PacketType.PUBACK << 4
_PUBREC: Final = PacketType.PUBREC << 4
_PUBREL: Final = PacketType.PUBREL << 4 | 2
_PUBCOMP: Final = PacketType.PUBCOMP << 4
_LENGTH_2: Final = 2
_PUBLISH: Final = PacketType.PUBLISH << 4
#: DUP, which a server may set: the packet is the same message all the same.
_WITHOUT_DUPLICATE: Final = 0xF7

#: What is sent for each packet that comes in, by first byte: PUBLISH of each QoS, PUBREC and PUBREL.
_ANSWERS: Final = {_PUBLISH | 2: _PUBACK, _PUBLISH | 4: _PUBREC, _PUBREC: _PUBREL, _PUBREL: _PUBCOMP}


class Side:
    """One connection of the pair: answers what comes in, and counts it by first byte."""

    __slots__ = ("_left", "_publish_bytes", "client", "received")

    def __init__(self, client: socket.socket, publish_bytes: int) -> None:
        self.client = client
        self._publish_bytes = publish_bytes
        self._left = b""
        self.received = dict.fromkeys((_PUBLISH, _PUBLISH | 2, _PUBLISH | 4, _PUBACK, _PUBREC, _PUBREL, _PUBCOMP), 0)

    def receive(self, identifier_at: int) -> None:
        """Reads once from the readable socket; `identifier_at` is the offset of the identifier in a PUBLISH."""
        data = self._left + self.client.recv(_READ_BYTES)
        if len(data) == len(self._left):
            raise BenchmarkError("the server closed a connection")
        received, answers, position, size = self.received, bytearray(), 0, len(data)
        while position < size:
            first = data[position]
            is_publish = first & 0xF0 == _PUBLISH
            length = self._publish_bytes if is_publish else _ANSWER_BYTES
            if position + length > size:
                break
            first = first & _WITHOUT_DUPLICATE if is_publish else first
            received[first] += 1
            answer = _ANSWERS.get(first)
            if answer is not None:
                at = position + (identifier_at if is_publish else 2)
                answers += bytes((answer, _LENGTH_2, data[at], data[at + 1]))
            position += length
        self._left = data[position:]
        if answers:
            self.client.sendall(answers)


class Pair:
    """The two sides, and the window between them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ring = publish_ring(task.topic, task.payload_bytes, task.qos, task.window)
        self._identifier_at = self._ring.packet_bytes - task.payload_bytes - 2
        self.subscriber = Side(connect(task.port, "pair-subscriber"), self._ring.packet_bytes)
        subscribe(self.subscriber.client, task.topic, task.qos)
        self.publisher = Side(connect(task.port, "pair-publisher"), self._ring.packet_bytes)
        self._sides = {side.client.fileno(): side for side in (self.subscriber, self.publisher)}
        self._poller = select.epoll()
        for descriptor in self._sides:
            self._poller.register(descriptor, select.EPOLLIN)
        self.latencies = Latencies()
        self.sent = 0

    @property
    def delivered(self) -> int:
        """Messages that the subscriber has received."""
        return self.subscriber.received[_PUBLISH | self._task.qos << 1]

    @property
    def finished(self) -> int:
        """Messages that have left the publisher's window."""
        done = {0: self.subscriber.received[_PUBLISH], 1: self.publisher.received[_PUBACK]}
        return done.get(self._task.qos, self.publisher.received[_PUBCOMP])

    def publish(self) -> None:
        """Fills the window."""
        count = self._task.window - (self.sent - self.finished)
        if count > 0:
            self.publisher.client.sendall(self._ring.take(count))
            self.latencies.sent(time.perf_counter(), count)
            self.sent += count

    def receive(self) -> None:
        """Waits until something comes in, and answers it."""
        ready = self._poller.poll(ANSWER_WAIT_S)
        if not ready:
            raise BenchmarkError(f"{self.delivered} of {self.sent} messages came, then none for {ANSWER_WAIT_S:.0f} s")
        before = self.delivered
        for descriptor, _ in ready:
            self._sides[descriptor].receive(self._identifier_at)
        self.latencies.answered(time.perf_counter(), self.delivered - before)


def publish_to_subscriber(task: Task) -> Outcome:
    """Publishes for `task.seconds` and waits until everything is delivered and acknowledged."""
    pair = Pair(task)
    gc.disable()
    started = time.perf_counter()
    while not pair.sent or time.perf_counter() - started < task.seconds:
        pair.publish()
        pair.receive()
    while pair.delivered < pair.sent or pair.finished < pair.sent:
        pair.receive()
    elapsed_s = time.perf_counter() - started
    p50_ms, p99_ms = percentiles_ms(pair.latencies.samples, (0.5, 0.99))
    return Outcome(
        messages=pair.delivered, elapsed_s=elapsed_s, p50_ms=p50_ms, p99_ms=p99_ms, cpu_s=time.process_time()
    )


if __name__ == "__main__":
    serve_task(publish_to_subscriber)
