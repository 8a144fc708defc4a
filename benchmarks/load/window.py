"""Load generator: QoS 1 PUBLISHes from many connections, each with a full window in flight, as fast as PUBACKs come.

One turn is one recv and one send: what was acknowledged is counted by its bytes and compared whole with what must come,
and as many PUBLISHes follow from a ring of finished packets.
"""

import gc
import select
import socket
import time
from typing import Final

from benchmarks.load.latencies import Latencies, percentiles_ms
from benchmarks.load.task import Outcome, Task, serve_task
from benchmarks.load.wire import ANSWER_WAIT_S, BenchmarkError, connect, puback_ring, publish_ring

_READ_BYTES: Final = 65_536
_PUBACK_BYTES: Final = 4


class WindowPublisher:
    """One connection and its window."""

    __slots__ = ("_acknowledgements", "_client", "_left", "_publishes", "in_flight", "latencies")

    def __init__(self, client: socket.socket, topic: str, task: Task) -> None:
        self._client = client
        self._publishes = publish_ring(topic, task.payload_bytes, 1, task.window)
        self._acknowledgements = puback_ring(task.window)
        self._left = b""
        self.in_flight = 0
        self.latencies = Latencies()

    def publish(self, count: int, due_s: float) -> None:
        """Sends the next PUBLISHes. The socket blocks, which cannot last: the server never waits for us to read."""
        self.latencies.sent(due_s, count)
        self.in_flight += count
        self._client.sendall(self._publishes.take(count))

    def receive(self) -> int:
        """Reads PUBACKs from the readable socket; returns their number. BenchmarkError for anything else."""
        data = self._client.recv(_READ_BYTES)
        if not data:
            raise BenchmarkError("the server closed a publisher's connection")
        if self._left:
            data = self._left + data
        count = len(data) // _PUBACK_BYTES
        whole = count * _PUBACK_BYTES
        self._left = data[whole:]
        if self._acknowledgements.take(count) != data[:whole]:
            raise BenchmarkError("the server answered with something else than the PUBACKs in their order")
        self.in_flight -= count
        self.latencies.answered(time.perf_counter(), count)
        return count


def publish_at_full_window(task: Task) -> Outcome:
    """Publishes for `task.seconds` and waits for the rest of the PUBACKs; a message without one raises."""
    publishers: dict[int, WindowPublisher] = {}
    poller = select.epoll()
    for number in range(task.connections):
        client = connect(task.port, f"publisher-{number}")
        publishers[client.fileno()] = WindowPublisher(client, f"{task.topic}/{number}", task)
        poller.register(client, select.EPOLLIN)
    gc.disable()
    started = time.perf_counter()
    deadline = started + task.seconds
    messages = 0
    for publisher in publishers.values():
        publisher.publish(task.window, started)
    while any(publisher.in_flight for publisher in publishers.values()):
        ready = poller.poll(ANSWER_WAIT_S)
        if not ready:
            raise BenchmarkError(f"no PUBACK came for {ANSWER_WAIT_S:.0f} s")
        for descriptor, _ in ready:
            publisher = publishers[descriptor]
            count = publisher.receive()
            messages += count
            now = time.perf_counter()
            if now < deadline:
                publisher.publish(count, now)
    elapsed_s = time.perf_counter() - started
    samples = [sample for publisher in publishers.values() for sample in publisher.latencies.samples]
    p50_ms, p99_ms = percentiles_ms(samples, (0.5, 0.99))
    return Outcome(messages=messages, elapsed_s=elapsed_s, p50_ms=p50_ms, p99_ms=p99_ms, cpu_s=time.process_time())


if __name__ == "__main__":
    serve_task(publish_at_full_window)
