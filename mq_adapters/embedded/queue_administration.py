"""Altering, clearing and deleting queues while they are in use, and messages that must stay on them.

A queue that is open or has uncommitted messages is neither cleared nor deleted (2042). A queue that the gateway needs
is never deleted. Nobody may take messages of a channel's batch in doubt until the operator has resolved it.
"""

from typing import Final

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.channel.state_message import MalformedState, read_local_state
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.operators_act import OperatorsAct, tell, tell_removals
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import CHANNEL_STATE_QUEUE, QueueOwner, is_closed_to_applications

#: Messages that are destroyed in one unit of work.
CLEAR_MESSAGES: Final = 1_000


def alter(engine: Engine, definition: Definition) -> None:
    """Replaces the definition of an object, durably. 2042 for the queue that is the gateway's alone.

    A served queue whose gets are inhibited keeps its puts, until gets are enabled: then they are handed over.
    """
    _check_alive(engine)
    if is_closed_to_applications(definition.name):
        why = "the audit trail is written from it, and no attribute of it changes that"
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, f"alter {definition.name}", why)
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


def delete(engine: Engine, queue: Queue, act: OperatorsAct, *, purge: bool = False) -> None:
    """Deletes a local queue after the commit that destroys its messages. The act counts these messages.

    2055 if it has messages and no purge is asked for. 2042 if somebody uses it or the gateway needs it.
    """
    _check_alive(engine)
    operation = f"delete queue {queue.name}"
    check_not_needed(engine, queue.name, operation)
    _check_free(engine, queue, operation)
    if queue.depth and not purge:
        raise QueueManagerError(ReasonCode.MQRC_Q_NOT_EMPTY, operation)
    queue.close()
    is_told = _destroy_all(engine, queue, act) > 0
    unit = engine.begin()
    if not is_told:
        tell(engine, unit, act.on_queue(queue.name))
    engine.submit(unit, lambda _unit: engine.objects.delete_queue(queue))
    engine.commit_now()


def clear(engine: Engine, queue: Queue, act: OperatorsAct) -> int:
    """Destroys every message of a queue; returns their number. 2042 if somebody uses the queue or owns them."""
    _check_alive(engine)
    operation = f"clear queue {queue.name}"
    if engine.owner(queue) is QueueOwner.GATEWAY:
        why = "the messages on it are the gateway's; 'rfhbridge queue clear --force' destroys them all the same"
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation, why)
    _check_free(engine, queue, operation)
    return _destroy_all(engine, queue, act)


def destroying(engine: Engine, queue: Queue, act: OperatorsAct) -> UnitOfWork:
    """A unit of work that destroys the oldest CLEAR_MESSAGES of a queue, with the operator's act."""
    unit = engine.begin()
    while len(unit.removals) < CLEAR_MESSAGES and (message := engine.take(queue)) is not None:
        unit.remove(queue, message, Departure.CLEARED)
    if unit.removals:
        tell_removals(engine, unit, act)
    return unit


def check_not_needed(engine: Engine, name: str, operation: str) -> None:
    """2042 for a queue or an alias that the gateway needs."""
    if engine.is_needed(name):
        why = "the gateway needs it; if its configuration names it, take it out there and start the gateway again"
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation, why)


def check_not_in_doubt(engine: Engine, queue: Queue, operation: str) -> None:
    """2042 for a transmission queue with messages of a batch in doubt, because they may have been delivered."""
    if queue.definition["USAGE"] == "XMITQ" and (channel := _doubtful_channel(engine, queue)):
        why = f"a batch of channel {channel} is in doubt: say what became of it with 'rfhbridge channel resolve'"
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, f"{operation}, of which {why}")


def is_in_use(engine: Engine, queue: Queue) -> bool:
    """Whether the queue has uncommitted messages, or somebody holds it, reads it or waits for a message on it."""
    return engine.is_committing_on(queue) or any(user.is_using(queue) for user in engine.objects.users)


# -- inside ------------------------------------------------------------------------------------------------------------


def _destroy_all(engine: Engine, queue: Queue, act: OperatorsAct) -> int:
    """Destroys the present messages, and none that arrives meanwhile."""
    left, destroyed = queue.depth, 0
    while destroyed < left and (unit := destroying(engine, queue, act)).removals:
        destroyed += len(unit.removals)
        engine.submit(unit)
        engine.commit_now()  # so that no more bodies are in memory at once
    engine.destroy_found(queue)
    engine.commit_now()
    return destroyed


def _check_free(engine: Engine, queue: Queue, operation: str) -> None:
    check_not_in_doubt(engine, queue, operation)
    if _is_served(queue) or _is_awaited(queue) or is_in_use(engine, queue):
        raise QueueManagerError(ReasonCode.MQRC_OBJECT_IN_USE, operation)


def _is_served(queue: Queue) -> bool:
    return queue.handler is not None or queue.resting_handler is not None


def _is_awaited(queue: Queue) -> bool:
    return bool(queue.listeners) and not queue.is_temporary


def _doubtful_channel(engine: Engine, queue: Queue) -> str:
    """The channel that does not know whether messages on the queue were delivered; "" if there is none."""
    states = engine.objects.queues.get(CHANNEL_STATE_QUEUE)
    for message in () if states is None else engine.browse(states):
        try:
            state = read_local_state(message)
        except MalformedState:  # the channel says so itself, and does not run
            continue
        doubtful = state.doubtful.messages if state.doubtful is not None else ()
        if any(next(iter(engine.browse(queue, msg_id=msg_id)), None) is not None for msg_id in doubtful):
            return state.channel
    return ""


def _check_alive(engine: Engine) -> None:
    if engine.failed is not None:
        raise engine.failed
