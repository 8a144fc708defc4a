"""STATUS_DATA, SOCKET_ACTION and NOTIFICATION, written from their layout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.status import (
    DELIVERY_STARTED,
    Notification,
    NotificationCode,
    SocketAction,
    SocketActionType,
    StatusData,
)
from tests.every_case import for_every

BIG, LITTLE = ByteOrder

VECTORS: dict[str, tuple[str, ByteOrder, StatusData | SocketAction | Notification]] = {
    "all is well": ("", BIG, StatusData()),
    "the code 0": ("00000008 00000000", BIG, StatusData(0)),
    "no such channel": ("00000008 00000001", BIG, StatusData(StatusCode.NO_CHANNEL)),
    "a value": ("0000000C 00000014 00000005", BIG, StatusData(StatusCode.SECURITY_FAILURE, 5)),
    "little-endian": ("08000000 16000000", LITTLE, StatusData(StatusCode.CHANNEL_UNAVAILABLE)),
    "a conversation begins": (
        "00000003 00000000 00000001 00000001 00000002",
        BIG,
        SocketAction(conversation=3, type=SocketActionType.START_CONVERSATION, parameter_1=1, parameter_2=2),
    ),
    "a conversation ends": (
        "05000000 00000000 02000000 00000000 00000000",
        LITTLE,
        SocketAction(conversation=5, type=SocketActionType.END_CONVERSATION),
    ),
    "delivery begins": (
        "00000001 FFFFFFFF 00000003 00000002",
        BIG,
        Notification(code=NotificationCode.CONN_STATE, value=DELIVERY_STARTED),
    ),
    "the state of a queue": (
        "00000001 00000007 00000005 00000010",
        BIG,
        Notification(object_handle=7, code=NotificationCode.Q_STATE, value=16),
    ),
}


@for_every(VECTORS)
def test_it_is_read_and_written(vector: tuple[str, ByteOrder, StatusData | SocketAction | Notification]) -> None:
    data, order, value = bytes.fromhex(vector[0]), *vector[1:]
    assert type(value).read(BodyReader(data, order)) == value
    assert value.write(order) == data


@for_every(VECTORS)
def test_it_is_refused_at_every_shorter_length(
    vector: tuple[str, ByteOrder, StatusData | SocketAction | Notification],
) -> None:
    data, order, value = bytes.fromhex(vector[0]), *vector[1:]
    for length in range(isinstance(value, StatusData), len(data)):
        with pytest.raises(ChannelProtocolError):
            type(value).read(BodyReader(data[:length], order))


@pytest.mark.parametrize("length", ["00000000", "00000009", "FFFFFFFF", "00000010"])
def test_a_status_whose_length_lies_is_refused(length: str) -> None:
    with pytest.raises(ChannelProtocolError):
        StatusData.read(BodyReader(bytes.fromhex(length) + bytes(12), BIG))


def test_a_notification_is_answered_by_the_next_code() -> None:
    answer = Notification(code=NotificationCode.CONN_STATE, value=0).answer
    assert answer == Notification(object_handle=-1, code=NotificationCode.CONN_STATE_REPLY, value=0)


def test_a_notification_without_a_next_code_is_refused() -> None:
    highest = bytes.fromhex("00000001 FFFFFFFF 7FFFFFFF 00000000")
    with pytest.raises(ChannelProtocolError, match="the code 2147483647"):
        Notification.read(BodyReader(highest, BIG))
    below = Notification.read(BodyReader(highest.replace(b"\x7f\xff\xff\xff", b"\x7f\xff\xff\xfe"), BIG))
    assert below.answer.write(BIG) == highest


@given(st.binary(max_size=24), st.sampled_from(ByteOrder))
def test_random_bytes_end_in_a_value_or_in_our_error(data: bytes, order: ByteOrder) -> None:
    for record in (StatusData, SocketAction, Notification):
        try:
            read = record.read(BodyReader(data, order))
        except ChannelProtocolError:
            continue
        assert data.startswith(read.write(order))
