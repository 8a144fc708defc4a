"""Which connections are admitted: their number and rate, in all, from one address and of one user.

    before_handshake()   says whether the connection's address may begin a TLS handshake now, for a handshake is dear
    admit()              the connection is made; a refusal is kept until its CONNECT can be answered
    connect_received()   its CONNECT was read: gives the refusal that answers it, or None
    authenticated()      its user is known: says whether that user may have one more connection
    release()            the connection is gone

A refused connection stays until its CONNECT comes, so that CONNACK can say why. It counts among the connections without
a CONNECT. Of these there are never more than `maximum_waiting_connections`: the one that waits longest is closed. So a
flood of silent connections closes itself, and a client that sends CONNECT at once gets in.

Connections are counted in the accounts of the budgets (budgets.py), so there is one admission for all listeners. Memory
is bounded: the table here holds the connections there are.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import ConnectionLimits
from gateway.limits.addresses import network_of
from gateway.limits.budgets import Account, Amount, Budgets
from gateway.limits.connection_log import ConnectionLog
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached, Refusals, reached
from gateway.mqtt.reason_codes import ReasonCode

_OF_LISTENER: Final = reached(Limit.CONNECTIONS_OF_LISTENER)


class NewConnection(Protocol):
    """A connection as admission sees it: its address, and the way to end it."""

    @property
    def address(self) -> str:
        """The client's IP address; behind a load balancer, the address in the PROXY header. "" if there is none."""
        ...

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None: ...


class _Counted:
    """A connection's state. A connection with a `refusal` is not admitted; it waits for its CONNECT, to be told so."""

    __slots__ = ("account", "refusal", "user")

    def __init__(self, account: Account, refusal: LimitReached | None) -> None:
        #: That of its address.
        self.account = account
        self.refusal = refusal
        self.user: Account | None = None


class Admission:
    """Counts connections; one for all listeners of the gateway."""

    def __init__(
        self,
        limits: ConnectionLimits,
        refusals: Refusals,
        budgets: Budgets,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._maximum_waiting = limits.maximum_waiting_connections
        self.refusals = refusals
        self._budgets = budgets
        self.connection_log = ConnectionLog(now_s=now_s)
        self._now_s = now_s
        self._counted: dict[object, _Counted] = {}
        #: Connections without a CONNECT, the one that waits longest first.
        self._waiting: dict[object, NewConnection] = {}

    @property
    def admitted(self) -> int:
        """Connections that are admitted."""
        return self._budgets.everybody.amounts[Amount.CONNECTIONS]

    @property
    def waiting(self) -> int:
        """Connections that have not sent a CONNECT."""
        return len(self._waiting)

    def before_handshake(self, address: str) -> LimitReached | None:
        """Counts a connection for the rates before its TLS handshake, the dearest step of a connection.

        After a refusal the connection must be closed, without an answer. Otherwise `admit` must follow.
        """
        account = self._budgets.visit(Owner(None, network_of(address)))
        refusal = self._budgets.connect(account, self._now_s())
        self._budgets.leave(account)
        if refusal is not None:
            self.refusals.count(refusal)
        return refusal

    def admit(
        self, connection: NewConnection, *, listener_is_full: bool = False, is_counted: bool = False
    ) -> LimitReached | None:
        """A connection is made; `release` must follow when it is gone. `connect_received` returns a refusal again.

        `is_counted`: `before_handshake` has counted it for the rates.
        """
        if len(self._waiting) >= self._maximum_waiting:
            self._dismiss(next(iter(self._waiting.values())))
        account = self._budgets.visit(Owner(None, network_of(connection.address)))
        refusal = _OF_LISTENER if listener_is_full else self._budgets.refusal(account, Amount.CONNECTIONS)
        if refusal is None and not is_counted:
            refusal = self._budgets.connect(account, self._now_s())
        self._counted[connection] = _Counted(account, refusal)
        self._waiting[connection] = connection
        if refusal is None:
            account.charge(Amount.CONNECTIONS)
        else:
            self.refusals.count(refusal)
        return refusal

    def connect_received(self, connection: object) -> LimitReached | None:
        """The CONNECT of a connection was read. Returns the refusal that answers it, if any."""
        self._waiting.pop(connection, None)
        counted = self._counted.get(connection)
        return counted.refusal if counted is not None else None

    def authenticated(
        self, connection: object, user: str | None, *, instead_of: object | None = None
    ) -> LimitReached | None:
        """The user of a connection is known. `instead_of` is the connection whose session it takes over.

        The connection of `instead_of` no longer counts for its user, though it may take some time to go.
        """
        counted = self._counted.get(connection)
        if user is None or counted is None:
            return None
        account = self._budgets.visit(Owner(user))
        replaced = self._counted.get(instead_of) if instead_of is not None else None
        gives_way = replaced is not None and replaced.user is account
        if found := self._budgets.refusal_here(account, Amount.CONNECTIONS, 1 - gives_way):
            self._budgets.leave(account)
            self.refusals.count(found)
            return found
        if replaced is not None:
            self._release_user(replaced)
        counted.user = account
        account.amounts[Amount.CONNECTIONS] += 1  # here alone: by its address it counts for everybody
        return None

    def release(self, connection: object) -> None:
        """A connection is gone."""
        self._waiting.pop(connection, None)
        counted = self._counted.pop(connection, None)
        if counted is None:
            return
        self._release_user(counted)
        if counted.refusal is None:
            counted.account.charge(Amount.CONNECTIONS, -1)
        self._budgets.leave(counted.account)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _release_user(self, counted: _Counted) -> None:
        """A connection counts for its user no longer."""
        if counted.user is not None:
            counted.user.amounts[Amount.CONNECTIONS] -= 1
            self._budgets.leave(counted.user)
            counted.user = None

    def _dismiss(self, connection: NewConnection) -> None:
        """Closes the connection that waits longest. It has sent no CONNECT, so it gets no answer."""
        self.refusals.add(Limit.WAITING_CONNECTIONS)
        self.release(connection)
        connection.close("it waited longest of too many connections without a CONNECT")
