"""What mq_adapters/ibm_mq uses of pymqi and ibmmq, by their names, over the client channel.

So that adapter does all that it does over IBM's library: contexts, buffers, cursors, handles that stay open. Texts are
bytes, as with pymqi. Only the fields and calls that the adapter uses are here.
"""

import sys
from dataclasses import dataclass
from typing import Final

from mq_adapters.client_channel.attributes import MQCA_FIRST, Attributes, MqinqRequest
from mq_adapters.client_channel.client_events import Replied
from mq_adapters.client_channel.errors import UsageError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.message_descriptors import PLAIN_MQMD, Mqmd
from mq_adapters.client_channel.parameters import NOTHING, Content
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.structures import Fopa, Mqgmo, Mqod, Mqpmo
from mq_adapters.client_channel.verbs import (
    MQCC_FAILED,
    MQCC_OK,
    MQHO_NONE,
    Mqclose,
    MqgetReply,
    MqgetRequest,
    Mqopen,
    MqputReply,
    MqputRequest,
)
from mq_adapters.mqmd import MQMD_VERSION_2
from mq_adapters.native.connecting import Destination, connected
from mq_adapters.native.line import Line
from mq_adapters.native.refusal import Refusal
from mq_adapters.reasons import ReasonCode

#: A put is answered when it is done (MQPMO_SYNC_RESPONSE).
_SYNC_RESPONSE: Final = 0x0002_0000
#: MQOD as IBM's client sends it with MQOPEN.
_MQOD_VERSION: Final = 2
_MQGMO_VERSION: Final = 3
#: FOPA says "as the queue does".
_AS_Q_DEF: Final = -1
#: Lengths of character attributes; the others have 48.
_LENGTHS: Final = {2013: 64, 2014: 64}
_NAME_BYTES: Final = 48
_ENCODING: Final = "iso-8859-1"
_NATIVE: Final = ByteOrder.LITTLE_ENDIAN if sys.byteorder == "little" else ByteOrder.BIG_ENDIAN


class MQMIError(Exception):
    """A call that failed, or took place with a warning. `message` and `original_length` are those of a get.

    `why` says more than the reason code, where something does.
    """

    def __init__(
        self, comp: int, reason: int, message: bytes = b"", original_length: int = 0, *, why: str = ""
    ) -> None:
        super().__init__(f"MQI completion code {comp}, reason {reason}")
        self.why = why
        self.comp = comp
        self.reason = reason
        self.message = message
        self.original_length = original_length


class PYIFError(Exception):
    """A handle that is not open."""


class MD:
    """MQMD. It is packed as the C library of this machine has it, 364 bytes with texts in UTF-8."""

    def __init__(self, **_version: int) -> None:
        #: As it travels.
        self.descriptor = PLAIN_MQMD

    def unpack(self, packed: bytes) -> None:
        self.descriptor = Mqmd.read(BodyReader(packed, _NATIVE)).in_iso_8859_1()

    def pack(self) -> bytes:
        """Of version 2, also where the queue manager gave version 1: the fields that it lacks have their defaults."""
        return Mqmd(MQMD_VERSION_2, self.descriptor.in_utf_8().values).write(_NATIVE)

    def set(self, **fields: bytes) -> None:
        self.descriptor = self.descriptor.changed(**fields)

    @property
    def MsgId(self) -> bytes:  # noqa: N802  # IBM's name
        msg_id: bytes = self.descriptor.value("MsgId")
        return msg_id


@dataclass(slots=True)
class OD:
    """MQOD."""

    Version: int
    ObjectType: int
    ObjectName: bytes
    DynamicQName: bytes


@dataclass(slots=True)
class PMO:
    """MQPMO."""

    Version: int
    Options: int


@dataclass(slots=True)
class GMO:
    """MQGMO."""

    Version: int
    Options: int
    WaitInterval: int
    MatchOptions: int


class QueueManager:
    """A connection."""

    def __init__(self, _name: None = None, *, disconnect_on_exit: bool = False) -> None:
        self._line: Line | None = None

    def connect_with_options(self, _name: bytes, *, destination: Destination) -> None:
        """MQCONNX."""
        try:
            self._line = connected(destination)
        except Refusal as error:
            raise MQMIError(MQCC_FAILED, error.reason_code, why=str(error)) from error

    def commit(self) -> None:
        """MQCMIT. A warning is an error too: with 2003 the unit of work was backed out."""
        _check_whole(self.call(SegmentType.MQCMIT))

    def backout(self) -> None:
        """MQBACK."""
        _check_whole(self.call(SegmentType.MQBACK))

    def disconnect(self) -> None:
        """MQDISC. It closes the socket, whatever the queue manager says."""
        line = self._line
        if line is None:
            return
        try:
            self.call(SegmentType.MQDISC)
        finally:
            self._line = None
            line.close(line.protocol.goodbye())

    def call(self, verb: SegmentType, parameters: Content = NOTHING, *, handle: int = MQHO_NONE) -> Replied:
        """One call of the MQI. Raises MQMIError if it fails; ValueError for a value that has no place."""
        line = self._line
        if line is None:
            raise PYIFError("not connected")
        try:
            replied = line.ask(line.protocol.call(verb, parameters, handle=handle))
        except Refusal as error:
            raise MQMIError(MQCC_FAILED, error.reason_code) from error
        except UsageError as error:
            raise _unusable(line, error) from error
        assert isinstance(replied, Replied), "the protocol gives only replies behind MQCONN"
        if replied.header.completion_code == MQCC_FAILED:
            raise MQMIError(MQCC_FAILED, replied.header.reason_code)
        return replied


