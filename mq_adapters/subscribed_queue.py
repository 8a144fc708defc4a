"""A subscription that a connection has open, and the queue that its publications come to.

Opened by `QueueAdministration.subscribe`. Publications are got from the queue by its name, and have folder mqps.
"""

from collections.abc import Callable
from enum import IntFlag
from typing import TYPE_CHECKING, Final, Self

from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from mq_adapters.queue_manager import QueueManager


class SubscriptionOption(IntFlag):
    """MQSO_*, the options of MQSUB (cmqc.h)."""

    ALTER = 0x0000_0001
    CREATE = 0x0000_0002
    RESUME = 0x0000_0004
    DURABLE = 0x0000_0008
    GROUP_SUB = 0x0000_0010
    MANAGED = 0x0000_0020
    SET_IDENTITY_CONTEXT = 0x0000_0040
    NO_MULTICAST = 0x0000_0080
    FIXED_USERID = 0x0000_0100
    ANY_USERID = 0x0000_0200
    PUBLICATIONS_ON_REQUEST = 0x0000_0800
    NEW_PUBLICATIONS_ONLY = 0x0000_1000
    FAIL_IF_QUIESCING = 0x0000_2000
    ALTERNATE_USER_AUTHORITY = 0x0004_0000
    WILDCARD_CHAR = 0x0010_0000
    WILDCARD_TOPIC = 0x0020_0000
    SET_CORREL_ID = 0x0040_0000
    SCOPE_QMGR = 0x0400_0000
    NO_READ_AHEAD = 0x0800_0000
    READ_AHEAD = 0x1000_0000


#: MQCO_REMOVE_SUB: the subscription ends, even if it is durable.
_REMOVE_SUB: Final = 8


class SubscribedQueue:
    """A subscription, for the thread of its connection.

    Close it, or use it as a context manager. A durable one stays after that, and after the end of the connection.
    """

    def __init__(
        self,
        queue_manager: "QueueManager",
        name: str,
        correl_id: bytes,
        *,
        end: Callable[[int], None],
        request: Callable[[], int],
    ) -> None:
        """`end` closes the subscription with options of MQCLOSE, and `request` sends what is retained again."""
        self.name = name
        self.correl_id = correl_id
        self._queue_manager = queue_manager
        self._end: Callable[[int], None] | None = end
        self._request = request

    def get(self, *, wait_s: float = 0.0) -> Message:
        """Takes the oldest publication of this subscription; 2033 if none comes in time, 2019 once it is closed."""
        self._check_open()
        return self._queue_manager.get(self.name, wait_s=wait_s, correl_id=self.correl_id)

    def request_publications(self) -> int:
        """Has what is retained sent again (MQSUBRQ); how many publications that are. 2437 for none, 2019 if closed."""
        self._check_open()
        return self._request()

    def close(self) -> None:
        """Closes the subscription. A durable one stays."""
        self._close(0)

    def remove(self) -> None:
        """Closes the subscription, and ends it even if it is durable. 2035 for that of another application."""
        self._close(_REMOVE_SUB)

    def _close(self, options: int) -> None:
        end, self._end = self._end, None
        if end is not None:
            end(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._end is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"subscription on queue {self.name}")
