"""The open browses of a program over the socket."""

from collections.abc import Iterator
from typing import Final

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.socket import frames
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: The most open browses of one connection.
MAXIMUM_BROWSES: Final = 64


class OpenBrowse:
    """The pages that are not sent yet, and the sequence numbers of the last page that was sent."""

    __slots__ = ("last_page", "name", "pages", "queue")

    def __init__(self, name: str, queue: Queue, pages: Iterator[list[Message]]) -> None:
        self.name = name
        self.queue = queue
        self.pages = pages
        self.last_page: list[int] = []


class OpenBrowses:
    """The browses of one connection, by number."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[int, OpenBrowse] = {}
        self._next = 1

    def open(self, application: Application, queue_name: str, correl_id: bytes | None, msg_id: bytes | None) -> int:
        """Begins a browse; its number. 2017 for too many."""
        if len(self._open) >= MAXIMUM_BROWSES:
            raise QueueManagerError(ReasonCode.MQRC_HANDLE_NOT_AVAILABLE, f"browse {queue_name}")
        browse, self._next = self._next, self._next % 0xFFFF_FFFF + 1
        found = application.browse(queue_name, correl_id, msg_id)
        queue = application.read_queues[browse] = self._engine.queue(queue_name)
        self._open[browse] = OpenBrowse(queue_name, queue, frames.pages(found))
        return browse

    def next_page(self, application: Application, browse: int) -> list[Message]:
        """The next page; an empty one ends the browse."""
        opened = self.found(browse)
        page = next(opened.pages, [])
        opened.last_page = [message.sequence for message in page]
        if not page:
            self.end(application, browse)
        return page

    def found(self, browse: int) -> OpenBrowse:
        """The browse of that number; 2019 if there is none."""
        if browse not in self._open:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"browse number {browse}")
        return self._open[browse]

    def end(self, application: Application, browse: int) -> None:
        """Ends a browse, if there is one of that number."""
        self._open.pop(browse, None)
        application.read_queues.pop(browse, None)

    def clear(self) -> None:
        """Forgets all of them: the connection has ended."""
        self._open.clear()
