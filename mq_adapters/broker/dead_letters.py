"""What the broker cannot deliver: the whole message behind an MQDLH on the dead-letter queue.

Sources: IBM MQ, "MQDLH - Dead-letter header"; WebSphere MQ V6 Publish/Subscribe User's Guide (a message that is no
command goes to the dead-letter queue, or is discarded with an exception report, as its Report field says).
"""

from mq_adapters.dead_letter import dead_letter
from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reports import MQRO_DISCARD_MSG, ReportOption


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
        if report & ReportOption.EXCEPTION:
            self._engine.reporter.send(unit, message, ReportOption.EXCEPTION, reason_code)
        if report & MQRO_DISCARD_MSG:
            self._listener.dropped(unit, message, queue_name, f"discarded as its Report asks, reason {reason_code}")
            return
        self.put(unit, message, queue_name, reason_code)
