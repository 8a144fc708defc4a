"""Long calls that come in several segments, joined for each conversation, in bounded memory."""

from dataclasses import dataclass, field, replace
from typing import Final

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.segments import ControlFlags1, Segment
from mq_adapters.reasons import ReasonCode

#: What a call may have beside its message: our choice, far more than the structures of any call.
STRUCTURES_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlongCall:
    """A call whose last segment has come, and that was not kept. `beginning` is its first segment.

    `call_bytes` counts the bodies of its segments. The call can be refused with `reason_code`.
    """

    beginning: Segment
    call_bytes: int
    reason_code: ReasonCode


@dataclass(slots=True, kw_only=True)
class _Unfinished:
    """A call under way. Once it has a reason code it is overlong, and only its first body is kept."""

    beginning: Segment
    joined: bytearray = field(default_factory=bytearray)
    call_bytes: int = 0
    reason_code: ReasonCode = ReasonCode.MQRC_NONE

    @property
    def kept_bytes(self) -> int:
        return len(self.beginning.body) if self.reason_code else self.call_bytes


class UnfinishedCalls:
    """The calls of one socket whose last segment has not come.

    A call of more than `longest_call_bytes` (a message and STRUCTURES_BYTES) is refused with 2218, and one for which
    all of them together need more than `most_bytes`, with 2071. Neither is kept.
    """

    __slots__ = ("_calls", "_kept_bytes", "longest_call_bytes", "most_bytes")

    def __init__(self, *, longest_call_bytes: int, most_bytes: int) -> None:
        self.longest_call_bytes = longest_call_bytes
        self.most_bytes = most_bytes
        self._calls: dict[int, _Unfinished] = {}
        self._kept_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """The bytes of all of them together."""
        return self._kept_bytes

    def take(self, segment: Segment) -> Segment | OverlongCall | None:
        """The call that this segment completes; None if more are to come. ChannelProtocolError if it fits nowhere."""
        if segment.flags_1 & ControlFlags1.WHOLE == ControlFlags1.WHOLE and segment.conversation not in self._calls:
            return segment
        call = self._call_of(segment)
        self._kept_bytes -= call.kept_bytes
        self._append(call, segment.body)
        if segment.flags_1 & ControlFlags1.LAST:
            del self._calls[segment.conversation]
            return _finished(call)
        self._kept_bytes += call.kept_bytes
        return None

    def drop(self, conversation: int) -> None:
        """Forget the call of a conversation that has ended."""
        call = self._calls.pop(conversation, None)
        if call is not None:
            self._kept_bytes -= call.kept_bytes

    def _call_of(self, segment: Segment) -> _Unfinished:
        is_first = bool(segment.flags_1 & ControlFlags1.FIRST)
        call = self._calls.get(segment.conversation)
        if is_first != (call is None):
            wrong = "begins a call inside another" if is_first else "goes on with a call that has no beginning"
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_SEGMENT_ERROR, f"a segment of type {segment.type:02X} {wrong}"
            )
        if call is None:
            call = self._calls[segment.conversation] = _Unfinished(beginning=segment)
        elif not _belong_together(call.beginning, segment):
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_SEGMENT_ERROR,
                f"a segment of type {segment.type:02X} stands inside a call of type {call.beginning.type:02X}",
            )
        return call

    def _append(self, call: _Unfinished, body: bytes) -> None:
        call.call_bytes += len(body)
        if call.call_bytes > self.longest_call_bytes:
            call.reason_code = ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL
        elif self._kept_bytes + call.kept_bytes > self.most_bytes:
            call.reason_code = ReasonCode.MQRC_STORAGE_NOT_AVAILABLE
        if call.reason_code:
            call.joined = bytearray()
        else:
            call.joined += body


def _belong_together(beginning: Segment, segment: Segment) -> bool:
    said = (beginning.type, beginning.request, beginning.byte_order)
    return said == (segment.type, segment.request, segment.byte_order)


def _finished(call: _Unfinished) -> Segment | OverlongCall:
    beginning = call.beginning
    if call.reason_code:
        return OverlongCall(beginning=beginning, call_bytes=call.call_bytes, reason_code=call.reason_code)
    return replace(beginning, body=bytes(call.joined), flags_1=beginning.flags_1 | ControlFlags1.WHOLE)
