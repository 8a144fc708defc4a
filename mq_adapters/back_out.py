"""Messages that are backed out again and again: what an application does so that one of them does not stop the others.

The queue manager counts, and acts on nothing: BOTHRESH and BOQNAME of the queue are for the application, which looks at
each message that it got before it works on it:

    queue_manager.begin()
    message = queue_manager.get("ORDERS", wait_s=60)
    if not requeued(queue_manager, "ORDERS", message):
        work_on(message)                      # where that fails: queue_manager.back_out()
    queue_manager.commit()

Source: IBM MQ, "BackoutCount (MQLONG)", "Handling poison messages".
"""

import time

from mq_adapters.dead_letter import bury
from mq_adapters.message import Message
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do

#: A refusal after which the dead-letter queue may still take the message.
_ANOTHER_QUEUE_MAY = (Action.POISON, Action.RETRY_LATER, Action.CONFIGURATION)


def requeued(queue_manager: QueueManager, queue_name: str, message: Message) -> bool:
    """Put a message aside if it was backed out BOTHRESH times or more. True: it was put aside, so commit.

    In the open unit of work the message goes to BOQNAME as it is. If BOQNAME is blank or refuses it, it goes to the
    dead-letter queue, behind an MQDLH with reason 2362. With BOTHRESH(0) no message is put aside. Raises
    QueueManagerError if neither queue takes it: back out, and stop until an operator has looked.
    """
    attributes = queue_manager.inquire(queue_name)
    if not is_backed_out_too_often(message, threshold=attributes.number("BOTHRESH")):
        return False
    requeue_name = attributes.text("BOQNAME")
    put_aside(queue_manager, queue_name, message, requeue_name=requeue_name, now_us=time.time_ns() // 1000)
    return True


def is_backed_out_too_often(message: Message, *, threshold: int) -> bool:
    """Whether a message has been backed out as often as BOTHRESH of its queue says; 0 is never."""
    return 0 < threshold <= message.backout_count


def put_aside(
    queue_manager: QueueManager, queue_name: str, message: Message, *, requeue_name: str, now_us: int
) -> None:
    """Puts a message of `queue_name` on BOQNAME of it, else on the dead-letter queue, in the open unit of work.

    Raises QueueManagerError where neither takes it. `now_us` is microseconds since 1970.
    """
    kept = Message(message.descriptor.replace(msg_id=message.msg_id), message.body)
    if requeue_name and _is_put(queue_manager, requeue_name, kept):
        return
    bury(
        queue_manager,
        kept,
        queue_name=queue_name,
        queue_manager_name=queue_manager.name,
        reason_code=ReasonCode.MQRC_BACKOUT_THRESHOLD_REACHED,
        now_us=now_us,
    )


def _is_put(queue_manager: QueueManager, queue_name: str, message: Message) -> bool:
    try:
        queue_manager.put(queue_name, message)
    except QueueManagerError as error:
        if what_to_do(error.reason_code) in _ANOTHER_QUEUE_MAY:
            return False
        raise
    return True
