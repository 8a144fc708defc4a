"""Deferred puts: messages that are stored for later, and that nobody sees before they are released (SPI PUT, ACTIVATE).

IBM's JMS client (provider version 6) defers the DeregSub of each subscriber. When the subscriber ends in order the
client throws it away. If its connection ends in another way, the queue manager releases it. So a dead program leaves no
subscription that is not durable. A deferred message belongs to its connection, and is released with the end of that,
whatever ends it: the program, the network, a stop or the death of the gateway.

Stored form (kind DEFERRED_PUT): the key is the MsgId. The value is a msgpack list that begins with its version: queue,
name and user of the application, descriptor, body. A release puts the message and deletes the row in one unit of work.
"""

from collections.abc import Callable
from typing import Final

import ormsgpack

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import IDENTIFIER_TAG, Message, unpack_descriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: Deferred messages of one connection, and the bytes of their bodies. A JMS client has one for each subscriber.
MAXIMUM_DEFERRED_PUTS: Final = 1_000
MAXIMUM_DEFERRED_BYTES: Final = 4 * 1024 * 1024
_VERSION: Final = 1
_NUMBER_BYTES: Final = 8

Done = Callable[[], None]


class DeferredPuts:
    """The deferred messages of one connection."""

    def __init__(self, engine: Engine, application: Application) -> None:
        self._engine = engine
        self._application = application
        self._waiting: dict[bytes, tuple[str, Message]] = {}

    def put(self, queue_name: str, message: Message, done: Done) -> None:
        """Stores a message for a queue, durably; its MsgId is known on return. 2071 for too much of it."""
        stored = sum(len(each.body) for _, each in self._waiting.values()) + len(message.body)
        if len(self._waiting) >= MAXIMUM_DEFERRED_PUTS or stored > MAXIMUM_DEFERRED_BYTES:
            raise QueueManagerError(ReasonCode.MQRC_STORAGE_NOT_AVAILABLE, f"put a deferred message on {queue_name}")
        number = self._engine.number().to_bytes(_NUMBER_BYTES, "big")
        key = IDENTIFIER_TAG + self._engine.incarnation + number
        message.descriptor = message.descriptor.replace(msg_id=key)
        self._waiting[key] = queue_name, message
        application = self._application
        row = [_VERSION, queue_name, application.name, application.user, message.descriptor.pack(), message.body]
        unit = self._engine.begin()
        unit.set_state(StateKind.DEFERRED_PUT, key, ormsgpack.packb(row))
        self._engine.submit(unit, lambda _unit: done())

    def throw_away(self, key: bytes, done: Done) -> None:
        """Forgets a deferred message. 2033 if the connection has none with that MsgId."""
        self._take(key)
        _forget(self._engine, key, done)

    def release(self, key: bytes, done: Done) -> None:
        """Puts a deferred message on its queue. 2033 if the connection has none with that MsgId."""
        queue_name, message = self._take(key)
        _release(self._engine, self._who, key, queue_name, message, done)

    def release_all(self) -> None:
        """The connection ends. What cannot be put now is released when the queue manager starts again."""
        waiting, self._waiting = self._waiting, {}
        for key, (queue_name, message) in waiting.items():
            try:
                _release(self._engine, self._who, key, queue_name, message, _nothing)
            except (QueueManagerError, StoreError):
                continue

    @property
    def _who(self) -> tuple[str, str, str]:
        return self._application.name, self._application.user, self._application.operator

    def _take(self, key: bytes) -> tuple[str, Message]:
        found = self._waiting.pop(key, None)
        if found is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, "activate a deferred message")
        return found


def release_what_was_left(engine: Engine) -> None:
    """Releases the deferred messages of connections that ended with the queue manager. A broker must serve its queues.

    A message whose queue is gone is forgotten. One that cannot be put for another reason waits for the next start.
    """
    for key, value in engine.states(StateKind.DEFERRED_PUT):
        try:
            version, queue_name, name, user, packed, body = ormsgpack.unpackb(value)
            if version != _VERSION:
                raise ValueError(f"stored version {version}, this program reads {_VERSION}")
            message = Message(unpack_descriptor(packed), body)
        except (ValueError, TypeError) as error:
            raise StoreError("read a deferred message", str(error), "use the program that wrote it") from error
        try:
            _release(engine, (name, user, user), key, queue_name, message, _nothing)
        except QueueManagerError as error:
            if error.reason_code == ReasonCode.MQRC_UNKNOWN_OBJECT_NAME:
                _forget(engine, key, _nothing)


def _release(
    engine: Engine, who: tuple[str, str, str], key: bytes, queue_name: str, message: Message, done: Done
) -> None:
    """Puts a message whose putter had the right to do so when it was stored, in a unit of work of its own.

    `who` is the name, the user and the operator of that application, which may be gone.
    """
    name, user, operator = who
    application = Application(engine, name, user=user, operator=operator, rights=Rights())
    try:
        application.begin()
        application.put_unchecked(queue_name, message, _nothing)
        application.set_state(StateKind.DEFERRED_PUT, key, None)
        application.commit(done)
    finally:
        application.close()


def _forget(engine: Engine, key: bytes, done: Done) -> None:
    unit = engine.begin()
    unit.delete_state(StateKind.DEFERRED_PUT, key)
    engine.submit(unit, lambda _unit: done())


def _nothing() -> None:
    """Nobody waits for the end of it."""
