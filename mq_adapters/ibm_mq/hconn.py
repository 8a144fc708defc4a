"""One connection of IBM's client and the queues that are open on it: every call of the MQI passes here.

Here each MQMIError becomes a QueueManagerError. Only the thread that connected may call, and a lost connection stays
lost. A few handles stay open, by queue and use; both packages and the queue manager limit their number.
"""

import logging
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from mq_adapters.ibm_mq.binding import Binding
from mq_adapters.ibm_mq.constants import MQCC_WARNING, MQOD_VERSION_3, MQOO_FAIL_IF_QUIESCING, MQOT_Q, MQOT_Q_MGR
from mq_adapters.ibm_mq.hints import HINTS
from mq_adapters.reasons import Action, QueueManagerError, ReasonCode, what_to_do

#: The most handles that are kept open for later calls, beside those that are held on purpose.
MAXIMUM_KEPT_HANDLES: Final = 16

_log = logging.getLogger(__name__)

T = TypeVar("T")


class MqiWarning(QueueManagerError):
    """Completion code MQCC_WARNING: the call took place, with a warning.

    `body` is the data that a get returned, `original_length` the length of the message in bytes.
    """

    def __init__(self, reason_code: int, operation: str, own_hint: str, body: bytes, original_length: int) -> None:
        super().__init__(reason_code, operation, own_hint)
        self.body = body
        self.original_length = original_length


