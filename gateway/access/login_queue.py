"""The queue of passwords that wait for their check: which is next, and which gives way where there is no more room.

A check is dear (25 ms of a core), and anybody may ask for one with 25 bytes. So turns are shared, level by level:

    who logged in lately   a user who comes from where it came from (recent_logins) goes before everybody else;
                           newcomers still have every eighth check, and an eighth of the places
    prefix                 /16 of IPv4, /48 of IPv6
    prefix                 /24 of IPv4, /64 of IPv6
    address                of IPv4
    user name              whose password it is said to be

At each level those take turns that have no debt; then the others come, the least debt first. A wrong password is a debt
of one minute, of its prefixes, its address and its user name. A right one pays one back. So a flood costs its senders
their turns, and a fleet behind one address keeps its own.

In a full queue somebody gives way: of a few that are drawn by lot the one with most debt, or with most that wait from
the same place. A newcomer with a debt brings a lot as soon as half of the places are taken, with a probability that
rises to 1. The lot keeps an attacker from knowing a moment at which the queue has room for him alone.
Sources: R. Pan, B. Prabhakar, K. Psounis, CHOKe, 2000 (the lot); S. Floyd, V. Jacobson, Random Early Detection, 1993
(the probability). Nothing here asks a clock: time and chance are handed in.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Final, Generic, TypeVar

from gateway.limits.addresses import prefixes_of

Asked = TypeVar("Asked")

#: The debt of a wrong password, and the most that anybody has: what is older is forgiven, for addresses change hands.
WRONG_PASSWORD_S: Final = 60.0
MAXIMUM_DEBT_S: Final = 600.0
#: One check and one place of so many are for newcomers, however many come who logged in lately.
NEWCOMERS_SHARE: Final = 8
#: Drawn when somebody must give way.
_DRAWN: Final = 8
#: From here on a newcomer with a debt may bring a lot, as a share of the places.
_EARLY: Final = 0.5
#: Debts that are kept at each level, at some 200 bytes each; the one that has not grown for longest is forgotten.
_KEPT_DEBTS: Final = 8_192
_USER_BYTES: Final = 8


class _Branch(Generic[Asked]):
    """A prefix, an address or a user name with logins that wait; `turn`: when it was last served, or came."""

    __slots__ = ("children", "key", "line", "owed", "parent", "turn", "waiting")

    def __init__(self, key: bytes, owed: "Owed", parent: "_Branch[Asked] | None", turn: int) -> None:
        self.key = key
        #: The debts of its level.
        self.owed = owed
        self.parent = parent
        self.turn = turn
        self.waiting = 0
        self.children: dict[bytes, _Branch[Asked]] = {}
        #: Of a user name: its logins, in the order of arrival.
        self.line: OrderedDict[WaitingLogin[Asked], None] = OrderedDict()

    def owes_until_s(self, now_s: float) -> float:
        """Until when it has a debt; 0 where it has none."""
        until_s = self.owed.get(self.key, 0.0)
        return until_s if until_s > now_s else 0.0


class WaitingLogin(Generic[Asked]):
    """A login in the queue. `asked` is the caller's own; `is_lately`: the user logged in from there lately."""

    __slots__ = ("asked", "is_lately", "line", "path", "place")

    def __init__(self, asked: Asked, *, network: bytes = b"", user: str = "", is_lately: bool = False) -> None:
        """`network`: what the client's address is counted under (limits.addresses)."""
        self.asked = asked
        self.is_lately = is_lately
        name = hashlib.blake2b(user.encode(errors="surrogatepass"), digest_size=_USER_BYTES).digest()
        #: Of each level what the login belongs to there; those of different levels differ in length.
        self.path = (*prefixes_of(network), network + b"/" + name)
        self.line: _Branch[Asked] | None = None
        #: Its index among all that wait in its room.
        self.place = 0


#: Until when each has a debt, by its key; the one that has not grown for longest stands first.
Owed = OrderedDict[bytes, float]


