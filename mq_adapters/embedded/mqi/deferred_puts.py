"""Deferred puts: messages that are stored for later, and that nobody sees before they are released (SPI PUT, ACTIVATE).

IBM's JMS client (provider version 6) defers the DeregSub of each subscriber. When the subscriber ends in order the
client throws it away. If its connection ends in another way, the queue manager releases it. So a dead program leaves no
subscription that is not durable. A deferred message belongs to its connection, and is released with the end of that,
whatever ends it: the program, the network, a stop or the death of the gateway.

What no wait mends is refused when the message is put. If a message cannot be released, it waits for the next start only
if the reason can pass by itself. For another reason it is forgotten, and the log tells it.

Stored form (kind DEFERRED_PUT): the key is the MsgId. The value is a msgpack list that begins with its version: queue,
name and user of the application, descriptor, body. A release puts the message and deletes the row in one unit of work.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import ormsgpack

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.put_rules import check_form
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.unit_of_work import StateKind
from mq_adapters.message import IDENTIFIER_TAG, Message, unpack_descriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: Deferred messages of one connection, and the bytes of their bodies. A JMS client has one for each subscriber.
MAXIMUM_DEFERRED_PUTS: Final = 1_000
MAXIMUM_DEFERRED_BYTES: Final = 4 * 1024 * 1024
#: Reasons of a refused release that can pass by themselves.
_PASSING: Final = frozenset(
    {
        ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED,
        ReasonCode.MQRC_PUT_INHIBITED,
        ReasonCode.MQRC_Q_FULL,
        ReasonCode.MQRC_Q_SPACE_NOT_AVAILABLE,
        ReasonCode.MQRC_STORAGE_NOT_AVAILABLE,
        ReasonCode.MQRC_RESOURCE_PROBLEM,
    }
)
_VERSION: Final = 1
_NUMBER_BYTES: Final = 8
_log = logging.getLogger(__name__)

Done = Callable[[], None]


class _Putter(NamedTuple):
    """The application that put a message. `program` is the number of its connection; 0: one of an earlier run."""

    name: str
    user: str
    operator: str
    program: int = 0


class DeferredPuts:
    """The deferred messages of one connection."""

    def __init__(self, engine: Engine, application: Application) -> None:
        self._engine = engine
        self._application = application
        self._waiting: dict[bytes, tuple[str, Message]] = {}

    def put(self, queue_name: str, message: Message, done: Done) -> None:
        """Stores a message for a queue, durably; its MsgId is known on return.

        Raises QueueManagerError: 2071 for too many of them; 2026, 2027, 2030, 2031, 2035, 2051 or 2061 for one that
        could not be released.
        """
        stored = sum(len(each.body) for _, each in self._waiting.values()) + len(message.body)
        if len(self._waiting) >= MAXIMUM_DEFERRED_PUTS or stored > MAXIMUM_DEFERRED_BYTES:
            raise QueueManagerError(ReasonCode.MQRC_STORAGE_NOT_AVAILABLE, f"put a deferred message on {queue_name}")
        check_form(self._application.complete(queue_name, message).queue, message)
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
        self._found(key)
        del self._waiting[key]
        _forget(self._engine, key, done)

    def release(self, key: bytes, done: Done) -> None:
        """Puts a deferred message on its queue. 2033 if the connection has none with that MsgId.

        A message that is refused there stays deferred.
        """
        queue_name, message = self._found(key)
        _release(self._engine, self._who, key, queue_name, message, done)
        del self._waiting[key]

    def release_all(self) -> None:
        """The connection ends. What cannot be put now, but later, is released when the queue manager starts again."""
        waiting, self._waiting = self._waiting, {}
        for key, (queue_name, message) in waiting.items():
            try:
                _settle(self._engine, self._who, key, queue_name, message)
            except StoreError:
                continue

    @property
    def _who(self) -> _Putter:
        application = self._application
        return _Putter(application.name, application.user, application.operator, application.program)

    def _found(self, key: bytes) -> tuple[str, Message]:
        found = self._waiting.get(key)
        if found is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, "activate a deferred message")
        return found


def release_what_was_left(engine: Engine) -> None:
    """Releases the deferred messages of connections that ended with the queue manager. A broker must serve its queues.

    A message that cannot be put for a reason that can pass waits for the next start. Any other is forgotten.
    """
    for key, value in engine.states(StateKind.DEFERRED_PUT):
        try:
            version, queue_name, name, user, packed, body = ormsgpack.unpackb(value)
            if version != _VERSION:
                raise ValueError(f"stored version {version}, this program reads {_VERSION}")
            message = Message(unpack_descriptor(packed), body)
        except (ValueError, TypeError) as error:
            raise StoreError("read a deferred message", str(error), "use the program that wrote it") from error
        _settle(engine, _Putter(name, user, user), key, queue_name, message)


def _settle(engine: Engine, who: _Putter, key: bytes, queue_name: str, message: Message) -> None:
    """Puts a message for which no program waits. Forgets it if it cannot be put, and no wait would help."""
    try:
        _release(engine, who, key, queue_name, message, _nothing)
    except QueueManagerError as error:
        if error.reason_code not in _PASSING:
            _log.warning(
                "deferred message forgotten queue=%r user=%r reason_code=%s", queue_name, who.user, error.reason_code
            )
            _forget(engine, key, _nothing)


def _release(engine: Engine, who: _Putter, key: bytes, queue_name: str, message: Message, done: Done) -> None:
    """Puts a message whose putter had the right to do so when it was stored, in a unit of work of its own.

    `who` is that application, which may be gone. Its right to have reports put on the ReplyToQ was checked when the
    message was stored.
    """
    rights = Rights(put=(message.descriptor.reply_to_q,))
    application = Application(
        engine, who.name, user=who.user, operator=who.operator, rights=rights, program=who.program
    )
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
