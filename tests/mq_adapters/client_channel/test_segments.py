"""Segments: vectors written from the layout of the header, cut anywhere, and lengths that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode, UsageError
from mq_adapters.client_channel.segments import (
    CALLS,
    LARGEST_SEGMENT_BYTES,
    ByteOrder,
    ControlFlags1,
    Form,
    Segment,
    SegmentReader,
    SegmentType,
    cut,
    padded,
    padded_length,
    reply_type,
    write_call,
    write_segment,
)
from tests.every_case import for_every

#: Eye-catcher, length, conversation and request, byte order, type, flags, LUW, encoding, CCSID, reserved, body.
VECTORS = {
    "a heartbeat that asks for an answer": (
        "54534843 0000001C 01 09 31 00 0000000000000000 00000111 0333 0000",
        Segment(
            type=SegmentType.HEARTBEAT,
            form=Form.TSHC,
            flags_1=ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST,
        ),
    ),
    "a goodbye without conversations": (
        "54534820 0000001C 01 05 38 00 0000000000000000 00000111 0333 0000",
        Segment(type=SegmentType.STATUS_DATA, form=Form.TSH, flags_1=ControlFlags1.GOODBYE),
    ),
    "a call in the third conversation": (
        "5453484D 00000034 00000005 00000000 01 82 30 00 0000000000000000 00000111 0333 0000"
        "00000034 00000000 00000000 FFFFFFFF",
        Segment(type=SegmentType.MQDISC, conversation=5, body=bytes.fromhex("00000034 00000000 00000000 FFFFFFFF")),
    ),
    "little-endian but for length, conversation and request": (
        "5453484D 00000026 00000001 00000003 02 0F 31 00 0000000000000000 22020000 B804 0000 4142",
        Segment(
            type=SegmentType.NOTIFICATION,
            conversation=1,
            request=3,
            byte_order=ByteOrder.LITTLE_ENDIAN,
            flags_1=ControlFlags1.WHOLE | ControlFlags1.CONFIRM_REQUEST,
            encoding=546,
            ccsid=1208,
            body=b"AB",
        ),
    ),
    "an unknown type": (
        "54534820 0000001D 01 7E 30 00 0000000000000000 00000111 0333 0000 00",
        Segment(type=0x7E, form=Form.TSH, body=b"\0"),
    ),
}

WRONG = {
    "another protocol": ("474554202F", StatusCode.PROTOCOL_ID_ERROR),
    "its first byte": ("16", StatusCode.PROTOCOL_ID_ERROR),
    "TSH with an unknown fourth byte": ("54534841", StatusCode.PROTOCOL_ID_ERROR),
    "EBCDIC": ("E3E2C840 0000001C", StatusCode.CCSID_NOT_SUPPORTED),
    "a length of less than the header": ("54534820 0000001B", StatusCode.PROTOCOL_LENGTH_ERROR),
    "a length of less than the header of a conversation": ("5453484D 00000023", StatusCode.PROTOCOL_LENGTH_ERROR),
    "a length of more than the largest": ("54534820 00007FED", StatusCode.PROTOCOL_LENGTH_ERROR),
    "a length in the wrong order": ("54534820 1C000000", StatusCode.PROTOCOL_LENGTH_ERROR),
    "a byte order of 3": (
        "54534820 0000001C 03 05 38 00 0000000000000000 00000111 0333 0000",
        StatusCode.ENCODING_INVALID,
    ),
}


@for_every(VECTORS)
def test_a_segment_is_read_and_written(vector: tuple[str, Segment]) -> None:
    data, segment = bytes.fromhex(vector[0]), vector[1]
    assert SegmentReader().feed(data) == [segment]
    assert write_segment(segment) == data


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 1_000])
def test_segments_are_the_same_however_they_are_cut(piece_bytes: int) -> None:
    data = b"".join(bytes.fromhex(vector) for vector, _ in VECTORS.values())
    reader = SegmentReader()
    found: list[Segment] = []
    for start in range(0, len(data), piece_bytes):
        found += reader.feed(data[start : start + piece_bytes])
    assert found == [segment for _, segment in VECTORS.values()]
    assert reader.unfinished_bytes == 0


@for_every(WRONG)
def test_wrong_bytes_are_refused_as_soon_as_they_come(wrong: tuple[str, StatusCode]) -> None:
    reader = SegmentReader()
    with pytest.raises(ChannelProtocolError) as refused:
        reader.feed(bytes.fromhex(wrong[0]))
    assert refused.value.status_code is wrong[1]


def test_a_segment_that_is_not_complete_waits() -> None:
    reader = SegmentReader()
    assert reader.feed(bytes.fromhex("54534820 00007FEC 01")) == []
    assert reader.unfinished_bytes == 9
    rest = bytes.fromhex("05 30 00 0000000000000000 00000111 0333 0000") + bytes(LARGEST_SEGMENT_BYTES - 28)
    assert reader.feed(rest) == [Segment(type=SegmentType.STATUS_DATA, form=Form.TSH, body=rest[19:])]


@given(st.binary(max_size=200))
def test_random_bytes_end_in_segments_or_in_our_error(data: bytes) -> None:
    for beginning in (b"", b"TSH ", b"TSHM\0\0\0", b"TSHC\0\0\0\x1c"):
        reader = SegmentReader()
        try:
            segments = reader.feed(beginning + data)
        except ChannelProtocolError:
            continue
        assert reader.unfinished_bytes + sum(len(write_segment(each)) for each in segments) == len(beginning + data)


def test_a_long_call_is_cut_and_only_its_segments_have_headers() -> None:
    body = bytes(range(256)) * 400
    segments = SegmentReader().feed(write_call(Segment(type=SegmentType.MQPUT, conversation=3, body=body)))
    assert [len(each.body) for each in segments] == [32_712, 32_712, 32_712, 102_400 - 3 * 32_712]
    assert [each.flags_1 for each in segments] == [
        ControlFlags1.FIRST,
        ControlFlags1.NONE,
        ControlFlags1.NONE,
        ControlFlags1.LAST,
    ]
    assert {(each.type, each.conversation) for each in segments} == {(SegmentType.MQPUT, 3)}
    assert b"".join(each.body for each in segments) == body


@pytest.mark.parametrize(("body_bytes", "count"), [(0, 1), (32_712, 1), (32_713, 2), (65_424, 2), (65_425, 3)])
def test_a_call_has_no_more_segments_than_it_needs(body_bytes: int, count: int) -> None:
    segments = list(cut(Segment(type=SegmentType.MQPUT, body=bytes(body_bytes))))
    assert len(segments) == count
    assert segments[0].flags_1 & ControlFlags1.FIRST
    assert segments[-1].flags_1 & ControlFlags1.LAST


def test_other_flags_stay_on_each_segment_of_a_long_call() -> None:
    flags = ControlFlags1.WHOLE | ControlFlags1.REQUEST_ACCEPTED
    segments = cut(Segment(type=SegmentType.MQPUT, body=bytes(40_000), flags_1=flags))
    assert all(each.flags_1 & ControlFlags1.REQUEST_ACCEPTED for each in segments)


def test_a_segment_that_is_too_long_is_our_own_mistake() -> None:
    with pytest.raises(UsageError):
        write_segment(Segment(type=SegmentType.MQPUT, body=bytes(LARGEST_SEGMENT_BYTES)))
    with pytest.raises(UsageError):
        list(cut(Segment(type=SegmentType.MQPUT), largest_segment_bytes=36))


def test_every_call_has_a_reply_of_a_type_of_its_own() -> None:
    assert reply_type(SegmentType.MQCONN) == 0x91
    assert reply_type(SegmentType.XA_COMPLETE) == 0xBA
    assert not {reply_type(each) for each in CALLS} & {int(each) for each in SegmentType}


def test_a_body_is_never_shown() -> None:
    assert "secret" not in repr(Segment(type=SegmentType.CONAUTH_INFO, body=b"secret"))


@pytest.mark.parametrize(("length", "filled"), [(0, 0), (1, 4), (4, 4), (5, 8)])
def test_a_length_is_filled_up_to_four_bytes(length: int, filled: int) -> None:
    assert padded_length(length) == filled
    assert padded(b"x" * length) == b"x" * length + bytes(filled - length)
