"""One application's view of the engine: its open unit of work, and the calls of the port with call-backs.

The socket server keeps one for each connection; embedded/direct.py keeps one for a command that owns the store itself.
So both sides of the port behave alike. `done` is called when the call's effect is committed: at once inside a unit of
work, after the commit outside of one, and never if the store fails (Engine.failed then says why).
"""

from collections.abc import Callable, Iterator
from typing import Final

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueStatus
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: Puts and gets in one unit of work: IBM MQ's default of MAXUMSGS.
MAXIMUM_UNIT_MESSAGES: Final = 10_000
#: Bytes of bodies in one unit of work, which is a list in memory until it commits; one larger message may be alone.
MAXIMUM_UNIT_BYTES: Final = 256 * 1024 * 1024
#: Messages that `clear_some` removes in one unit of work.
CLEAR_MESSAGES: Final = 1_000
#: PutApplName has 28 bytes (MQMD).
_APPLICATION_NAME_BYTES: Final = 28

Done = Callable[[], None]


class Application:
    """A connected application. Not thread-safe: it lives in the engine's thread."""

    def __init__(self, engine: Engine, name: str = "") -> None:
        self.name = name.encode(errors="replace")[:_APPLICATION_NAME_BYTES].decode(errors="ignore")
        self._engine = engine
        self._unit: UnitOfWork | None = None
        self._unit_bytes = 0

    @property
    def has_unit(self) -> bool:
        return self._unit is not None

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Opens a unit of work; 2128 where one is open."""
        if self._unit is not None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_IN_PROGRESS, "begin a unit of work")
        self._unit = self._engine.begin()
        self._unit_bytes = 0

    def commit(self, done: Done) -> None:
        """Commits the open unit of work; without one there is nothing to do. What cannot be committed is backed out."""
        unit, self._unit = self._unit, None
        if unit is None:
            done()
        else:
            self._submit(unit, done)

    def back_out(self) -> None:
        """Backs out the open unit of work, if there is one."""
        unit, self._unit = self._unit, None
        if unit is not None and self._engine.failed is None:
            self._engine.back_out(unit)

    # -- messages ----------------------------------------------------------------------------------------------------

    def put(self, queue_name: str, message: Message, done: Done) -> None:
        """Puts a message that nobody else holds; its `msg_id` is known on return."""
        queue = self._engine.queue(queue_name)
        if self.name and not message.descriptor.put_appl_name:
            message.descriptor = message.descriptor.replace(put_appl_name=self.name)
        self._check_limit(len(message.body), f"put on {queue_name}")
        unit = self._unit if self._unit is not None else self._engine.begin()
        self._engine.put(unit, queue, message)
        if unit is self._unit:
            self._unit_bytes += len(message.body)
            done()
        else:
            self._submit(unit, done)

    def take(self, queue: Queue, correl_id: bytes | None, msg_id: bytes | None) -> Message | None:
        """The oldest message that matches, taken and not yet removed: `remove` or `give_back` must follow."""
        self._check_limit(0, f"get from {queue.name}")
        return self._engine.take(queue, correl_id, msg_id)

    def remove(self, queue: Queue, message: Message, done: Done) -> None:
        """Destroys a message that was taken: with the open unit of work, else now."""
        unit = self._unit if self._unit is not None else self._engine.begin()
        unit.remove(queue, message)
        if unit is self._unit:
            self._unit_bytes += len(message.body)
            done()
        else:
            self._submit(unit, done)

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> list[Message]:
        """The oldest messages, at least one where there is one, into the open unit of work; 2255 without one."""
        queue = self._engine.queue(queue_name)
        if self._unit is None:
            raise QueueManagerError(ReasonCode.MQRC_UOW_NOT_AVAILABLE, f"take a batch from {queue_name}")
        self._check_limit(0, f"take a batch from {queue_name}")
        batch: list[Message] = []
        batch_bytes = 0
        while len(batch) < max(1, most_messages) and (message := self._engine.take(queue)) is not None:
            batch_bytes += len(message.body)
            if batch and (batch_bytes > most_bytes or self._is_full(len(message.body))):
                self._engine.give_back([(queue, message)])
                break
            self.remove(queue, message, _nothing)
            batch.append(message)
        return batch

    def browse(self, queue_name: str, correl_id: bytes | None, msg_id: bytes | None) -> Iterator[Message]:
        return iter(self._engine.browse(self._engine.queue(queue_name), correl_id, msg_id))

    # -- queues ------------------------------------------------------------------------------------------------------

    def clear_some(self, queue_name: str, done: Callable[[int], None]) -> None:
        """Removes the oldest CLEAR_MESSAGES, in a unit of their own; `done` is called with how many there were."""
        queue = self._engine.queue(queue_name)
        unit = self._engine.begin()
        while len(unit.removals) < CLEAR_MESSAGES and (message := self._engine.take(queue)) is not None:
            unit.remove(queue, message)
        self._submit(unit, lambda: done(len(unit.removals)))

    def queues(self) -> tuple[QueueStatus, ...]:
        return tuple(
            QueueStatus(
                name=queue.name,
                depth=queue.depth,
                oldest_put_us=oldest.put_us if (oldest := next(self._oldest(queue), None)) is not None else 0,
                description=queue.description,
            )
            for queue in self._engine.queues()
        )

    # -- inside ------------------------------------------------------------------------------------------------------

    def _oldest(self, queue: Queue) -> Iterator[Message]:
        lane = queue.oldest()
        return iter(()) if lane is None else iter(self._engine.browse(queue, lane))

    def _submit(self, unit: UnitOfWork, done: Done) -> None:
        """Submits a unit; where the broker refuses to carry it out, what it took goes back."""
        try:
            self._engine.submit(unit, lambda _unit: done())
        except QueueManagerError:
            self._engine.back_out(unit)
            raise

    def _check_limit(self, body_bytes: int, operation: str) -> None:
        if self._is_full(body_bytes):
            raise QueueManagerError(ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED, operation)

    def _is_full(self, body_bytes: int) -> bool:
        unit = self._unit
        if unit is None:
            return False
        messages = len(unit.puts) + len(unit.removals)
        return messages >= MAXIMUM_UNIT_MESSAGES or (
            self._unit_bytes > 0 and self._unit_bytes + body_bytes > MAXIMUM_UNIT_BYTES
        )


def _nothing() -> None:
    """Inside a unit of work the answer waits for the commit."""
