"""Messages that cannot be delivered: whole on the dead-letter queue; when that is full, on SYSTEM.RFHBRIDGE.HELD.

No persistent message is lost here. A message becomes a dead letter in the unit of work in which it failed. The letter
is held if the queue that DEADQ names is full, closed or missing, or if the letter's client or subscription has filled
its share of that queue. The queue of held letters takes every letter, and only the cause of a letter waits (`waits`).
About every second held letters go on to the dead-letter queue, oldest first. A letter that is neither persistent nor
promised to anybody is dropped then, and the listener is told.

A letter expires (`expiry_s`) if no header can carry the client's message, because it would be refused each time that it
is put back. Every other letter is kept until somebody takes it.

A share is counted in letters and in their bytes (dead_letter_shares.py).
Source of the MQDLH: IBM MQ, "MQDLH - Dead-letter header".
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mappings.reasons import Reason
from mq_adapters.dead_letter import dead_letter, reason_of
from mq_adapters.delivery_listener import DeliveryListener, Unheard
from mq_adapters.embedded.dead_letter_shares import NoPayers, Payers, Shares
from mq_adapters.embedded.put_rules import check_put
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import MQEI_UNLIMITED, MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import HELD_QUEUE, SYSTEM_QUEUES

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine

_log = logging.getLogger(__name__)


_SECOND_US: Final = 1_000_000
_TENTHS: Final = 10
#: No header can carry these messages to their queues, so each would be refused each time that it is put back.
_OF_THE_MESSAGE: Final = frozenset(map(int, (Reason.MQRCCF_TOPIC_ERROR, Reason.MQRC_RFH_ERROR)))
#: How long letters past a share rest, and how often the log tells what was held. A line for each would fill the log.
_REST_US: Final = 10 * _SECOND_US
#: The last letters that the dead-letter queue has room for, MAXDEPTH divided by this, are those of owners who have few
#: there; and few are at most MAXDEPTH divided by that.
_KEPT: Final = 10
_FEW: Final = 100
#: Letters that go on in one unit of work, and bytes of the letters that it looks at. The next unit follows its commit.
_LETTERS_AT_ONCE: Final = 20
_BYTES_AT_ONCE: Final = 1024 * 1024
#: Letters that one unit of work looks at, because each may cost a read of the disk.
_LOOKS_AT_ONCE: Final = 100


class ShareFilled(QueueManagerError):
    """One client or subscription, or its payer, has as many dead letters on the queue as it may have.

    `limit`: the one that the payer has reached, None where the share is full.
    """

    def __init__(self, queue_name: str, limit: object | None = None, payer: bytes = b"") -> None:
        self.limit = limit
        self.payer = payer
        hint = "its client or subscription, or its user or network, has filled its share of that queue"
        super().__init__(ReasonCode.MQRC_Q_FULL, f"put on {queue_name}", hint)


class DeadLetters:
    """Makes dead letters, holds those that find no room, and lets them go on.

    `client_of` reads the client that caused a message from its private origin; "": no client that could wait. `share`
    is how many letters a client or subscription may have on the dead-letter queue, 0: no limit. A share is at most half
    of MAXDEPTH. The last tenth of MAXDEPTH is kept for those who have at most a hundredth of it, or whose payer has.
    """

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.listener: DeliveryListener = Unheard()
        self.client_of: Callable[[bytes], str] = lambda _origin: ""
        self.share = 0
        #: The most bytes of the letters that each may have there, 0: no limit. A single letter is always taken.
        self.share_bytes = 0
        #: Seconds for which a letter is kept if no header can carry the client's message; 0: for ever.
        self.expiry_s = 0
        #: Told when a letter was refused its place because of the share, or of a payer's limit.
        self.on_share_reached: Callable[[object | None], None] = lambda _limit: None
        self.payers: Payers = NoPayers()
        #: Told when somebody begins to wait, and when somebody waits no more.
        self.on_wait: Callable[[], None] = lambda: None
        self.on_release: Callable[[], None] = lambda: None
        self.held = 0
        self.dropped = 0
        self._told = (0, 0)
        #: How many letters of each client are held, and whether some client has no more.
        self._waiting: Counter[str] = Counter()
        #: Payers whose letters are held because they have reached a limit, as the last pass found and since.
        self._full_payers: set[bytes] = set()
        self._found_full: set[bytes] = set()
        self._may_release = False
        self._departures = _Departures(self._waits_less)
        self._shares: Shares | None = None
        self._pass: Iterator[Message] | None = None
        #: The last pass left letters of a client that has filled its share, so the next pass comes later.
        self._shares_are_filled = False
        self._due_us = self._tell_us = 0
        self._error = ""

    # -- making --------------------------------------------------------------------------------------------------------

    def put(
        self,
        unit: UnitOfWork,
        message: Message,
        *,
        queue_name: str,
        reason_code: int,
        queue_manager_name: str = "",
        about: Message | None = None,
    ) -> Departure:
        """Makes a dead letter of a message that was going to `queue_name`, here unless a queue manager is named.

        The listener is told of `about` if `message` is a copy that has no number yet. Returns why the message leaves
        its queue, if it was on one.
        """
        told = message if about is None else about
        letter = self._letter(message, queue_name, reason_code, queue_manager_name)
        try:
            self._put(unit, letter)
        except QueueManagerError as error:
            self._error = str(error)
            if isinstance(error, ShareFilled):
                self.on_share_reached(error.limit)
                self._is_full(error)
            if letter.descriptor.persistence == MQPER_NOT_PERSISTENT:
                self.dropped += 1
                reason = f"reason {int(reason_code)}, and the dead-letter queue took it not: {error}"
                self.listener.dropped(unit, told, queue_name, reason)
                return Departure.DROPPED
            self._hold(unit, letter)
        self.listener.dead_lettered(unit, told, letter, queue_name, int(reason_code))
        return Departure.DEAD_LETTERED

    def put_or_refuse(self, unit: UnitOfWork, message: Message, *, queue_name: str, reason_code: int) -> None:
        """Like `put`, for a message that can stay where it is. Raises QueueManagerError if it has to stay."""
        letter = self._letter(message, queue_name, reason_code, "")
        try:
            self._put(unit, letter)
        except ShareFilled as error:
            self.on_share_reached(error.limit)
            raise
        self.listener.dead_lettered(unit, message, letter, queue_name, int(reason_code))

    def obstacle(self, unit: UnitOfWork, message: Message) -> QueueManagerError | None:
        """Why the dead-letter queue does not take the letter of a message now; None if it does."""
        try:
            queue = self._queue_for(unit, message)
            if queue.depth + len(unit.puts) >= queue.maximum_depth:
                check_put(queue, message, uncommitted=unit.puts_on(queue))
        except QueueManagerError as error:
            return error
        return None

    def waits(self, client: str, payer: bytes = b"") -> bool:
        """Whether no more is taken of a client: letters of it are held, or its payer has filled its share.

        A client that takes a new identifier for each letter would fill the queue of held letters otherwise.
        """
        return client in self._waiting or payer in self._full_payers

    @property
    def somebody_waits(self) -> bool:
        return bool(self._waiting or self._full_payers)

    @property
    def depth(self) -> int:
        """How many letters are held."""
        return self._held_queue().depth

    # -- going on ------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """At the start, when `client_of` and `share` are known: finds who waits, and counts each client's letters."""
        for origin, _ in self._engine.origins(self._held_queue().numbers()):
            self._wait_for(origin)
        if self._has_shares:
            with suppress(QueueManagerError):  # there is no such queue now
                self._shares_of(self._engine.objects.dead_letter_queue)

    def tick(self, now_us: int) -> None:
        """Several times a second: held letters go on, and the log tells how many were held."""
        self._tell(now_us)
        self._release()
        if self._due_us - _REST_US <= now_us < self._due_us:  # a clock may be set back
            return
        self._due_us = now_us + (_REST_US if self._shares_are_filled else _SECOND_US)
        queue = self._held_queue()
        if queue.depth:
            if self._pass is None and self._has_room():
                self._pass = iter(self._engine.browse(queue))
                self._found_full = set()
                self._shares_are_filled = False
                self._go_on()
        elif self.somebody_waits and not self._engine.is_committing_on(queue):  # of units that were backed out
            self._waiting.clear()
            self._full_payers.clear()
            self._may_release = True

    def _has_room(self) -> bool:
        """Whether the dead-letter queue takes any letter."""
        try:
            queue = self._engine.objects.dead_letter_queue
        except QueueManagerError:
            return False
        return queue.depth < queue.maximum_depth

    def _go_on(self) -> None:
        """Moves some held letters in a unit of work. The next unit follows its commit."""
        if self._pass is None or self._engine.failed is not None:
            return
        unit = self._engine.begin()
        self._move_some(unit, self._pass)
        if unit.removals or self._pass is not None:
            self._engine.submit(unit, lambda _unit: self._gone_on())

    def _gone_on(self) -> None:
        self._release()
        self._go_on()

    def _move_some(self, unit: UnitOfWork, letters: Iterator[Message]) -> None:
        queue, size = self._held_queue(), 0
        for _ in range(_LOOKS_AT_ONCE):
            letter = next(letters, None)
            if letter is None:
                self._pass = None
                self._may_release |= bool(self._full_payers - self._found_full)
                self._full_payers = self._found_full
                break
            size += len(letter.body)
            if self._engine.take_number(queue, letter.sequence) is None:
                continue
            try:
                self._move(unit, queue, letter)
            except QueueManagerError as error:
                self._error = str(error)
                self._engine.give_back([(queue, letter)], wake=False)
                if not isinstance(error, ShareFilled):
                    self._pass = None
                    break
                self._shares_are_filled = True
                self._is_full(error)
            if len(unit.removals) >= _LETTERS_AT_ONCE or size >= _BYTES_AT_ONCE:
                break

    def _move(self, unit: UnitOfWork, queue: Queue, letter: Message) -> None:
        """Moves a taken letter, with its MsgId. QueueManagerError: the dead-letter queue does not take it yet."""
        copy = Message(letter.descriptor.replace(msg_id=letter.msg_id), letter.body, letter.origin)
        self._put(unit, copy)
        unit.remove(queue, letter, Departure.FORWARDED)
        self.listener.dead_lettered(unit, letter, copy, queue.name, reason_of(letter))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _letter(self, message: Message, queue_name: str, reason_code: int, queue_manager_name: str) -> Message:
        letter = dead_letter(
            message,
            queue_name=queue_name,
            reason_code=reason_code,
            queue_manager_name=queue_manager_name or self._engine.name,
            now_us=self._engine.now_us(),
            expiry=self._expiry(message, reason_code),
        )
        letter.origin = self.payers.marked(letter)
        return letter

    def _expiry(self, message: Message, reason_code: int) -> int:
        """The expiry of a letter, in tenths of a second."""
        if not self.expiry_s or int(reason_code) not in _OF_THE_MESSAGE or not self.client_of(message.origin):
            return MQEI_UNLIMITED
        return self.expiry_s * _TENTHS

    def _put(self, unit: UnitOfWork, letter: Message) -> None:
        """Raises QueueManagerError if the dead-letter queue does not take a letter."""
        self._engine.put(unit, self._queue_for(unit, letter), letter)

    def _queue_for(self, unit: UnitOfWork, letter: Message) -> Queue:
        """The dead-letter queue, if the cause of the letter may have one more there.

        Raises QueueManagerError if it may not, or if no dead-letter queue exists.
        """
        queue = self._engine.objects.dead_letter_queue
        if queue.handler is not None or queue.name == HELD_QUEUE:
            operation = f"put a dead letter on {queue.name}"
            raise QueueManagerError(ReasonCode.MQRC_Q_TYPE_ERROR, operation, "name another: ALTER QMGR DEADQ(...)")
        if self._has_shares:
            self._check_share(unit, queue, letter)
        return queue

    def _hold(self, unit: UnitOfWork, letter: Message) -> None:
        self.held += 1
        if not letter.is_persistent:  # by the default of its queue, which is not persistent
            letter.descriptor = letter.descriptor.replace(persistence=MQPER_PERSISTENT)
        self._engine.put(unit, self._held_queue(), letter)
        self._wait_for(letter.origin)
        unit.holds_letters = True

    def _held_queue(self) -> Queue:
        queue = self._engine.ensure(HELD_QUEUE, SYSTEM_QUEUES[HELD_QUEUE].description)
        queue.census = self._departures
        return queue

    def _wait_for(self, origin: bytes) -> None:
        client = self.client_of(origin)
        if client:
            self._waiting[client] += 1
            self.on_wait()

    def _waits_less(self, letter: Message) -> None:
        """A held letter has left. If it was the last of its client, the client goes on at the next tick."""
        client = self.client_of(letter.origin)
        if client not in self._waiting:
            return
        self._waiting[client] -= 1
        if self._waiting[client] <= 0:
            del self._waiting[client]
            self._may_release = True

    def _is_full(self, error: ShareFilled) -> None:
        """Where it is a payer that has reached a limit, all whom it answers for wait until a pass finds room."""
        if error.payer:
            self._found_full.add(error.payer)
            self._full_payers.add(error.payer)
            self.on_wait()

    def _release(self) -> None:
        if self._may_release:
            self._may_release = False
            self.on_release()

    def _tell(self, now_us: int) -> None:
        if self._told == (self.held, self.dropped) or self._tell_us - _REST_US <= now_us < self._tell_us:
            return
        self._tell_us = now_us + _REST_US
        held, dropped = self._told
        self._told = (self.held, self.dropped)
        _log.error(
            "dead-letter queue took nothing held=%s dropped=%s waiting=%s error=%s",
            self.held - held,
            self.dropped - dropped,
            self.depth,
            self._error,
        )

    # -- shares --------------------------------------------------------------------------------------------------------

    @property
    def _has_shares(self) -> bool:
        return bool(self.share or self.share_bytes) or not isinstance(self.payers, NoPayers)

    def _check_share(self, unit: UnitOfWork, queue: Queue, letter: Message) -> None:
        """Raises ShareFilled where whoever caused a letter, or its payer, may have no more on the dead-letter queue."""
        shares, size = self._shares_of(queue), len(letter.body)
        owner, payer = shares.owner(letter.descriptor.correl_id, letter.origin), self.payers.of(letter.origin)
        uncommitted = [put for found, put in unit.puts if found is queue]
        has = 0
        if owner:
            same = [put for put in uncommitted if shares.owner(put.descriptor.correl_id, put.origin) == owner]
            has = shares.letters[owner] + len(same)
            self._check_owner(queue, has, shares.sizes[owner] + _bytes(same), size)
        if payer:
            same = [put for put in uncommitted if self.payers.of(put.origin) == payer]
            has = shares.paid[payer] + len(same)
            if (limit := self.payers.limit(payer, len(same) + 1, _bytes(same) + size)) is not None:
                raise ShareFilled(queue.name, limit, payer)
        if has > _most_of_newcomers(queue) and queue.depth + len(uncommitted) >= _open_to_all(queue):
            raise ShareFilled(queue.name, payer=payer)

    def _check_owner(self, queue: Queue, letters: int, size: int, more: int) -> None:
        """The same for one owner, who has so many letters and bytes. A single letter is always taken."""
        most = max(1, min(self.share, queue.definition.number("MAXDEPTH") // 2))
        if (self.share and letters >= most) or (self.share_bytes and letters and size + more > self.share_bytes):
            raise ShareFilled(queue.name)

    def _shares_of(self, queue: Queue) -> Shares:
        """The letters that each one has on a queue; counted anew where DEADQ names another."""
        if self._shares is None or queue.census is not self._shares:
            if self._shares is not None:
                self._shares.close()
            self._shares = Shares(queue, self.client_of, self.payers)
            self._shares.load(self._engine.origins)
        return self._shares


def _open_to_all(queue: Queue) -> int:
    """Past so many letters a queue takes only those of whoever has few there: nobody finds it full of others'."""
    most = queue.definition.number("MAXDEPTH")
    return most - most // _KEPT


def _most_of_newcomers(queue: Queue) -> int:
    return queue.definition.number("MAXDEPTH") // _FEW


def _bytes(letters: list[Message]) -> int:
    return sum(len(letter.body) for letter in letters)


class _Departures:
    """Is told of letters that leave the queue of held letters. Letters that arrive there are counted at the put."""

    def __init__(self, left: Callable[[Message], None]) -> None:
        self.left = left

    def arrived(self, message: Message) -> None:
        """It was counted before."""
