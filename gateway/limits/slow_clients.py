"""Slow clients: bytes wait in memory for them, in both directions. Past a limit the gateway disconnects them.

A slow reader leaves sent bytes in the gateway's memory until it takes them. A client that takes no bytes for
`slow_reader_timeout_s` is disconnected. Its session stays, and unacknowledged messages are sent again when the client
comes back. When more than `maximum_unsent_bytes_in_all` waits, the clients that have taken no bytes since the last look
are disconnected earlier, the largest first. So a thousand of them cannot fill the memory in that time.

A slow sender does not finish its packet. It may send a packet of `maximum_packet_bytes` as slowly as it likes. A
SUBSCRIBE whose filters wait to be carried out takes up to 80 times its bytes. When more than
`maximum_unfinished_bytes_in_all` waits, the clients with most are disconnected.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Protocol

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import ConnectionLimits
from gateway.limits.refusals import REASONS, Refusals
from gateway.mqtt.reason_codes import ReasonCode


class Client(Protocol):
    """A connection that can be closed."""

    is_open: bool

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None: ...


class Reader(Client, Protocol):
    """A connection that is written to. `SlowReaders` notes in `taken_bytes` and `taken_s` how its peer takes bytes."""

    sent_bytes: int
    taken_bytes: int
    taken_s: float

    @property
    def unsent_bytes(self) -> int:
        """Bytes of `sent_bytes` that the peer has not taken."""
        ...


class Sender(Client, Protocol):
    """A connection that is read from."""

    @property
    def unfinished_bytes(self) -> int:
        """Memory of an incomplete packet, or of a request that waits to be carried out."""
        ...


class SlowReaders:
    """Looks after the readers. All listeners share one."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals) -> None:
        self._timeout_s = limits.slow_reader_timeout_s
        self._maximum_bytes = limits.maximum_unsent_bytes_in_all
        self._refusals = refusals

    def look(self, readers: Iterable[Reader], now_s: float) -> Iterator[bool]:
        """Once a second, in steps. Each reader is a step, and each closed reader is a further step, True.

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
        for unsent_bytes, reader in sorted(stalled, key=itemgetter(0), reverse=True):
            if now_s > reader.taken_s + self._timeout_s:
                _close(reader, Limit.SLOW_READER, self._refusals)
            elif unsent_in_all > self._maximum_bytes:
                _close(reader, Limit.UNSENT_BYTES_IN_ALL, self._refusals)
            else:
                continue
            unsent_in_all -= unsent_bytes
            yield True


class SlowSenders:
    """Looks after the senders. All listeners share one."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals) -> None:
        self._maximum_bytes = limits.maximum_unfinished_bytes_in_all
        self._refusals = refusals

    def look(self, senders: Iterable[Sender]) -> Iterator[bool]:
        """Once a second, in steps. Each sender is a step, and each closed sender is a further step, True."""
        unfinished: list[tuple[int, Sender]] = []
        for sender in senders:
            if sender.is_open and (size := sender.unfinished_bytes):
                unfinished.append((size, sender))
            yield False
        in_all = sum(size for size, _ in unfinished)
        for size, sender in sorted(unfinished, key=itemgetter(0), reverse=True):
            if in_all <= self._maximum_bytes:
                return
            _close(sender, Limit.UNFINISHED_BYTES_IN_ALL, self._refusals)
            in_all -= size
            yield True


def _close(client: Client, limit: Limit, refusals: Refusals) -> None:
    refusals.add(limit)
    client.close(f"{limit.key} is reached", REASONS[limit][0], limit.value.told)
