"""What the gateway cannot deliver: whole on the dead-letter queue, and in the audit, in one unit of work."""

from gateway.audit_trail.notes import NoteKind
from mq_adapters.dead_letter import dead_letter
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError


def put_dead_letter(
    engine: Engine,
    unit: UnitOfWork,
    message: Message,
    *,
    queue_name: str,
    reason_code: int,
    exchange: tuple[str, int, int],
    queue_manager_name: str = "",
) -> None:
    """Puts a message that was going to `queue_name` on the dead-letter queue; the audit hears if even that fails.

    `exchange` is the client identifier, session epoch and exchange of the PUBLISH that it came from. Without a queue
    manager's name the queue is here.
    """
    now_us = engine.now_us()
    letter = dead_letter(
        message,
        queue_name=queue_name,
        reason_code=reason_code,
        queue_manager_name=queue_manager_name or engine.name,
        now_us=now_us,
    )
    try:
        engine.put(unit, engine.objects.dead_letter_queue, letter)
    except QueueManagerError as error:
        reason = f"reason {int(reason_code)}, and not even the dead-letter queue took it: {error}"
        unit.notes.append((NoteKind.DROPPED, now_us, *exchange, queue_name, message.sequence, reason))
        return
    unit.notes.append(
        (NoteKind.DEAD_LETTERED, now_us, *exchange, queue_name, message.sequence, letter.sequence, int(reason_code))
    )
