"""What tells the queue manager's own RegSub for an MQSUB call, and the copies that it brings, from those of others.

Queued publish/subscribe is what carries out MQSUB. Three things have no place in a RegSub: that its subscriber reads
message properties (folder mqps) where others read folder psc, the priority of its copies, and that the subscription
ends with its program. So the queue manager says them in the MQMD of its command: PutApplType is MQAT_QMGR, and
ApplOriginData is `MS` for a durable subscription or `MN` for another one, and the priority in two digits, or `-3` for
the priority of each publication. A copy for such a subscriber has MQAT_BROKER and `MQPS`, until MQGET gives it to the
program.
Source: IBM MQ, "MQSUB", "MQSD - Subscription descriptor", PubPriority.
"""

from typing import Final, NamedTuple

from mq_adapters.message import MQAT_BROKER, MQAT_QMGR, MessageDescriptor

MQPRI_PRIORITY_AS_PUBLISHED: Final = -3
#: ApplOriginData of a copy whose subscriber reads message properties.
COPY_MARK: Final = "MQPS"


class MqsubMark(NamedTuple):
    """What a RegSub for MQSUB says beside its parameters; `priority` is 0 to 9, or as published."""

    priority: int
    is_durable: bool

    @property
    def text(self) -> str:
        return f"{'MS' if self.is_durable else 'MN'}{self.priority:02d}"


_MARKS: Final = {
    mark.text: mark
    for priority in (MQPRI_PRIORITY_AS_PUBLISHED, *range(10))
    for mark in (MqsubMark(priority, True), MqsubMark(priority, False))
}


def marked_command(descriptor: MessageDescriptor, mark: MqsubMark) -> MessageDescriptor:
    """The MQMD of a RegSub for an MQSUB call."""
    return descriptor.replace(put_appl_type=MQAT_QMGR, appl_origin_data=mark.text)


def mark_of_command(descriptor: MessageDescriptor) -> MqsubMark | None:
    """What the RegSub of an MQSUB call says; None for the RegSub of anybody else."""
    return _MARKS.get(descriptor.appl_origin_data) if descriptor.put_appl_type == MQAT_QMGR else None


def is_marked_copy(descriptor: MessageDescriptor) -> bool:
    """Whether a message is a copy whose subscriber reads message properties."""
    return descriptor.put_appl_type == MQAT_BROKER and descriptor.appl_origin_data == COPY_MARK