def _check_whole(replied: Replied) -> None:
    """Raises MQMIError for a call that was carried out with a warning."""
    if replied.header.completion_code != MQCC_OK:
        raise MQMIError(replied.header.completion_code, replied.header.reason_code)


def _unusable(line: Line, error: UsageError) -> Exception:
    """A call that cannot be written: because the line is lost, or because of its own values."""
    return MQMIError(MQCC_FAILED, ReasonCode.MQRC_CONNECTION_BROKEN) if line.protocol.is_closed else ValueError(error)


class Queue:
    """An open object: a queue, or the queue manager."""

    def __init__(self, queue_manager: QueueManager) -> None:
        self._queue_manager = queue_manager
        self._handle = MQHO_NONE

    def open(self, od: OD, options: int) -> None:
        """MQOPEN; `od` has the name of the queue that is open then."""
        descriptor = Mqod(
            version=_MQOD_VERSION,
            object_type=od.ObjectType,
            object_name=_text(od.ObjectName),
            dynamic_q_name=_text(od.DynamicQName),
        )
        fopa = Fopa(def_persistence=_AS_Q_DEF, def_put_response=_AS_Q_DEF)
        asked = Mqopen(object_descriptor=descriptor, options=options, fopa=fopa)
        replied = self._queue_manager.call(SegmentType.MQOPEN, asked)
        self._handle = replied.header.object_handle
        od.ObjectName = replied.parameters.object_descriptor.object_name.encode(_ENCODING)

    def close(self) -> None:
        """MQCLOSE."""
        handle, self._handle = self._handle, MQHO_NONE
        if handle == MQHO_NONE:
            raise PYIFError("not open")
        self._queue_manager.call(SegmentType.MQCLOSE, Mqclose(), handle=handle)

    def put(self, body: bytes, mqmd: MD, pmo: PMO) -> None:
        """MQPUT; `mqmd` has the message's descriptor then."""
        options = Mqpmo(version=pmo.Version, options=pmo.Options | _SYNC_RESPONSE)
        asked = MqputRequest(message_descriptor=mqmd.descriptor, put_message_options=options, data=body)
        replied = self._call(SegmentType.MQPUT, asked)
        reply: MqputReply = replied.parameters
        mqmd.descriptor = reply.message_descriptor
        _check_whole(replied)

    def get(self, buffer_bytes: int, mqmd: MD, gmo: GMO) -> bytes:
        """MQGET: the body, as much as there is room for. MQMIError with completion code 1 for a longer message."""
        options = Mqgmo(
            version=_MQGMO_VERSION,
            options=gmo.Options,
            wait_interval=gmo.WaitInterval,
            match_options=gmo.MatchOptions,
        )
        asked = MqgetRequest(
            message_descriptor=mqmd.descriptor, get_message_options=options, buffer_length=buffer_bytes
        )
        replied = self._call(SegmentType.MQGET, asked)
        reply: MqgetReply = replied.parameters
        mqmd.descriptor = reply.message_descriptor
        body = reply.data[: min(reply.data_length, buffer_bytes)]
        if replied.header.completion_code != MQCC_OK:
            reason_code = replied.header.reason_code
            raise MQMIError(replied.header.completion_code, reason_code, body, reply.data_length)
        return body

    def inquire(self, selector: int) -> int | bytes:
        """MQINQ of one attribute: an integer, or characters."""
        is_text = selector >= MQCA_FIRST
        length = _LENGTHS.get(selector, _NAME_BYTES) if is_text else 0
        asked = MqinqRequest(selectors=(selector,), int_attr_count=int(not is_text), char_attr_length=length)
        replied = self._call(SegmentType.MQINQ, asked)
        _check_whole(replied)
        found: Attributes = replied.parameters
        if is_text:
            return found.char_attrs
        if not found.int_attrs:
            raise MQMIError(MQCC_FAILED, ReasonCode.MQRC_UNEXPECTED_ERROR)
        return found.int_attrs[0]

    def _call(self, verb: SegmentType, parameters: Content) -> Replied:
        if self._handle == MQHO_NONE:
            raise PYIFError("not open")
        return self._queue_manager.call(verb, parameters, handle=self._handle)


def _text(value: bytes) -> str:
    return value.partition(b"\0")[0].decode(_ENCODING)
