"""Room for what all clients hold at QoS 2 between PUBLISH and PUBREL: it is in memory until its PUBREL comes.

It was acknowledged with PUBREC, so it is never given up; past the limit no more is taken. A client that holds nothing
may always hold one small message, so that those who fill the room keep nobody else from publishing at QoS 2.
"""

from typing import Final

from gateway.bridge.sessions import ClientSession, Sessions

#: What a held QoS 2 PUBLISH costs beside its payload, in bytes (measured: 560 with a short topic).
OVERHEAD_BYTES: Final = 600
#: What a client may hold past the limit, bytes: 10,000 of them together as much as the limit is by default.
ALWAYS_BYTES: Final = 65_536


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

    def takes(self, session: ClientSession, packet_bytes: int) -> bool:
        """Whether a session may hold one more; then it counts."""
        size = packet_bytes + OVERHEAD_BYTES
        if self._at_most_bytes + size > self._maximum_bytes and self._may_sum:
            self._may_sum = False
            self._at_most_bytes = sum(each.held_bytes + OVERHEAD_BYTES * len(each.held) for each in self._sessions)
        if self._at_most_bytes + size > self._maximum_bytes and (session.held or size > ALWAYS_BYTES):
            return False
        self._at_most_bytes += size
        return True
