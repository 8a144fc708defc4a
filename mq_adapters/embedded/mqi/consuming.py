"""Asynchronous consumption: a program's listener gets the messages of a handle as they come (MQCB, MQCTL).

Between two messages the program says for how many more it has room. Which one it gets, and whether it belongs to the
unit of work, are decided as for MQGET.
"""

from collections.abc import Callable

from mq_adapters.embedded.mqi.getting import GetRequest, Getter, Got
from mq_adapters.embedded.mqi.open_object import OpenObject
from mq_adapters.embedded.queue import Queue
from mq_adapters.reasons import QueueManagerError, ReasonCode


class Listening:
    """The listener of one handle. It lives in the engine's thread."""

    def __init__(
        self,
        getter: Getter,
        opened: OpenObject,
        request: GetRequest,
        *,
        may_get: Callable[[], bool],
        wake: Callable[[], None],
        deliver: Callable[[Got], None],
        failed: Callable[[QueueManagerError], None],
    ) -> None:
        """`may_get` tells whether the program has room; `deliver` sends it a message; `failed` ends the listener.

        `wake` is called when messages have come: it must call `go_on`, and may do so later.
        """
        self._getter = getter
        self._opened = opened
        self.request = request
        self._may_get = may_get
        self._deliver = deliver
        self._failed = failed
        self._queue: Queue = opened.local_queue(f"listen at {opened.name}")
        self._is_started = False
        self._is_busy = False
        self._is_delivering = False
        self._wake = wake
        self._queue.listen(None, wake)

    def start(self) -> None:
        """Messages are delivered from now on."""
        self._is_started = True
        self.go_on()

    def stop(self) -> None:
        """No more messages are delivered until `start`."""
        self._is_started = False

    def close(self) -> None:
        """The listener is over."""
        self._is_started = False
        self._queue.unlisten(None, self._wake)

    def go_on(self) -> None:
        """Delivers messages while some are there and the program has room. Raises StoreError."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._is_started and not self._is_busy and self._may_get():
                self._is_busy = True
                self._getter.get(self._opened, self.request, self._answered)
        except QueueManagerError as error:
            self._is_busy = False
            self._refused(error)
        finally:
            self._is_delivering = False

    def _answered(self, result: Got | QueueManagerError) -> None:
        """A get has ended: now, or later, when its removal is committed."""
        self._is_busy = False
        if isinstance(result, Got):
            self._deliver(result)
        else:
            self._refused(result)
        if not self._is_delivering:
            self._wake()

    def _refused(self, error: QueueManagerError) -> None:
        """Nothing was there, or the listener cannot go on."""
        if error.reason_code not in (ReasonCode.MQRC_NO_MSG_AVAILABLE, ReasonCode.MQRC_GET_INHIBITED):
            self.close()
            self._failed(error)
