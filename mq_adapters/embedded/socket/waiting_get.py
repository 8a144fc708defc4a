"""A GET of an application that waits for a message."""

import asyncio
from collections.abc import Callable

from mq_adapters.embedded.queue import Queue


class WaitingGet:
    """A GET that waits for a message: how it is told of one, and when it gives up."""

    __slots__ = ("correl_id", "is_over", "msg_id", "number", "queue", "timer", "wake")

    def __init__(
        self, number: int, queue: Queue, correl_id: bytes | None, msg_id: bytes | None, wake: Callable[[], None]
    ) -> None:
        self.number = number
        self.queue = queue
        self.correl_id = correl_id
        self.msg_id = msg_id
        self.wake = wake
        self.timer: asyncio.TimerHandle | None = None
        #: The time is over, and the answer waits for something else.
        self.is_over = False
        queue.listen(correl_id, wake)

    def end(self) -> None:
        self.queue.unlisten(self.correl_id, self.wake)
        if self.timer is not None:
            self.timer.cancel()
