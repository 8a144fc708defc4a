"""Load generator: QoS 1 PUBLISHes at a fixed rate, whatever the server does.

The connections whose turn it is send one PUBLISH each. The generator waits for PUBACKs until the next PUBLISH is due.
Latency counts from the moment a message was due, not from when it was sent, so that a server that stands still is
charged for all that waited meanwhile. It is charged for the generator's own lateness too, which `late_p50_ms` of the
outcome tells: about 0.1 ms, because a sleep ends some 50 us late (prctl(2), PR_SET_TIMERSLACK).
"""

import gc
import select
import time
from typing import Final

from benchmarks.load.latencies import percentiles_ms
from benchmarks.load.task import Outcome, Task, serve_task
from benchmarks.load.window import WindowPublisher
from benchmarks.load.wire import ANSWER_WAIT_S, BenchmarkError, connect

#: A generator that may not send anything looks again after this time, in seconds.
_LONGEST_WAIT_S: Final = 1.0


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
    late: list[tuple[float, int]] = []
    started = time.perf_counter()
    last_answer = held_until = started
    while messages < total:
        now = time.perf_counter()
        due = min(total, int((now - started) * task.rate) + 1)
        is_held = False
        while sent < due:
            publisher = publishers[sent % task.connections]
            if is_held := publisher.in_flight == task.window:
                held_until = now
                break
            due_s = started + sent / task.rate
            publisher.publish(1, due_s)
            late.append((time.perf_counter() - max(due_s, held_until), 1))
            sent += 1
        waits_s = _LONGEST_WAIT_S if is_held or sent == total else started + sent / task.rate - time.perf_counter()
        if select.select((poller,), (), (), max(waits_s, 0.0))[0]:  # an epoll by itself waits whole milliseconds
            for descriptor, _ in poller.poll(0):
                messages += by_descriptor[descriptor].receive()
            last_answer = now
        if now - last_answer > ANSWER_WAIT_S:
            raise BenchmarkError(f"no PUBACK came for {ANSWER_WAIT_S:.0f} s")
    elapsed_s = time.perf_counter() - started
    samples = [sample for publisher in publishers for sample in publisher.latencies.samples]
    p50_ms, p99_ms = percentiles_ms(samples, (0.5, 0.99))
    return Outcome(
        messages=messages,
        elapsed_s=elapsed_s,
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        cpu_s=time.process_time(),
        late_p50_ms=percentiles_ms(late, (0.5,))[0],
    )


if __name__ == "__main__":
    serve_task(publish_at_fixed_rate)
