"""Messages that cannot be delivered: whole on the dead-letter queue; when that is full, on SYSTEM.RFHBRIDGE.HELD.

No persistent message is lost here. A message becomes a dead letter in the unit of work in which it failed. The letter
is held if the queue that DEADQ names is full, closed or missing, or if the letter's client or subscription has filled
its share of that queue. The queue of held letters takes every letter, and only the cause of a letter waits (`waits`).
About every second held letters go on to the dead-letter queue, oldest first. A letter that is neither persistent nor
promised to anybody is dropped then, and the listener is told.

A letter expires (`expiry_s`) if no header can carry the client's message, because it would be refused each time that it
is put back. Every other letter is kept until somebody takes it.

A share is counted in letters and in their bytes: those on one lane of the dead-letter queue, or those of one client
without a CorrelId. Bytes of lanes are counted if the queue was measured before it had letters.
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
from mq_adapters.embedded.put_rules import check_put
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import MQCI_NONE, MQEI_UNLIMITED, MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import DEAD_LETTER_QUEUE, HELD_QUEUE, SYSTEM_QUEUES

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine

_log = logging.getLogger(__name__)


_SECOND_US: Final = 1_000_000
_TENTHS: Final = 10
#: No header can carry these messages to their queues, so each would be refused each time that it is put back.
_OF_THE_MESSAGE: Final = frozenset(map(int, (Reason.MQRCCF_TOPIC_ERROR, Reason.MQRC_RFH_ERROR)))
#: How long letters past a share rest, and how often the log tells what was held. A line for each would fill the log.
_REST_US: Final = 10 * _SECOND_US
#: Letters that go on in one unit of work, and bytes of the letters that it looks at. The next unit follows its commit.
_LETTERS_AT_ONCE: Final = 20
_BYTES_AT_ONCE: Final = 1024 * 1024
#: Letters that one unit of work looks at, because each may cost a read of the disk.
_LOOKS_AT_ONCE: Final = 100


class ShareFilled(QueueManagerError):
    """A client or subscription has its full share of dead letters on the queue."""

    def __init__(self, queue_name: str) -> None:
        hint = "its client or subscription has filled its share of that queue"
        super().__init__(ReasonCode.MQRC_Q_FULL, f"put on {queue_name}", hint)


class DeadLetters:
    """Makes dead letters, holds those that find no room, and lets them go on.

    `client_of` reads the client that caused a message from its private origin; "": no client that could wait. `share`
    is how many letters a client or subscription may have on the dead-letter queue, 0: no limit. A share is at most half
    of MAXDEPTH.
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
        #: Called when a letter got no place because of the share.
        self.on_share_reached: Callable[[], None] = lambda: None
        #: Called when a client begins to wait, and when a client's wait is over.
        self.on_wait: Callable[[], None] = lambda: None
        self.on_release: Callable[[], None] = lambda: None
        self.held = 0
        self.dropped = 0
        self._told = (0, 0)
        #: How many letters of each client are held, and whether some client has no more.
        self._waiting: Counter[str] = Counter()
        self._may_release = False
        self._departures = _Departures(self._waits_less)
        self._census: _Census | None = None
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
                self.on_share_reached()
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
        except ShareFilled:
            self.on_share_reached()
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

    def waits(self, client: str) -> bool:
        """Whether letters of a client are held, so that the gateway takes no more from it."""
        return client in self._waiting

    @property
    def somebody_waits(self) -> bool:
        return bool(self._waiting)

    @property
    def depth(self) -> int:
        """How many letters are held."""
        return self._held_queue().depth

    # -- going on ------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """At the start, when `client_of` and `share` are known: finds who waits, and counts each client's letters."""
        for origin, _ in self._engine.origins(self._held_queue().numbers()):
            self._wait_for(origin)
        if self.share or self.share_bytes:
            with suppress(QueueManagerError):  # no such queue exists now
                self._letters_of(self._engine.objects.dead_letter_queue)

    def measure(self) -> None:
        """Call it when the queues exist: from now on a new dead-letter queue counts the bytes of each subscription."""
        queue = self._engine.objects.queues.get(DEAD_LETTER_QUEUE)
        if queue is not None and not queue.depth:
            queue.measure_lanes()

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
                self._shares_are_filled = False
                self._go_on()
        elif self._waiting and not self._engine.is_committing_on(queue):  # the units of these letters were backed out
            self._waiting.clear()
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
        return dead_letter(
            message,
            queue_name=queue_name,
            reason_code=reason_code,
            queue_manager_name=queue_manager_name or self._engine.name,
            now_us=self._engine.now_us(),
            expiry=self._expiry(message, reason_code),
        )

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
        if not self._has_share(unit, queue, letter):
            raise ShareFilled(queue.name)
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

    def _has_share(self, unit: UnitOfWork, queue: Queue, letter: Message) -> bool:
        """Whether the cause of a letter may have one more on the dead-letter queue."""
        owner = self._owner(letter) if self.share or self.share_bytes else ""
        if not owner:
            return True
        return self._has_bytes(unit, queue, letter, owner) and self._has_place(unit, queue, owner)

    def _has_bytes(self, unit: UnitOfWork, queue: Queue, letter: Message, owner: bytes | str) -> bool:
        """Whether the bytes of the owner's letters allow one more."""
        if not self.share_bytes:
            return True
        if isinstance(owner, bytes):
            has = (queue.lane_bytes or {}).get(owner, 0)
        else:
            has = self._letters_of(queue).sizes[owner]
        has += sum(len(put.body) for found, put in unit.puts if found is queue and self._owner(put) == owner)
        return not has or has + len(letter.body) <= self.share_bytes

    def _has_place(self, unit: UnitOfWork, queue: Queue, owner: bytes | str) -> bool:
        """Whether the number of the owner's letters allows one more."""
        if not self.share:
            return True
        most = max(1, min(self.share, queue.definition.number("MAXDEPTH") // 2))
        count = len(queue.lanes.get(owner, ())) if isinstance(owner, bytes) else self._letters_of(queue).letters[owner]
        if count + len(unit.puts) >= most:  # as if all puts of the unit were the owner's letters
            count += sum(1 for found, put in unit.puts if found is queue and self._owner(put) == owner)
        return count < most

    def _owner(self, letter: Message) -> bytes | str:
        """The cause of a letter: the subscription of a copy by its CorrelId, else a client, else ""."""
        correl_id = letter.descriptor.correl_id
        return correl_id if correl_id != MQCI_NONE else self.client_of(letter.origin)

    def _letters_of(self, queue: Queue) -> "_Census":
        """The letters without a CorrelId that each client has on a queue. Counted anew if DEADQ names another queue."""
        if self._census is None or queue.census is not self._census:
            if self._census is not None:
                self._census.queue.census = None
            self._census = _Census(queue, self.client_of)
            for origin, size in self._engine.origins(queue.numbers(MQCI_NONE)):
                self._census.add(origin, size)
            queue.census = self._census
        return self._census


class _Departures:
    """Is told of letters that leave the queue of held letters. Letters that arrive there are counted at the put."""

    def __init__(self, left: Callable[[Message], None]) -> None:
        self.left = left

    def arrived(self, message: Message) -> None:
        """It was counted before."""


class _Census:
    """The number of letters on a queue by client, and their bytes, for letters without a CorrelId."""

    def __init__(self, queue: Queue, client_of: Callable[[bytes], str]) -> None:
        self.queue = queue
        self.letters: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()
        self._client_of = client_of

    def add(self, origin: bytes, size: int) -> None:
        """Counts a letter."""
        client = self._client_of(origin)
        self.letters[client] += 1
        self.sizes[client] += size

    def arrived(self, message: Message) -> None:
        if message.descriptor.correl_id == MQCI_NONE:
            self.add(message.origin, len(message.body))

    def left(self, message: Message) -> None:
        if message.descriptor.correl_id == MQCI_NONE:
            client = self._client_of(message.origin)
            self.letters[client] -= 1
            self.sizes[client] -= len(message.body)
            if self.letters[client] <= 0:
                del self.letters[client]
                del self.sizes[client]
