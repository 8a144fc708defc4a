"""Notes of operators' orders: the operator, the command, the number of messages.

An order is noted in the unit of work that carries it out. Each message that it destroys has a note of its own, like a
message that expires. The daemon notes orders, and so does a command that owns the store while no daemon runs. The notes
of such a command wait on the audit queue for the next exporter.
"""

from itertools import islice
from typing import Final

from gateway.audit_trail.notes.application_work import ApplicationWork
from gateway.audit_trail.notes.notes import BrokerNotes, NoteKind, pack_batch
from gateway.audit_trail.notes.origin import exchange_of
from gateway.audit_trail.notes.stock_takes import lost_notes
from gateway.config.queue_names import sent_queue_name
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.operators_act import OperatorsAct
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message
from spark_audit.record.fields import MOST_MESSAGE_IDS

#: Characters that are kept of the object of an order and of its remark, each.
_LONGEST_TEXT_CHARACTERS: Final = 1_000
#: Copies of delivered messages are kept on such queues, and are meant to expire.
_KEPT_COPIES: Final = sent_queue_name("")


def keep_acts(engine: Engine) -> None:
    """For a command that owns the store: notes the operator's orders, unless the last gateway kept no trail."""
    if engine.gateway_queues.is_audited:
        engine.seal_notes = pack_batch
        note_acts(engine)
        if lost := lost_notes(engine):
            unit = engine.begin()
            unit.notes += lost
            unit.notes_are_due = True
            engine.submit(unit)


def note_acts(engine: Engine) -> None:
    """From now on all orders on this engine are noted, puts and gets of applications, and messages that expire."""

    def note(unit: UnitOfWork, act: OperatorsAct, messages: int) -> None:
        now_us = engine.now_us()
        concerned = (message.sequence for queue, message, _ in unit.removals if act.queue in ("", queue.name))
        unit.notes.append(act_note(act, messages, now_us, tuple(islice(concerned, MOST_MESSAGE_IDS))))
        unit.notes_are_due = True
        reason = f"an operator destroyed it: {act.command}"
        for queue, message, departure in unit.removals:
            if departure is Departure.CLEARED and queue.name == act.queue:
                exchange = exchange_of(message.origin)
                unit.notes.append((NoteKind.DROPPED, now_us, *exchange, queue.name, message.sequence, reason))

    def expired(unit: UnitOfWork, queue: Queue, message: Message) -> None:
        if not queue.name.startswith(_KEPT_COPIES):
            notes.dropped(unit, message, queue.name, "the message expired")

    notes, work = BrokerNotes(engine.now_us), ApplicationWork(engine)
    engine.on_operated = note
    engine.on_expired = expired
    engine.on_application_unit.append(work.note)
    engine.reporter.on_own_put = work.note_own_put
    engine.on_temporary_end = work.note_end


def act_note(act: OperatorsAct, messages: int, now_us: int, numbers: tuple[int, ...] = ()) -> tuple[object, ...]:
    """The note of one order. `numbers` are those of the messages that its record lists."""
    reason = act.reason[:_LONGEST_TEXT_CHARACTERS]
    subject = act.subject[:_LONGEST_TEXT_CHARACTERS]
    return (NoteKind.OPERATED, now_us, act.operator, act.command, act.queue, subject, messages, reason, numbers)
