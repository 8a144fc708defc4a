"""The browse cursor of a handle: the message that MQGMO_BROWSE_FIRST or MQGMO_BROWSE_NEXT gave last."""

from collections.abc import Iterator
from typing import Final

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.lanes import SEQUENCE_MASK
from mq_adapters.embedded.mqi.scan import Progress, Scan, Wanted
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import Right
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

_BEFORE_ALL: Final = -1
#: Messages that are listed at a time.
_LISTED: Final = 64


class BrowseCursor:
    """A cursor on one queue. It moves in the order of delivery, and sees messages that arrive behind it.

    A few messages behind the cursor are listed at a time, so that a browse costs as much on a long queue as on a short
    one. They are listed again after messages have arrived. A message that is locked (MQGMO_LOCK) is hidden from all
    others, until the cursor leaves it or takes it. With a selector a scan finds what it takes.
    """

    __slots__ = (
        "_ahead",
        "_application",
        "_engine",
        "_has_arrivals",
        "_is_locked",
        "_listed_for",
        "_name",
        "_place",
        "_queue",
        "_scan",
        "_seen",
        "_under",
    )

    def __init__(
        self, engine: Engine, application: Application, name: str, queue: Queue, scan: Scan | None = None
    ) -> None:
        self._engine = engine
        self._application = application
        self._name = name
        self._queue = queue
        self._scan = scan
        self._place = _BEFORE_ALL
        self._ahead: Iterator[Message] = iter(())
        self._listed_for: Wanted | None = None
        #: The first message ahead, if it was read and the cursor has not moved to it.
        self._seen: Message | None = None
        self._has_arrivals = True
        self._under: Message | None = None
        self._is_locked = False
        queue.listen(None, self._arrived)

    def close(self) -> None:
        """Gives up the cursor."""
        self._unlock()
        if self._scan is not None:
            self._scan.close()
        self._queue.unlisten(None, self._arrived)

    def reset(self) -> None:
        """Goes before the first message."""
        self._unlock()
        self._place, self._under = _BEFORE_ALL, None
        self._listed_for, self._seen = None, None
        if self._scan is not None:
            self._scan.restart()

    def next(self, wanted: Wanted) -> Message | Progress:
        """The next message that matches, or why there is none yet. The cursor moves to it with `move`."""
        if self._seen is not None and wanted == self._listed_for and self._is_there(self._seen):
            return self._seen
        if self._scan is not None:
            return self._scanned(self._scan, wanted)
        if wanted != self._listed_for or self._has_arrivals:
            self._list(wanted)
        self._seen = next(self._ahead, None)
        if self._seen is None and self._has_arrivals:
            self._list(wanted)
            self._seen = next(self._ahead, None)
        return Progress.NOTHING if self._seen is None else self._seen

    def _scanned(self, scan: Scan, wanted: Wanted) -> Message | Progress:
        self._application.check(Right.BROWSE, self._name, f"browse {self._name}")
        found = scan.next(wanted, self._place)
        self._listed_for, self._seen = wanted, found if isinstance(found, Message) else None
        return found

    def move(self, message: Message) -> None:
        """Moves the cursor to a message that `next` gave."""
        self._unlock()
        self._place, self._under = self._place_of(message), message
        self._seen = None

    def look(self) -> Message:
        """The message under the cursor; 2034 if there is none, or if it is gone."""
        if self._under is None or not (self._is_locked or self._is_there(self._under)):
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"browse {self._name}")
        return self._under

    def lock(self) -> None:
        """Hides the message under the cursor from all others; 2034 if it is gone."""
        if self._under is not None and not self._is_locked:
            self._under = self._application.take_number(self._queue, self._under.sequence)
            self._is_locked = True

    def take(self) -> Message:
        """Takes the message under the cursor off its queue, for a unit of work that removes it; 2034 if it is gone."""
        under, is_locked = self._under, self._is_locked
        self._under, self._is_locked = None, False
        if under is not None and is_locked:
            return under
        return self._application.take_number(self._queue, 0 if under is None else under.sequence)

    def _unlock(self) -> None:
        if self._under is not None and self._is_locked and self._engine.failed is None:
            self._engine.give_back([(self._queue, self._under)])
        self._is_locked = False

    def _list(self, wanted: Wanted) -> None:
        self._listed_for, self._has_arrivals = wanted, False
        msg_id, correl_id, number = wanted
        if number is not None:
            self._ahead = self._behind(self._browsed(correl_id, msg_id, [number]))
        elif msg_id is not None:
            self._ahead = self._behind(self._browsed(correl_id, msg_id))
        else:
            self._ahead = self._in_parts(correl_id)

    def _behind(self, found: Iterator[Message]) -> Iterator[Message]:
        return (message for message in found if self._place_of(message) > self._place)

    def _in_parts(self, correl_id: bytes | None) -> Iterator[Message]:
        place = self._place
        while places := self._queue.behind(place, _LISTED, correl_id):
            yield from self._browsed(correl_id, None, [each & SEQUENCE_MASK for each in places])
            place = places[-1]

    def _browsed(
        self, correl_id: bytes | None, msg_id: bytes | None, numbers: list[int] | None = None
    ) -> Iterator[Message]:
        self._application.check(Right.BROWSE, self._name, f"browse {self._name}")
        return iter(self._engine.browse(self._engine.objects.getting(self._name), correl_id, msg_id, numbers))

    def _place_of(self, message: Message) -> int:
        return self._queue.place(message.sequence, message.descriptor.priority)

    def _is_there(self, message: Message) -> bool:
        return any(self._browsed(None, None, [message.sequence]))

    def _arrived(self) -> None:
        self._has_arrivals = True
