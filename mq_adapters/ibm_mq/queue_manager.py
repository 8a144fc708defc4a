"""The port mq_adapters.queue_manager.QueueManager over one connection of IBM's client, for one thread."""

import logging
from collections.abc import Iterator
from typing import Final, Literal, Self

from mq_adapters.attributes import Definition, ObjectType, is_object_name, longest_message_bytes
from mq_adapters.cursor import Cursor
from mq_adapters.exclusive_queue import ExclusiveQueue, when_not_in_use
from mq_adapters.ibm_mq.binding import load
from mq_adapters.ibm_mq.connection import ConnectionSettings, connect
from mq_adapters.ibm_mq.constants import (
    MQCA_Q_MGR_IDENTIFIER,
    MQCA_Q_MGR_NAME,
    MQIA_CURRENT_Q_DEPTH,
    MQIA_MAX_MSG_LENGTH,
    MQOO_BROWSE,
    MQOO_INPUT_AS_Q_DEF,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
    MQOO_OUTPUT,
    MQOO_SET_IDENTITY_CONTEXT,
)
from mq_adapters.ibm_mq.getting import Getter, checked_match
from mq_adapters.ibm_mq.hconn import HConn
from mq_adapters.ibm_mq.inquiry import base_queue_name, inquired, number, text
from mq_adapters.ibm_mq.putting import Context, Putter
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: Characters of a dynamic queue's name before its `*`.
_LONGEST_PREFIX: Final = 32

#: Open options that leave a queue open to others.
Use = Literal["browse", "put", "put_identity"]
_OPTIONS: Final[dict[Use, int]] = {
    "browse": MQOO_BROWSE,
    "put": MQOO_OUTPUT,
    "put_identity": MQOO_OUTPUT | MQOO_SET_IDENTITY_CONTEXT,
}

_log = logging.getLogger(__name__)

#: The MsgId and CorrelId that find a browsed message again.
_Identifiers = tuple[bytes, bytes]


