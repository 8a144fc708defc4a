"""What MQOPEN opens, and what an object handle (MQHOBJ) stands for: a queue, a topic, or the queue manager."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mq_adapters.embedded.mqi.browse_cursor import BrowseCursor
from mq_adapters.embedded.mqi.options import INPUT, ObjectKind, OpenOption
from mq_adapters.embedded.mqi.scan import Scan
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import MQPER_NOT_PERSISTENT
from mq_adapters.reasons import QueueManagerError, ReasonCode

if TYPE_CHECKING:
    from mq_adapters.embedded.mqi.subscribing import Subscription

#: The refusal of a call on a handle that was not opened for it.
_NOT_OPEN_FOR: Final = {
    INPUT: ReasonCode.MQRC_NOT_OPEN_FOR_INPUT,
    OpenOption.BROWSE: ReasonCode.MQRC_NOT_OPEN_FOR_BROWSE,
    OpenOption.OUTPUT: ReasonCode.MQRC_NOT_OPEN_FOR_OUTPUT,
    OpenOption.INQUIRE: ReasonCode.MQRC_NOT_OPEN_FOR_INQUIRE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """MQOD as far as it is used: what is to be opened. A blank queue manager is this one.

    `selector` is the selection string of MQOD, and `topic` its object string.
    """

    kind: int
    name: str
    queue_manager: str = ""
    dynamic_name: str = ""
    selector: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The answer to MQOPEN: the handle, and the name of the queue, which differs from the asked one for a model.

    `default_persistence` is that of messages whose program leaves it to the queue (MQPER_*), and `property_control`
    tells a client what becomes of properties (MQPROP_*).
    """

    handle: int
    name: str
    default_persistence: int = MQPER_NOT_PERSISTENT
    property_control: int = 0


@dataclass(slots=True, kw_only=True)
class OpenObject:
    """An open object. `queue` is the local queue behind `name`; None for the queue manager and a queue elsewhere.

    `is_own` tells that MQOPEN made the queue from a model, so that MQCLOSE deletes it. `subscription` is the one of
    MQSUB whose managed queue it is, which says when the queue ends. `scan` finds messages for gets with a selector.
    `property_control` is PROPCTL of what was opened.
    """

    kind: ObjectKind
    name: str
    options: OpenOption
    queue: Queue | None = None
    is_own: bool = False
    subscription: "Subscription | None" = None
    cursor: BrowseCursor | None = None
    scan: Scan | None = None
    property_control: str = "COMPAT"

    def check_open_for(self, option: OpenOption, operation: str) -> None:
        """2036 to 2039 for a call that the handle was not opened for."""
        if not self.options & option:
            raise QueueManagerError(_NOT_OPEN_FOR[option], operation)

    def local_queue(self, operation: str) -> Queue:
        """The queue that messages are got from; 2019 for a handle of something else, 2052 for a deleted queue."""
        if self.queue is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, operation)
        if self.queue.is_deleted:
            raise QueueManagerError(ReasonCode.MQRC_Q_DELETED, operation)
        return self.queue
