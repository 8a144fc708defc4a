"""Packets that are not done with: what they take in memory until then, all of them together, has a limit.

A client may send a packet of `maximum_packet_bytes` as slowly as it likes, and a SUBSCRIBE whose filters wait to be
carried out takes up to 80 times its bytes. Many that do so would fill the memory, so past
`maximum_unfinished_bytes_in_all` those with most are dropped with their connections.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from gateway.config.limits import ConnectionLimits, Limit
from gateway.limits.refusals import REASONS, Refusals
from gateway.mqtt.reason_codes import ReasonCode


class Sender(Protocol):
    """A connection that is read from."""

    is_open: bool

    @property
    def unfinished_bytes(self) -> int:
        """What the packet takes whose end has not come, or the request that waits to be carried out."""
        ...

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None: ...


class UnfinishedPackets:
    """Looks after the senders; one for all listeners."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals) -> None:
        self._maximum_bytes = limits.maximum_unfinished_bytes_in_all
        self._refusals = refusals

    def look(self, senders: Iterable[Sender]) -> Iterator[bool]:
        """Once a second, in steps: one for each sender, and one, True, where one was closed."""
        unfinished: list[tuple[int, Sender]] = []
        for sender in senders:
            if sender.is_open and (size := sender.unfinished_bytes):
                unfinished.append((size, sender))
            yield False
        in_all = sum(size for size, _ in unfinished)
        if in_all <= self._maximum_bytes:
            return
        for size, sender in sorted(unfinished, key=lambda each: each[0], reverse=True):
            limit = Limit.UNFINISHED_BYTES_IN_ALL
            sender.close(f"{limit.key} is reached", REASONS[limit][0], limit.value.told)
            self._refusals.add(limit)
            in_all -= size
            if in_all <= self._maximum_bytes:
                return
            yield True
