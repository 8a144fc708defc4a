"""Budgets: the amounts that each client, user, address and prefix has. Amounts nest, and each scope's limit holds.

    client identifier  within its user                           within all clients
    client identifier  within its address  within its prefixes   within all clients      (without a user)
    connection         within its address  within its prefixes   within all clients

The prefixes of an IPv4 address are its /24 and its /16, that of an IPv6 /64 is its /48; each has the same limits.
An `Account` is one node of that tree. A client's account stands for its session: `open` makes it and charges one
session, and `close` gives back everything that it still has. A session that goes to another user takes its amounts
along (`move`). A connection has no account of its own: it visits that of its address (`visit`, `leave`).

The code that lets a client cause an amount asks first, charges then, and releases later:

    if (reached := budgets.refusal(session.account, Amount.SUBSCRIPTIONS)) is not None:
        ...                                            refuse by reached.reason_code, and tell reached.told
    session.account.charge(Amount.SUBSCRIPTIONS)
    session.account.charge(Amount.SUBSCRIPTIONS, -1)   release

To charge a new amount: write its row in gateway/config/limits.py, and a row for each wider scope by `LimitRow.of`; add
a member to `Amount`, and its limits by scope to `LIMITS`; ask and charge where the cost arises. The store keeps nothing
of a budget, so charge the amount also where a restart loads what was charged (gateway/bridge/sessions/sessions.py).

Rates are used, and cannot be released. What a read brings costs time: at a rate of 100 a second, a message costs 10 ms.
`spend` adds the dearest of the read's costs to a time in each account up to the prefix, and returns for how long the
client must not be read. The time may be `BURST_S` in the past after a quiet time, which is then free
(generic cell rate algorithm, ITU-T I.371). So a device that empties a day's backlog gets through, slowly. A client that
comes again and again, so that slow reading does not stop it, gets further and further ahead: `too_fast` tells.

A user, an address or a prefix without a limit of its own has the budget of some clients, and of more if it has many
sessions: thousands of sensors may share a user. The last tenth of what all clients may have is kept for those who have
little, so that one who takes everything locks nobody out.

New connections have rates too. They wait for nothing: `connect` refuses what is past a rate, which then costs nothing.

Memory is bounded: an account is there as long as a session or a connection that is charged to it, and both have limits.
Of an account that has gone, the times that it has spent are kept for a while, for the last `KEPT_TIMES` of them.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from enum import IntEnum, unique
from hashlib import blake2b
from typing import Final

from gateway.config.limit_row import LEAST_SHARES, SESSIONS_OF_SHARE, Scope
from gateway.config.limits import Limit
from gateway.config.mqtt_limits import MqttLimits
from gateway.limits.addresses import prefixes_of
from gateway.limits.owner import Owner
from gateway.limits.refusals import LimitReached, reached
from mq_adapters.embedded.socket.pace import ApplicationAccount


@unique
class Amount(IntEnum):
    """An amount that an account has until it is released."""

    SESSIONS = 0
    SUBSCRIPTIONS = 1
    LEVELS = 2
    #: Bytes of retained copies beyond one copy of each retained message.
    RETAINED_COPIES = 3
    #: Charged to addresses, and to users, but not to clients.
    CONNECTIONS = 4
    #: On the dead-letter queue; charged as connections are. Who causes them has a share of that queue besides.
    DEAD_LETTERS = 6
    DEAD_LETTER_BYTES = 7
    #: Of the messages on the lane of a session, as its queue's limits saw them last.
    QUEUED_BYTES = 8
    #: Groups of shared subscriptions of which a session is a member.
    SHARED_GROUPS = 5


LIMITS: Final[Mapping[Amount, Mapping[Scope, Limit]]] = {
    Amount.SESSIONS: {
        Scope.USER: Limit.SESSIONS_PER_USER,
        Scope.ADDRESS: Limit.SESSIONS_PER_ADDRESS,
        Scope.PREFIX: Limit.SESSIONS_PER_PREFIX,
        Scope.ALL: Limit.SESSIONS,
    },
    Amount.SUBSCRIPTIONS: {
        Scope.CLIENT: Limit.SUBSCRIPTIONS,
        Scope.USER: Limit.SUBSCRIPTIONS_PER_USER,
        Scope.ADDRESS: Limit.SUBSCRIPTIONS_PER_ADDRESS,
        Scope.PREFIX: Limit.SUBSCRIPTIONS_PER_PREFIX,
        Scope.ALL: Limit.SUBSCRIPTIONS_IN_ALL,
    },
    Amount.LEVELS: {
        Scope.CLIENT: Limit.SUBSCRIPTION_LEVELS,
        Scope.USER: Limit.SUBSCRIPTION_LEVELS_PER_USER,
        Scope.ADDRESS: Limit.SUBSCRIPTION_LEVELS_PER_ADDRESS,
        Scope.PREFIX: Limit.SUBSCRIPTION_LEVELS_PER_PREFIX,
        Scope.ALL: Limit.SUBSCRIPTION_LEVELS_IN_ALL,
    },
    Amount.RETAINED_COPIES: {
        Scope.CLIENT: Limit.RETAINED_COPIES,
        Scope.USER: Limit.RETAINED_COPIES_PER_USER,
        Scope.ADDRESS: Limit.RETAINED_COPIES_PER_ADDRESS,
        Scope.PREFIX: Limit.RETAINED_COPIES_PER_PREFIX,
        Scope.ALL: Limit.RETAINED_COPIES_IN_ALL,
    },
    Amount.CONNECTIONS: {
        Scope.USER: Limit.CONNECTIONS_PER_USER,
        Scope.ADDRESS: Limit.CONNECTIONS_PER_ADDRESS,
        Scope.PREFIX: Limit.CONNECTIONS_PER_PREFIX,
        Scope.ALL: Limit.CONNECTIONS,
    },
    Amount.QUEUED_BYTES: {
        Scope.CLIENT: Limit.QUEUED_BYTES,
        Scope.USER: Limit.QUEUED_BYTES_PER_USER,
        Scope.ADDRESS: Limit.QUEUED_BYTES_PER_ADDRESS,
        Scope.PREFIX: Limit.QUEUED_BYTES_PER_PREFIX,
    },
    Amount.DEAD_LETTERS: {
        Scope.CLIENT: Limit.DEAD_LETTERS,
        Scope.USER: Limit.DEAD_LETTERS_PER_USER,
        Scope.ADDRESS: Limit.DEAD_LETTERS_PER_ADDRESS,
        Scope.PREFIX: Limit.DEAD_LETTERS_PER_PREFIX,
    },
    Amount.DEAD_LETTER_BYTES: {
        Scope.CLIENT: Limit.DEAD_LETTER_BYTES,
        Scope.USER: Limit.DEAD_LETTER_BYTES_PER_USER,
        Scope.ADDRESS: Limit.DEAD_LETTER_BYTES_PER_ADDRESS,
        Scope.PREFIX: Limit.DEAD_LETTER_BYTES_PER_PREFIX,
    },
    Amount.SHARED_GROUPS: {
        Scope.CLIENT: Limit.SHARED_GROUPS,
        Scope.USER: Limit.SHARED_GROUPS_PER_USER,
        Scope.ADDRESS: Limit.SHARED_GROUPS_PER_ADDRESS,
        Scope.PREFIX: Limit.SHARED_GROUPS_PER_PREFIX,
        Scope.ALL: Limit.SHARED_GROUPS_IN_ALL,
    },
}
"""The limits of each amount, by scope. A scope without a row has no limit."""

RATES: Final[Mapping[Scope, tuple[Limit, Limit, Limit, Limit]]] = {
    Scope.CLIENT: (Limit.MESSAGE_RATE, Limit.BYTE_RATE, Limit.NEW_TOPIC_RATE, Limit.TRAIL_BYTE_RATE),
    Scope.USER: (
        Limit.MESSAGE_RATE_PER_USER,
        Limit.BYTE_RATE_PER_USER,
        Limit.NEW_TOPIC_RATE_PER_USER,
        Limit.TRAIL_BYTE_RATE_PER_USER,
    ),
    Scope.ADDRESS: (
        Limit.MESSAGE_RATE_PER_ADDRESS,
        Limit.BYTE_RATE_PER_ADDRESS,
        Limit.NEW_TOPIC_RATE_PER_ADDRESS,
        Limit.TRAIL_BYTE_RATE_PER_ADDRESS,
    ),
    Scope.PREFIX: (
        Limit.MESSAGE_RATE_PER_PREFIX,
        Limit.BYTE_RATE_PER_PREFIX,
        Limit.NEW_TOPIC_RATE_PER_PREFIX,
        Limit.TRAIL_BYTE_RATE_PER_PREFIX,
    ),
}
"""The limits of messages, bytes, new topics and bytes of the trail, by scope."""

CONNECTION_RATES: Final[Mapping[Scope, Limit]] = {
    Scope.ADDRESS: Limit.CONNECTION_RATE_PER_ADDRESS,
    Scope.PREFIX: Limit.CONNECTION_RATE_PER_PREFIX,
    Scope.ALL: Limit.CONNECTION_RATE,
}
"""The limits of new connections a second, by scope."""

#: The rate of new topics is a number a minute.
_MINUTE_S: Final = 60
#: After a quiet time, so many seconds of a rate may come at once.
BURST_S: Final = 10.0
#: Seconds by which a client may be ahead of a rate. Slow reading keeps every connection far below.
FAR_AHEAD_S: Final = 60.0
#: What additions of times may be wrong by, seconds: the last connection that a rate allows is not to fail by it.
_ROUNDING_S: Final = 1e-6
#: Times of accounts that have gone, at some 250 bytes each. The oldest is forgotten.
KEPT_TIMES: Final = 16_384
#: Names longer than this are kept as their hash: a client identifier may have 64 KiB.
_LONGEST_NAME: Final = 64
#: The budget of all clients, divided by this, is kept for users and prefixes that have little.
_RESERVED: Final = 10
#: Little is at most the budget of all clients, divided by this.
_LITTLE: Final = 100

Key = tuple[Scope, str | bytes]
Costs = tuple[float, float, float, float]
"""Seconds that a message, a byte, a new topic and a byte of the trail cost; 0: free."""
_NOTHING: Final[Costs] = (0.0, 0.0, 0.0, 0.0)
_LONG_AGO: Final = (-math.inf, -math.inf)


class Account:
    """The amounts of one client, user, address or prefix, or of all clients together. `amounts` is by `Amount`."""

    __slots__ = ("amounts", "connected_s", "costs", "key", "parent", "spent_s", "uses")

    def __init__(self, key: Key, parent: "Account | None") -> None:
        self.key = key
        self.parent = parent
        #: How many accounts are charged here too, and connections; of a client 1 while it has its session.
        self.uses = 0
        self.amounts = [0] * len(Amount)
        self.costs = _NOTHING
        #: The time up to which its rates are used, by the clock of `Budgets.spend`.
        self.spent_s = -math.inf
        #: The same of its rate of new connections.
        self.connected_s = -math.inf

    @property
    def scope(self) -> Scope:
        return self.key[0]

    def charge(self, amount: Amount, count: int = 1) -> None:
        """Charges an amount to this account and to those around it. A negative count releases it."""
        account: Account | None = self
        while account is not None:
            account.amounts[amount] += count
            account = account.parent

    def line(self) -> "Iterator[Account]":
        """This account and those around it, the narrowest first."""
        account: Account | None = self
        while account is not None:
            yield account
            account = account.parent


class Budgets:
    """The accounts of all clients; one for the gateway."""

    def __init__(self, limits: MqttLimits) -> None:
        used = [limit for scopes in LIMITS.values() for limit in scopes.values()]
        used += [limit for rates in RATES.values() for limit in rates]
        used += CONNECTION_RATES.values()
        self._values = {limit: int(getattr(limits, limit.key)) for limit in used}
        self._accounts: dict[Key, Account] = {}
        #: `spent_s` and `connected_s` of accounts that have gone, and the last time of `spend` or `connect`.
        self._times: OrderedDict[Key, tuple[float, float]] = OrderedDict()
        self._now_s = 0.0
        #: How often a client was read more slowly, by the scope whose rate was used up.
        self.slowed: Counter[Scope] = Counter()
        #: The account of all clients together.
        self.everybody = Account((Scope.ALL, ""), None)

    def __len__(self) -> int:
        """The number of accounts, without that of all clients together."""
        return len(self._accounts)

    # -- the accounts --------------------------------------------------------------------------------------------------

    def open(self, client: str, owner: Owner) -> Account:
        """The account of a client that begins a session, with that session charged. `close` must follow."""
        account = self._account((Scope.CLIENT, _short(client)), self._of_owner(owner))
        account.uses += 1
        account.charge(Amount.SESSIONS)
        self._fit_costs(account)
        return account

    def close(self, account: Account) -> None:
        """The session of a client has ended. Releases everything that the account has."""
        for amount in Amount:
            account.charge(amount, -account.amounts[amount])
        self._fit_costs(account)
        self.leave(account)

    def move(self, account: Account, owner: Owner) -> None:
        """A client's session belongs to another user now, or comes from another network. Its amounts move with it."""
        before, after = account.parent, self._of_owner(owner)
        if before is after or before is None:
            self._leave_if_unused(after)
            return
        after.uses += 1
        for amount in Amount:
            before.charge(amount, -account.amounts[amount])
            after.charge(amount, account.amounts[amount])
        account.parent = after
        self._fit_costs(account)
        self._fit_costs(before)
        self.leave(before)

    def visit(self, owner: Owner) -> Account:
        """The account of a user or an address, for a connection. `leave` must follow."""
        account = self._of_owner(owner)
        account.uses += 1
        if account.costs is _NOTHING:
            self._fit_costs(account)
        return account

    def hold(self, account: Account, owner: Owner) -> Account:
        """Keeps the account of a client whose session may end; if it has ended, its owner's. `leave` must follow."""
        if self._accounts.get(account.key) is not account:
            return self.visit(owner)
        account.uses += 1
        return account

    def leave(self, account: Account) -> None:
        """A connection has gone; what was charged for it is released before."""
        account.uses -= 1
        self._leave_if_unused(account)

    def has_user(self, user: str) -> bool:
        """Whether a user has a session."""
        account = self._accounts.get((Scope.USER, _short(user)))
        return account is not None and account.amounts[Amount.SESSIONS] > 0

    # -- rates ---------------------------------------------------------------------------------------------------------

    def spend(
        self, account: Account, messages: int, size: int, topics: int, now_s: float, *, trail_bytes: int = 0
    ) -> float:
        """Charges the contents of a read. Returns the seconds for which its client must not be read; 0: read on.

        `now_s`: a clock that never goes back.
        """
        self._now_s = latest_s = now_s
        free_s = now_s - BURST_S
        while (parent := account.parent) is not None:
            of_message, of_byte, of_topic, of_trail_byte = account.costs
            cost = of_message * messages
            if of_byte * size > cost:  # noqa: PLR1730  # a call of max() would cost as much as all the rest
                cost = of_byte * size
            if topics and of_topic * topics > cost:
                cost = of_topic * topics
            if trail_bytes and of_trail_byte * trail_bytes > cost:
                cost = of_trail_byte * trail_bytes
            spent_s = account.spent_s
            account.spent_s = spent_s = (spent_s if spent_s > free_s else free_s) + cost
            if spent_s > latest_s:  # noqa: PLR1730
                latest_s = spent_s
            account = parent
        return latest_s - now_s

    def spend_application(self, who: ApplicationAccount, trail_bytes: int, now_s: float) -> float:
        """Charges bytes of the trail to an MQ application. Returns the seconds for which it must not be read.

        With 0 bytes it asks how long the application must wait now.
        """
        account = self.visit(Owner.of_application(who))
        wait_s = self.spend(account, 0, 0, 0, now_s, trail_bytes=trail_bytes)
        if trail_bytes and wait_s > 0:
            self.slowed_down(account)
        self.leave(account)
        return wait_s

    def too_fast(self, account: Account, messages: int, size: int) -> LimitReached | None:
        """After `spend`: the limit that a client was far ahead of even before this read, if any."""
        for each in account.line():
            costs = [cost * count for cost, count in zip(each.costs, (messages, size), strict=False)]
            if each.spent_s - max(costs) - self._now_s > FAR_AHEAD_S:
                return reached(RATES[each.scope][costs.index(max(costs))])
        return None

    def connect(self, account: Account, now_s: float) -> LimitReached | None:
        """Charges a new connection from an address to its rates, or says which of them it would pass.

        `now_s`: a clock that never goes back.
        """
        self._now_s = now_s
        after: list[tuple[Account, float]] = []
        for each in account.line():
            limit = CONNECTION_RATES[each.scope]
            if rate := self._values[limit]:
                connected_s = max(each.connected_s, now_s - BURST_S) + 1 / rate
                if connected_s > now_s + _ROUNDING_S:
                    return reached(limit)
                after.append((each, connected_s))
        for each, connected_s in after:
            each.connected_s = connected_s
        return None

    def slowed_down(self, account: Account) -> None:
        """Counts a client that is read more slowly, under the scope that is furthest ahead."""
        self.slowed[max(account.line(), key=lambda each: each.spent_s).scope] += 1

    def _fit_costs(self, account: Account) -> None:
        """The number of sessions has changed, and with it the rates of an account and of those around it."""
        for each in account.line():
            if each.parent is not None:
                shares = 1 if each.scope is Scope.CLIENT else _shares(each)
                first, second, third, fourth = RATES[each.scope]
                of_message, of_byte, of_topic, of_trail_byte = RATES[Scope.CLIENT]
                each.costs = (
                    self._cost_s(first, of_message, shares),
                    self._cost_s(second, of_byte, shares),
                    _MINUTE_S * self._cost_s(third, of_topic, shares),
                    self._cost_s(fourth, of_trail_byte, shares),
                )

    def _cost_s(self, limit: Limit, of_client: Limit, shares: int) -> float:
        """The time that one unit costs; 0 without a limit."""
        rate = self._values[limit] or self._values[of_client] * shares
        return 1 / rate if rate else 0.0

    # -- asking --------------------------------------------------------------------------------------------------------

    def refusal(self, account: Account, amount: Amount, count: int = 1) -> LimitReached | None:
        """The narrowest limit that an account would pass with so much more; None if the account may be charged."""
        inner = account
        for each in account.line():
            limit = LIMITS[amount].get(each.scope)
            if limit is not None and not self._allows(each, inner, limit, amount, count):
                return reached(limit)
            inner = each
        return None

    def refusal_here(self, account: Account, amount: Amount, count: int = 1) -> LimitReached | None:
        """The limit of this account alone that it would pass."""
        limit = LIMITS[amount][account.scope]
        return None if self._allows(account, account, limit, amount, count) else reached(limit)

    def overdrawn(self, account: Account, amount: Amount) -> Limit | None:
        """The limit that the user or a network of a client has passed, if the client has its average or more.

        Who has less than the average of its user has not caused it.
        """
        for each in account.line():
            limit = LIMITS[amount].get(each.scope)
            if limit is None or each is account:
                continue
            most, has = self._values[limit] or self._shared(each, amount), each.amounts[amount]
            if 0 < most < has <= account.amounts[amount] * each.amounts[Amount.SESSIONS]:
                return limit
        return None

    def refusal_of_session(self, owner: Owner, existing: Account | None = None) -> LimitReached | None:
        """The limit that one more session of an owner would pass. `existing`: the client's session that it replaces.

        If `existing` belongs to the same owner, the new session is not one more.
        """
        account = self.visit(owner)
        is_there = existing is not None and existing.parent is account
        found = self.refusal(account, Amount.SESSIONS, 0 if is_there else 1)
        self.leave(account)
        return found

    def _allows(self, account: Account, inner: Account, limit: Limit, amount: Amount, count: int) -> bool:
        """Whether an account may have so much more. `inner` is the account inside it for which the question is."""
        most = self._values[limit] or self._shared(account, amount)
        has = account.amounts[amount] + count
        if not most or has <= most - (most // _RESERVED if account.parent is None else 0):
            return True
        return account.parent is None and has <= most and inner.amounts[amount] + count <= max(1, most // _LITTLE)

    def _shared(self, account: Account, amount: Amount) -> int:
        """The budget of a user, an address or a prefix without a limit of its own; 0: no limit."""
        of_client = LIMITS[amount].get(Scope.CLIENT)
        if of_client is None or account.scope in (Scope.CLIENT, Scope.ALL):
            return 0
        return self._values[of_client] * _shares(account)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _of_owner(self, owner: Owner) -> Account:
        if owner.user is not None:
            return self._account((Scope.USER, _short(owner.user)), self.everybody)
        account, mark = self.everybody, _digest(owner.application) if owner.application else b""
        *prefixes, network = prefixes_of(owner.network)
        for prefix in prefixes:
            account = self._account((Scope.PREFIX, mark + prefix), account)
        return self._account((Scope.ADDRESS, mark + network), account)

    def _account(self, key: Key, parent: Account) -> Account:
        found = self._accounts.get(key)
        if found is None:
            parent.uses += 1
            found = self._accounts[key] = Account(key, parent)
            found.spent_s, found.connected_s = self._times.pop(key, _LONG_AGO)
        return found

    def _leave_if_unused(self, account: Account) -> None:
        """Forgets an account without amounts, so that a client that was here once costs no memory for ever."""
        if account.uses or account.parent is None:
            return
        del self._accounts[account.key]
        self._keep_time(account)
        self.leave(account.parent)

    def _keep_time(self, account: Account) -> None:
        """Keeps the time that an account has spent, so that a client cannot reset its rates by coming back."""
        if max(account.spent_s, account.connected_s) + BURST_S > self._now_s:
            self._times[account.key] = account.spent_s, account.connected_s
        while self._times and (
            len(self._times) > KEPT_TIMES or max(next(iter(self._times.values()))) + BURST_S <= self._now_s
        ):
            self._times.popitem(last=False)


def _shares(account: Account) -> int:
    """How many budgets of a client a user, an address or a prefix has, if it has no limits of its own."""
    return max(LEAST_SHARES, account.amounts[Amount.SESSIONS] // SESSIONS_OF_SHARE)


def _short(name: str) -> str | bytes:
    return name if len(name) <= _LONGEST_NAME else _digest(name)


def _digest(name: str) -> bytes:
    """16 bytes, longer than any network."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()
