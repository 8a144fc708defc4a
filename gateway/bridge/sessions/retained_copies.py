"""Retained copies: a SUBSCRIBE of a few bytes makes a whole copy of each retained message that its filter matches.

The copies are charged to the session that asks for them, before they are put (gateway/limits/budgets.py). A session may
always have one copy of everything that is retained: a client that subscribes to `#` gets all of it. Only what waits for
it beyond that counts. Past the limit the SUBSCRIBE is refused, 97 hex in the SUBACK, and the filter is not registered.

SUBACK comes before most copies. So the broker asks for a promise first, of the bytes of all that it may send. Where the
limit has no room for that, the copies are made and charged one by one, and SUBACK comes behind them.

The charge falls with the bytes that wait for the session, for its copies are among them. The work stays charged: each
copy spends its bytes, and those of its records in the trail, of the rates of the client, its user and its network. So a
client that asks for everything, leaves, and asks again is read ever more slowly, also under another name.
"""

import time
from collections.abc import Callable
from typing import Final

from gateway.audit_trail.notes.charges import USUAL_HEADER_BYTES, copy_trail_bytes
from gateway.bridge.sessions.sessions import ClientSession, Sessions
from gateway.limits.budgets import FAR_AHEAD_S, Amount
from gateway.limits.refusals import LimitReached, Refusals
from mq_adapters.embedded.queue import Queue

#: Ticks without a copy after which what waits for a session counts again: by then its copies are committed.
_QUIET_TICKS: Final = 10
#: Seconds by which copies bring a client ahead of its rates at most.
_MOST_AHEAD_S: Final = FAR_AHEAD_S / 2


class _Copies:
    """The copies of one session that may still wait, and those that are promised."""

    __slots__ = ("promised_bytes", "quiet_ticks", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        self.promised_bytes = 0
        self.quiet_ticks = 0

    @property
    def all_bytes(self) -> int:
        return self.size_bytes + self.promised_bytes


class RetainedCopies:
    """Charges retained copies to sessions. Call `tick` several times a second."""

    def __init__(
        self,
        sessions: Sessions,
        queue: Queue,
        refusals: Refusals,
        *,
        retained_bytes: Callable[[], int],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`queue`: that of the subscribers, whose lanes are measured. `retained_bytes`: of the rows of all
        retained messages. `now_s`: a clock that never goes back.
        """
        self._now_s = now_s
        self._sessions = sessions
        self._queue = queue
        self._refusals = refusals
        self._retained_bytes = retained_bytes
        self._copies: dict[ClientSession, _Copies] = {}

    def promise(self, correl_id: bytes | None, size_bytes: int) -> bool:
        """Whether copies of so many bytes may be put later for the subscriber with a CorrelId. If so, they are charged.

        An MQ application is no session of the gateway; it has the limits of its queue.
        """
        session = self._session(correl_id)
        if session is None:
            return True
        copies = self._copies.get(session) or _Copies()
        if self._past_limit(session, copies.all_bytes + size_bytes) is not None:
            return False
        copies.promised_bytes += size_bytes
        self._keep(session, copies)
        return True

    def keep_promise(self, correl_id: bytes | None, size_bytes: int, copies: int) -> None:
        """So many copies are put that were promised, in this run or the one before. None of them is refused."""
        session = self._session(correl_id)
        if session is not None:
            charged = self._copies.get(session) or _Copies()
            charged.promised_bytes = max(0, charged.promised_bytes - size_bytes)
            charged.size_bytes += size_bytes
            self._keep(session, charged)
            self._spend(session, size_bytes, copies)

    def take(self, correl_id: bytes | None, size_bytes: int) -> bool:
        """Whether a copy may be put for the subscriber with a CorrelId. If so, it is charged."""
        session = self._session(correl_id)
        if session is None:
            return True
        copies = self._copies.get(session) or _Copies()
        if (found := self._past_limit(session, copies.all_bytes + size_bytes)) is not None:
            self._refusals.count(found)
            return False
        copies.size_bytes += size_bytes
        self._keep(session, copies)
        self._spend(session, size_bytes, 1)
        return True

    def release(self, correl_id: bytes | None, size_bytes: int) -> None:
        """Copies that were promised are not put."""
        session = self._session(correl_id)
        copies = self._copies.get(session) if session is not None else None
        if session is not None and copies is not None:
            copies.promised_bytes = max(0, copies.promised_bytes - size_bytes)
            self._keep(session, copies)

    def _session(self, correl_id: bytes | None) -> ClientSession | None:
        return self._sessions.of_correl_id(correl_id) if correl_id is not None else None

    def _past_limit(self, session: ClientSession, copied_bytes: int) -> LimitReached | None:
        """The limit that a session would pass with copies of so many bytes."""
        more = self._charged(copied_bytes) - session.account.amounts[Amount.RETAINED_COPIES]
        return self._sessions.budgets.refusal(session.account, Amount.RETAINED_COPIES, more) if more > 0 else None

    def _keep(self, session: ClientSession, copies: _Copies) -> None:
        """Charges the copies of a session as they are now."""
        copies.quiet_ticks = 0
        self._copies[session] = copies
        self._charge(session, copies)

    def _charge(self, session: ClientSession, copies: _Copies) -> None:
        charged = session.account.amounts[Amount.RETAINED_COPIES]
        session.account.charge(Amount.RETAINED_COPIES, self._charged(copies.all_bytes) - charged)

    def _spend(self, session: ClientSession, size_bytes: int, copies: int) -> None:
        """Charges the work of copies. A client that asks for much is slowed down, and never disconnected."""
        now_s = self._now_s()
        if max(each.spent_s for each in session.account.line()) < now_s + _MOST_AHEAD_S:
            trail_bytes = copies * copy_trail_bytes(USUAL_HEADER_BYTES)
            self._sessions.budgets.spend(session.account, 0, size_bytes, 0, now_s, trail_bytes=trail_bytes)

    def tick(self) -> None:
        """Releases what no longer waits."""
        measured = self._queue.lane_bytes or {}
        for session, copies in tuple(self._copies.items()):
            copies.quiet_ticks += 1
            if self._sessions.get(session.client) is not session:
                del self._copies[session]  # its account is closed
            elif copies.quiet_ticks > _QUIET_TICKS:
                copies.size_bytes = min(copies.size_bytes, measured.get(session.correl_id, 0))
                self._charge(session, copies)
                if not copies.all_bytes:
                    del self._copies[session]

    def _charged(self, copied_bytes: int) -> int:
        return max(0, copied_bytes - self._retained_bytes())
