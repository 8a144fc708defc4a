"""The rights of an application on queues: put, get, browse, and admin (change or clear them).

A pattern is a queue's name, or the beginning of names with `*` behind it, like IBM MQ's generic names. The name that
the application uses counts, so an alias needs a right of its own.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import AUDIT_QUEUE, DEAD_LETTER_QUEUE, HELD_QUEUE, MANAGED, is_closed_to_applications

#: Every queue, and the objects that belong to no queue. Only the pattern `*` covers this name.
EVERY_QUEUE: Final = "*"
#: Names that a general pattern such as `*` does not open to MQ clients. The first prefix of a name is its kind.
_SYSTEM_PREFIXES: Final = (MANAGED, "SYSTEM.RFHBRIDGE.", "SYSTEM.", "RFHBRIDGE.")


class Right(StrEnum):
    """Something that an application may do with a queue."""

    PUT = "put"
    GET = "get"
    BROWSE = "browse"
    ADMIN = "admin"


class MissingRight(StrEnum):
    """What a refused application would need: a Right, one on topics, or more than its configuration can give."""

    PUT = "put"
    GET = "get"
    BROWSE = "browse"
    ADMIN = "admin"
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    CONTEXT = "context"
    #: The subscription belongs to another application.
    OWNER = "owner"
    #: The queue is the gateway's alone.
    CLOSED = "closed"


class RightMissing(QueueManagerError):
    """2035: an application has no right for a queue, a topic or a subscription of that name; "" where none is known."""

    def __init__(self, right: MissingRight, name: str, why: str, hint: str = "") -> None:
        super().__init__(ReasonCode.MQRC_NOT_AUTHORIZED, why, hint)
        self.right, self.name = right, name


class ContextRight(IntEnum):
    """How much of a message's context an MQ client may set (IBM MQ, "Message context"). Each has what is before it.

    A program on the gateway's socket sets all but UserIdentifier, which it may set with either right.
    """

    NONE = 0
    IDENTITY = 1
    ALL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of an application: for each right the patterns of the queues' names."""

    put: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    browse: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()
    #: Whether the application takes audit notes off their queue, to write them to the trail.
    takes_notes: bool = False
    context: ContextRight = ContextRight.NONE

    def has(self, right: Right, queue_name: str) -> bool:
        """Whether a right covers the queue of that name."""
        patterns: tuple[str, ...] = getattr(self, right)
        return any(covers(pattern, queue_name) for pattern in patterns)

    def has_any(self, queue_name: str) -> bool:
        """Whether any right covers the queue. With any right, the application may know of the queue."""
        return any(self.has(right, queue_name) for right in Right)

    def check(self, right: Right, queue_name: str, operation: str) -> None:
        """QueueManagerError 2035 without the right."""
        if not self.has(right, queue_name):
            why = f"{operation}: the application has no right {right!s} for {queue_name}"
            raise RightMissing(MissingRight(right), queue_name, why)

    def check_open(self, base_name: str, operation: str) -> None:
        """2035 for a local queue that is closed to applications. Audit notes are for the trail alone."""
        if is_closed_to_applications(base_name) and not self.takes_notes:
            why = f"{operation}: {base_name} is the gateway's alone, whatever rights a program has"
            raise RightMissing(MissingRight.CLOSED, base_name, why, "browse it")

    def check_writes_trail(self, operation: str) -> None:
        """2035 unless the application is the process that writes the trail."""
        if not self.takes_notes:
            why = f"{operation}: the head of the trail is for its writer alone"
            raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, why)


def covers(pattern: str, queue_name: str) -> bool:
    """Whether a pattern is the name, or its beginning and `*`."""
    return queue_name.startswith(pattern[:-1]) if pattern.endswith("*") else queue_name == pattern


def check_system_queue(rights: Rights, right: Right, name: str, operation: str) -> None:
    """2035 for a queue of the queue manager's own, unless a pattern that covers it names its kind."""
    prefix = next((each for each in _SYSTEM_PREFIXES if name.startswith(each)), "")
    patterns: tuple[str, ...] = getattr(rights, right)
    if prefix and not any(pattern.startswith(prefix) and covers(pattern, name) for pattern in patterns):
        why = f"{operation}: no pattern of the right {right!s} for {name} begins with {prefix}"
        raise RightMissing(MissingRight(right), name, why)


_ALL: Final = (EVERY_QUEUE,)
#: The rights of a program that runs as the gateway's own user.
EVERYTHING: Final = Rights(put=_ALL, get=_ALL, browse=_ALL, admin=_ALL)
#: The rights of the process that writes the trail. It moves an unreadable batch to the dead letters.
EXPORTER: Final = Rights(get=(AUDIT_QUEUE,), put=(DEAD_LETTER_QUEUE, HELD_QUEUE), takes_notes=True)


class TopicRights(Protocol):
    """The topics of a program."""

    def may_publish(self, topic: str) -> bool:
        """Whether it may publish to this topic."""
        ...

    def may_subscribe(self, topic_filter: str) -> bool:
        """Whether it may subscribe to all topics of this filter."""
        ...


class NoTopics:
    """The rights of a program that may use no topics."""

    def may_publish(self, topic: str) -> bool:
        return False

    def may_subscribe(self, topic_filter: str) -> bool:
        return False


class EveryTopic:
    """The rights of a program that may use all topics."""

    def may_publish(self, topic: str) -> bool:
        return True

    def may_subscribe(self, topic_filter: str) -> bool:
        return True


NO_TOPICS: Final = NoTopics()
EVERY_TOPIC: Final = EveryTopic()
