"""Who may have a connection: how many and how often, in all, from one address and of one user.

    knock()          where the connection is dear to make: whether its address may make one more now
    admit()          the connection is made; what refuses it is kept until its CONNECT can be answered
    greet()          its CONNECT was read: the refusal that it is to be answered with, or None
    authenticated()  its user is known: whether that user may have one more
    release()        it is gone

A connection that was refused stays until its CONNECT came, so that it can be told why, and counts among those without
a CONNECT; of these there are never more than `maximum_waiting_connections`, for who waits longest is closed. So a flood
of silent connections closes itself, and who sends CONNECT at once gets in. All tables are bounded by the connections
there are, and the buckets of rates by their number.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from gateway.config.limits import ConnectionLimits, Limit
from gateway.limits.addresses import network_of
from gateway.limits.rates import TokenBuckets
from gateway.limits.refusals import LimitReached, Refusals, reached
from gateway.limits.strangers import Strangers
from gateway.mqtt.reason_codes import ReasonCode

_CONNECTIONS: Final = reached(Limit.CONNECTIONS)
_OF_LISTENER: Final = reached(Limit.CONNECTIONS_OF_LISTENER)
_OF_ADDRESS: Final = reached(Limit.CONNECTIONS_PER_ADDRESS)
_OF_USER: Final = reached(Limit.CONNECTIONS_PER_USER)
_RATE: Final = reached(Limit.CONNECTION_RATE)
_RATE_OF_ADDRESS: Final = reached(Limit.CONNECTION_RATE_PER_ADDRESS)
#: One bucket for all.
_ALL: Final = b""

Key = TypeVar("Key", bytes, str)


class Visitor(Protocol):
    """A connection as admission sees it: where it comes from, and how it is ended."""

    @property
    def address(self) -> str:
        """The client's IP address, behind a load balancer the one that it says; "" where there is none."""
        ...

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None: ...


class _Visit:
    """What is known of a connection; `refusal`: it is not admitted, and waits to be told so."""

    __slots__ = ("network", "refusal", "user")

    def __init__(self, network: bytes, refusal: LimitReached | None) -> None:
        self.network = network
        self.refusal = refusal
        self.user: str | None = None


class Admission:
    """Counts connections; one for all listeners of the gateway."""

    def __init__(
        self, limits: ConnectionLimits, refusals: Refusals, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self.refusals = refusals
        self.strangers = Strangers(now_s=now_s)
        self._now_s = now_s
        self._visits: dict[object, _Visit] = {}
        #: Without a CONNECT, who waits longest first.
        self._waiting: dict[object, Visitor] = {}
        self._admitted = 0
        self._of_network: Counter[bytes] = Counter()
        self._of_user: Counter[str] = Counter()
        self._rate = TokenBuckets(limits.connection_rate)
        self._rate_of_network = TokenBuckets(limits.connection_rate_per_address)

    @property
    def admitted(self) -> int:
        """Connections that count."""
        return self._admitted

    @property
    def waiting(self) -> int:
        """Connections that have not sent a CONNECT."""
        return len(self._waiting)

    def knock(self, address: str) -> LimitReached | None:
        """Counts a connection for the rates before its TLS handshake, which costs more time than all that follows.

        A refusal is final: the connection is to be closed, and nothing can be answered. `admit` must follow otherwise.
        """
        refusal = self._rate_refusal(network_of(address))
        if refusal is not None:
            self.refusals.count(refusal)
        return refusal

    def admit(
        self, visitor: Visitor, *, listener_is_full: bool = False, has_knocked: bool = False
    ) -> LimitReached | None:
        """A connection is made; `release` must follow when it is gone. A refusal is for `greet`.

        `has_knocked`: the rates have counted it.
        """
        if len(self._waiting) >= self._limits.maximum_waiting_connections:
            self._dismiss(next(iter(self._waiting.values())))
        network = network_of(visitor.address)
        refusal = _OF_LISTENER if listener_is_full else self._number_refusal(network)
        if refusal is None and not has_knocked:
            refusal = self._rate_refusal(network)
        self._visits[visitor] = _Visit(network, refusal)
        self._waiting[visitor] = visitor
        if refusal is not None:
            self.refusals.count(refusal)
            return refusal
        self._admitted += 1
        self._of_network[network] += 1
        return None

    def greet(self, visitor: object) -> LimitReached | None:
        """The CONNECT of a connection was read; what it is to be refused with, if anything."""
        self._waiting.pop(visitor, None)
        visit = self._visits.get(visitor)
        return visit.refusal if visit is not None else None

    def authenticated(
        self, visitor: object, user: str | None, *, instead_of: object | None = None
    ) -> LimitReached | None:
        """The user of a connection is known. `instead_of` is the connection that it takes over from.

        That one no longer counts for its user, though it may be some time before it is gone.
        """
        visit = self._visits.get(visitor)
        if user is None or visit is None:
            return None
        replaced = self._visits.get(instead_of) if instead_of is not None else None
        gives_way = replaced is not None and replaced.user == user
        maximum = self._limits.maximum_connections_per_user
        if maximum and self._of_user[user] - gives_way >= maximum:
            self.refusals.count(_OF_USER)
            return _OF_USER
        if replaced is not None and replaced.user is not None:
            _count_down(self._of_user, replaced.user)
            replaced.user = None
        visit.user = user
        self._of_user[user] += 1
        return None

    def release(self, visitor: object) -> None:
        """A connection is gone."""
        self._waiting.pop(visitor, None)
        visit = self._visits.pop(visitor, None)
        if visit is None:
            return
        if visit.user is not None:
            _count_down(self._of_user, visit.user)
        if visit.refusal is None:
            self._admitted -= 1
            _count_down(self._of_network, visit.network)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _number_refusal(self, network: bytes) -> LimitReached | None:
        limits = self._limits
        if self._admitted >= limits.maximum_connections:
            return _CONNECTIONS
        of_address = limits.maximum_connections_per_address
        if of_address and self._of_network[network] >= of_address:
            return _OF_ADDRESS
        return None

    def _rate_refusal(self, network: bytes) -> LimitReached | None:
        now_s = self._now_s()
        if not self._rate_of_network.take(network, now_s):
            return _RATE_OF_ADDRESS
        if not self._rate.take(_ALL, now_s):
            return _RATE
        return None

    def _dismiss(self, visitor: Visitor) -> None:
        """Closes who waits longest; as there was no CONNECT there is nothing to answer."""
        self.refusals.add(Limit.WAITING_CONNECTIONS)
        self.release(visitor)
        visitor.close("of too many connections without a CONNECT it waited longest")


def _count_down(counter: Counter[Key], key: Key) -> None:
    """Forgets a key that has come to nothing: who was here once must not cost memory for ever."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
