"""The durable counters of the balance: the end of every message and publication, counted in the commit itself.

`COUNTERS` is the table of all counters. Counts are kept in memory, as they stand after the last complete group.
`GroupCommit` asks for the rows that a group changes (`rows`) and writes them in the group's own transaction, so that
counters and messages agree at every instant. It calls `settle` when the group is complete.

A row is state of kind BALANCE, a list of numbers packed by ormsgpack, which may grow at its end:

    key b"q" + name    [begin, gone at a stop, waiting in memory, [on the disk], [only in memory]]
    key b"q"           the same, of temporary queues and of queues that are deleted
    key b"p"           [begin, gone at a stop, in hand, [publications]]; it is there as soon as anything is counted

Each inner list has puts first, then departures by their number (`Departure`); that of the publications is by number
(`PublicationCounter`). Waiting messages have no counter. Persistent ones are counted from their rows. The others are
counted from the index in memory at the moment of the commit, and the row keeps that number, because the index is gone
after a stop. `begin` has the messages that were there when a store of an earlier version began to count.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import ormsgpack

from mq_adapters.embedded.unit_of_work import Departure, PublicationCounter, StateKind, UnitOfWork
from mq_adapters.reasons import StoreError

if TYPE_CHECKING:
    from mq_adapters.embedded.queue import Queue


class Counter(NamedTuple):
    """One counter: its name in the balance, its meaning, and the place in the code that counts."""

    name: str
    what: str
    where: str


_REMOVED: Final = "UnitOfWork.remove, by its reason"
#: Every counter of a queue, once for persistent messages and once for others. Then the counters of publications.
QUEUE_COUNTERS: Final = (
    Counter("begin", "messages that were there when the counting began", "Counters.begin, from the index"),
    Counter("put", "messages that were committed on the queue", "Counters, from the puts of the group"),
    Counter("taken", "got by an application, a client or the gateway itself", _REMOVED),
    Counter("forwarded", "sent to another queue manager, or converted onto another queue", _REMOVED),
    Counter("redriven", "dead letters that were put back", _REMOVED),
    Counter("expired", "past their expiry", _REMOVED),
    Counter("cleared", "destroyed by an operator: cleared, purged, set aside", _REMOVED + "; Objects.delete_queue"),
    Counter("dead_lettered", "moved to a dead-letter queue", _REMOVED),
    Counter("dropped_by_rule", "destroyed by a rule that the trail names", _REMOVED),
    Counter("session_ended", "destroyed with the session that they waited for", _REMOVED),
    Counter("gone_at_a_stop", "only in memory when the gateway stopped", "Counters.load"),
)
PUBLICATION_COUNTERS: Final = (
    Counter("begin", "held between PUBLISH and PUBREL when the counting began", "Counters.begin, from the rows"),
    Counter("received", "PUBLISH packets", "Bridge.receive, behind the parser"),
    Counter("repeats", "PUBLISH packets of a message that is held", "Intake"),
    Counter("wills", "wills that were due", "Endings"),
    Counter("published", "put as a publication, here or for a target", "ToMq"),
    Counter("refused", "answered with a refusal, or ended the connection", "Intake, ToMq"),
    Counter("dropped_by_rule", "without room, expired or ended before PUBREL, its identifier taken", "Intake, ToMq"),
    Counter("given_up", "unanswered when the connection ended; the client sends them again", "PausedPublishers"),
    Counter("copies", "copies that the broker put for subscribers; in no sum", "Distributor"),
    Counter("gone_at_a_stop", "unanswered when the gateway stopped; the client sends them again", "Counters.load"),
)

_QUEUE: Final = b"q"
_PUBLICATIONS: Final = b"p"
_KINDS: Final = 1 + max(Departure)
_Pair = tuple[list[int], list[int]]
_Row = tuple[int, bytes, bytes | None]


def _nothing() -> _Pair:
    return [0] * _KINDS, [0] * _KINDS


class QueueAccount:
    """The counters of one queue's messages, or of all queues that are temporary or deleted (`name` "")."""

    __slots__ = ("begin", "counts", "gone", "name", "not_persistent")

    def __init__(self, name: str) -> None:
        self.name = name
        #: Persistent messages that the store had when the counting began.
        self.begin = 0
        #: Messages that were only in memory, and were lost with it when a gateway stopped.
        self.gone = 0
        #: Puts, then departures by number; once for persistent messages, once for others.
        self.counts = _nothing()
        #: The numbers of the committed messages that are only in memory, including taken ones.
        self.not_persistent: set[int] = set()

    def row(self, change: _Pair | None = None) -> _Row:
        """The row of state, with the changes of a group."""
        persistent, others = self.counts
        waiting = len(self.not_persistent)
        if change is not None:
            persistent, others = _sum(persistent, change[0]), _sum(others, change[1])
            waiting += change[1][0] - sum(change[1][1:])
        return StoredAccount(self.name, self.begin, self.gone, waiting, persistent, others).row()

    def add(self, change: _Pair) -> None:
        for counts, changes in zip(self.counts, change, strict=True):
            for place, number in enumerate(changes):
                counts[place] += number