class IbmMq:
    """A connection to an IBM MQ queue manager.

    Beside the port's contract: after a get, a queue stays open for input until it is opened exclusively or the
    connection is closed. A cursor takes the first message with both identifiers of the message on which it stands.
    Depth counts messages that open units of work have put, but not those that they have got. A message keeps its
    context as far as the settings allow and the queue manager grants; if that is less, the log has `context not
    granted`.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        """Connects. QueueManagerError 2495 without IBM's libraries, else the reason of MQCONNX."""
        binding = load(settings.package)
        self.package = f"{binding.package} {binding.version}"
        self._settings = settings
        self._hconn = HConn(binding, connect(binding, settings))
        self._getter = Getter(self._hconn)
        self._putter = Putter(self._hconn, Context[settings.context.upper()])
        self._is_in_unit = False
        try:
            self.name = text(self._hconn, "", MQCA_Q_MGR_NAME)
            self.identifier = text(self._hconn, "", MQCA_Q_MGR_IDENTIFIER)
        except BaseException:
            self.close()
            raise
        _log.info("connected queue_manager=%s package=%r", self.name, self.package)

    # -- messages ----------------------------------------------------------------------------------------------------

    def put(self, queue_name: str, message: Message) -> bytes:
        _check_name(queue_name)
        return self._putter.put(queue_name, message, in_unit=self._is_in_unit)

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        _check_name(queue_name)
        match = checked_match(msg_id, correl_id)
        return self._getter.get(queue_name, match, wait_s=wait_s, in_unit=self._is_in_unit)

    def browse(
        self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Cursor[_Identifiers]:
        _check_name(queue_name)
        match = checked_match(msg_id, correl_id)

        def start() -> Iterator[tuple[_Identifiers, Message]]:
            found = self._getter.browse(queue_name, match)
            return (((message.msg_id, message.descriptor.correl_id), message) for message in found)

        return Cursor(queue_name, start, lambda identifiers: self._take_browsed(queue_name, identifiers))

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        _check_name(queue_name)
        if not self._is_in_unit:
            raise QueueManagerError(ReasonCode.MQRC_UOW_NOT_AVAILABLE, f"take a batch from {queue_name}")
        return self._getter.take_batch(queue_name, most_messages=most_messages, most_bytes=most_bytes)

    def open_exclusively(self, queue_name: str, *, wait_s: float = 0.0) -> ExclusiveQueue:
        _check_name(queue_name)
        if not self._hconn.is_held(queue_name, MQOO_INPUT_EXCLUSIVE):
            self._hconn.drop(queue_name, MQOO_INPUT_AS_Q_DEF)
        when_not_in_use(lambda: self._hconn.hold(queue_name, MQOO_INPUT_EXCLUSIVE), wait_s=wait_s)
        return ExclusiveQueue(self, queue_name, lambda name: self._hconn.release(name, MQOO_INPUT_EXCLUSIVE))

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._hconn.check_usable("begin a unit of work")
        if self._is_in_unit:
            raise QueueManagerError(ReasonCode.MQRC_UOW_IN_PROGRESS, "begin a unit of work")
        self._is_in_unit = True

    def commit(self) -> None:
        """MQCMIT. The unit of work is over, even if the commit is refused.

        Only 2003 says that nothing took place (mq_adapters.reasons.what_to_do_after_commit).
        """
        self._hconn.check_usable("commit")
        if self._is_in_unit:
            self._is_in_unit = False
            self._hconn.commit()

    def back_out(self) -> None:
        self._hconn.check_usable("back out")
        if self._is_in_unit:
            self._is_in_unit = False
            self._hconn.back_out()

    # -- queues ------------------------------------------------------------------------------------------------------

    def create_dynamic(self, model_name: str, name: str = "AMQ.*") -> str:
        _check_name(model_name)
        prefix = name.removesuffix("*")
        is_good = is_object_name(prefix) and (prefix == name or len(prefix) <= _LONGEST_PREFIX)
        operation = f"open model queue {model_name} as {name!r}"
        if not is_good:
            raise QueueManagerError(ReasonCode.MQRC_DYNAMIC_Q_NAME_ERROR, operation)
        full_name = self._hconn.hold_dynamic(model_name, name, MQOO_INPUT_SHARED)
        if full_name == model_name:  # the name is that of a queue, not of a model queue
            self._hconn.release(full_name, MQOO_INPUT_SHARED)
            raise QueueManagerError(ReasonCode.MQRC_Q_TYPE_ERROR, operation)
        return full_name

    def inquire(self, name: str) -> Definition:
        if name:
            _check_name(name)
        return inquired(self._hconn, name)

    def maximum_message_bytes(self, queue_name: str) -> int:
        """The smallest of the queue's and the queue manager's MAXMSGL and of the settings' limit.

        The channel's own MAXMSGL shows only when a put is refused with 2218.
        """
        queue = self.inquire(queue_name)
        limit = min(number(self._hconn, "", MQIA_MAX_MSG_LENGTH), self._settings.maximum_message_bytes)
        return limit if queue.object_type == ObjectType.QREMOTE else min(limit, longest_message_bytes(queue))

    def depth(self, queue_name: str) -> int:
        _check_name(queue_name)
        return number(self._hconn, base_queue_name(self._hconn, queue_name), MQIA_CURRENT_Q_DEPTH)

    def try_open(self, queue_name: str, use: Use) -> None:
        """Opens a queue and closes it again, without reading, changing or locking anything."""
        _check_name(queue_name)
        self._hconn.close_handle(self._hconn.open(queue_name, _OPTIONS[use]))

    # -- the connection ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Backs out an open unit of work, and disconnects. Another thread may call it after this one has ended."""
        self._hconn.close(in_unit=self._is_in_unit)
        self._is_in_unit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _take_browsed(self, queue_name: str, identifiers: _Identifiers) -> Message:
        msg_id, correl_id = identifiers
        try:
            return self.get(queue_name, msg_id=msg_id, correl_id=correl_id)
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_NO_MSG_AVAILABLE:
                raise
        raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"get from {queue_name}")


def _check_name(queue_name: str) -> None:
    """Raises 2085 for a name that breaks the rules. The package would cut it to another queue's name."""
    if not is_object_name(queue_name):
        raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, f"open queue {queue_name!r:.120}")
