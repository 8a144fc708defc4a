"""MQPUT: a message with as much of its context as the operator grants."""

import logging
import time
from enum import IntEnum
from typing import Final

from mq_adapters.ibm_mq.constants import (
    MQMD_VERSION_2,
    MQOO_OUTPUT,
    MQOO_SET_ALL_CONTEXT,
    MQOO_SET_IDENTITY_CONTEXT,
    MQPMO_DEFAULT_CONTEXT,
    MQPMO_FAIL_IF_QUIESCING,
    MQPMO_NO_SYNCPOINT,
    MQPMO_SET_ALL_CONTEXT,
    MQPMO_SET_IDENTITY_CONTEXT,
    MQPMO_SYNCPOINT,
    MQPMO_VERSION_2,
)
from mq_adapters.ibm_mq.hconn import HConn, MqiWarning
from mq_adapters.message import MQAT_UNIX, Message, MessageDescriptor
from mq_adapters.mqmd import write_native_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode

_log = logging.getLogger(__name__)


class Context(IntEnum):
    """How much of a message's context is the putter's own (IBM MQ, "Message context")."""

    DEFAULT = 0
    IDENTITY = 1
    ALL = 2


_OPEN_OPTIONS: Final = {
    Context.DEFAULT: MQOO_OUTPUT,
    Context.IDENTITY: MQOO_OUTPUT | MQOO_SET_IDENTITY_CONTEXT,
    Context.ALL: MQOO_OUTPUT | MQOO_SET_ALL_CONTEXT,
}
_PUT_OPTIONS: Final = {
    Context.DEFAULT: MQPMO_DEFAULT_CONTEXT,
    Context.IDENTITY: MQPMO_SET_IDENTITY_CONTEXT,
    Context.ALL: MQPMO_SET_ALL_CONTEXT,
}


class Putter:
    """Puts on the queues of one connection. `granted` has the queues that grant less context than asked for."""

    def __init__(self, hconn: HConn, context: Context) -> None:
        self.granted: dict[str, Context] = {}
        self._hconn = hconn
        self._context = context

    def put(self, queue_name: str, message: Message, *, in_unit: bool) -> bytes:
        """Puts a message; returns its MsgId.

        A message without context of its own gets that of the connection. A message with context keeps as much of it as
        the settings allow and the queue manager grants. If the queue manager refuses some, the adapter does not ask
        again for that queue in this connection.
        """
        wanted = min(_context_of(message.descriptor), self._context, self.granted.get(queue_name, Context.ALL))
        while True:
            try:
                return self._put(queue_name, message, wanted, in_unit=in_unit)
            except QueueManagerError as error:
                if error.reason_code != ReasonCode.MQRC_NOT_AUTHORIZED or wanted == Context.DEFAULT:
                    raise
            wanted = Context(wanted - 1)
            self.granted[queue_name] = wanted
            _log.warning("context not granted queue=%s granted=%s", queue_name, wanted.name.lower())

    def _put(self, queue_name: str, message: Message, context: Context, *, in_unit: bool) -> bytes:
        library, operation = self._hconn.library, f"put on {queue_name}"
        own = Message(message.descriptor, b"")  # its PutDate and PutTime are those of the put
        own.put_us = time.time_ns() // 1000
        mqmd = library.MD(Version=MQMD_VERSION_2)
        mqmd.unpack(write_native_mqmd(own))
        options = MQPMO_FAIL_IF_QUIESCING | _PUT_OPTIONS[context] | (MQPMO_SYNCPOINT if in_unit else MQPMO_NO_SYNCPOINT)
        pmo = library.PMO(Version=MQPMO_VERSION_2, Options=options)
        try:
            self._hconn.use(
                queue_name,
                _OPEN_OPTIONS[context],
                lambda handle: self._hconn.call(operation, handle.put, message.body, mqmd, pmo),
            )
        except MqiWarning as warning:  # the message was put, but a MsgId of the queue manager is not returned
            _log.warning("put succeeded with a warning queue=%s reason=%d", queue_name, warning.reason_code)
        msg_id: bytes = mqmd.MsgId
        return msg_id


def _context_of(descriptor: MessageDescriptor) -> Context:
    """The least context that keeps all context fields of the message."""
    if descriptor.put_appl_name or descriptor.appl_origin_data or descriptor.put_appl_type != MQAT_UNIX:
        return Context.ALL
    if descriptor.user_identifier or descriptor.accounting_token or descriptor.appl_identity_data:
        return Context.IDENTITY
    return Context.DEFAULT
