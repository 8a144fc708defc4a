"""REQUEST_MSGS and ASYNC_MESSAGE, laid out by hand; the cutting of long messages, and the room of a listener."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.asynchronous import (
    AsyncMessage,
    AsyncMessageReader,
    Consumer,
    RequestMsgs,
    Selection,
)
from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.segments import ByteOrder, ControlFlags1, Segment, SegmentType
from tests.mq_adapters.client_channel.layouts import descriptor, descriptor_value

BIG, LITTLE = ByteOrder

#: The first request of a listener, and the next one after a message of 159 bytes.
FIRST_ASKED = bytes.fromhex(
    "00000001 00000007 00000000 00000001 FFFFFFFF 02003000 00000000 00000000 00000011 00000000"
    "0001 0002 000004B8 00000111 00000000 00000000 00000000"
)
FIRST_REQUEST = RequestMsgs(
    object_handle=7,
    get_options=0x02003000,
    flags=0x11,
    selection=Selection(selection_index=1, ccsid=1208, encoding=273),
)
NEXT_ASKED = bytes.fromhex("00000001 00000007 0000020B 00000001 FFFFFFFF 02003000 00000000 00000000 00000001 00000001")
NEXT_REQUEST = RequestMsgs(object_handle=7, received_bytes=523, get_options=0x02003000, global_message_index=1)

MESSAGE = AsyncMessage(
    object_handle=7,
    global_message_index=1,
    selection_index=1,
    msg_token=b"t" * 16,
    resolved_q_name="APP.Q",
    message_descriptor=descriptor_value(2),
    data=b"ABCDE",
)
#: Prefix of 24 bytes, reason, lengths, token, status, length of the name, the name, and zeros up to 4 bytes.
SENT = (
    bytes.fromhex("00000001 00000007 00000000 00000001 00000005 0000 0001 00000000 00000005 00000005")
    + b"t" * 16
    + bytes.fromhex("0000 05")
    + b"APP.Q"
    + descriptor(2)
    + b"ABCDE\0\0\0"
)
SEGMENT = Segment(type=SegmentType.ASYNC_MESSAGE, conversation=3, request=1)


@pytest.mark.parametrize(("data", "request_msgs"), [(FIRST_ASKED, FIRST_REQUEST), (NEXT_ASKED, NEXT_REQUEST)])
def test_a_request_is_read_and_written(data: bytes, request_msgs: RequestMsgs) -> None:
    assert RequestMsgs.read(BodyReader(data, BIG)) == request_msgs
    assert request_msgs.write(BIG) == data
    assert RequestMsgs.read(BodyReader(request_msgs.write(LITTLE), LITTLE)) == request_msgs


@pytest.mark.parametrize(
    ("match_options", "identifiers"),
    [
        (0x01, {"msg_id": b"m" * 24}),
        (0x02, {"correl_id": b"c" * 24}),
        (0x27, {"msg_id": b"m" * 24, "correl_id": b"c" * 24, "group_id": b"g" * 24, "msg_token": b"t" * 16}),
    ],
)
def test_a_selection_has_the_identifiers_of_its_match_options(
    match_options: int, identifiers: dict[str, bytes]
) -> None:
    data = FIRST_ASKED[:-1] + bytes((match_options,)) + b"".join(identifiers.values())
    selection = replace(FIRST_REQUEST.selection or Selection(), match_options=match_options, **identifiers)  # type: ignore[arg-type]
    read = RequestMsgs.read(BodyReader(data, BIG))
    assert read.selection == selection
    assert read.write(BIG) == data
    for length in range(len(data)):
        with pytest.raises(ChannelProtocolError):
            RequestMsgs.read(BodyReader(data[:length], BIG))


def test_a_listener_keeps_its_first_selection_and_has_room_for_one_message_at_a_time() -> None:
    consumer = Consumer(7)
    assert not consumer.may_get
    consumer.take(1, FIRST_REQUEST)
    assert (consumer.may_get, consumer.request, consumer.selection.selection_index) == (True, 1, 1)
    consumer.sent(159)
    assert not consumer.may_get
    consumer.take(3, NEXT_REQUEST)
    assert (consumer.may_get, consumer.request, consumer.selection.selection_index) == (True, 3, 1)
    assert consumer.get_options == 0x02003000


def test_more_room_is_used_up_by_the_bytes_of_messages() -> None:
    consumer = Consumer(7)
    consumer.take(1, replace(FIRST_REQUEST, requested_bytes=1_000))
    consumer.sent(100)
    assert consumer.credit_bytes == 536
    consumer.sent(100)
    consumer.sent(100)
    assert not consumer.may_get
    consumer.take(1, replace(NEXT_REQUEST, requested_bytes=-5))
    assert not consumer.may_get


def test_a_short_message_is_one_segment() -> None:
    assert list(MESSAGE.segments(SEGMENT)) == [replace(SEGMENT, body=SENT)]
    assert AsyncMessageReader(5).take(replace(SEGMENT, body=SENT)) == MESSAGE


@pytest.mark.parametrize(("name", "place"), [("Q", 1), ("QU", 5), ("APP.Q", 5), ("APP.QU", 9)])
def test_the_name_of_the_queue_is_filled_up_to_four_bytes(name: str, place: int) -> None:
    (segment,) = replace(MESSAGE, resolved_q_name=name).segments(SEGMENT)
    assert segment.body[55:] == name.encode().ljust(place, b"\0") + descriptor(2) + b"ABCDE\0\0\0"
    assert AsyncMessageReader(5).take(segment) == replace(MESSAGE, resolved_q_name=name)


@pytest.mark.parametrize("order", ByteOrder)
def test_a_long_message_has_its_prefix_in_each_segment(order: ByteOrder) -> None:
    data = bytes(range(256)) * 300
    message = replace(MESSAGE, data=data)
    segments = list(message.segments(replace(SEGMENT, byte_order=order)))
    in_the_first = 32_748 - 36 - 60 - 364
    rest = len(data) - in_the_first - (32_748 - 60)
    code = "big" if order is BIG else "little"
    assert [each.flags_1 for each in segments] == [ControlFlags1.FIRST, ControlFlags1.NONE, ControlFlags1.LAST]
    assert [int.from_bytes(each.body[16:20], code) for each in segments] == [in_the_first, 32_748 - 60, rest]
    assert [int.from_bytes(each.body[20:22], code) for each in segments] == [0, 1, 2]
    assert {each.body[:16] for each in segments} == {segments[0].body[:16]}
    assert len(segments[1].body) == 32_748 - 36
    reader = AsyncMessageReader(len(data))
    assert [reader.take(each) for each in segments] == [None, None, message]


@pytest.mark.parametrize("data_bytes", [1, 2, 3, 4, 1_997, 4_001])
def test_every_segment_has_a_multiple_of_four_bytes_whatever_size_was_agreed(data_bytes: int) -> None:
    message = replace(MESSAGE, data=bytes(data_bytes))
    for size in range(1_000, 1_004):
        segments = list(message.segments(SEGMENT, size))
        assert all(len(each.body) % 4 == 0 for each in segments)
        reader = AsyncMessageReader(data_bytes)
        assert [reader.take(each) for each in segments][-1] == message


def test_a_message_that_just_fits_is_one_segment() -> None:
    room = 32_748 - 36 - 60 - 364
    assert len(list(replace(MESSAGE, data=bytes(room)).segments(SEGMENT))) == 1
    assert len(list(replace(MESSAGE, data=bytes(room + 1)).segments(SEGMENT))) == 2
    assert len(list(replace(MESSAGE, data=b"").segments(SEGMENT))) == 1


def test_a_segment_without_room_for_a_descriptor_is_our_own_mistake() -> None:
    with pytest.raises(UsageError):
        list(MESSAGE.segments(SEGMENT, largest_segment_bytes=400))


def _segments(count_of_data: int = 40_000) -> list[Segment]:
    return list(replace(MESSAGE, data=bytes(count_of_data)).segments(SEGMENT))


def test_a_message_that_is_too_long_or_whose_lengths_lie_is_refused() -> None:
    first, last = _segments()
    longer = last.body[:16] + (len(last.body) - 20).to_bytes(4, "big") + last.body[20:] + bytes(4)
    shorter = last.body[:16] + bytes(4) + last.body[20:]
    another = last.body[:15] + b"\x09" + last.body[16:]
    for segments, longest in (
        ([first], 39_999),
        ([first, replace(last, body=longer)], 40_000),
        ([first, replace(last, body=longer, flags_1=ControlFlags1.NONE)], 40_000),
        ([first, replace(last, body=shorter)], 40_000),
        ([first, replace(last, body=another)], 40_000),
        ([last], 40_000),
        ([first, last, last], 40_000),
    ):
        reader = AsyncMessageReader(longest)
        for segment in segments[:-1]:
            reader.take(segment)
        with pytest.raises(ChannelProtocolError):
            reader.take(segments[-1])


def test_a_message_is_refused_at_every_shorter_length() -> None:
    for length in range(len(SENT.rstrip(b"\0"))):
        with pytest.raises(ChannelProtocolError):
            AsyncMessageReader(5).take(replace(SEGMENT, body=SENT[:length]))


@given(st.binary(max_size=120), st.sampled_from(ByteOrder))
def test_random_bytes_end_in_a_value_or_in_our_error(data: bytes, order: ByteOrder) -> None:
    for body in (data, FIRST_ASKED[:38] + data):
        try:
            read = RequestMsgs.read(BodyReader(body, order))
        except ChannelProtocolError:
            continue
        assert body.startswith(read.write(order))
    for body in (data, SENT[:52] + data + SENT[52:]):
        try:
            AsyncMessageReader(5).take(replace(SEGMENT, body=body, byte_order=order))
        except ChannelProtocolError:
            continue


def test_data_are_never_shown() -> None:
    assert "ABCDE" not in repr(MESSAGE)
