"""The rows of connections in the table of limits (limits.py): how many there may be, and how many are made a second."""

from typing import Final

from gateway.config.limit_row import LimitAnswer, LimitRow, Scope

_QUOTA: Final = (LimitAnswer("QUOTA_EXCEEDED", ("CONNACK",)),)
_RATE: Final = (LimitAnswer("CONNECTION_RATE_EXCEEDED", ("CONNACK",)),)
_AT_ONCE: Final = "after a quiet time as many as ten seconds allow may come at once; 0: no limit"

CONNECTIONS: Final = LimitRow(
    key="maximum_connections",
    default=12_000,
    unit="connections",
    meaning="connections at one time; further ones are refused; the last tenth is kept for networks (IPv4: one /16,"
    " IPv6: one /48) that have less than a hundredth of the limit",
    answers=_QUOTA,
    told="there are too many connections: try again later",
    where="limits.budgets",
    scope=Scope.ALL,
)
CONNECTIONS_OF_LISTENER: Final = LimitRow(
    key="listener.maximum_connections",
    default=0,
    least=0,
    unit="connections",
    meaning="connections here at one time; 0: only the limit of [mqtt] for all listeners",
    answers=_QUOTA,
    told="there are too many connections on this port: try again later",
    where="limits.admission",
)
CONNECTIONS_PER_USER: Final = LimitRow(
    key="maximum_connections_per_user",
    default=0,
    least=0,
    unit="connections",
    meaning="connections of one user at one time; 0: no limit",
    answers=_QUOTA,
    told="the user has too many connections",
    where="limits.budgets",
    scope=Scope.USER,
)
CONNECTIONS_PER_ADDRESS: Final = CONNECTIONS_PER_USER._replace(
    key="maximum_connections_per_address",
    meaning="connections from one address (IPv6: one /64) at one time; 0: no limit",
    told="this address has too many connections",
    scope=Scope.ADDRESS,
)
CONNECTIONS_PER_PREFIX: Final = CONNECTIONS_PER_USER._replace(
    key="maximum_connections_per_prefix",
    meaning="connections from one network (IPv4: one /24 or one /16, IPv6: one /48) at one time; 0: no limit",
    told="this network has too many connections",
    scope=Scope.PREFIX,
)
WAITING_CONNECTIONS: Final = LimitRow(
    key="maximum_waiting_connections",
    default=2_000,
    unit="connections",
    meaning="connections that have not sent a CONNECT; past the limit the one that waits longest is closed",
    answers=(LimitAnswer("SERVER_BUSY"),),
    where="limits.admission",
)
CONNECTION_RATE: Final = LimitRow(
    key="connection_rate",
    default=5_000,
    least=0,
    unit="connections a second",
    meaning=f"new connections a second; {_AT_ONCE}",
    answers=_RATE,
    told="too many connections are made: try again later",
    where="limits.budgets",
    scope=Scope.ALL,
)
CONNECTION_RATE_PER_ADDRESS: Final = CONNECTION_RATE._replace(
    key="connection_rate_per_address",
    default=1_000,
    meaning=f"new connections a second from one address (IPv6: one /64); {_AT_ONCE}",
    told="this address makes too many connections: try again later",
    scope=Scope.ADDRESS,
)
CONNECTION_RATE_PER_PREFIX: Final = CONNECTION_RATE._replace(
    key="connection_rate_per_prefix",
    default=2_500,
    meaning=f"new connections a second from one network (IPv4: one /24 or one /16, IPv6: one /48); {_AT_ONCE}",
    told="this network makes too many connections: try again later",
    scope=Scope.PREFIX,
)
