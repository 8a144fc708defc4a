"""Report messages: they go to the ReplyToQ of the message that they report, or to the dead-letter queue."""

from collections.abc import Callable
from typing import Protocol

from mq_adapters.embedded.objects import Objects, PutTarget
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQMI_NONE, Message
from mq_adapters.reasons import QueueManagerError
from mq_adapters.reports import MQRO_DISCARD_MSG, ReportOption, report_on
from mq_adapters.transmission import transmission_message


class Bury(Protocol):
    """Makes a dead letter of a message that was going to a queue here (DeadLetters.put)."""

    def __call__(self, unit: UnitOfWork, message: Message, *, queue_name: str, reason_code: int) -> object: ...


class Reporter:
    """Sends reports in the unit of work of the reported event."""

    def __init__(
        self,
        objects: Objects,
        *,
        put: Callable[[UnitOfWork, Queue, Message], int],
        bury: Bury,
        now_us: Callable[[], int],
    ) -> None:
        self._objects = objects
        self._put = put
        self._bury = bury
        self._now_us = now_us
        #: Told of each message that the queue manager or its broker put by itself, outside of an application's unit.
        self.on_own_put: Callable[[UnitOfWork, Queue, Message], None] = lambda _unit, _queue, _message: None

    def send(self, unit: UnitOfWork, message: Message, option: ReportOption, feedback: int) -> None:
        """Reports on a message as its descriptor asks.

        A report that cannot be put on its queue becomes a dead letter, unless it asks to be discarded.
        """
        asked = message.descriptor
        report = report_on(
            message, option, feedback=feedback, queue_manager_name=self._objects.name, now_us=self._now_us()
        )
        try:
            self.put(unit, self._objects.putting(asked.reply_to_q, asked.reply_to_q_mgr), report)
        except QueueManagerError as error:
            if not report.descriptor.report & MQRO_DISCARD_MSG:
                self._bury(unit, report, queue_name=asked.reply_to_q, reason_code=error.reason_code)

    def send_unasked(self, unit: UnitOfWork, message: Message, option: ReportOption, feedback: int) -> None:
        """The same in a unit of work that is no application's."""
        before = len(unit.puts)
        self.send(unit, message, option, feedback)
        for queue, report in unit.puts[before:]:
            self.on_own_put(unit, queue, report)

    def put(self, unit: UnitOfWork, target: PutTarget, message: Message) -> None:
        """Puts a message on the queue of a name; for another queue manager, behind an MQXQH on the transmission queue.

        `message` then has the MsgId that it will have on arrival.
        """
        if not target.remote_queue:
            self._put(unit, target.queue, message)
            return
        # Numbered like every other message, for the sake of its MsgId.
        now_us = self._now_us()
        ahead: UnitOfWork = UnitOfWork()
        self._put(ahead, target.queue, message)
        if message.descriptor.msg_id == MQMI_NONE:
            message.descriptor = message.descriptor.replace(msg_id=message.msg_id)
        transmitted = transmission_message(
            message,
            queue_name=target.remote_queue,
            queue_manager_name=target.remote_queue_manager,
            own_name=self._objects.name,
            now_us=now_us,
        )
        self._put(unit, target.queue, transmitted)
