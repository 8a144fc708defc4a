"""A queue that one connection holds for exclusive input: a fence, and the place of one message that is replaced.

Opened by `QueueManager.open_exclusively`. An exactly-once channel keeps its state as the one message of such a queue
(mq_adapters/queue_manager.py says what holding it means).
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, Self, TypeVar

from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from mq_adapters.queue_manager import QueueManager

#: As many bytes as a message can have: a batch of one message has no other limit.
_ANY_BYTES: Final = 0x7FFF_FFFF
#: How often a queue that somebody else holds is asked for, in seconds.
_ASK_AGAIN_S: Final = 0.2

T = TypeVar("T")


def when_not_in_use(open_queue: Callable[[], T], *, wait_s: float) -> T:
    """Opens a queue, asking again for up to `wait_s` seconds while the answer is 2042."""
    deadline = monotonic() + wait_s
    while True:
        try:
            return open_queue()
        except QueueManagerError as error:
            left_s = deadline - monotonic()
            if error.reason_code != ReasonCode.MQRC_OBJECT_IN_USE or left_s <= 0:
                raise
        sleep(min(_ASK_AGAIN_S, left_s))


class ExclusiveQueue:
    """A queue that is open for this connection alone, and used by its thread.

    Close it, or use it as a context manager. The end of the connection closes it too.
    """

    def __init__(self, queue_manager: "QueueManager", name: str, release: Callable[[str], None]) -> None:
        self.name = name
        self._queue_manager = queue_manager
        self._release: Callable[[str], None] | None = release

    def messages(self) -> tuple[Message, ...]:
        """All messages, in the order of `get`, without taking them. 2019 once it is closed."""
        self._check_open()
        return tuple(self._queue_manager.browse(self.name))

    def replace(self, message: Message) -> bytes:
        """Takes the first message, where there is one, and puts another, in the open unit of work; returns its MsgId.

        2255 without a unit of work, 2019 once it is closed. After a refusal back out: the old message may be taken.
        """
        self._check_open()
        self._queue_manager.take_batch(self.name, most_messages=1, most_bytes=_ANY_BYTES)
        return self._queue_manager.put(self.name, message)

    def close(self) -> None:
        """Others may get from the queue again. It may be closed before the unit of work ends that it was used in."""
        release, self._release = self._release, None
        if release is not None:
            release(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._release is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"use queue {self.name}")
