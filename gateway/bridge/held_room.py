"""Room for what sessions keep in memory: QoS 2 messages between PUBLISH and PUBREL, and wills.

A message was acknowledged with PUBREC, and a will with CONNACK, so neither is ever given up; past the limit no more is
taken. A client that holds nothing may still hold one small message, so that those who fill the room keep nobody else
from publishing at QoS 2; and a small will. That ends at twice the limit: sessions outlive their connections, and one
client that comes under ever new identifiers would otherwise hold a small one in each of `maximum_sessions`.
"""

from typing import Final

from gateway.bridge.sessions import Sessions

#: What a held QoS 2 PUBLISH costs beside its payload, in bytes (measured: 560 with a short topic).
OVERHEAD_BYTES: Final = 600
#: What a client may hold past the limit, bytes: 8,192 of them together as much as the limit is by default.
SMALL_BYTES: Final = 65_536


class HeldRoom:
    """Gives room away. Call `tick` several times a second."""

    def __init__(self, maximum_bytes: int, sessions: Sessions) -> None:
        self._maximum_bytes = maximum_bytes
        self._sessions = sessions
        #: What was held when it was summed up, and all that was taken since: never less than what is held.
        self._at_most_bytes = maximum_bytes
        self._may_sum = True

    def tick(self) -> None:
        """It may be summed up again: there may be many sessions."""
        self._may_sum = True

    def takes(self, size_bytes: int, *, is_first: bool) -> bool:
        """Whether a session may hold that much more; then it counts. `is_first`: it holds nothing of the kind."""
        size = size_bytes + OVERHEAD_BYTES
        if self._at_most_bytes + size > self._maximum_bytes and self._may_sum:
            self._may_sum = False
            held = (each.held_bytes + OVERHEAD_BYTES * len(each.held) + each.will_bytes for each in self._sessions)
            self._at_most_bytes = sum(held)
        is_small = is_first and size <= SMALL_BYTES
        if self._at_most_bytes + size > self._maximum_bytes * (1 + is_small):
            return False
        self._at_most_bytes += size
        return True
