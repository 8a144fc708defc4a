"""Shares of the dead-letter queue: how many letters, and bytes of them, each one has there who causes them.

The owner of a letter is the subscription of a copy, by its CorrelId, or else the client of its private origin. Its
payer is who answers for many owners, a user for example; whoever made the letter wrote the payer into its origin
(`Payers.marked`), so a restart finds it again. Letters are counted on whichever queue DEADQ names; where it names
another one, they are counted anew.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from mq_adapters.embedded.queue import Queue
from mq_adapters.message import MQCI_NONE, Message

LetterOwner = bytes | str
"""A CorrelId, or a client; "" is nobody."""
_Key = TypeVar("_Key", bytes, bytes | str)


class Payers(Protocol):
    """Who answers for the letters of many owners. A payer is b"" where nobody does."""

    def marked(self, letter: Message) -> bytes:
        """The private origin of a letter, with its payer written into it."""
        ...

    def unmarked(self, origin: bytes) -> bytes:
        """The private origin of the message that a letter holds, as it was before `marked`."""
        ...

    def of(self, origin: bytes) -> bytes:
        """The payer that an origin names."""
        ...

    def limit(self, payer: bytes, letters: int, size: int) -> object | None:
        """The limit that a payer would pass with so many more letters and bytes; None if there may be more."""
        ...

    def charge(self, payer: bytes, letters: int, size: int) -> None:
        """Charges letters and bytes; negative numbers release them."""
        ...


class NoPayers:
    """Nobody answers for anybody else."""

    def marked(self, letter: Message) -> bytes:
        return letter.origin

    def unmarked(self, origin: bytes) -> bytes:
        return origin

    def of(self, _origin: bytes) -> bytes:
        return b""

    def limit(self, _payer: bytes, _letters: int, _size: int) -> object | None:
        return None

    def charge(self, payer: bytes, letters: int, size: int) -> None:
        """Nobody is charged."""


class Shares:
    """The letters on a queue by owner and by payer. It is the census of that queue."""

    def __init__(self, queue: Queue, client_of: Callable[[bytes], str], payers: Payers) -> None:
        self.queue = queue
        self._client_of = client_of
        self._payers = payers
        #: By owner.
        self.letters: Counter[LetterOwner] = Counter()
        self.sizes: Counter[LetterOwner] = Counter()
        #: The same by payer: what is charged to it for this queue.
        self.paid: Counter[bytes] = Counter()
        self._paid_bytes: Counter[bytes] = Counter()

    def load(self, origins: Callable[[Iterable[int]], list[tuple[bytes, int]]]) -> None:
        """Counts the letters that the queue has; `origins`: Engine.origins."""
        for correl_id in tuple(self.queue.lanes):
            for origin, size in origins(self.queue.numbers(correl_id)):
                self._add(self.owner(correl_id, origin), self._payers.of(origin), size)
        self.queue.census = self

    def close(self) -> None:
        """Another queue is the dead-letter queue now."""
        for payer, letters in self.paid.items():
            self._payers.charge(payer, -letters, -self._paid_bytes[payer])
        if self.queue.census is self:
            self.queue.census = None

    def owner(self, correl_id: bytes, origin: bytes) -> LetterOwner:
        return correl_id if correl_id != MQCI_NONE else self._client_of(origin)

    def arrived(self, message: Message) -> None:
        """See Census."""
        owner = self.owner(message.descriptor.correl_id, message.origin)
        self._add(owner, self._payers.of(message.origin), len(message.body))

    def left(self, message: Message) -> None:
        """See Census."""
        size = len(message.body)
        _take_off(self.letters, self.sizes, self.owner(message.descriptor.correl_id, message.origin), size)
        payer = self._payers.of(message.origin)
        if self.paid[payer] > 0:
            self._payers.charge(payer, -1, -min(size, self._paid_bytes[payer]))
        _take_off(self.paid, self._paid_bytes, payer, size)

    def _add(self, owner: LetterOwner, payer: bytes, size: int) -> None:
        self.letters[owner] += 1
        self.sizes[owner] += size
        if payer:
            self.paid[payer] += 1
            self._paid_bytes[payer] += size
            self._payers.charge(payer, 1, size)


def _take_off(letters: Counter[_Key], sizes: Counter[_Key], key: _Key, size: int) -> None:
    """Forgets a key that has no letter left. A letter that somebody had taken when they were counted is none."""
    letters[key] -= 1
    sizes[key] -= size
    if letters[key] <= 0:
        del letters[key]
        del sizes[key]