#: Stands for the account of a deleted queue, which counts no more.
CLOSED: Final = QueueAccount("")


class StoredAccount(NamedTuple):
    """An account as its row says it."""

    name: str
    begin: int
    gone: int
    waiting: int
    persistent: list[int]
    others: list[int]

    def row(self) -> _Row:
        return (StateKind.BALANCE, _QUEUE + self.name.encode(), ormsgpack.packb([*self[1:]]))


class StoredPublications(NamedTuple):
    """The counters of the publications as their row says them."""

    begin: int
    gone: int
    in_hand: int
    counts: list[int]


class _Tally:
    """The changes of one group."""

    __slots__ = ("accounts", "publications")

    def __init__(self, group: Iterable[UnitOfWork]) -> None:
        self.accounts: dict[QueueAccount, _Pair] = {}
        self.publications = [0] * len(PublicationCounter)
        account, change = CLOSED, _nothing()
        counts: list[int] = []
        for unit in group:
            for queue, message in unit.puts:
                if queue.account is not account:  # most of a group are on few queues
                    account, change = queue.account, self._of(queue.account)
                change[not message.is_stored][0] += 1
            for queue, message, departure in unit.removals:
                if queue.account is not account:
                    account, change = queue.account, self._of(queue.account)
                change[not message.is_stored][departure] += 1
            counts += unit.counts
        for what, number in Counts(counts).items():
            self.publications[what] += number
        self.accounts.pop(CLOSED, None)  # the queue's messages were cleared with it

    def _of(self, account: QueueAccount) -> _Pair:
        change = self.accounts.get(account)
        if change is None:
            change = self.accounts[account] = _nothing()
        return change


