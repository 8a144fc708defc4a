"""Clients that do not take what waits for them: each after a while, and all of them together when it is too much.

What waits for a client is written to its socket, and stays in memory until the client takes it. One that takes nothing
for `slow_reader_timeout_s` is disconnected; its session stays, and what it had not acknowledged is sent again when it
comes back. Where more than `maximum_unsent_bytes_in_all` waits, those that have taken nothing since the last look are
disconnected before, the largest first, so that a thousand of them cannot fill the memory in that time.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from gateway.config.limits import ConnectionLimits, Limit
from gateway.limits.refusals import REASONS, Refusals
from gateway.mqtt.reason_codes import ReasonCode


class Reader(Protocol):
    """A connection that is written to. `taken_bytes` and `taken_s` are kept here: what its peer took, and when last."""

    is_open: bool
    sent_bytes: int
    taken_bytes: int
    taken_s: float

    @property
    def unsent_bytes(self) -> int:
        """What of `sent_bytes` the peer has not taken."""
        ...

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None: ...


class SlowReaders:
    """Looks after the readers; one for all listeners."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals) -> None:
        self._timeout_s = limits.slow_reader_timeout_s
        self._maximum_bytes = limits.maximum_unsent_bytes_in_all
        self._refusals = refusals

    def look(self, readers: Iterable[Reader], now_s: float) -> Iterator[bool]:
        """Once a second, in steps: one for each reader, and one, True, where one was closed.

        `now_s`: a clock that never goes back.
        """
        unsent_in_all = 0
        stalled: list[tuple[int, Reader]] = []
        for reader in readers:
            unsent_bytes = reader.unsent_bytes
            taken_bytes = reader.sent_bytes - unsent_bytes
            if not unsent_bytes or taken_bytes > reader.taken_bytes:
                reader.taken_bytes, reader.taken_s = taken_bytes, now_s
            elif reader.is_open:
                stalled.append((unsent_bytes, reader))
            unsent_in_all += unsent_bytes
            yield False
        for unsent_bytes, reader in sorted(stalled, key=lambda each: each[0], reverse=True):
            if now_s > reader.taken_s + self._timeout_s:
                self._close(reader, Limit.SLOW_READER)
            elif unsent_in_all > self._maximum_bytes:
                self._close(reader, Limit.UNSENT_BYTES_IN_ALL)
            else:
                continue
            unsent_in_all -= unsent_bytes
            yield True

    def _close(self, reader: Reader, limit: Limit) -> None:
        self._refusals.add(limit)
        reader.close(f"{limit.key} is reached", REASONS[limit][0], limit.value.told)
