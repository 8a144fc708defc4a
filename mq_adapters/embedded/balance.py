"""The balance: every message and publication that came in has gone out, waits, or ended for a reason.

Two identities hold at any time, for each queue and in all:

    messages       begin + put = taken + forwarded + redriven + expired + cleared + dead-lettered + dropped by rule
                   + session ended + gone at a stop + waiting
    publications   begin + received + wills = repeats + published + refused + dropped by rule + given up
                   + gone at a stop + held + in hand

Commits count the messages that come and go (embedded/counters.py). This module counts waiting messages, from their rows
or from the index of a running queue manager. No number is kept beside these, so a message that vanished shows as a
difference. Copies link the two identities: a publication is put as often as the broker finds subscribers. The broker's
own copies of retained publications are on no queue and in no sum. Audit notes are messages on a queue like all others.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

import apsw

from mq_adapters.embedded.counters import (
    StoredAccount,
    StoredPublications,
    is_publications,
    unpack_account,
    unpack_publications,
)
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store.checksums import state_checksum
from mq_adapters.embedded.store.layout import APPLICATION_ID, USER_VERSION
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.embedded.store.verification import reading
from mq_adapters.embedded.unit_of_work import Departure, PublicationCounter, StateKind
from mq_adapters.reasons import StoreError

#: Temporary and deleted queues share one line under this name.
FORMER_QUEUES: Final = "(deleted and temporary queues)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The counters of messages, on the disk or in memory. The names are those of QUEUE_COUNTERS."""

    begin: int = 0
    put: int = 0
    taken: int = 0
    forwarded: int = 0
    redriven: int = 0
    expired: int = 0
    cleared: int = 0
    dead_lettered: int = 0
    dropped_by_rule: int = 0
    session_ended: int = 0
    gone_at_a_stop: int = 0
    waiting: int = 0

    @property
    def difference(self) -> int:
        """How many messages are missing; below 0, how many are too many."""
        return self.begin + self.put - sum(map(self._number, _WENT_OR_WAITS))

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names of all counters, and of the number that waits."""
        return _MESSAGE_NAMES

    def counted(self) -> Iterable[tuple[str, int]]:
        """Name and number of each counter, without the number that waits."""
        return ((name, self._number(name)) for name in _MESSAGE_NAMES if name != "waiting")

    def _number(self, name: str) -> int:
        number: int = getattr(self, name)
        return number

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: self._number(name) + other._number(name) for name in _MESSAGE_NAMES})


_MESSAGE_NAMES: Final = tuple(field.name for field in fields(Messages))
_WENT_OR_WAITS: Final = tuple(name for name in _MESSAGE_NAMES if name not in ("begin", "put"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBalance:
    """The lines of one queue. A persistent message that stays in memory counts as one that is not persistent."""

    name: str
    persistent: Messages
    not_persistent: Messages

    @property
    def together(self) -> Messages:
        return self.persistent + self.not_persistent

    @property
    def adds_up(self) -> bool:
        return not (self.persistent.difference or self.not_persistent.difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationBalance:
    """The counters of publications. The names are those of PUBLICATION_COUNTERS. `copies` are in no sum.

    `held` ones wait for PUBREL. `in_hand` ones wait in memory, unanswered, for room at a target or on the disk.
    """

    begin: int
    received: int
    repeats: int
    wills: int
    published: int
    refused: int
    dropped_by_rule: int
    given_up: int
    copies: int
    gone_at_a_stop: int
    held: int
    in_hand: int

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names of all counters, and of the numbers held and in hand."""
        return _PUBLICATION_NAMES

    def counted(self) -> Iterable[tuple[str, int]]:
        """Name and number of each counter, without the numbers held and in hand."""
        return ((name, getattr(self, name)) for name in _PUBLICATION_NAMES if name not in ("held", "in_hand"))

    @property
    def difference(self) -> int:
        """How many publications are missing; below 0, how many are too many."""
        came = self.begin + self.received + self.wills
        ended = self.published + self.refused + self.dropped_by_rule + self.given_up + self.gone_at_a_stop
        return came - self.repeats - ended - self.held - self.in_hand


