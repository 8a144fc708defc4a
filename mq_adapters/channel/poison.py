"""Messages that are refused for good: whole, behind an MQDLH, on the dead-letter queue of a queue manager."""

from mq_adapters.dead_letter import dead_letter
from mq_adapters.message import MQMT_DATAGRAM, Message
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.reports import ReportOption

#: A confirmation would be of a dead letter, not of the message. Each option is three bits: plain, with data, with all.
_CONFIRMATIONS = 7 * int(ReportOption.CONFIRM_ON_ARRIVAL) | 7 * int(ReportOption.CONFIRM_ON_DELIVERY)


def bury(
    queue_manager: QueueManager,
    message: Message,
    *,
    queue_name: str,
    queue_manager_name: str,
    reason_code: int,
    now_us: int,
) -> None:
    """Puts a message that was going to `queue_name` of `queue_manager_name` on the dead-letter queue.

    In the open unit of work of `queue_manager`. Raises QueueManagerError where it has no dead-letter queue (2085), or
    that takes no message.
    """
    name = queue_manager.inquire("").text("DEADQ")
    if not name:
        raise QueueManagerError(
            ReasonCode.MQRC_UNKNOWN_OBJECT_NAME,
            f"put a message on the dead-letter queue of {queue_manager.name}",
            "name one there: ALTER QMGR DEADQ(...)",
        )
    letter = dead_letter(
        message,
        queue_name=queue_name,
        reason_code=reason_code,
        queue_manager_name=queue_manager_name,
        now_us=now_us,
    )
    letter.descriptor = letter.descriptor.replace(report=letter.descriptor.report & ~_CONFIRMATIONS)
    try:
        queue_manager.put(name, letter)
    except QueueManagerError as error:
        if error.reason_code != ReasonCode.MQRC_MISSING_REPLY_TO_Q:
            raise
        letter.descriptor = letter.descriptor.replace(report=0, msg_type=MQMT_DATAGRAM)
        queue_manager.put(name, letter)
