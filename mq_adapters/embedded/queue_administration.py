"""Altering and deleting queues while they are in use."""

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import STANDARD_QUEUES, Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.reasons import QueueManagerError, ReasonCode


def alter(engine: Engine, definition: Definition) -> None:
    """Replaces what was said of an object that is there, durably.

    A served queue whose gets are inhibited keeps its puts, until gets are enabled: then they are handed over.
    """
    _check_alive(engine)
    engine.objects.alter(definition)
    queue = engine.objects.queues.get(definition.name) if definition.object_type == ObjectType.QLOCAL else None
    if queue is None:
        return
    if queue.is_get_inhibited and queue.handler is not None:
        queue.handler, queue.resting_handler = None, queue.handler
    elif not queue.is_get_inhibited and queue.resting_handler is not None:
        handler, queue.resting_handler = queue.resting_handler, None
        engine.serve(queue, handler)
    if queue.is_get_inhibited:
        queue.wake_everyone()  # gets that wait end with 2016


def delete(engine: Engine, queue: Queue, *, purge: bool = False) -> None:
    """Deletes a local queue; 2055 where it is not empty and is not to be purged, 2042 where somebody uses it."""
    _check_alive(engine)
    operation = f"delete queue {queue.name}"
    if _is_served(queue) or _is_awaited(queue) or is_in_use(engine, queue):
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation)
    if queue.depth and not purge:
        raise QueueManagerError(ReasonCode.MQRC_Q_NOT_EMPTY, operation)
    engine.objects.delete_queue(queue)


def _is_served(queue: Queue) -> bool:
    return queue.handler is not None or queue.resting_handler is not None or queue.name in STANDARD_QUEUES


def _is_awaited(queue: Queue) -> bool:
    return bool(queue.listeners) and not queue.is_temporary


def is_in_use(engine: Engine, queue: Queue) -> bool:
    """Whether something on the queue is not committed, or somebody holds it or waits for a message on it."""
    return engine.is_committing_on(queue) or any(user.is_using(queue) for user in engine.objects.users)


def _check_alive(engine: Engine) -> None:
    if engine.failed is not None:
        raise engine.failed