_PUBLICATION_NAMES: Final = tuple(field.name for field in fields(PublicationBalance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Both identities at one moment."""

    queues: tuple[QueueBalance, ...]
    publications: PublicationBalance

    @property
    def in_all(self) -> QueueBalance:
        nothing = Messages()
        return QueueBalance(
            name="in all",
            persistent=sum((each.persistent for each in self.queues), nothing),
            not_persistent=sum((each.not_persistent for each in self.queues), nothing),
        )

    @property
    def adds_up(self) -> bool:
        return all(each.adds_up for each in self.queues) and not self.publications.difference


# -- a running queue manager -------------------------------------------------------------------------------------------


def running_queues(engine: Engine) -> dict[str, Messages]:
    """The counters of each queue, persistent messages and others together, by the index in memory.

    It takes some milliseconds with 10,000 sessions.
    """
    waiting = engine.waiting()
    return {
        account.name or FORMER_QUEUES: _messages(0, 0, waiting[account.name], account.counts[0])
        + _messages(account.begin, account.gone, 0, account.counts[1])
        for account in engine.counters.accounts()
    }


def running_publications(engine: Engine, held: int) -> PublicationBalance:
    """The counters of publications, including those that wait for their commit. `held`: between PUBLISH and PUBREL."""
    return _publication_balance(engine.counters.running_publications(), held)


# -- a store -----------------------------------------------------------------------------------------------------------


def read_balance(data_dir: Path) -> Balance | None:
    """The balance of the store of a data folder at one moment; a gateway may be running meanwhile.

    Messages that are only in memory are counted as in the last commit, at most a second ago. None if the store has no
    counters, because no program that counts has opened it. StoreError if there is no store, or it is unreadable.
    """
    path = data_dir / FILE_NAME
    if not path.is_file():
        raise StoreError(f"read the balance of {path}", "there is no store", "name the data folder with --data")
    with reading(path) as connection:
        version = (connection.pragma("application_id"), connection.pragma("user_version"))
        if version[0] != APPLICATION_ID or version[1] > USER_VERSION:
            raise StoreError(f"read the balance of {path}", "it is of another program", "use the one that wrote it")
        return _read(connection) if version[1] == USER_VERSION else None


def _read(connection: apsw.Connection) -> Balance | None:
    accounts: dict[str, StoredAccount] = {}
    publications: StoredPublications | None = None
    for key, value in _rows(connection):
        if is_publications(key):
            publications = unpack_publications(value)
        else:
            account = unpack_account(key, value)
            accounts[account.name] = account
    if publications is None:
        return None
    waiting = _waiting(connection)
    statement = "SELECT count(*) FROM state WHERE space = ?"
    held = int(connection.execute(statement, (int(StateKind.SESSION_INCOMING),)).get)
    return Balance(
        queues=tuple(_queue_balance(name, accounts.get(name), waiting[name]) for name in sorted({*accounts, *waiting})),
        publications=_publication_balance(publications, held),
    )


def _rows(connection: apsw.Connection) -> Iterable[tuple[bytes, bytes]]:
    kind = int(StateKind.BALANCE)
    for key, value, checksum in connection.execute("SELECT key, value, checksum FROM state WHERE space = ?", (kind,)):
        if state_checksum(kind, key, value) != checksum:
            hint = "look at the disk; see what else is damaged with 'rfhbridge queue verify'"
            raise StoreError(f"read the counters {key!r:.60}", "they are not as they were written", hint)
        yield key, value


def _waiting(connection: apsw.Connection) -> Counter[str]:
    """The persistent messages of each queue that is defined, by their rows."""
    names = dict(connection.execute("SELECT id, name FROM queue"))
    waiting = Counter(dict.fromkeys(names.values(), 0))
    for number, count in connection.execute("SELECT queue, count(*) FROM message GROUP BY queue"):
        waiting[names.get(number, f"(number {number}, not defined)")] = count
    return waiting


def _queue_balance(name: str, account: StoredAccount | None, waiting: int) -> QueueBalance:
    if account is None:
        return QueueBalance(name=name, persistent=Messages(waiting=waiting), not_persistent=Messages())
    return QueueBalance(
        name=name or FORMER_QUEUES,
        persistent=_messages(account.begin, 0, waiting, account.persistent),
        not_persistent=_messages(0, account.gone, account.waiting, account.others),
    )


def _names_of(kinds: Iterable[Departure | PublicationCounter]) -> tuple[tuple[str, int], ...]:
    """The name of each counter here, and its place among the counts."""
    return tuple((_NAMES.get(kind.name, kind.name.lower()), int(kind)) for kind in kinds)


_NAMES: Final = {"DROPPED": "dropped_by_rule"}
_OF_DEPARTURES: Final = (("put", 0), *_names_of(Departure))
_OF_PUBLICATIONS: Final = _names_of(PublicationCounter)


def _messages(begin: int, gone: int, waiting: int, counts: list[int]) -> Messages:
    counted = {name: counts[place] for name, place in _OF_DEPARTURES}
    return Messages(begin=begin, gone_at_a_stop=gone, waiting=waiting, **counted)


def _publication_balance(stored: StoredPublications, held: int) -> PublicationBalance:
    counted = {name: stored.counts[place] for name, place in _OF_PUBLICATIONS}
    return PublicationBalance(
        begin=stored.begin, gone_at_a_stop=stored.gone, held=held, in_hand=stored.in_hand, **counted
    )