class Counters:
    """All counters of a queue manager. Not thread-safe: the engine's thread alone calls it."""

    def __init__(self) -> None:
        #: The account of temporary queues, and of queues that are deleted.
        self.former = QueueAccount("")
        self.publications = [0] * len(PublicationCounter)
        self.publications_begin = 0
        self.publications_gone = 0
        #: How many PUBLISH packets wait unanswered in memory. They were counted as received at once.
        self.in_hand: Callable[[], int] = lambda: 0
        #: The units of work that are not yet committed.
        self.under_way: Callable[[], Iterable[UnitOfWork]] = tuple
        self._accounts: dict[str, QueueAccount] = {"": self.former}
        #: Accounts whose rows in the store are older than they are.
        self._unwritten: set[QueueAccount] = set()
        self._staged: _Tally | None = None
        self._written = b""
        self._staged_publications = b""
        #: Messages by queue that were only in memory, and were not known to be delivered, when the last run ended.
        self.lost: dict[str, int] = {}
        #: Whether the store has counters. If not, they begin now.
        self.has_begun = False

    def account(self, name: str) -> QueueAccount:
        """The account of a defined queue."""
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = QueueAccount(name)
        return account

    def accounts(self) -> tuple[QueueAccount, ...]:
        return tuple(self._accounts.values())

    # -- the start -----------------------------------------------------------------------------------------------------

    def load(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes over the store's counters. Counts messages that were only in memory as gone at a stop."""
        for key, value in rows:
            if key == _PUBLICATIONS:
                stored = unpack_publications(value)
                self.publications = stored.counts
                self.publications_begin = stored.begin
                self.publications_gone = stored.gone + stored.in_hand
                self.has_begun = True
            else:
                found = unpack_account(key, value)
                account = self.account(found.name)
                account.begin, account.gone = found.begin, found.gone + found.waiting
                account.counts = (found.persistent, found.others)
                if found.waiting:
                    self.lost[found.name] = found.waiting
                    self._unwritten.add(account)

    def begin(self, queues: Iterable["Queue"], held: int) -> None:
        """Begins to count in a store without counters. Its present messages count as there before."""
        self.has_begun = True
        self.publications_begin = held
        for queue in queues:
            queue.account.begin = queue.depth
            self._unwritten.add(queue.account)

    def count(self, what: PublicationCounter, number: int) -> None:
        """Counts at once, without a commit: a packet that came, or one that nobody will answer."""
        self.publications[what] += number

    # -- groups --------------------------------------------------------------------------------------------------------

    def rows(self, group: Iterable[UnitOfWork]) -> list[_Row]:
        """The rows to write with a group: those that it changes, and those that the store lacks."""
        tally = self._staged = _Tally(group)
        rows = [account.row(change) for account, change in tally.accounts.items()]
        unwritten, self._unwritten = self._unwritten, set()
        rows += [account.row() for account in unwritten if account not in tally.accounts]
        packed = self._staged_publications = self._packed_publications(_sum(self.publications, tally.publications))
        if packed != self._written:
            rows.append((StateKind.BALANCE, _PUBLICATIONS, packed))
        return rows

    def settle(self, group: Iterable[UnitOfWork]) -> None:
        """A group is complete: its changes count. They are in the store if `rows` was called for the group."""
        tally, self._staged = self._staged, None
        if tally is None:
            tally = _Tally(group)
            self._unwritten.update(tally.accounts)
        else:
            self._written = self._staged_publications
        for account, change in tally.accounts.items():
            account.add(change)
        self.publications = _sum(self.publications, tally.publications)

    def running_publications(self) -> "StoredPublications":
        """The counters of the publications at this moment, including units that are not complete yet."""
        counts = _sum(self.publications, _Tally(self.under_way()).publications)
        return StoredPublications(self.publications_begin, self.publications_gone, self.in_hand(), counts)

    @property
    def is_unwritten(self) -> bool:
        """Whether the store lacks counts that memory has."""
        return bool(self._unwritten) or self._packed_publications(self.publications) != self._written

    def _packed_publications(self, counts: list[int]) -> bytes:
        return ormsgpack.packb([self.publications_begin, self.publications_gone, self.in_hand(), counts])

    # -- queues that end -----------------------------------------------------------------------------------------------

    def closing_rows(self, queue: "Queue", waiting: int) -> list[_Row]:
        """The rows to be written when a queue is deleted with its `waiting` persistent messages; then `close`."""
        closed = QueueAccount("")
        _move(queue.account, closed, waiting)
        _add(self.former, closed)
        closed.not_persistent = self.former.not_persistent
        return [(StateKind.BALANCE, _QUEUE + queue.name.encode(), None), closed.row()]

    def close(self, queue: "Queue", waiting: int) -> None:
        """A queue was deleted, with its rows. Its counts move to the account of deleted queues."""
        _move(queue.account, self.former, waiting)
        del self._accounts[queue.name]
        self._unwritten.discard(queue.account)
        self._unwritten.add(self.former)  # a group under way may have written the account without these counts
        queue.account = CLOSED

    def close_temporary(self, queue: "Queue", numbers: Iterable[int]) -> None:
        """A temporary queue has ended, with the messages of these numbers."""
        queue.account = CLOSED
        cleared = self.former.not_persistent.intersection(numbers)
        self.former.counts[1][Departure.CLEARED] += len(cleared)
        self.former.not_persistent -= cleared
        self._unwritten.add(self.former)


def _move(account: QueueAccount, to: QueueAccount, waiting: int) -> None:
    """Adds an account to another one. The messages that waited on its queue have been cleared."""
    _add(account, to)
    to.counts[0][Departure.CLEARED] += waiting
    to.counts[1][Departure.CLEARED] += len(account.not_persistent)


def _add(account: QueueAccount, to: QueueAccount) -> None:
    to.add(account.counts)
    to.begin += account.begin
    to.gone += account.gone


def unpack_account(key: bytes, value: bytes) -> StoredAccount:
    """Reads the row of an account. Raises StoreError if it is damaged."""
    try:
        *single, persistent, others = ormsgpack.unpackb(value)[:5]
        begin, gone, waiting = _grown(single, 3)
        counts = [_grown(each, _KINDS) for each in (persistent, others)]
        return StoredAccount(key[1:].decode(), begin, gone, waiting, *counts)
    except (ValueError, TypeError) as error:
        raise _unreadable(key, error) from error


def unpack_publications(value: bytes) -> StoredPublications:
    """Reads the row of the publications. Raises StoreError if it is damaged."""
    try:
        *single, counts = ormsgpack.unpackb(value)[:4]
        begin, gone, in_hand = _grown(single, 3)
        return StoredPublications(begin, gone, in_hand, _grown(counts, len(PublicationCounter)))
    except (ValueError, TypeError) as error:
        raise _unreadable(_PUBLICATIONS, error) from error


def cleared_rows(rows: Iterable[tuple[bytes, bytes]], cleared: dict[str, int]) -> list[_Row]:
    """The rows of accounts after messages were destroyed in a store without a running gateway. Counts are by queue."""
    return _raised(rows, cleared, Departure.CLEARED)


def put_rows(rows: Iterable[tuple[bytes, bytes]], put: dict[str, int]) -> list[_Row]:
    """The rows of accounts after persistent messages were put in a store without a running gateway, by queue."""
    return _raised(rows, put, 0)


def _raised(rows: Iterable[tuple[bytes, bytes]], numbers: dict[str, int], place: int) -> list[_Row]:
    stored = dict(rows)
    if _PUBLICATIONS not in stored:
        return []
    changed: list[_Row] = []
    for name, number in numbers.items():
        key = _QUEUE + name.encode()
        nothing = StoredAccount(name, 0, 0, 0, *_nothing())
        account = unpack_account(key, stored[key]) if key in stored else nothing
        account.persistent[place] += number
        changed.append(account.row())
    return changed


def is_publications(key: bytes) -> bool:
    """Whether a key of kind BALANCE is that of the publications."""
    return key == _PUBLICATIONS


def _grown(counts: Any, length: int) -> list[int]:
    """The numbers of a row, filled up if an earlier version with fewer counters wrote it."""
    if not isinstance(counts, list) or any(type(number) is not int for number in counts):
        raise ValueError("a counter is no number")
    if len(counts) > length:
        raise ValueError(f"{len(counts)} counters, and this program knows {length}: a later version wrote them")
    return [*counts, *[0] * (length - len(counts))]


def _sum(first: list[int], second: list[int]) -> list[int]:
    return [one + other for one, other in zip(first, second, strict=True)]


def _unreadable(key: bytes, error: Exception) -> StoreError:
    return StoreError(
        f"read the counters {key!r:.60}", f"{type(error).__name__}: {error}", "restore the data folder from a backup"
    )
