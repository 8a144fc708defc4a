"""An application puts dead letters back, and no letter is lost by that.

A unit of work puts a letter back if it takes the letter and puts a message with its MsgId. The check comes before the
unit is carried out: if the message would be refused, or nobody would get it, the whole unit fails, and the letter stays
where it was. The broker's refusal fails the unit too (UnitOfWork.redriven). It comes before any work for that message,
but not before work for others, so one unit puts one message back to the broker.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mappings.headers.chain import FORMAT_DEAD_LETTER
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import QueueOwner
from mq_adapters.transmission import inner_msg_id

if TYPE_CHECKING:
    from mq_adapters.embedded.engine import Engine


def check_redriven(engine: "Engine", unit: UnitOfWork) -> None:
    """Checks the dead letters that a unit of an application puts back, before it is submitted.

    Each message gets the private origin of its letter. Raises QueueManagerError: 2024 if several are for the broker,
    2016 while the broker takes none, 2428 if nobody would get the message, 2059 if only a gateway could tell that.
    """
    for letter, queue, message in redriven_in(unit):
        message.origin = engine.dead_letters.payers.unmarked(letter.origin)
        _check(engine, queue, message)
        if queue.handler is not None:
            if sum(1 for found, _ in unit.puts if found.handler is not None) > 1:
                operation = f"put several messages on {queue.name} of which one was a dead letter"
                raise QueueManagerError(ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED, operation)
            unit.redriven = message


def redriven_in(unit: UnitOfWork) -> Iterator[tuple[Message, Queue, Message]]:
    """Letter, queue and message of each put of a unit that puts a dead letter back."""
    letters = {
        message.msg_id: message for _, message, _ in unit.removals if message.descriptor.format == FORMAT_DEAD_LETTER
    }
    if not letters:
        return
    for queue, message in unit.puts:
        letter = letters.get(inner_msg_id(message))
        if letter is not None and message.descriptor.format != FORMAT_DEAD_LETTER:
            yield letter, queue, message


def _check(engine: "Engine", queue: Queue, message: Message) -> None:
    if queue.resting_handler is not None:
        raise QueueManagerError(ReasonCode.MQRC_GET_INHIBITED, f"put a dead letter back on {queue.name}")
    if engine.owner(queue) is not QueueOwner.GATEWAY:
        return
    if engine.takes_back is None:
        operation = f"put a dead letter back on {queue.name}, which needs a running gateway"
        raise QueueManagerError(ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE, operation)
    if not engine.takes_back(queue, message):
        operation = f"put a dead letter back on {queue.name}: no present session would get it"
        raise QueueManagerError(ReasonCode.MQRC_NO_SUBSCRIPTION, operation)
