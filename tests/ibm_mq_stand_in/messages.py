"""Messages of the MQI: what a put makes of its descriptor, and how a get delivers."""

from dataclasses import dataclass
from typing import Final

from mq_adapters.message import MQMI_NONE, Message, MessageDescriptor
from mq_adapters.mqmd import read_mqmd
from mq_adapters.reasons import QueueManagerError
from tests.ibm_mq_stand_in.open_object import CONTEXTS, OpenObject
from tests.ibm_mq_stand_in.options import MQGMO, MQMO, MQPMO, Reason
from tests.ibm_mq_stand_in.wire import ConnectRequest, GetOptions

MQAT_NO_CONTEXT: Final = 0
MQAT_UNIX: Final = 6
_MQCCSI_Q_MGR: Final = 0
_UTF_8: Final = 1208
_USER_CHARACTERS: Final = 12
_KNOWN_PUT: Final = int(~MQPMO(0))
_KNOWN_GET: Final = int(~MQGMO(0))
_BROWSE: Final = MQGMO.BROWSE_FIRST | MQGMO.BROWSE_NEXT | MQGMO.BROWSE_MSG_UNDER_CURSOR
_SYNCPOINTS: Final = (MQGMO.SYNCPOINT, MQGMO.NO_SYNCPOINT, MQGMO.SYNCPOINT_IF_PERSISTENT)
_LONGEST_WAIT_MS: Final = -1


def put_options(number: int) -> MQPMO:
    """The options of a put; 2046 for what contradicts itself or is not known here."""
    options = MQPMO(number & _KNOWN_PUT)
    contexts = [context for context, *_ in CONTEXTS if options & context]
    contexts += [context for context in (MQPMO.DEFAULT_CONTEXT, MQPMO.NO_CONTEXT) if options & context]
    is_contradicting = len(contexts) > 1 or bool(options & MQPMO.SYNCPOINT and options & MQPMO.NO_SYNCPOINT)
    if number & ~_KNOWN_PUT or is_contradicting:
        raise QueueManagerError(Reason.MQRC_OPTIONS_ERROR, f"put with options {number:#x}")
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRequest:
    """What a get wants: its options, the identifiers that must match, how long it waits, and the buffer's bytes."""

    options: MQGMO
    msg_id: bytes | None
    correl_id: bytes | None
    wait_s: float | None
    buffer_bytes: int

    @property
    def browses(self) -> bool:
        return bool(self.options & _BROWSE)

    def wants_syncpoint(self, message: Message) -> bool:
        """Whether the message is got in the unit of work. Without an option it is not, as on all but z/OS."""
        if self.options & MQGMO.SYNCPOINT_IF_PERSISTENT:
            return message.is_persistent
        return bool(self.options & MQGMO.SYNCPOINT)


def get_request(gmo: GetOptions, mqmd: bytes, buffer_bytes: int) -> GetRequest:
    """What the structures of a get ask for; 2046, or 2090 for a wait that is none."""
    number = gmo.options
    options = MQGMO(number & _KNOWN_GET)
    wait_ms = gmo.wait_interval_ms if options & MQGMO.WAIT else 0
    if wait_ms < _LONGEST_WAIT_MS:
        raise QueueManagerError(Reason.MQRC_WAIT_INTERVAL_ERROR, f"wait {wait_ms} ms")
    is_doubled = sum(bool(options & each) for each in _SYNCPOINTS) > 1
    browses = bool(options & _BROWSE)
    if number & ~_KNOWN_GET or is_doubled or (browses and options & (MQGMO.SYNCPOINT | MQGMO.MSG_UNDER_CURSOR)):
        raise QueueManagerError(Reason.MQRC_OPTIONS_ERROR, f"get with options {number:#x}")
    msg_id, correl_id = mqmd[48:72], mqmd[72:96]
    matches = gmo.match_options
    if matches & ~int(~MQMO(0)):
        raise QueueManagerError(Reason.MQRC_OPTIONS_ERROR, f"get with match options {matches:#x}")
    return GetRequest(
        options=options,
        msg_id=msg_id if matches & MQMO.MATCH_MSG_ID and msg_id != MQMI_NONE else None,
        correl_id=correl_id if matches & MQMO.MATCH_CORREL_ID and correl_id != MQMI_NONE else None,
        wait_s=None if wait_ms < 0 else wait_ms / 1000,
        buffer_bytes=buffer_bytes,
    )


def message_to_put(
    mqmd: bytes, body: bytes, options: MQPMO, program: ConnectRequest, passed: MessageDescriptor | None
) -> Message:
    """The message as it is put: identifiers made where that is asked for, and the context as the options say."""
    message = read_mqmd(mqmd, body)
    message.backout_count = 0
    message.put_us = 0
    changes: dict[str, object] = _context(options, program, passed)
    if options & MQPMO.NEW_MSG_ID:
        changes["msg_id"] = MQMI_NONE
    if message.descriptor.coded_char_set_id == _MQCCSI_Q_MGR:
        changes["coded_char_set_id"] = _UTF_8
    message.descriptor = message.descriptor.replace(**changes)
    return message


def _context(options: MQPMO, program: ConnectRequest, passed: MessageDescriptor | None) -> dict[str, object]:
    """Fields of the descriptor that are not the program's to give. Source: IBM MQ, "Message context"."""
    if options & MQPMO.SET_ALL_CONTEXT:
        return {}
    identity: dict[str, object] = {
        "user_identifier": program.user[:_USER_CHARACTERS] or "standin",
        "accounting_token": b"",
        "appl_identity_data": "",
    }
    origin: dict[str, object] = {
        "put_appl_type": MQAT_UNIX,
        "put_appl_name": program.application,
        "appl_origin_data": "",
    }
    if options & MQPMO.NO_CONTEXT:
        return {**identity, **origin, "user_identifier": "", "put_appl_type": MQAT_NO_CONTEXT, "put_appl_name": ""}
    if passed is not None:
        identity = {name: getattr(passed, name) for name in identity}
        if options & MQPMO.PASS_ALL_CONTEXT:
            origin = {name: getattr(passed, name) for name in origin}
    return origin if options & MQPMO.SET_IDENTITY_CONTEXT else {**identity, **origin}


def passed_context(opened: OpenObject | None, options: MQPMO) -> MessageDescriptor | None:
    """The context of the message that was got last on the handle that MQPMO.Context names."""
    if not options & (MQPMO.PASS_ALL_CONTEXT | MQPMO.PASS_IDENTITY_CONTEXT):
        return None
    if opened is None:
        raise QueueManagerError(Reason.MQRC_CONTEXT_HANDLE_ERROR, "pass context")
    if opened.saved_context is None:
        raise QueueManagerError(Reason.MQRC_CONTEXT_NOT_AVAILABLE, "pass context")
    return opened.saved_context
