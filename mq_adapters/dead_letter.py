"""Dead letters: a message that cannot go on, kept whole behind an MQDLH that says why and where it was going.

The MQDLH is written in UTF-8 and little-endian integers, as the dead letter's MQMD says; its own CodedCharSetId,
Encoding and Format are those of the message. What reads and writes headers is loaded with the first dead letter: most
processes that know how to bury a message never do. Source: IBM MQ, "MQDLH - Dead-letter header".
"""

from datetime import UTC, datetime
from typing import Final

from mappings.errors import MappingError
from mq_adapters.message import (
    MQAT_BROKER,
    MQEI_UNLIMITED,
    MQENC_LITTLE_ENDIAN,
    MQMT_DATAGRAM,
    MQPER_PERSISTENT,
    UTF_8,
    Message,
)
from mq_adapters.queue_manager import QueueManager
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do
from mq_adapters.reports import ReportOption

_Q_NAME_BYTES: Final = 48
_PUT_APPL_NAME_BYTES: Final = 28
_INT32_MAXIMUM: Final = 2**31 - 1
#: A confirmation would be of a dead letter, not of the message. Each option is three bits: plain, with data, with all.
_CONFIRMATIONS: Final = 7 * int(ReportOption.CONFIRM_ON_ARRIVAL) | 7 * int(ReportOption.CONFIRM_ON_DELIVERY)


def dead_letter(
    message: Message,
    *,
    queue_name: str,
    reason_code: int,
    queue_manager_name: str,
    now_us: int,
    expiry: int = MQEI_UNLIMITED,
) -> Message:
    """The dead letter of a message that was going to `queue_name`; put it on the dead-letter queue.

    It has a new MsgId unless the putter had chosen the old one. `now_us` (microseconds since 1970) becomes PutDate and
    PutTime. `expiry` is in tenths of a second; a letter has none of its message.
    """
    from mappings.headers.chain import FORMAT_DEAD_LETTER, DeadLetterHeader

    descriptor = message.descriptor
    now = datetime.fromtimestamp(now_us / 1_000_000, UTC)
    header = DeadLetterHeader(
        reason=reason_code,
        dest_q_name=_plain(queue_name, _Q_NAME_BYTES),
        dest_q_mgr_name=_plain(queue_manager_name, _Q_NAME_BYTES),
        encoding=_int32(descriptor.encoding),
        coded_char_set_id=_int32(descriptor.coded_char_set_id),
        format=descriptor.format,
        put_appl_type=MQAT_BROKER,
        put_appl_name=_plain(queue_manager_name, _PUT_APPL_NAME_BYTES),
        put_date=now.strftime("%Y%m%d"),
        put_time=now.strftime("%H%M%S") + f"{now.microsecond // 10_000:02}",
    ).to_bytes(coded_char_set_id=UTF_8, encoding=MQENC_LITTLE_ENDIAN)
    behind = descriptor.replace(
        format=FORMAT_DEAD_LETTER, coded_char_set_id=UTF_8, encoding=MQENC_LITTLE_ENDIAN, expiry=expiry
    )
    return Message(behind, header + message.body, message.origin)


def reason_of(letter: Message) -> int:
    """The reason code in the header of a dead letter; 2195 where its header cannot be read."""
    from mappings.headers.chain import read_dead_letter_header

    descriptor = letter.descriptor
    try:
        return read_dead_letter_header(
            letter.body, coded_char_set_id=descriptor.coded_char_set_id, encoding=descriptor.encoding
        ).reason
    except MappingError:
        return int(ReasonCode.MQRC_UNEXPECTED_ERROR)


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
        if what_to_do(error.reason_code) is not Action.POISON:
            raise  # else it is what its MQMD says that is refused here too
        letter.descriptor = letter.descriptor.replace(
            report=0, msg_type=MQMT_DATAGRAM, priority=0, persistence=MQPER_PERSISTENT
        )
        queue_manager.put(name, letter)


def _plain(name: str, length_bytes: int) -> str:
    """A name that a hostile MQMD may have given, as it fits into an MQDLH."""
    return name.encode("ascii", "replace").decode().replace("\0", "?")[:length_bytes]


def _int32(value: int) -> int:
    return value if -_INT32_MAXIMUM <= value <= _INT32_MAXIMUM else 0
