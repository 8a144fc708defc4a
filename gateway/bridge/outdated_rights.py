"""Other rules hold (access.operator_files): every session's rights are decided anew, when they are needed.

What waits for a group that shares a subscription goes to the member that may have it again. Some sessions take the
rules up at once, and the others in the next turns of the event loop.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.bridge.sessions import ClientSession, Sessions

#: Sessions that take up other rules in one turn of the event loop, at a microsecond each.
_AT_ONCE: Final = 500


class OutdatedRights:
    """The sessions that have not taken up yet that other rules hold."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        deliver: Callable[[ClientSession], None],
        goes_on: Callable[[], bool],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`deliver`: what waits for a session may be its again; `goes_on`: False once the gateway stops."""
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
