"""A browse cursor: looks at the messages of a queue one after another, and may take the one that it stands on."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: How an adapter finds a message again that it has shown.
Handle = TypeVar("Handle")


class Cursor(Generic[Handle]):
    """A cursor: browse first, browse next, get under the cursor, as in MQGMO; iterates over the messages left."""

    def __init__(
        self,
        queue_name: str,
        start: Callable[[], Iterator[tuple[Handle, Message]]],
        take: Callable[[Handle], Message],
    ) -> None:
        self._queue_name = queue_name
        self._start = start
        self._take = take
        self._messages = start()
        self._under: Handle | None = None

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        """Browse next."""
        self._under = None
        self._under, message = next(self._messages)
        return message

    def first(self) -> Message:
        """Browse first: begins anew; 2033 where the queue has no message that matches."""
        self._messages = self._start()
        try:
            return next(self)
        except StopIteration:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, f"browse {self._queue_name}") from None

    def take(self) -> Message:
        """Takes the message under the cursor; 2034 where there is none, or another program took it."""
        if self._under is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"get from {self._queue_name}")
        handle, self._under = self._under, None
        return self._take(handle)
