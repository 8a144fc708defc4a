"""Dead letters: a message that cannot go on, kept whole behind an MQDLH that says why and where it was going.

Source: IBM MQ, "MQDLH - Dead-letter header"; the header is in the character set and encoding of the message itself.
"""

import time

from mappings.header_chain import FORMAT_DEAD_LETTER, DeadLetterHeader
from mq_adapters.embedded.engine import DEAD_LETTER_QUEUE, Engine
from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import MQEI_UNLIMITED, MQMI_NONE, MQPER_PERSISTENT, UTF_8, Message

_APPLICATION_NAME_CHARACTERS = 28


def put_dead_letter(
    engine: Engine, unit: UnitOfWork, message: Message, *, queue_name: str, reason_code: int
) -> Message:
    """Puts `message`, which was going to `queue_name`, on the dead-letter queue in the unit of work; returns the copy.

    The copy is persistent and never expires. Its MsgId is new where the queue manager chose the old one.
    """
    put_at = time.gmtime((message.put_us or engine.now_us()) // 1_000_000)
    hundredths = (message.put_us or engine.now_us()) % 1_000_000 // 10_000
    descriptor = message.descriptor
    header = DeadLetterHeader(
        reason=reason_code,
        dest_q_name=queue_name,
        dest_q_mgr_name=engine.name,
        encoding=descriptor.encoding,
        coded_char_set_id=descriptor.coded_char_set_id,
        format=descriptor.format,
        put_appl_type=descriptor.put_appl_type,
        put_appl_name=descriptor.put_appl_name[:_APPLICATION_NAME_CHARACTERS],
        put_date=time.strftime("%Y%m%d", put_at),
        put_time=time.strftime("%H%M%S", put_at) + f"{hundredths:02d}",
    )
    encoding = descriptor.encoding if descriptor.encoding & 0xF in (1, 2) else 546
    ccsid = descriptor.coded_char_set_id if descriptor.coded_char_set_id > 0 else UTF_8
    dead_letter = Message(
        descriptor.replace(
            format=FORMAT_DEAD_LETTER,
            encoding=encoding,
            coded_char_set_id=ccsid,
            persistence=MQPER_PERSISTENT,
            expiry=MQEI_UNLIMITED,
            msg_id=MQMI_NONE,
        ),
        header.to_bytes(coded_char_set_id=ccsid, encoding=encoding) + message.body,
        message.origin,
    )
    engine.put(unit, engine.queue(DEAD_LETTER_QUEUE), dead_letter)
    return dead_letter
