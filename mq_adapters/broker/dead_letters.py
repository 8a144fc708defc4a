"""What the broker cannot deliver: the whole message behind an MQDLH on the dead-letter queue.

Sources: IBM MQ, "MQDLH - Dead-letter header"; WebSphere MQ V6 Publish/Subscribe User's Guide (a message that is no
command goes to the dead-letter queue, or is discarded with an exception report, as its Report field says).
"""

from typing import Final

from mappings.header_chain import FORMAT_NONE
from mq_adapters.dead_letter import dead_letter
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import (
    MQAT_BROKER,
    MQMT_REPORT,
    MQRO_PASS_CORREL_ID,
    Message,
    MessageDescriptor,
)
from mq_adapters.reasons import QueueManagerError

MQRO_DISCARD_MSG: Final = 0x0800_0000
MQRO_EXCEPTION: Final = 0x0100_0000
MQRO_EXCEPTION_WITH_DATA: Final = 0x0300_0000
MQRO_EXCEPTION_WITH_FULL_DATA: Final = 0x0700_0000
#: A report "with data" carries the first 100 bytes (IBM MQ, "Report options and message flags").
_REPORTED_BYTES: Final = 100

_Q_NAME_BYTES: Final = 48
_PUT_APPL_NAME_BYTES: Final = 28
_INT32_MAXIMUM: Final = 2**31 - 1


class DeadLetters:
    """Puts messages on the dead-letter queue, in the unit of work in which they failed."""

    def __init__(self, engine: Engine, listener: DeliveryListener) -> None:
        self._engine = engine
        self._listener = listener

    def put(self, unit: UnitOfWork, message: Message, queue_name: str, reason_code: int) -> None:
        """Sends a message that could not be put on `queue_name` to the dead-letter queue, whole, with the reason.

        Where even that is impossible the message ends here, and the listener is told so.
        """
        letter = dead_letter(
            message,
            queue_name=queue_name,
            reason_code=reason_code,
            queue_manager_name=self._engine.name,
            now_us=self._engine.now_us(),
        )
        try:
            self._engine.put(unit, self._engine.objects.dead_letter_queue, letter)
        except QueueManagerError as error:
            self._listener.dropped(unit, message, queue_name, f"not even the dead-letter queue took it: {error}")
            return
        self._listener.dead_lettered(unit, message, letter, queue_name, reason_code)

    def put_or_discard(self, unit: UnitOfWork, message: Message, queue_name: str, reason_code: int) -> None:
        """The same, except that MQRO_DISCARD_MSG discards; an exception report goes out where one was asked for."""
        report = message.descriptor.report
        if report & MQRO_EXCEPTION:
            self._report(unit, message, reason_code)
        if report & MQRO_DISCARD_MSG:
            self._listener.dropped(unit, message, queue_name, f"discarded as its Report asks, reason {reason_code}")
            return
        self.put(unit, message, queue_name, reason_code)

    def _report(self, unit: UnitOfWork, message: Message, reason_code: int) -> None:
        """An exception report, with as much of the message as was asked for; the listener hears if it fails."""
        asked = message.descriptor
        body = _reported(message)
        descriptor = MessageDescriptor(
            msg_type=MQMT_REPORT,
            feedback=reason_code,
            encoding=asked.encoding,
            coded_char_set_id=asked.coded_char_set_id,
            format=asked.format if body else FORMAT_NONE,
            priority=asked.priority,
            persistence=asked.persistence,
            correl_id=asked.correl_id if asked.report & MQRO_PASS_CORREL_ID else message.msg_id,
            put_appl_type=MQAT_BROKER,
            put_appl_name=self._engine.name[:_PUT_APPL_NAME_BYTES],
        )
        report = Message(descriptor, body, message.origin)
        try:
            self._engine.put(unit, self._engine.queue(asked.reply_to_q.rstrip()), report)
        except QueueManagerError as error:
            self._listener.dropped(unit, report, asked.reply_to_q, f"exception report: {error}")


def _reported(message: Message) -> bytes:
    report = message.descriptor.report
    if report & MQRO_EXCEPTION_WITH_FULL_DATA == MQRO_EXCEPTION_WITH_FULL_DATA:
        return message.body
    if report & MQRO_EXCEPTION_WITH_DATA == MQRO_EXCEPTION_WITH_DATA:
        return message.body[:_REPORTED_BYTES]
    return b""
