"""The queues that every store has, and those that the gateway makes for itself: one table.

Queues with names of the configuration (gateway/config) and of targets (gateway/config/queue_names.py) are not here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mappings.topics.streams import CONTROL_QUEUE, DEFAULT_STREAM

__all__ = [
    "AUDIT_QUEUE",
    "CHANNEL_STATE_QUEUE",
    "CONTROL_QUEUE",
    "DEAD_LETTER_QUEUE",
    "DEFAULT_STREAM",
    "DURABLE_MODEL_QUEUE",
    "HELD_QUEUE",
    "MADE_AT_START",
    "MANAGED",
    "MANAGED_DURABLE",
    "MANAGED_NOT_DURABLE",
    "SYSTEM_QUEUES",
    "QueueOwner",
    "SystemQueue",
    "has_any_depth",
    "is_closed_to_applications",
    "is_managed_durable",
]

DEAD_LETTER_QUEUE: Final = "SYSTEM.DEAD.LETTER.QUEUE"
#: The model of temporary queues that programs of IBM MQ name unless they name another.
DEFAULT_MODEL_QUEUE: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
#: The queues of MQSUB with MQSO_MANAGED: what the subscription's kind says, and 16 hexadecimal digits.
MANAGED: Final = "SYSTEM.MANAGED."
MANAGED_DURABLE: Final = MANAGED + "DURABLE."
MANAGED_NOT_DURABLE: Final = MANAGED + "NDURABLE."
DURABLE_MODEL_QUEUE: Final = "SYSTEM.DURABLE.MODEL.QUEUE"
AUDIT_QUEUE: Final = "SYSTEM.RFHBRIDGE.AUDIT"
HELD_QUEUE: Final = "SYSTEM.RFHBRIDGE.HELD"
CHANNEL_STATE_QUEUE: Final = "RFHBRIDGE.CHANNEL.STATE"


class QueueOwner(StrEnum):
    """Whose messages are on a queue."""

    #: Applications take them.
    NOBODY = ""
    #: The gateway takes them: who else does takes what was acknowledged to a client.
    GATEWAY = "GATEWAY"
    #: Dead letters: what becomes of them is the operator's to say.
    OPERATOR = "OPERATOR"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemQueue:
    """A row of the table.

    `description` is the DESCR of the queue. `use` tells an operator why no setting may name it. A queue that is not
    made at start is made when it is first needed. `has_any_depth`: its MAXDEPTH does not count.
    """

    name: str
    description: str
    use: str
    owner: QueueOwner
    is_made_at_start: bool = True
    has_any_depth: bool = False
    #: No application puts on it, takes from it, clears it or alters it.
    is_closed_to_applications: bool = False
    #: A setting may name it as an input queue of the broker.
    is_stream: bool = False


SYSTEM_QUEUES: Final[Mapping[str, SystemQueue]] = {
    row.name: row
    for row in (
        SystemQueue(
            name=CONTROL_QUEUE,
            description="commands to the publish/subscribe broker",
            use="the broker takes its commands off it",
            owner=QueueOwner.GATEWAY,
        ),
        SystemQueue(
            name=DEFAULT_STREAM,
            description="publications of the default stream",
            use="it is a stream, whose messages the broker takes",
            owner=QueueOwner.GATEWAY,
            is_stream=True,
        ),
        SystemQueue(
            name=DEAD_LETTER_QUEUE,
            description="messages that could not be delivered",
            use="dead letters are put on it",
            owner=QueueOwner.OPERATOR,
        ),
        SystemQueue(
            name=AUDIT_QUEUE,
            description="audit notes on their way to the trail",
            use="the audit trail is written from it",
            owner=QueueOwner.GATEWAY,
            is_closed_to_applications=True,
        ),
        SystemQueue(
            name=HELD_QUEUE,
            description="dead letters that wait for room on the dead-letter queue",
            use="dead letters wait on it for room",
            owner=QueueOwner.OPERATOR,
            has_any_depth=True,
        ),
        SystemQueue(
            name=CHANNEL_STATE_QUEUE,
            description="the state of channels and their batches",
            use="channels keep their state on it",
            owner=QueueOwner.GATEWAY,
            is_made_at_start=False,
        ),
    )
}

_DIGITS: Final = re.compile("[0-9A-F]{16}")
MADE_AT_START: Final = tuple(row for row in SYSTEM_QUEUES.values() if row.is_made_at_start)


def has_any_depth(name: str) -> bool:
    """Whether a queue takes messages past its MAXDEPTH."""
    row = SYSTEM_QUEUES.get(name)
    return row is not None and row.has_any_depth


def is_managed_durable(name: str) -> bool:
    """Whether the queue manager made a queue of that name for a durable subscription."""
    digits = name.removeprefix(MANAGED_DURABLE)
    return len(name) - len(digits) == len(MANAGED_DURABLE) and _DIGITS.fullmatch(digits) is not None


def is_closed_to_applications(name: str) -> bool:
    """Whether a queue is the gateway's alone: the trail is made of all that it puts there, and of nothing else."""
    row = SYSTEM_QUEUES.get(name)
    return row is not None and row.is_closed_to_applications
