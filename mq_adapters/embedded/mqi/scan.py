"""A scan: the messages of a queue that a message selector takes, found in shares of time.

Each message is looked at once, however often the program asks. What comes at a place that the scan has passed, because
of its priority or because somebody gave it back, is noted and looked at first. So a get that waits where 100,000
messages do not match looks at each new message alone.
"""

import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.lanes import SEQUENCE_MASK
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message
from mq_adapters.selection.conditions import Condition, ContentError, accepts
from mq_adapters.selection.message_content import MessageContent

#: MsgId, CorrelId and number of the message that is wanted; None: any.
Wanted = tuple[bytes | None, bytes | None, int | None]

#: One share: seconds, and messages. Between two shares everybody else has a turn.
SHARE_S: Final = 0.000_5
SHARE_MESSAGES: Final = 64
#: Places before the one reached that are noted. For more of them the scan begins again at the first.
MAXIMUM_NOTED: Final = 10_000
_BEFORE_ALL: Final = -1
_ANY: Final[Wanted] = (None, None, None)


class Progress(Enum):
    """What a share of a scan has found, where it found no message."""

    NOTHING = "no message there matches"
    UNFINISHED = "the share is used up"


class Scan:
    """The scan of one handle, in the order of delivery."""

    __slots__ = ("_ahead", "_condition", "_engine", "_noted", "_now_s", "_queue", "_reached", "_wanted")

    def __init__(
        self, engine: Engine, queue: Queue, condition: Condition, *, now_s: Callable[[], float] = time.perf_counter
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._condition = condition
        self._now_s = now_s
        self._wanted = _ANY
        #: The last place that was listed.
        self._reached = _BEFORE_ALL
        #: Places that are listed, and not looked at yet.
        self._ahead: deque[int] = deque()
        #: Places before the one reached, where messages have come since: a heap.
        self._noted: list[int] = []
        queue.watch(self._arrived)

    def close(self) -> None:
        """Gives up the scan."""
        self._queue.unwatch(self._arrived)

    def restart(self) -> None:
        """Begins at the first message again."""
        self._begin_at(_BEFORE_ALL)

    def next(self, wanted: Wanted, behind: int = _BEFORE_ALL) -> Message | Progress:
        """The next message that matches and stands behind a place, or why there is none yet.

        The scan has passed it then, and comes back to it only if somebody takes it and gives it back.
        """
        if wanted != self._wanted:
            self._wanted = wanted
            self.restart()
        until_s = self._now_s() + SHARE_S
        for _ in range(SHARE_MESSAGES):
            place = self._next_place()
            if place is None:
                return Progress.NOTHING
            found = self._matching(place) if place > behind else None
            if found is not None:
                return found
            if self._now_s() >= until_s:
                break
        return Progress.UNFINISHED

    def takes(self, message: Message) -> bool:
        """Whether the selector takes a message. It does not take one of which nobody can tell."""
        try:
            return accepts(self._condition, MessageContent(message))
        except ContentError:
            return False

    # -- inside --------------------------------------------------------------------------------------------------------

    def _begin_at(self, place: int) -> None:
        self._reached = place
        self._ahead.clear()
        self._noted.clear()

    def _next_place(self) -> int | None:
        if not self._ahead:
            self._ahead.extend(self._queue.behind(self._reached, SHARE_MESSAGES, self._wanted[1]))
            self._reached = self._ahead[-1] if self._ahead else self._reached
        if self._noted and (not self._ahead or self._noted[0] < self._ahead[0]):
            return heappop(self._noted)
        return self._ahead.popleft() if self._ahead else None

    def _matching(self, place: int) -> Message | None:
        """The message at a place, if it is still there and matches."""
        msg_id, correl_id, number = self._wanted
        sequence = place & SEQUENCE_MASK
        if number not in (None, sequence):
            return None
        for message in self._engine.browse(self._queue, correl_id, msg_id, [sequence]):
            return message if self.takes(message) else None
        return None

    def _arrived(self, place: int) -> None:
        """A message is available at that place."""
        if place > self._reached:
            return
        if len(self._noted) >= MAXIMUM_NOTED:
            self._begin_at(min(place, *self._noted) - 1)
        else:
            heappush(self._noted, place)
