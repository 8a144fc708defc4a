"""Calls of several segments: joined for each conversation, and never more of them than the limits allow."""

import pytest

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.joining import OverlongCall, UnfinishedCalls
from mq_adapters.client_channel.segments import ByteOrder, ControlFlags1, Segment, SegmentType
from mq_adapters.reasons import ReasonCode

FIRST, MIDDLE, LAST = ControlFlags1.FIRST, ControlFlags1.NONE, ControlFlags1.LAST


def _part(flags: ControlFlags1, body: bytes, conversation: int = 1, type: int = SegmentType.MQPUT) -> Segment:
    return Segment(type=type, conversation=conversation, flags_1=flags, body=body)


@pytest.fixture
def calls() -> UnfinishedCalls:
    return UnfinishedCalls(longest_call_bytes=100, most_bytes=150)


def test_a_call_of_one_segment_is_complete(calls: UnfinishedCalls) -> None:
    call = _part(ControlFlags1.WHOLE, b"abc")
    assert calls.take(call) is call
    assert calls.kept_bytes == 0


def test_bodies_are_joined_without_their_headers(calls: UnfinishedCalls) -> None:
    assert calls.take(_part(FIRST, b"ab")) is None
    assert calls.take(_part(MIDDLE, b"cd")) is None
    assert calls.kept_bytes == 4
    assert calls.take(_part(LAST, b"e")) == _part(ControlFlags1.WHOLE, b"abcde")
    assert calls.kept_bytes == 0


def test_segments_of_two_conversations_may_alternate(calls: UnfinishedCalls) -> None:
    assert calls.take(_part(FIRST, b"1", 1)) is None
    assert calls.take(_part(FIRST, b"3", 3)) is None
    assert calls.take(_part(ControlFlags1.WHOLE, b"5", 5)) == _part(ControlFlags1.WHOLE, b"5", 5)
    assert calls.take(_part(LAST, b"1", 1)) == _part(ControlFlags1.WHOLE, b"11", 1)
    assert calls.take(_part(LAST, b"3", 3)) == _part(ControlFlags1.WHOLE, b"33", 3)


def test_a_call_that_is_too_long_is_told_at_its_end_and_not_kept(calls: UnfinishedCalls) -> None:
    beginning = _part(FIRST, bytes(60))
    assert calls.take(beginning) is None
    for _ in range(1_000):
        assert calls.take(_part(MIDDLE, bytes(60))) is None
        assert calls.kept_bytes == 60
    assert calls.take(_part(LAST, b"x")) == OverlongCall(
        beginning=beginning, call_bytes=60_061, reason_code=ReasonCode.MQRC_MSG_TOO_BIG_FOR_CHANNEL
    )
    assert calls.kept_bytes == 0


def test_the_longest_call_is_taken(calls: UnfinishedCalls) -> None:
    calls.take(_part(FIRST, bytes(50)))
    assert calls.take(_part(LAST, bytes(50))) == _part(ControlFlags1.WHOLE, bytes(100))


def test_all_unfinished_calls_together_have_a_limit(calls: UnfinishedCalls) -> None:
    calls.take(_part(FIRST, bytes(90), 1))
    calls.take(_part(FIRST, bytes(40), 3))
    calls.take(_part(MIDDLE, bytes(40), 3))
    refused = calls.take(_part(LAST, b"", 3))
    assert isinstance(refused, OverlongCall)
    assert refused.reason_code is ReasonCode.MQRC_STORAGE_NOT_AVAILABLE
    assert calls.take(_part(LAST, b"x", 1)) == _part(ControlFlags1.WHOLE, bytes(90) + b"x", 1)


def test_empty_segments_need_no_memory(calls: UnfinishedCalls) -> None:
    calls.take(_part(FIRST, b""))
    for _ in range(10_000):
        assert calls.take(_part(MIDDLE, b"")) is None
    assert calls.kept_bytes == 0


def test_the_call_of_a_conversation_that_ended_is_dropped(calls: UnfinishedCalls) -> None:
    calls.take(_part(FIRST, bytes(90)))
    calls.drop(1)
    calls.drop(3)
    assert calls.kept_bytes == 0
    with pytest.raises(ChannelProtocolError):
        calls.take(_part(LAST, b""))


@pytest.mark.parametrize("flags", [MIDDLE, LAST])
def test_a_call_without_a_beginning_is_refused(calls: UnfinishedCalls, flags: ControlFlags1) -> None:
    with pytest.raises(ChannelProtocolError) as refused:
        calls.take(_part(flags, b"x"))
    assert refused.value.status_code is StatusCode.PROTOCOL_SEGMENT_ERROR


@pytest.mark.parametrize(
    "second",
    [
        _part(FIRST, b""),
        _part(ControlFlags1.WHOLE, b""),
        _part(LAST, b"", type=SegmentType.MQGET),
        Segment(type=SegmentType.MQPUT, conversation=1, request=2, flags_1=LAST),
        Segment(type=SegmentType.MQPUT, conversation=1, byte_order=ByteOrder.LITTLE_ENDIAN, flags_1=LAST),
    ],
    ids=["a second beginning", "a whole call", "another type", "another request", "another byte order"],
)
def test_a_segment_that_does_not_go_on_with_its_call_is_refused(calls: UnfinishedCalls, second: Segment) -> None:
    calls.take(_part(FIRST, b""))
    with pytest.raises(ChannelProtocolError) as refused:
        calls.take(second)
    assert refused.value.status_code is StatusCode.PROTOCOL_SEGMENT_ERROR
