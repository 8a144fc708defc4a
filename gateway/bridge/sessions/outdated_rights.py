"""Outdated rights: the access list has changed (access.operator_files), and each session forgets its old rights.

Its new rights are decided when they are needed, and messages that it may now receive are delivered. A few hundred
sessions follow at once, and the others in the next turns of the event loop.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.bridge.sessions.sessions import ClientSession, Sessions

#: Sessions that forget their rights in one turn of the event loop, at a microsecond each.
_AT_ONCE: Final = 500


class OutdatedRights:
    """The sessions that still have rights by the old rules."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        deliver: Callable[[ClientSession], None],
        goes_on: Callable[[], bool],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`deliver` delivers what a session may now receive. `goes_on`: False once the gateway stops."""
        self._sessions = sessions
        self._deliver = deliver
        self._goes_on = goes_on
        self._call_soon = call_soon
        self._outdated: deque[ClientSession] = deque()

    def begin(self) -> None:
        """All sessions are outdated."""
        is_under_way, self._outdated = bool(self._outdated), deque(self._sessions)
        if not is_under_way:
            self._take_up()

    def _take_up(self) -> None:
        some = [self._outdated.popleft() for _ in range(min(_AT_ONCE, len(self._outdated)))]
        for session in some:
            session.forget_access()
        for session in some:
            self._deliver(session)
        if self._outdated and self._goes_on():
            self._call_soon(self._take_up)
