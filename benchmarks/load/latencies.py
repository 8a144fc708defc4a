"""Latencies of very many messages: (seconds, number of messages) as they come in, percentiles at the end."""

from collections import deque


class Latencies:
    """Latencies of one connection whose messages are acknowledged in the order of sending."""

    __slots__ = ("_sent", "samples")

    def __init__(self) -> None:
        self._sent: deque[tuple[float, int]] = deque()
        self.samples: list[tuple[float, int]] = []

    def sent(self, at_s: float, count: int) -> None:
        self._sent.append((at_s, count))

    def answered(self, at_s: float, count: int) -> None:
        """The next `count` messages were acknowledged."""
        sent, add = self._sent, self.samples.append
        while count:
            sent_s, waiting = sent[0]
            if waiting > count:
                sent[0] = (sent_s, waiting - count)
                add((at_s - sent_s, count))
                return
            sent.popleft()
            add((at_s - sent_s, waiting))
            count -= waiting


def percentiles_ms(samples: list[tuple[float, int]], wanted: tuple[float, ...]) -> list[float]:
    """The latency in ms below which each wanted share (0..1) of the messages lies; 0 where there are none."""
    ordered = sorted(samples)
    total = sum(count for _, count in ordered)
    found: list[float] = []
    for share in wanted:
        passed, latency_s = 0, 0.0
        for latency_s, count in ordered:  # noqa: B007  # the last value of the loop is the result
            passed += count
            if passed >= share * total:
                break
        found.append(latency_s * 1_000)
    return found
