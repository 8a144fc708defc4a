"""Load generator: QoS 1 PUBLISHes at a fixed rate, whatever the server does.

Every millisecond the connections whose turn it is send one PUBLISH each. Latency counts from the moment a message was
due, not from when it was sent, so that a server that stands still is charged for all that waited meanwhile.
"""

import gc
import select
import time
from typing import Final

from benchmarks.latencies import percentiles_ms
from benchmarks.load import Outcome, Task, serve_task
from benchmarks.window import WindowPublisher
from benchmarks.wire import ANSWER_WAIT_S, BenchmarkError, connect

_TICK_S: Final = 0.001


def publish_at_fixed_rate(task: Task) -> Outcome:
    """Publishes `task.rate` messages a second for `task.seconds`, and waits for the rest of the PUBACKs."""
    publishers: list[WindowPublisher] = []
    by_descriptor: dict[int, WindowPublisher] = {}
    poller = select.epoll()
    for number in range(task.connections):
        client = connect(task.port, f"publisher-{number}")
        publisher = WindowPublisher(client, f"{task.topic}/{number}", task)
        publishers.append(publisher)
        by_descriptor[client.fileno()] = publisher
        poller.register(client, select.EPOLLIN)
    gc.disable()
    total = round(task.rate * task.seconds)
    sent = messages = 0
    started = time.perf_counter()
    last_answer = started
    while messages < total:
        now = time.perf_counter()
        due = min(total, int((now - started) * task.rate) + 1)
        while sent < due:
            publisher = publishers[sent % task.connections]
            if publisher.in_flight == task.window:
                break
            publisher.publish(1, started + sent / task.rate)
            sent += 1
        for descriptor, _ in poller.poll(_TICK_S):
            messages += by_descriptor[descriptor].receive()
            last_answer = now
        if now - last_answer > ANSWER_WAIT_S:
            raise BenchmarkError(f"no PUBACK came for {ANSWER_WAIT_S:.0f} s")
    elapsed_s = time.perf_counter() - started
    samples = [sample for publisher in publishers for sample in publisher.latencies.samples]
    p50_ms, p99_ms = percentiles_ms(samples, (0.5, 0.99))
    return Outcome(messages=messages, elapsed_s=elapsed_s, p50_ms=p50_ms, p99_ms=p99_ms, cpu_s=time.process_time())


if __name__ == "__main__":
    serve_task(publish_at_fixed_rate)
