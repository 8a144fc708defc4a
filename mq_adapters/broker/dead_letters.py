"""Messages that the broker cannot deliver or read: dead letters, unless their Report field says otherwise.

Source: WebSphere MQ V6 Publish/Subscribe User's Guide (a message that is no command goes to the dead-letter queue, or
is discarded with an exception report, as its Report field says).
"""

from mq_adapters.delivery_listener import DeliveryListener
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reports import MQRO_DISCARD_MSG, ReportOption


class BrokerDeadLetters:
    """Makes dead letters, in the unit of work in which messages failed. It tells `listener` of each."""

    def __init__(self, engine: Engine, listener: DeliveryListener) -> None:
        self._engine = engine
        self._listener = listener
        engine.dead_letters.listener = listener

    def put(
        self, unit: UnitOfWork, message: Message, queue_name: str, reason_code: int, about: Message | None = None
    ) -> Departure:
        """Makes a dead letter of a message that could not be put on `queue_name`; see DeadLetters of the engine."""
        return self._engine.dead_letters.put(unit, message, queue_name=queue_name, reason_code=reason_code, about=about)

    def put_or_discard(self, unit: UnitOfWork, message: Message, queue_name: str, reason_code: int) -> Departure:
        """Like `put`, but MQRO_DISCARD_MSG discards the message. Puts an exception report if the message asks for one.

        Raises QueueManagerError for a message that was a dead letter before.
        """
        refuse_again(unit, message, reason_code)
        report = message.descriptor.report
        if report & ReportOption.EXCEPTION:
            self._engine.reporter.send_unasked(unit, message, ReportOption.EXCEPTION, reason_code)
        if report & MQRO_DISCARD_MSG:
            self._listener.dropped(unit, message, queue_name, f"discarded as its Report asks, reason {reason_code}")
            return Departure.DROPPED
        return self.put(unit, message, queue_name, reason_code)


def refuse_again(unit: UnitOfWork, message: Message, reason_code: int) -> None:
    """Refuses a dead letter that was put back. Its unit of work fails, so it stays a dead letter.

    Raises QueueManagerError with the reason, before the broker has done any work for such a message.
    """
    if unit.redriven is message:
        raise QueueManagerError(int(reason_code), "put a dead letter back: the broker refuses the message again")