class HConn:
    """A connection, for the thread that made it. Another thread may call only `close`."""

    def __init__(self, binding: Binding, queue_manager: Any) -> None:
        self.library = binding.module
        self._queue_manager = queue_manager
        self._thread = threading.get_ident()
        self._is_lost = False
        self._is_closed = False
        #: A back-out was refused, so its unit of work is still open.
        self._has_unit_left = False
        #: Handles by queue and open options; the one that was used last is at the end.
        self._kept: dict[tuple[str, int], Any] = {}
        self._held: dict[tuple[str, int], Any] = {}

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, operation: str, function: Callable[..., T], *arguments: object) -> T:
        """One call of the MQI. Raises QueueManagerError, and MqiWarning if it took place with a warning."""
        self.check_usable(operation)
        try:
            return function(*arguments)
        except self.library.MQMIError as error:
            raise self._refused(error, operation) from error
        except self.library.PYIFError as error:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"{operation}: {error}") from error
        except (struct.error, TypeError, ValueError, OverflowError, SystemError) as error:
            raise QueueManagerError(ReasonCode.MQRC_UNEXPECTED_ERROR, f"{operation}: {error!r}") from error

    def commit(self) -> None:
        """MQCMIT. After a failure no unit of work stays open that a later call, or MQDISC, could commit."""
        try:
            self.call("commit", self._queue_manager.commit)
        except QueueManagerError:
            if self.is_usable:
                with suppress(QueueManagerError):
                    self.back_out()
            raise

    def back_out(self) -> None:
        self._has_unit_left = True
        self.call("back out", self._queue_manager.backout)
        self._has_unit_left = False

    def close(self, *, in_unit: bool) -> None:
        """Backs an open unit of work out and disconnects.

        MQDISC commits an open unit of work. So if the back-out fails, the connection stays open until the process ends
        or the queue manager loses it. Either backs the unit of work out.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if in_unit or self._has_unit_left:
                self._queue_manager.backout()
        except (self.library.MQMIError, self.library.PYIFError) as error:
            if not self._is_lost:
                _log.warning("connection left open reason=%r", str(error))
                return
        for handle in (*self._kept.values(), *self._held.values()):
            self._close_quietly(handle)
        self._kept.clear()
        self._held.clear()
        with suppress(self.library.MQMIError, self.library.PYIFError):
            self._queue_manager.disconnect()

    def check_usable(self, operation: str) -> None:
        """Raises 2018 if the connection is closed or another thread's, 2009 if it was lost."""
        if self._is_closed:
            raise self._error(ReasonCode.MQRC_HCONN_ERROR, operation)
        if self._is_lost:
            raise self._error(ReasonCode.MQRC_CONNECTION_BROKEN, operation)
        if threading.get_ident() != self._thread:
            raise self._error(ReasonCode.MQRC_HCONN_ERROR, f"{operation} in another thread")

    @property
    def is_usable(self) -> bool:
        return not self._is_lost and not self._is_closed

    # -- handles -----------------------------------------------------------------------------------------------------

    def open(self, queue_name: str, options: int) -> Any:
        """MQOPEN: a new handle, the package's Queue. A blank name stands for the queue manager."""
        return self._opened(queue_name, options, b"")[0]

    def hold_dynamic(self, model_name: str, name: str, options: int) -> str:
        """Makes a dynamic queue and holds it open for that use; returns its full name."""
        handle, full_name = self._opened(model_name, options, name.encode("ascii"))
        self._held[full_name, options] = handle
        return full_name

    def kept(self, queue_name: str, options: int) -> Any:
        """The handle of a queue for that use: the one held, the one that is open, or a new one that stays open."""
        key = queue_name, options
        handle = self._held.get(key) or self._kept.pop(key, None)
        if handle is None:
            handle = self.open(queue_name, options)
            if len(self._kept) >= MAXIMUM_KEPT_HANDLES:
                self._close_quietly(self._kept.pop(next(iter(self._kept))))
        if key not in self._held:
            self._kept[key] = handle
        return handle

    def use(self, queue_name: str, options: int, call: Callable[[Any], T]) -> T:
        """Calls with a handle. If the handle is out of date (2041, 2052), it calls once more with a new one."""
        try:
            return call(self.kept(queue_name, options))
        except QueueManagerError as error:
            if what_to_do(error.reason_code) is not Action.REOPEN or (queue_name, options) in self._held:
                raise
        self.drop(queue_name, options)
        return call(self.kept(queue_name, options))

    def drop(self, queue_name: str, options: int) -> None:
        """Closes the handle of a queue for that use, if one is open."""
        handle = self._kept.pop((queue_name, options), None)
        if handle is not None:
            self._close_quietly(handle)

    def hold(self, queue_name: str, options: int) -> None:
        """Opens a handle that stays open until `release`: `kept` finds it."""
        self._held[queue_name, options] = self.open(queue_name, options)

    def is_held(self, queue_name: str, options: int) -> bool:
        return (queue_name, options) in self._held

    def release(self, queue_name: str, options: int) -> None:
        """Closes a handle that was held."""
        handle = self._held.pop((queue_name, options), None)
        if handle is not None:
            self.close_handle(handle)

    def close_handle(self, handle: Any) -> None:
        """MQCLOSE of a handle that `open` returned; on a lost connection there is nothing to close."""
        if self.is_usable:
            self.call("close a queue", handle.close)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _opened(self, queue_name: str, options: int, dynamic_name: bytes) -> tuple[Any, str]:
        """A new handle, and the name of the object that it is open on."""
        descriptor = self.library.OD(
            Version=MQOD_VERSION_3,
            ObjectType=MQOT_Q if queue_name else MQOT_Q_MGR,
            ObjectName=queue_name.encode("ascii"),
            DynamicQName=dynamic_name,
        )
        handle = self.library.Queue(self._queue_manager)
        operation = f"open {queue_name or 'the queue manager'}"
        self.call(operation, handle.open, descriptor, options | MQOO_FAIL_IF_QUIESCING)
        return handle, descriptor.ObjectName.partition(b"\0")[0].rstrip(b" ").decode("latin-1")

    def _refused(self, error: Any, operation: str) -> QueueManagerError:
        if what_to_do(error.reason) is Action.OUTCOME_UNKNOWN:
            self._is_lost = True
        if error.comp != MQCC_WARNING:
            return self._error(error.reason, operation)
        body = getattr(error, "message", b"")
        original_length = getattr(error, "original_length", 0)
        return MqiWarning(error.reason, operation, HINTS.get(error.reason, ""), body, original_length)

    def _error(self, reason_code: int, operation: str) -> QueueManagerError:
        return QueueManagerError(reason_code, operation, HINTS.get(reason_code, ""))

    def _close_quietly(self, handle: Any) -> None:
        """Closes a handle.

        A failure does no harm, because the queue manager closes every handle with the connection.
        """
        with suppress(self.library.MQMIError, self.library.PYIFError):
            handle.close()
