"""Why the messages that an application takes leave their queues: for good, or to come back in the same unit of work."""

from mappings.headers.chain import FORMAT_DEAD_LETTER
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.unit_of_work import Departure, UnitOfWork
from mq_adapters.message import Message
from mq_adapters.transmission import inner_msg_id


def tell_apart(unit: UnitOfWork) -> None:
    """Tells the balance which taken messages the application puts again in the same unit of work.

    An application puts a dead letter back under its MsgId, and makes a dead letter under the MsgId of the message. A
    message that the exclusive holder takes off a transmission queue was sent on by a channel.
    """
    put = {inner_msg_id(message): message.descriptor.format for _, message in unit.puts}
    unit.removals = [
        (queue, message, _departure(queue, message, put.get(inner_msg_id(message)) if put else None))
        if departure is Departure.TAKEN
        else (queue, message, departure)
        for queue, message, departure in unit.removals
    ]


def _departure(queue: Queue, message: Message, put_again_as: bytes | None) -> Departure:
    """The departure of a message that an application takes. `Format` decides if the message is put again."""
    if put_again_as is not None and message.descriptor.format == FORMAT_DEAD_LETTER:
        return Departure.REDRIVEN
    if put_again_as == FORMAT_DEAD_LETTER:
        return Departure.DEAD_LETTERED
    is_held = queue.exclusive_holder is not None
    return Departure.FORWARDED if is_held and queue.definition["USAGE"] == "XMITQ" else Departure.TAKEN
