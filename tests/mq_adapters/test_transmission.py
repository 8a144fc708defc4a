"""What is on a transmission queue. The vector is laid out by hand from "MQXQH - Transmission-queue header"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError
from mq_adapters.transmission import (
    is_kept_with_next,
    kept_with_next,
    read_transmission,
    transmission_message,
)

# 2026-11-20 12:34:56.78 UTC
PUT_US = 1_795_178_096_780_000
BODY = b"\x00payload\xff"
VECTOR = (
    b"XQH "
    b"\x01\x00\x00\x00"
    + b"STREAM".ljust(48)
    + b"PLANT".ljust(48)
    + b"MD  "
    + b"\x01\x00\x00\x00"  # Version 1
    + b"\x02\x00\x00\x00"  # Report: MQRO_NAN
    + b"\x08\x00\x00\x00"  # MsgType: datagram
    + b"\x64\x00\x00\x00"  # Expiry: 10 s
    + b"\x00\x00\x00\x00"  # Feedback
    + b"\x22\x02\x00\x00"  # Encoding: 546
    + b"\xb8\x04\x00\x00"  # CodedCharSetId: 1208
    + b"MQHRF2  "
    + b"\x04\x00\x00\x00"  # Priority
    + b"\x01\x00\x00\x00"  # Persistence
    + b"m" * 24
    + b"c" * 24
    + b"\x00\x00\x00\x00"  # BackoutCount
    + b"RFHBRIDGE.REPLY".ljust(48)
    + b"GATEWAY".ljust(48)
    + b"pump".ljust(12)
    + bytes(32)
    + b" " * 32
    + b"\x06\x00\x00\x00"  # PutApplType: MQAT_UNIX
    + b"rfhbridge".ljust(28)
    + b"20261120"
    + b"12345678"
    + b"    "
    + BODY
)
DESCRIPTOR = MessageDescriptor(
    report=2,
    expiry=100,
    format=b"MQHRF2  ",
    priority=4,
    persistence=MQPER_PERSISTENT,
    msg_id=b"m" * 24,
    correl_id=b"c" * 24,
    reply_to_q="RFHBRIDGE.REPLY",
    reply_to_q_mgr="GATEWAY",
    user_identifier="pump",
    put_appl_name="rfhbridge",
)
OUTSIDE = MessageDescriptor(format=b"MQXMIT  ", persistence=MQPER_PERSISTENT)


def refused():
    return pytest.raises(QueueManagerError, match="2260")


def test_a_message_for_another_queue_manager_is_written_behind_its_header():
    made = transmission_message(
        Message(DESCRIPTOR, BODY),
        queue_name="STREAM",
        queue_manager_name="PLANT",
        own_name="GATEWAY",
        now_us=PUT_US,
    )
    assert made.body == VECTOR
    assert made.descriptor.format == b"MQXMIT  "
    assert made.descriptor.correl_id == b"m" * 24


def test_what_is_behind_the_header_is_read():
    sent = read_transmission(Message(OUTSIDE, VECTOR), now_us=PUT_US)
    assert (sent.queue_name, sent.queue_manager_name) == ("STREAM", "PLANT")
    assert sent.message.descriptor == DESCRIPTOR
    assert sent.message.body == BODY
    assert sent.message.put_us == PUT_US


@pytest.mark.parametrize(("waited_us", "left"), [(0, 100), (2_500_000, 75), (10_000_000, 1), (99_000_000, 1)])
def test_the_time_that_a_message_has_waited_is_taken_off_its_expiry(waited_us, left):
    sent = read_transmission(Message(OUTSIDE, VECTOR), now_us=PUT_US + waited_us)
    assert sent.message.descriptor.expiry == left


def test_a_message_may_have_to_go_with_the_next_one():
    first = kept_with_next(Message(OUTSIDE, VECTOR))
    assert is_kept_with_next(first)
    assert first.descriptor.appl_origin_data == "MORE"
    assert not is_kept_with_next(Message(OUTSIDE, VECTOR))
    assert not is_kept_with_next(Message(MessageDescriptor(appl_origin_data="MORE"), VECTOR))


def test_a_header_that_is_cut_is_refused_at_every_length():
    for length in range(428):
        with refused():
            read_transmission(Message(OUTSIDE, VECTOR[:length]), now_us=PUT_US)
    assert read_transmission(Message(OUTSIDE, VECTOR[:428]), now_us=PUT_US).message.body == b""


@pytest.mark.parametrize(
    ("at", "bytes_there"),
    [
        (0, b"xqh "),
        (4, b"\x02\x00\x00\x00"),
        (8, b" " * 48),
        (8, b"A QUEUE".ljust(48)),
        (8, b"\xff".ljust(48)),
        (56, b"?".ljust(48)),
        (108, b"\x02\x00\x00\x00"),
    ],
)
def test_a_header_that_is_wrong_is_refused(at, bytes_there):
    body = VECTOR[:at] + bytes_there + VECTOR[at + len(bytes_there) :]
    with refused():
        read_transmission(Message(OUTSIDE, body), now_us=PUT_US)


@pytest.mark.parametrize("changes", [{"format": b"MQSTR   "}, {"encoding": 273}])
def test_a_message_that_does_not_announce_the_header_is_refused(changes):
    with refused():
        read_transmission(Message(OUTSIDE.replace(**changes), VECTOR), now_us=PUT_US)


def test_a_descriptor_inside_that_is_wrong_is_refused_as_one():
    body = VECTOR[:104] + b"XX  " + VECTOR[108:]
    with pytest.raises(QueueManagerError, match="2026"):
        read_transmission(Message(OUTSIDE, body), now_us=PUT_US)


@given(st.binary(max_size=600))
def test_any_bytes_behind_a_right_beginning_are_refused(body: bytes):
    known = ("2260", "2026", "2013", "2029", "2047", "2050")
    with pytest.raises(QueueManagerError, match="|".join(known)):
        read_transmission(Message(OUTSIDE, b"XQH \x01\x00\x00\x00" + body), now_us=PUT_US)
