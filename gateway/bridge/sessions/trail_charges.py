"""Charges the clients and MQ applications for the records that they cause (gateway/audit_trail/notes/charges.py).

The work of a client is mostly its packets. But its connection and its will make records too, and the end of its
session, in units of work that have the ends of others besides: `of_client` charges what one client's part adds.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final

from gateway.audit_trail.notes.application_work import payload_offset
from gateway.audit_trail.notes.charges import served_trail_bytes, trail_bytes
from gateway.bridge.sessions.sessions import ClientSession
from gateway.limits.budgets import Account, Budgets
from gateway.limits.owner import Owner
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.socket.pace import ApplicationAccount
from mq_adapters.embedded.unit_of_work import UnitOfWork

#: A record, with the later ones of its copy, that has more bytes is long: then its header has hundreds of bytes.
_USUAL_BYTES: Final = 3_000
#: So many more bytes of long records may have notes that wait for a commit: 200 KB of notes, which take 1 ms.
_MOST_LONG_BYTES: Final = 256 * 1024


class TrailCharges:
    """One for the gateway. Without an audit trail nobody is charged."""

    def __init__(
        self, engine: Engine, budgets: Budgets, now_s: Callable[[], float], *, converted: Collection[str] = ()
    ) -> None:
        """`now_s`: a clock that never goes back. `converted`: the queues that the conversion service empties."""
        self._engine = engine
        self._budgets = budgets
        self._now_s = now_s
        self._converted = converted
        #: Whether a charge has brought somebody ahead of a rate since this was set to False (paused_publishers.py).
        self.is_ahead = False
        #: Bytes of long records since their notes were last made due.
        self._long_bytes = 0

    def charge(self, account: Account, unit: UnitOfWork, first: int = 0) -> None:
        """Charges the notes of a unit of work, from `first` on, that was carried out for a client.

        Long ones do not wait for others to join: to write ten megabytes of notes of QoS 0 would take 60 ms.
        """
        notes = unit.notes[first:] if first else unit.notes
        if not notes or self._engine.seal_notes is None:
            return
        size = trail_bytes(notes)
        self._spend(account, size)
        self._long_bytes += max(0, size - _USUAL_BYTES * len(notes))
        if self._long_bytes > _MOST_LONG_BYTES:
            self._long_bytes = 0
            unit.notes_are_due = True

    def charge_bytes(self, account: Account, size: int) -> None:
        """Charges bytes of records that no note on the client's own work tells."""
        if size and self._engine.seal_notes is not None:
            self._spend(account, size)

    @contextmanager
    def of_client(self, session: ClientSession, unit: UnitOfWork) -> Iterator[None]:
        """Charges what a block adds to a unit of work. The client's session may end in the block, or have ended.

        The messages that it puts on the broker's queues are taken there, so that their copies are charged too.
        """
        first = len(unit.notes)
        account = self._budgets.hold(session.account, Owner(session.user, session.network))
        try:
            yield
            self._engine.carry_out(unit)
            self.charge(account, unit, first)
        finally:
            self._budgets.leave(account)

    def charge_application(self, account: ApplicationAccount, unit: UnitOfWork) -> float:
        """Charges a unit of work of an MQ application. Returns the seconds for which it must not be read."""
        if self._engine.seal_notes is None:
            return 0.0
        size = trail_bytes(unit.notes)
        for queue, message in unit.puts if self._converted else ():
            if queue.name in self._converted:
                size += served_trail_bytes(payload_offset(message))
        return self._budgets.spend_application(account, size, self._now_s()) if size else 0.0

    def application_wait_s(self, account: ApplicationAccount) -> float:
        """Seconds that an MQ application must wait before its next program connects, because that has records too."""
        return 0.0 if self._engine.seal_notes is None else self._budgets.spend_application(account, 0, self._now_s())

    def _spend(self, account: Account, size: int) -> None:
        if self._budgets.spend(account, 0, 0, 0, self._now_s(), trail_bytes=size) > 0:
            self.is_ahead = True
