"""The conversion service: messages move from queue to queue, each with its header in the other format.

One unit of work takes a batch off the source queue, puts it on the target queue and notes each conversion, so that no
crash loses or doubles a message. MsgId, CorrelId, context, persistence and what is left of the expiry stay; only Format
changes. A message in the wanted format passes unchanged. A message that cannot be converted goes whole to the
dead-letter queue and holds up nothing. While the target queue is full, messages stay where they are.

    service = ConversionService(engine, settings.conversion, notes, call_soon=loop.call_soon)
    service.start()            # moves the messages that wait, and from then on those that arrive
    service.tick()             # several times a second: tries again after a full queue
    service.stop()             # takes nothing more; the batch under way commits with the engine
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from gateway.audit_trail.notes.notes import NoteKind
from gateway.config import ConversionSettings
from gateway.conversion.converter import Converted, Converter
from mappings.conversion.convert import Mode
from mappings.errors import MappingError
from mappings.reasons import reason_name
from mappings.table import Dialect
from mq_adapters.broker.dead_letters import BrokerDeadLetters
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

_log = logging.getLogger(__name__)

#: A unit of work ends with this many messages or bytes, so that one queue does not hold up the others.
BATCH_MESSAGES: Final = 256
BATCH_BYTES: Final = 8 * 1024 * 1024
#: Messages that the dead-letter queue has no place for wait beside the others, up to this many.
MAXIMUM_ASIDE: Final = 256
_US_OF_A_TENTH: Final = 100_000

CallSoon = Callable[[Callable[[], None]], object]


#: Reasons that pass: the message waits for room, for PUT(ENABLED) or for memory.
_PASSING: Final = frozenset(
    {ReasonCode.MQRC_Q_FULL, ReasonCode.MQRC_PUT_INHIBITED, ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE}
)


class Outcome(StrEnum):
    """What became of a message of a source queue."""

    CONVERTED = "converted"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class ConvertedQueue:
    """One source queue and its target. One batch at a time is on its way to the disk."""

    def __init__(
        self, engine: Engine, source: Queue, target: Queue, *, converter: Converter, dead_letters: BrokerDeadLetters
    ) -> None:
        self._engine = engine
        self._source = source
        self._target = target
        self._converter = converter
        self._dead_letters = dead_letters
        self._aside: list[tuple[Queue, Message]] = []
        #: Messages that were taken off the source since the start.
        self.counts = Counter(dict.fromkeys(Outcome, 0))
        self._call_soon: CallSoon = lambda call: call()
        self._is_due = False
        self._is_committing = False
        self._is_waiting = False
        self._is_stopped = False
        self._is_complaining = False

    def start(self, call_soon: CallSoon) -> None:
        """Moves what waits, and from now on what arrives."""
        self._call_soon = call_soon
        self._source.listen(None, self._wake)
        self._wake()

    def stop(self) -> None:
        self._is_stopped = True
        self._source.unlisten(None, self._wake)

    def try_again(self) -> None:
        """Takes up what waits for room."""
        if self._aside:
            aside, self._aside = self._aside, []
            self._engine.give_back(aside)
        if self._is_waiting:
            self._is_waiting = False
            self._wake()

    # -- moving --------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if not (self._is_due or self._is_committing or self._is_waiting or self._is_stopped):
            self._is_due = True
            self._call_soon(self._move)

    def _move(self) -> None:
        """One batch, in one unit of work."""
        self._is_due = False
        if self._is_stopped or self._engine.failed is not None:
            return
        unit = self._engine.begin()
        try:
            self._gather(unit)
            if unit.removals:
                self._is_committing = True
                self._engine.submit(unit, self._committed)
        except StoreError:
            return  # the engine has told the daemon, which stops; what was taken is still on the disk

    def _gather(self, unit: UnitOfWork) -> None:
        if self._source.is_get_inhibited:
            return
        left_bytes = BATCH_BYTES
        for _ in range(min(BATCH_MESSAGES, self._room())):
            message = self._engine.take(self._source) if left_bytes > 0 else None
            if message is None:
                return
            left_bytes -= len(message.body)
            self._carry(unit, message)
            if self._is_waiting:
                return

    def _committed(self, _unit: UnitOfWork) -> None:
        self._is_committing = False
        if self._is_complaining and not (self._is_waiting or self._aside):
            self._is_complaining = False
            _log.info("conversion resumed from=%s to=%s", self._source.name, self._target.name)
        self._wake()

    def _room(self) -> int:
        """How many messages the target takes now; where it takes none, the queue waits. The broker takes any number."""
        if self._target.handler is not None:
            return BATCH_MESSAGES
        room = self._target.maximum_depth - self._target.depth
        if room <= 0 and self._source.depth:
            self._is_waiting = True
            self._complain(self._target.name)
        return max(room, 0)

    def _complain(self, full: str) -> None:
        """Says once that messages wait for room, not at every attempt."""
        if not self._is_complaining:
            self._is_complaining = True
            _log.warning("conversion waits for room from=%s full=%s", self._source.name, full)

    def _carry(self, unit: UnitOfWork, message: Message) -> None:
        """Adds a message to the unit: converted to the target, or whole to the dead-letter queue."""
        try:
            converted = self._converter.converted(message)
        except MappingError as error:
            self._give_up(unit, message, error.reason_code)
        except Exception:  # a fault of this program; the message is kept, and those behind it go on
            _log.exception("conversion crashed from=%s", self._source.name)
            self._give_up(unit, message, ReasonCode.MQRC_UNEXPECTED_ERROR)
        else:
            self._put(unit, message, converted)

    def _put(self, unit: UnitOfWork, message: Message, converted: Converted) -> None:
        put = self._converted_message(message, converted)
        try:
            self._engine.put(unit, self._target, put)
        except QueueManagerError as error:
            if error.reason_code in _PASSING:
                self._set_aside(message, self._target.name, is_target=True)
            else:
                self._give_up(unit, message, error.reason_code)
            return
        unit.remove(self._source, message, Departure.FORWARDED)
        self.counts[Outcome.CONVERTED if converted.is_changed else Outcome.UNCHANGED] += 1
        body_bytes = len(message.body) - converted.body_offset
        digest = hashlib.sha256(memoryview(message.body)[converted.body_offset :]).digest()
        unit.notes.append(
            (
                NoteKind.SERVED,
                self._engine.now_us(),
                message.sequence,
                put.sequence,
                put.is_persistent,
                body_bytes,
                digest,
                converted.service,
            )
        )

    def _converted_message(self, message: Message, converted: Converted) -> Message:
        descriptor = message.descriptor.replace(
            format=converted.format, msg_id=message.msg_id, expiry=self._remaining_expiry(message)
        )
        return Message(descriptor, converted.header + message.body[converted.body_offset :], message.origin)

    def _remaining_expiry(self, message: Message) -> int:
        """The rest of its life in tenths of a second, rounded up as for an application that gets the message."""
        if not message.expires_us:
            return message.descriptor.expiry
        left = -((self._engine.now_us() - message.expires_us) // _US_OF_A_TENTH)
        return max(1, min(left, message.descriptor.expiry))

    # -- what does not go on -------------------------------------------------------------------------------------------

    def _give_up(self, unit: UnitOfWork, message: Message, reason_code: int) -> None:
        """Makes a dead letter of a message, as its Report asks; where there is no room for it, it waits aside."""
        kept = Message(message.descriptor.replace(msg_id=message.msg_id), message.body, message.origin)
        kept.sequence, kept.put_us = message.sequence, message.put_us
        if (obstacle := self._engine.dead_letters.obstacle(unit, kept)) is not None:
            self._set_aside(message, str(obstacle))
            return
        departure = self._dead_letters.put_or_discard(unit, kept, self._source.name, reason_code)
        unit.remove(self._source, message, departure)
        self.counts[Outcome.REFUSED] += 1
        _log.warning(
            "message not converted from=%s to=%s msg_id=%s reason=%s",
            self._source.name,
            self._target.name,
            message.msg_id.hex(),
            reason_name(reason_code),
        )

    def _set_aside(self, message: Message, full: str, *, is_target: bool = False) -> None:
        """Keeps a message that finds no place out of the way of those behind it; a full target stops them all."""
        self._aside.append((self._source, message))
        self._complain(full)
        self._is_waiting |= is_target or len(self._aside) >= MAXIMUM_ASIDE


class ConversionService:
    """All converted queues of the configuration."""

    def __init__(
        self,
        engine: Engine,
        conversions: Iterable[ConversionSettings],
        listener: DeliveryListener,
        *,
        call_soon: CallSoon,
    ) -> None:
        self._call_soon = call_soon
        dead_letters = BrokerDeadLetters(engine, listener)
        self._queues = {
            (each.source, each.header): _converted_queue(engine, each, dead_letters) for each in conversions
        }

    def counts(self) -> Mapping[tuple[str, str], Mapping[Outcome, int]]:
        """By source queue and wanted format, what became of the messages since the start."""
        return {queue: converted.counts for queue, converted in self._queues.items()}

    def start(self) -> None:
        for queue in self._queues.values():
            queue.start(self._call_soon)

    def tick(self) -> None:
        for queue in self._queues.values():
            queue.try_again()

    def stop(self) -> None:
        for queue in self._queues.values():
            queue.stop()


def _converted_queue(engine: Engine, conversion: ConversionSettings, dead_letters: BrokerDeadLetters) -> ConvertedQueue:
    description = conversion.description
    source = engine.ensure(conversion.source, description or f"messages to convert to {conversion.header}")
    target = engine.ensure(conversion.target, description or f"messages of {conversion.source} in {conversion.header}")
    converter = Converter(queue_name=target.name, to=Dialect(conversion.header), mode=Mode(conversion.mode))
    _log.info("conversion ready from=%s to=%s header=%s", source.name, target.name, conversion.header)
    return ConvertedQueue(engine, source, target, converter=converter, dead_letters=dead_letters)
