"""INITIAL_DATA: the client's, written from its layout, and what is answered at each level."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.initial_data import CLEAR_PASSWORDS, InitialData, negotiate
from mq_adapters.client_channel.segments import ByteOrder

#: What IBM's Java client of level 17 offers.
OFFERED = (
    b"ID  "
    + bytes.fromhex("11 26 00 00 0000 0000 00007FEC 06400000 00000000")
    + b"APP.SVRCONN".ljust(20)
    + bytes.fromhex("51 00 0333")
    + b"QM1".ljust(48)
    + bytes.fromhex("00000001 008A 00 00 00FF 00FF FFFFFFFF FFFFFFFF FFFFFFFF FFFF 0000 00000000 0000000A 28 00 0000")
    + bytes.fromhex("000004D2 00000001 00000001")
    + b"MQJB09040500"
    + b"CANNED_DATA".ljust(48)
    + bytes.fromhex("0001 0000").ljust(20, b"\xff")
    + bytes(range(12))
)
OFFER = InitialData(
    level=17,
    maximum_message_length=104_857_600,
    channel_name="APP.SVRCONN",
    queue_manager_name="QM1",
    heartbeat_interval_s=1,
    conversations_per_socket=10,
    capabilities_3=0x28,
    process_identifier=1234,
    product_identifier="MQJB09040500",
    queue_manager_identifier="CANNED_DATA",
    password_protection=bytes.fromhex("0001 0000").ljust(20, b"\xff"),
    random_bytes=bytes(range(12)),
)
OURS = InitialData(
    maximum_message_length=4_194_304,
    queue_manager_name="EDGE",
    heartbeat_interval_s=300,
    conversations_per_socket=10,
    product_identifier="MQMM09040500",
    queue_manager_identifier="EDGE_1",
    random_bytes=b"r" * 12,
)


def _read(data: bytes, byte_order: ByteOrder = ByteOrder.BIG_ENDIAN) -> InitialData:
    return InitialData.read(BodyReader(data, byte_order))


def test_an_offer_of_ibms_client_is_read_and_written() -> None:
    assert len(OFFERED) == 240
    assert _read(OFFERED) == OFFER
    assert OFFER.write(ByteOrder.BIG_ENDIAN) == OFFERED


def test_what_later_clients_put_behind_it_is_not_read() -> None:
    assert _read(OFFERED + b"more") == OFFER


def test_numbers_have_the_byte_order_of_the_segment() -> None:
    little = OFFER.write(ByteOrder.LITTLE_ENDIAN)
    assert little[12:20] == bytes.fromhex("EC7F0000 00004006")
    assert little[100:102] == bytes.fromhex("8A00")
    assert _read(little, ByteOrder.LITTLE_ENDIAN) == OFFER


@pytest.mark.parametrize(
    ("level", "length", "behind"),
    [(4, 100, ""), (7, 100, ""), (9, 160, "003A"), (10, 208, "006A"), (12, 208, "006A"), (13, 240, "008A")],
)
def test_an_answer_is_as_long_as_its_level(level: int, length: int, behind: str) -> None:
    answer = negotiate(replace(OFFER, level=level), OURS)
    written = answer.write(ByteOrder.BIG_ENDIAN)
    assert answer.level == written[4] == level
    assert len(written) == length
    assert written[100:102] == bytes.fromhex(behind)


def test_the_lower_level_and_the_smaller_sizes_are_answered() -> None:
    answer = negotiate(OFFER, OURS)
    assert (answer.level, answer.maximum_message_length, answer.conversations_per_socket) == (13, 4_194_304, 10)
    assert answer.transmission_size == 32_748
    assert (answer.channel_name, answer.queue_manager_name) == ("APP.SVRCONN", "EDGE")
    assert answer.password_protection == CLEAR_PASSWORDS
    small = negotiate(
        replace(OFFER, transmission_size=4_096, maximum_message_length=1_000, conversations_per_socket=1), OURS
    )
    assert (small.transmission_size, small.maximum_message_length, small.conversations_per_socket) == (4_096, 1_000, 1)


def test_a_client_of_level_8_is_answered_with_7_and_has_one_conversation() -> None:
    answer = negotiate(replace(OFFER, level=8), OURS)
    assert (answer.level, answer.conversations_per_socket) == (7, 0)
    assert negotiate(OFFER, replace(OURS, level=8)).level == 7


@pytest.mark.parametrize(
    ("offer", "status_code"),
    [
        (replace(OFFER, level=3), StatusCode.FAP_LEVEL),
        (replace(OFFER, level=0), StatusCode.FAP_LEVEL),
        (replace(OFFER, transmission_size=36), StatusCode.NEGOTIATION_FAILED),
        (replace(OFFER, capabilities_1=0x06), StatusCode.CHANNEL_WRONG_TYPE),
    ],
    ids=["a level too low", "no level", "no room for a body", "a message channel"],
)
def test_an_offer_that_fits_nothing_is_refused(offer: InitialData, status_code: StatusCode) -> None:
    with pytest.raises(ChannelProtocolError) as refused:
        negotiate(offer, OURS)
    assert refused.value.status_code is status_code


@pytest.mark.parametrize("level", [3, 4, 8, 9, 10, 12, 13, 17])
def test_an_offer_that_is_cut_is_refused_where_its_level_needs_more(level: int) -> None:
    needed = {3: 96, 4: 100, 8: 128, 9: 160, 10: 208, 12: 208, 13: 240, 17: 240}[level]
    data = OFFERED[:4] + bytes((level,)) + OFFERED[5:]
    for length in range(240):
        if length >= needed:
            assert _read(data[:length]).level == level
        else:
            with pytest.raises(ChannelProtocolError):
                _read(data[:length])


@given(st.binary(max_size=300))
def test_random_bytes_end_in_an_offer_or_in_our_error(data: bytes) -> None:
    for order in ByteOrder:
        try:
            offer = _read(b"ID  " + data, order)
        except ChannelProtocolError:
            continue
        assert _read(offer.write(order), order).level == offer.level
