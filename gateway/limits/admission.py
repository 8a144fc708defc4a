"""Which connections are admitted: their number and rate, in all, from one address and of one user.

    before_handshake()   a TLS handshake is dear: whether the connection's address may begin one now
    admit()              the connection is made; a refusal is kept until its CONNECT can be answered
    connect_received()   its CONNECT was read: the refusal that answers it, or None
    authenticated()      its user is known: whether that user may have one more connection
    release()            the connection is gone

A refused connection stays until its CONNECT comes, so that it can be told why. It counts among the connections without
a CONNECT. Of these there are never more than `maximum_waiting_connections`: the one that waits longest is closed. So a
flood of silent connections closes itself, and a client that sends CONNECT at once gets in. Memory is bounded: tables
hold the connections there are, and a fixed number of token buckets.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from gateway.config.limits import Limit
from gateway.config.mqtt_limits import ConnectionLimits
from gateway.limits.addresses import network_of
from gateway.limits.connection_log import ConnectionLog
from gateway.limits.refusals import LimitReached, Refusals, reached
from gateway.mqtt.reason_codes import ReasonCode

_CONNECTIONS: Final = reached(Limit.CONNECTIONS)
_OF_LISTENER: Final = reached(Limit.CONNECTIONS_OF_LISTENER)
_OF_ADDRESS: Final = reached(Limit.CONNECTIONS_PER_ADDRESS)
_OF_USER: Final = reached(Limit.CONNECTIONS_PER_USER)
_RATE: Final = reached(Limit.CONNECTION_RATE)
_RATE_OF_ADDRESS: Final = reached(Limit.CONNECTION_RATE_PER_ADDRESS)
#: The key of the one bucket for all addresses.
_ALL: Final = b""
#: Seconds' worth of tokens that a bucket holds: so many may come at once, for example when a fleet comes back.
BURST_S: Final = 10
#: Buckets that are kept, at some 250 bytes each. The one used longest ago is forgotten, which makes it full again.
KEPT_BUCKETS: Final = 16_384

Key = TypeVar("Key", bytes, str)


class NewConnection(Protocol):
    """A connection as admission sees it: where it comes from, and how it is ended."""

    @property
    def address(self) -> str:
        """The client's IP address, behind a load balancer the one in the PROXY header; "" where there is none."""
        ...

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None: ...


class _Counted:
    """What is known of a connection. With a `refusal` it is not admitted, and waits for its CONNECT to be told so."""

    __slots__ = ("network", "refusal", "user")

    def __init__(self, network: bytes, refusal: LimitReached | None) -> None:
        self.network = network
        self.refusal = refusal
        self.user: str | None = None


class TokenBuckets:
    """A token bucket for each key. `rate` is tokens a second; 0: everything may happen."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._capacity = float(rate * BURST_S)
        #: Tokens, and when that was, in seconds; the bucket used last stands last.
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: bytes, now_s: float) -> bool:
        """Takes a token; False where there is none. `now_s`: a clock that never goes back."""
        if not self._rate:
            return True
        tokens, at_s = self._buckets.pop(key, (self._capacity, now_s))
        tokens = min(self._capacity, tokens + (now_s - at_s) * self._rate)
        is_there = tokens >= 1
        self._buckets[key] = (tokens - 1 if is_there else tokens, now_s)
        if len(self._buckets) > KEPT_BUCKETS:
            self._buckets.popitem(last=False)
        return is_there


class Admission:
    """Counts connections; one for all listeners of the gateway."""

    def __init__(
        self, limits: ConnectionLimits, refusals: Refusals, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self.refusals = refusals
        self.connection_log = ConnectionLog(now_s=now_s)
        self._now_s = now_s
        self._counted: dict[object, _Counted] = {}
        #: Connections without a CONNECT, the one that waits longest first.
        self._waiting: dict[object, NewConnection] = {}
        self._admitted = 0
        self._of_network: Counter[bytes] = Counter()
        self._of_user: Counter[str] = Counter()
        self._rate = TokenBuckets(limits.connection_rate)
        self._rate_of_network = TokenBuckets(limits.connection_rate_per_address)

    @property
    def admitted(self) -> int:
        """Connections that are admitted."""
        return self._admitted

    @property
    def waiting(self) -> int:
        """Connections that have not sent a CONNECT."""
        return len(self._waiting)

    def before_handshake(self, address: str) -> LimitReached | None:
        """Counts a connection for the rates before its TLS handshake, which takes longer than all that follows.

        After a refusal the connection must be closed, without an answer. Otherwise `admit` must follow.
        """
        refusal = self._rate_refusal(network_of(address))
        if refusal is not None:
            self.refusals.count(refusal)
        return refusal

    def admit(
        self, connection: NewConnection, *, listener_is_full: bool = False, is_counted: bool = False
    ) -> LimitReached | None:
        """A connection is made; `release` must follow when it is gone. `connect_received` returns a refusal again.

        `is_counted`: `before_handshake` has counted it for the rates.
        """
        if len(self._waiting) >= self._limits.maximum_waiting_connections:
            self._dismiss(next(iter(self._waiting.values())))
        network = network_of(connection.address)
        refusal = _OF_LISTENER if listener_is_full else self._number_refusal(network)
        if refusal is None and not is_counted:
            refusal = self._rate_refusal(network)
        self._counted[connection] = _Counted(network, refusal)
        self._waiting[connection] = connection
        if refusal is not None:
            self.refusals.count(refusal)
            return refusal
        self._admitted += 1
        self._of_network[network] += 1
        return None

    def connect_received(self, connection: object) -> LimitReached | None:
        """The CONNECT of a connection was read. Returns the refusal that answers it, if any."""
        self._waiting.pop(connection, None)
        counted = self._counted.get(connection)
        return counted.refusal if counted is not None else None

    def authenticated(
        self, connection: object, user: str | None, *, instead_of: object | None = None
    ) -> LimitReached | None:
        """The user of a connection is known. `instead_of` is the connection whose session it takes over.

        That one no longer counts for its user, though it may take some time to go.
        """
        counted = self._counted.get(connection)
        if user is None or counted is None:
            return None
        replaced = self._counted.get(instead_of) if instead_of is not None else None
        gives_way = replaced is not None and replaced.user == user
        maximum = self._limits.maximum_connections_per_user
        if maximum and self._of_user[user] - gives_way >= maximum:
            self.refusals.count(_OF_USER)
            return _OF_USER
        if replaced is not None and replaced.user is not None:
            _count_down(self._of_user, replaced.user)
            replaced.user = None
        counted.user = user
        self._of_user[user] += 1
        return None

    def release(self, connection: object) -> None:
        """A connection is gone."""
        self._waiting.pop(connection, None)
        counted = self._counted.pop(connection, None)
        if counted is None:
            return
        if counted.user is not None:
            _count_down(self._of_user, counted.user)
        if counted.refusal is None:
            self._admitted -= 1
            _count_down(self._of_network, counted.network)

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

    def _dismiss(self, connection: NewConnection) -> None:
        """Closes the connection that waits longest, without an answer: it has sent no CONNECT."""
        self.refusals.add(Limit.WAITING_CONNECTIONS)
        self.release(connection)
        connection.close("it waited longest of too many connections without a CONNECT")


def _count_down(counter: Counter[Key], key: Key) -> None:
    """Forgets a key that is down to 0: a client that was here once must not cost memory for ever."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
