"""MQINQ and MQSET: what IBM's client asks at once, and counts that lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.attributes import Attributes, MqinqRequest, MqsetReply
from mq_adapters.client_channel.errors import ChannelProtocolError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.segments import ByteOrder

BIG, LITTLE = ByteOrder
#: Command level, platform, CCSID, name, identifier, capability: the first inquiry of a client.
ASKED = bytes.fromhex("00000006 00000004 00000064 0000001F 00000020 00000002 000007DF 000007F0 00000111")
REQUEST = MqinqRequest(selectors=(31, 32, 2, 2015, 2032, 273), int_attr_count=4, char_attr_length=100)


def test_an_inquiry_is_read_and_written() -> None:
    assert MqinqRequest.read(BodyReader(ASKED, BIG)) == REQUEST
    assert REQUEST.write(BIG) == ASKED
    assert MqinqRequest.read(BodyReader(REQUEST.write(LITTLE), LITTLE)) == REQUEST


def test_a_reply_has_exactly_what_the_client_has_room_for() -> None:
    reply = REQUEST.reply((945, 3, 819, 0), b"EDGE".ljust(48) + b"EDGE_1".ljust(48))
    names = b"EDGE".ljust(48) + b"EDGE_1".ljust(52)
    assert reply.write(BIG) == ASKED + bytes.fromhex("000003B1 00000003 00000333 00000000") + names
    assert REQUEST.reply() == Attributes(selectors=REQUEST.selectors, int_attrs=(0,) * 4, char_attrs=b" " * 100)
    assert REQUEST.reply((1,) * 9, b"x" * 200) == Attributes(
        selectors=REQUEST.selectors, int_attrs=(1,) * 4, char_attrs=b"x" * 100
    )


def test_a_change_is_read_and_written_and_answered_by_its_counts() -> None:
    data = bytes.fromhex("00000002 00000001 00000004 00000009 000007DD 00000001") + b"text"
    change = Attributes(selectors=(9, 2013), int_attrs=(1,), char_attrs=b"text")
    assert Attributes.read(BodyReader(data, BIG)) == change
    assert change.write(BIG) == data
    reply = MqsetReply(selector_count=2, int_attr_count=1, char_attr_length=4)
    assert reply.write(BIG) == data[:12]
    assert MqsetReply.read(BodyReader(data, BIG)) == reply


@pytest.mark.parametrize(
    "counts",
    [
        "00000101 00000000 00000000",
        "FFFFFFFF 00000000 00000000",
        "00000001 00000101 00000000",
        "00000001 FFFFFFFF 00000000",
        "00000001 00000000 00040001",
        "00000001 00000000 FFFFFFFF",
        "00000003 00000000 00000000",
    ],
)
def test_counts_that_lie_or_ask_for_too_much_are_refused(counts: str) -> None:
    for record in (MqinqRequest, Attributes):
        with pytest.raises(ChannelProtocolError):
            record.read(BodyReader(bytes.fromhex(counts) + bytes(8), BIG))


@given(st.binary(max_size=60), st.sampled_from(ByteOrder))
def test_random_bytes_end_in_a_value_or_in_our_error(data: bytes, order: ByteOrder) -> None:
    for record in (MqinqRequest, Attributes, MqsetReply):
        for counts in (b"", bytes(11) + b"\1" if order is BIG else bytes(8) + b"\1\0\0\0"):
            try:
                read = record.read(BodyReader(counts + data, order))
            except ChannelProtocolError:
                continue
            assert (counts + data).startswith(read.write(order))
