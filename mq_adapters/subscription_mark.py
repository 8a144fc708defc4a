"""What tells the queue manager's own RegSub for an MQSUB call, and the copies that it brings, from those of others.

Queued publish/subscribe is what carries out MQSUB. Two things have no place in a RegSub: that its subscriber reads
message properties (folder mqps) where others read folder psc, and the priority of its copies. So the queue manager says
them in the MQMD of its command: PutApplType is MQAT_QMGR, and ApplOriginData is `MS` and the priority in two digits, or
`MS-3` for the priority of each publication. A copy for such a subscriber has MQAT_BROKER and `MQPS`, until MQGET gives
it to the program.
Source: IBM MQ, "MQSUB", "MQSD - Subscription descriptor", PubPriority.
"""

from typing import Final

from mq_adapters.message import MQAT_BROKER, MQAT_QMGR, MessageDescriptor

MQPRI_PRIORITY_AS_PUBLISHED: Final = -3
#: ApplOriginData of a copy whose subscriber reads message properties.
COPY_MARK: Final = "MQPS"
_COMMAND_MARK: Final = "MS"
_PRIORITIES: Final = {f"{_COMMAND_MARK}{number:02d}": number for number in (MQPRI_PRIORITY_AS_PUBLISHED, *range(10))}
_MARKS: Final = {number: mark for mark, number in _PRIORITIES.items()}


def marked_command(descriptor: MessageDescriptor, priority: int) -> MessageDescriptor:
    """The MQMD of a RegSub for an MQSUB call, whose copies have this priority (0 to 9, or as published)."""
    return descriptor.replace(put_appl_type=MQAT_QMGR, appl_origin_data=_MARKS[priority])


def priority_of_command(descriptor: MessageDescriptor) -> int | None:
    """The priority that the RegSub of an MQSUB call asks for; None for the RegSub of anybody else."""
    return _PRIORITIES.get(descriptor.appl_origin_data) if descriptor.put_appl_type == MQAT_QMGR else None


def is_marked_copy(descriptor: MessageDescriptor) -> bool:
    """Whether a message is a copy whose subscriber reads message properties."""
    return descriptor.put_appl_type == MQAT_BROKER and descriptor.appl_origin_data == COPY_MARK