class Debts:
    """Until when each prefix, address and user name has a debt, in seconds of the clock that is handed in."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._levels: list[Owed] = []

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def at(self, level: int) -> Owed:
        """The debts of one level, the widest prefix being 0."""
        while len(self._levels) <= level:
            self._levels.append(OrderedDict())
        return self._levels[level]

    def has(self, path: tuple[bytes, ...]) -> bool:
        """Whether some level of a path has a debt."""
        now_s = self.now_s()
        return any(self.at(level).get(key, 0.0) > now_s for level, key in enumerate(path))

    def add(self, path: tuple[bytes, ...], seconds: float) -> None:
        """Adds to the debts of a path; a negative number pays back."""
        now_s = self.now_s()
        for level, key in enumerate(path):
            owed = self.at(level)
            debt_s = max(0.0, owed.pop(key, 0.0) - now_s) + seconds
            if debt_s > 0:
                owed[key] = now_s + min(MAXIMUM_DEBT_S, debt_s)
            if len(owed) > _KEPT_DEBTS:
                owed.popitem(last=False)


class _Room(Generic[Asked]):
    """Those who wait, as a tree for the turns and as a list for the lot."""

    def __init__(self, debts: Debts, random: Random) -> None:
        self.waiting: list[WaitingLogin[Asked]] = []
        self._debts = debts
        self._random = random
        self._root: _Branch[Asked] = _Branch(b"", OrderedDict(), None, 0)
        self._turn = 0

    def enter(self, login: WaitingLogin[Asked]) -> None:
        self._turn += 1
        branch = self._root
        branch.waiting += 1
        for level, key in enumerate(login.path):
            child = branch.children.get(key)
            if child is None:
                child = branch.children[key] = _Branch(key, self._debts.at(level), branch, self._turn)
            child.waiting += 1
            branch = child
        branch.line[login] = None
        login.line, login.place = branch, len(self.waiting)
        self.waiting.append(login)

    def leave(self, login: WaitingLogin[Asked]) -> None:
        last = self.waiting.pop()
        if last is not login:
            self.waiting[login.place], last.place = last, login.place
        branch = login.line
        assert branch is not None, "it has entered"
        del branch.line[login]
        login.line = None
        while branch is not None:
            branch.waiting -= 1
            if branch.parent is not None and not branch.waiting:
                del branch.parent.children[branch.key]
            branch = branch.parent

    def next(self) -> WaitingLogin[Asked]:
        """Takes out the login whose turn it is; there must be one."""
        self._turn += 1
        branch, now_s = self._root, self._debts.now_s()
        while branch.children:
            branch = min(branch.children.values(), key=lambda each: (each.owes_until_s(now_s), each.turn))
            branch.turn = self._turn
        login = next(iter(branch.line))
        self.leave(login)
        return login

    def loser(self, newest: WaitingLogin[Asked]) -> WaitingLogin[Asked]:
        """Who must give way: the newest of the line of whoever is worst among some that are drawn.

        `newest` has just come, into this room or another.
        """
        drawn = [self._random.choice(self.waiting) for _ in range(_DRAWN)]
        if newest.line is not None and self.waiting[newest.place : newest.place + 1] == [newest]:
            drawn.append(newest)
        now_s = self._debts.now_s()
        line = max(drawn, key=lambda each: _weight(each, now_s)).line
        assert line is not None, "it waits"
        return next(reversed(line.line))


def _weight(login: WaitingLogin[Asked], now_s: float) -> list[tuple[float, int]]:
    """For each level, the widest first, the debt and the number of those who wait."""
    weights: list[tuple[float, int]] = []
    branch = login.line
    while branch is not None and branch.parent is not None:
        weights.append((branch.owes_until_s(now_s), branch.waiting))
        branch = branch.parent
    return weights[::-1]


class LoginQueue(Generic[Asked]):
    """Every login from its arrival to the end of its check.

    offer()      a login comes; returns the one that gives way for want of room: another, or itself
    take()       the next one, for a check that begins now
    finished()   the check is over
    """

    def __init__(self, places: int, *, now_s: Callable[[], float], random: Random) -> None:
        """`places`: logins that wait or are being checked. `now_s`: a clock that never goes back."""
        self._places = places
        self._random = random
        self.debts = Debts(now_s)
        self._lately: _Room[Asked] = _Room(self.debts, random)
        self._newcomers: _Room[Asked] = _Room(self.debts, random)
        self._under_way = 0
        self._taken = 0

    @property
    def waiting(self) -> int:
        """Logins whose check has not begun."""
        return len(self._lately.waiting) + len(self._newcomers.waiting)

    @property
    def unfinished(self) -> int:
        """These, and the logins that are being checked."""
        return self.waiting + self._under_way

    def offer(self, login: WaitingLogin[Asked]) -> WaitingLogin[Asked] | None:
        """Takes in a login. Returns the one that must be refused now, if any."""
        room = self._lately if login.is_lately else self._newcomers
        is_early = self._is_early(login)
        room.enter(login)
        if self.unfinished > self._places:
            room = self._room_that_gives_way()
        elif not is_early:
            return None
        loser = room.loser(login)
        room.leave(loser)
        return loser

    def take(self) -> WaitingLogin[Asked] | None:
        """The next login, which is being checked from now on; None where nobody waits."""
        if not self.waiting:
            return None
        self._taken += 1
        is_for_newcomers = not self._lately.waiting or not self._taken % NEWCOMERS_SHARE
        room = self._newcomers if is_for_newcomers and self._newcomers.waiting else self._lately
        self._under_way += 1
        return room.next()

    def finished(self, login: WaitingLogin[Asked], is_right: bool | None) -> None:
        """The check is over; None: it was not made."""
        self._under_way -= 1
        if is_right is None:
            return
        self.debts.add(login.path, -WRONG_PASSWORD_S if is_right else WRONG_PASSWORD_S)

    def clear(self) -> None:
        """Forgets all that wait."""
        for room in (self._lately, self._newcomers):
            while room.waiting:
                room.leave(room.waiting[-1])

    def _is_early(self, login: WaitingLogin[Asked]) -> bool:
        """Whether a newcomer must give way although there is room, or another newcomer with more debt."""
        excess = self.unfinished / self._places - _EARLY
        if excess <= 0 or login.is_lately or not self.debts.has(login.path):
            return False
        return self._random.random() < excess / (1 - _EARLY)

    def _room_that_gives_way(self) -> _Room[Asked]:
        newcomers = len(self._newcomers.waiting)
        reserved = max(1, self._places // NEWCOMERS_SHARE)
        return self._newcomers if newcomers > reserved or not self._lately.waiting else self._lately
