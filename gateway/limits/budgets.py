"""Budgets: what a client, and everybody around it, has and uses. Amounts nest, and the limit of every scope holds.

    client identifier  within its user                           within all clients
    client identifier  within its address  within its prefix     within all clients      (without a user)

An `Account` is one node of that tree. A client's account stands for its session: `open` makes it and charges one
session, and `close` gives back everything that it still has. A session that goes to another user takes its amounts
along (`move`).

Whoever causes an amount asks first, charges then, and releases later:

    if (reached := budgets.refusal(session.account, Amount.SUBSCRIPTIONS)) is not None:
        ...                                            refuse by reached.reason_code, and tell reached.told
    session.account.charge(Amount.SUBSCRIPTIONS)
    session.account.charge(Amount.SUBSCRIPTIONS, -1)   release

To charge a new amount: write its row in gateway/config/limits.py, and a row for each wider scope by `LimitRow.of`; add
a member to `Amount`, and its limits by scope to `LIMITS`; ask and charge where the cost arises. The store keeps nothing
of a budget, so charge the amount also where a restart loads what was charged (gateway/bridge/sessions.py).

A user, an address or a prefix without a limit of its own has the budget of some clients, and of more if it has many
sessions: thousands of sensors may share a user. The last tenth of what all clients may have is kept for those who have
little, so that one who takes everything locks nobody out.

Memory is bounded: an account is there as long as a session or a connection that is charged to it, and these have
limits. This room has no clock.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import Final, NamedTuple

from gateway.config.limits import LEAST_SHARES, SESSIONS_OF_SHARE, Limit, MqttLimits, Scope
from gateway.limits.addresses import prefix_of
from gateway.limits.refusals import LimitReached, reached


class Amount(IntEnum):
    """What an account has until it is released."""

    SESSIONS = 0
    SUBSCRIPTIONS = 1
    LEVELS = 2


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
}
"""The limits of each amount, by scope. A scope that is not here has none."""

#: Names longer than this are kept as their hash: a client identifier may have 64 KiB.
_LONGEST_NAME: Final = 64
#: One part in so many of what all clients may have is kept for users and prefixes that have little.
_RESERVED: Final = 10
#: One part in so many of it is little.
_LITTLE: Final = 100

Key = tuple[Scope, str | bytes]


class Owner(NamedTuple):
    """Whose a client is: its user's, or that of the network that it comes from (addresses.network_of)."""

    user: str | None
    network: bytes = b""


class Account:
    """What one client, user, address or prefix has, or all clients together. `amounts` is by `Amount`."""

    __slots__ = ("amounts", "key", "parent", "uses")

    def __init__(self, key: Key, parent: "Account | None") -> None:
        self.key = key
        self.parent = parent
        #: How many accounts are charged here too; of a client 1 while it has its session.
        self.uses = 0
        self.amounts = [0] * len(Amount)

    @property
    def scope(self) -> Scope:
        return self.key[0]

    def charge(self, amount: Amount, count: int = 1) -> None:
        """Charges an amount here and to everybody around. A negative count releases it."""
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
        self._values = {
            limit: int(getattr(limits, limit.key)) for scopes in LIMITS.values() for limit in scopes.values()
        }
        self._accounts: dict[Key, Account] = {}
        #: What all clients together have.
        self.everybody = Account((Scope.ALL, ""), None)

    def __len__(self) -> int:
        """Accounts that are kept, without that of everybody."""
        return len(self._accounts)

    # -- the accounts --------------------------------------------------------------------------------------------------

    def open(self, client: str, owner: Owner) -> Account:
        """The account of a client that begins a session, with that session charged. `close` must follow."""
        account = self._account((Scope.CLIENT, _short(client)), self._of_owner(owner))
        account.uses += 1
        account.charge(Amount.SESSIONS)
        return account

    def close(self, account: Account) -> None:
        """The session of a client has ended: everything that it had is released."""
        for amount in Amount:
            account.charge(amount, -account.amounts[amount])
        self._leave(account)

    def move(self, account: Account, owner: Owner) -> None:
        """A client's session belongs to another user now, or comes from another network, with everything it has."""
        before, after = account.parent, self._of_owner(owner)
        if before is after or before is None:
            self._leave_if_unused(after)
            return
        after.uses += 1
        for amount in Amount:
            before.charge(amount, -account.amounts[amount])
            after.charge(amount, account.amounts[amount])
        account.parent = after
        self._leave(before)

    # -- asking --------------------------------------------------------------------------------------------------------

    def refusal(self, account: Account, amount: Amount, count: int = 1) -> LimitReached | None:
        """The narrowest limit that an account would pass with so much more; None if it may be charged."""
        inner = account
        for each in account.line():
            limit = LIMITS[amount].get(each.scope)
            if limit is not None and not self._allows(each, inner, limit, amount, count):
                return reached(limit)
            inner = each
        return None

    def refusal_of_session(self, owner: Owner, existing: Account | None = None) -> LimitReached | None:
        """The limit that one more session of an owner would pass; `existing`: the client's session, which is no more.

        A session of the same owner that is there already does not count.
        """
        account = self._of_owner(owner)
        is_there = existing is not None and existing.parent is account
        found = self.refusal(account, Amount.SESSIONS, 0 if is_there else 1)
        self._leave_if_unused(account)
        return found

    def _allows(self, account: Account, inner: Account, limit: Limit, amount: Amount, count: int) -> bool:
        """Whether an account may have so much more. `inner` is the account inside it that asks."""
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
        return self._values[of_client] * max(LEAST_SHARES, account.amounts[Amount.SESSIONS] // SESSIONS_OF_SHARE)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _of_owner(self, owner: Owner) -> Account:
        if owner.user is not None:
            return self._account((Scope.USER, _short(owner.user)), self.everybody)
        prefix = self._account((Scope.PREFIX, prefix_of(owner.network)), self.everybody)
        return self._account((Scope.ADDRESS, owner.network), prefix)

    def _account(self, key: Key, parent: Account) -> Account:
        found = self._accounts.get(key)
        if found is None:
            parent.uses += 1
            found = self._accounts[key] = Account(key, parent)
        return found

    def _leave(self, account: Account) -> None:
        account.uses -= 1
        self._leave_if_unused(account)

    def _leave_if_unused(self, account: Account) -> None:
        """Forgets an account to which nothing is charged: a client that was here once costs no memory for ever."""
        if account.uses or account.parent is None:
            return
        del self._accounts[account.key]
        self._leave(account.parent)


def _short(name: str) -> str | bytes:
    return name if len(name) <= _LONGEST_NAME else blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()
