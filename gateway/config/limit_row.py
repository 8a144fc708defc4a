"""A row of the table of limits (limits.py): its key, its range, the answer to a client past it, and its scope."""

from enum import Enum
from typing import Any, Final, NamedTuple

from pydantic import Field


class LimitAnswer(NamedTuple):
    """The answer to a client past a limit.

    `reason_code` is a name of gateway.mqtt.reason_codes, and the label of the metric. `packets` are those that carry it
    at MQTT 5; none: the client is closed without an answer, or nobody is refused anything.
    """

    reason_code: str
    packets: tuple[str, ...] = ()


class Scope(Enum):
    """The clients that a limit bounds together, the narrowest scope first. The value is the end of the key.

    A client with a user counts for its user, any other client for its address and its network.
    """

    CLIENT = ""
    USER = "_per_user"
    ADDRESS = "_per_address"
    PREFIX = "_per_prefix"
    ALL = "_in_all"


#: The clients that a scope bounds, and the words of the Reason String for "the client".
_WHOSE: Final = {
    Scope.USER: ("of one user", "the user"),
    Scope.ADDRESS: ("of the clients without a user at one address (IPv6: one /64)", "this address"),
    Scope.PREFIX: (
        "of the clients without a user in one network (IPv4: one /24 or one /16, IPv6: one /48)",
        "this network",
    ),
    Scope.ALL: ("of all clients", "the gateway"),
}
#: A user, an address or a network without a limit of its own has the budget of so many clients. If it has more
#: sessions than that times `SESSIONS_OF_SHARE`, it has the budget of one client for each `SESSIONS_OF_SHARE` of them.
LEAST_SHARES: Final = 16
SESSIONS_OF_SHARE: Final = 20
_SHARED: Final = (
    f"as much as {LEAST_SHARES} clients may have; with more than {LEAST_SHARES * SESSIONS_OF_SHARE} sessions as much as"
    f" one client for each {SESSIONS_OF_SHARE} sessions"
)


class LimitRow(NamedTuple):
    """One limit.

    `key`: the key of [mqtt]. "listener." in front means a key of [[listener]], "access." a key of [access]; "": the
    value is fixed. `least`, `most`: the range of its values, both allowed; None: that of the key's type. `meaning`: the
    limited thing, and what happens past the limit. `answers`: what a client is told, the usual answer first; none:
    nobody is refused anything. `told`: the Reason String; "": that of the reason code, or what was wrong with the
    packet. It tells the client what to do, and nothing about other clients. `where`: the module of the gateway that
    enforces the limit. `scope`: whom it bounds together.
    """

    key: str
    default: float
    unit: str
    meaning: str
    where: str
    least: int | None = 1
    most: int | None = None
    answers: tuple[LimitAnswer, ...] = ()
    told: str = ""
    scope: Scope = Scope.CLIENT

    @property
    def field(self) -> Any:
        """The key of the configuration, as pydantic declares it."""
        return Field(default=self.default, ge=self.least, le=self.most, description=self.meaning)

    def of(self, scope: Scope, default: int = 0, *, without: str = _SHARED, told: str = "") -> "LimitRow":
        """The same limit for a wider scope. `without`: what 0 means; of all clients together it means no limit.

        `told`: the Reason String, where that of one client does not fit the scope.
        """
        whose, who = _WHOSE[scope]
        meaning = f"{self.unit} {whose}; 0: {'no limit' if scope is Scope.ALL else without}"
        return self._replace(
            key=self.key + scope.value,
            default=default,
            least=0,
            meaning=meaning,
            told=told or self.told.replace("the client", who),
            where="limits.budgets",
            scope=scope,
        )


#: The treatment of a client past a rate.
SLOWER: Final = (
    "after a quiet time as many as ten seconds allow may come at once; past the limit the client is read more slowly,"
    " and a client that gets a minute ahead all the same is disconnected; 0: no limit"
)
#: The answers about a topic name and a topic filter.
TOPIC: Final = (
    LimitAnswer("TOPIC_NAME_INVALID", ("PUBACK", "PUBREC", "DISCONNECT", "CONNACK")),
    LimitAnswer("TOPIC_FILTER_INVALID", ("SUBACK",)),
)
