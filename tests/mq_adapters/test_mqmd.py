"""MQMD as bytes. The vector is laid out by hand from "MQMD - Message descriptor"."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.mqmd import MQMD_BYTES, read_delivered_mqmd, read_mqmd, write_mqmd, write_native_mqmd
from mq_adapters.reasons import QueueManagerError

# Put at 2026-11-20 12:34:56.78 UTC.
PUT_US = 1_795_178_096_780_000

VECTOR = (
    b"MD  "
    b"\x02\x00\x00\x00"  # Version
    b"\x02\x00\x00\x00"  # Report: MQRO_NAN
    b"\x01\x00\x00\x00"  # MsgType: request
    b"\xff\xff\xff\xff"  # Expiry: unlimited
    b"\x14\x01\x00\x00"  # Feedback: 276
    b"\x22\x02\x00\x00"  # Encoding: 546
    b"\xb8\x04\x00\x00"  # CodedCharSetId: 1208
    b"MQHRF2  "
    b"\x04\x00\x00\x00"  # Priority
    b"\x01\x00\x00\x00"  # Persistence
    + b"m" * 24
    + b"c" * 24
    + b"\x03\x00\x00\x00"  # BackoutCount
    + b"REPLIES".ljust(48)
    + b"QM1".ljust(48)
    + b"w\xc3\xa4rter".ljust(12)
    + b"\x01".ljust(32, b"\0")
    + b"identity".ljust(32)
    + b"\x06\x00\x00\x00"  # PutApplType: MQAT_UNIX
    + b"a program".ljust(28)
    + b"20261120"
    + b"12345678"
    + b"orig"
    + bytes(24)
    + b"\x01\x00\x00\x00"  # MsgSeqNumber
    + b"\x00\x00\x00\x00"  # Offset
    + b"\x00\x00\x00\x00"  # MsgFlags
    + b"\xff\xff\xff\xff"  # OriginalLength
)

MESSAGE = Message(
    MessageDescriptor(
        report=2,
        msg_type=1,
        feedback=276,
        format=b"MQHRF2  ",
        priority=4,
        persistence=1,
        msg_id=b"m" * 24,
        correl_id=b"c" * 24,
        reply_to_q="REPLIES",
        reply_to_q_mgr="QM1",
        user_identifier="wärter",
        accounting_token=b"\x01".ljust(32, b"\0"),
        appl_identity_data="identity",
        put_appl_name="a program",
        appl_origin_data="orig",
    ),
    b"body",
)
MESSAGE.put_us = PUT_US
MESSAGE.backout_count = 3


def changed(offset: int, value: bytes) -> bytes:
    return VECTOR[:offset] + value + VECTOR[offset + len(value) :]


def test_the_vector_has_the_length_of_ibms_structure():
    assert len(VECTOR) == MQMD_BYTES == 364


def test_the_vector_is_written():
    assert write_mqmd(MESSAGE) == VECTOR


def test_the_vector_is_read():
    message = read_mqmd(VECTOR, b"body")
    assert message.descriptor == MESSAGE.descriptor
    assert (message.body, message.put_us, message.backout_count) == (b"body", PUT_US, 3)


def test_a_default_descriptor_is_what_a_program_may_send():
    mqmd = write_mqmd(Message(MessageDescriptor(), b""))
    assert mqmd[44:48] == b"\x02\x00\x00\x00"  # persistence as the queue says
    assert mqmd[48:96] == bytes(48)
    assert mqmd[304:320] == b" " * 16
    assert read_mqmd(mqmd).descriptor == MessageDescriptor()


def test_nul_padded_fields_are_read_like_blank_padded_ones():
    assert read_mqmd(changed(100, b"REPLIES".ljust(48, b"\0"))).descriptor.reply_to_q == "REPLIES"
    assert read_mqmd(changed(32, b"MQSTR\0\0\0")).descriptor.format == b"MQSTR   "
    assert read_mqmd(changed(304, bytes(16))).put_us == 0


def test_priority_as_the_queue_says_is_left_to_the_queue():
    assert read_mqmd(changed(40, b"\xff\xff\xff\xff")).descriptor.priority == -1


@pytest.mark.parametrize(
    ("name", "mqmd", "reason_code"),
    [
        ("StrucId", changed(0, b"DLH "), 2026),
        ("version 1", changed(4, b"\x01\x00\x00\x00"), 2026),
        ("big-endian", changed(4, b"\x00\x00\x00\x02"), 2026),
        ("MsgType 0", changed(12, bytes(4)), 2029),
        ("MsgType above MQMT_APPL_LAST", changed(12, struct.pack("<i", 1_000_000_000)), 2029),
        ("Expiry 0", changed(16, bytes(4)), 2013),
        ("Priority 10", changed(40, b"\x0a\x00\x00\x00"), 2050),
        ("Persistence 3", changed(44, b"\x03\x00\x00\x00"), 2047),
        ("ReplyToQ in latin-1", changed(100, b"\xe9"), 2026),
        ("PutDate with letters", changed(304, b"2026NOV1"), 2026),
        ("PutDate in month 13", changed(304, b"20261320"), 2026),
        ("PutTime in half", changed(312, b"1234    "), 2026),
        ("GroupId", changed(324, b"g"), 2026),
        ("MsgSeqNumber 2", changed(348, b"\x02"), 2026),
        ("MsgFlags: segment", changed(356, b"\x02"), 2026),
        ("too long", VECTOR + b"\0", 2026),
    ],
)
def test_hostile_fields_are_refused(name, mqmd, reason_code):
    with pytest.raises(QueueManagerError) as caught:
        read_mqmd(mqmd)
    assert caught.value.reason_code == reason_code, name


def test_a_descriptor_cut_at_any_length_is_refused():
    for length in range(MQMD_BYTES):
        with pytest.raises(QueueManagerError, match="2026"):
            read_mqmd(VECTOR[:length])


def assert_read_or_refused(mqmd: bytes) -> None:
    try:
        message = read_mqmd(mqmd)
    except QueueManagerError as error:
        reason_code = error.reason_code
    else:
        assert read_mqmd(write_mqmd(message)).descriptor == message.descriptor
        return
    assert reason_code in (2013, 2026, 2029, 2047, 2050)


@given(st.binary(min_size=356, max_size=356))
def test_random_bytes_end_in_a_message_or_a_refusal(noise):
    assert_read_or_refused(VECTOR[:8] + noise)


@given(st.integers(8, MQMD_BYTES - 9), st.binary(min_size=8, max_size=8))
def test_a_damaged_vector_ends_in_a_message_or_a_refusal(offset, noise):
    assert_read_or_refused(changed(offset, noise))


@pytest.mark.parametrize(
    ("held_us", "left"), [(0, 10), (1, 10), (99_999, 10), (100_000, 9), (950_000, 1), (999_999, 1)]
)
def test_the_time_held_is_taken_off_the_expiry_and_a_begun_tenth_counts(held_us, left):
    message = Message(MessageDescriptor(expiry=10), b"")
    message.put_us, message.expires_us = PUT_US, PUT_US + 1_000_000
    assert read_mqmd(write_mqmd(message, now_us=PUT_US + held_us)).descriptor.expiry == left


@pytest.mark.parametrize(
    "fields",
    [
        {"msg_id": b"short"},
        {"correl_id": bytes(25)},
        {"accounting_token": bytes(33)},
        {"appl_origin_data": "fives"},
        {"user_identifier": "wärterwärter"},
        {"report": 2**32},
        {"coded_char_set_id": -(2**31) - 1},
    ],
)
def test_what_does_not_fit_is_refused_and_never_cut(fields):
    with pytest.raises(QueueManagerError, match="2026"):
        write_mqmd(Message(MessageDescriptor(**fields), b""))


# -- to and from a C library of this machine ---------------------------------------------------------------------------


@pytest.mark.skipif(sys.byteorder != "little", reason="the vector is of a little-endian machine")
def test_the_vector_goes_to_a_library_and_comes_back():
    assert write_native_mqmd(MESSAGE) == VECTOR
    got = read_delivered_mqmd(VECTOR, b"body")
    assert got.descriptor == MESSAGE.descriptor
    assert (got.body, got.backout_count, got.put_us) == (b"body", 3, PUT_US)


def test_a_message_of_a_group_is_taken_over_without_it():
    in_a_group = VECTOR[:324] + b"g" * 24 + struct.pack("=4i", 7, 0, 8 | 16, -1)
    assert read_delivered_mqmd(in_a_group, b"").descriptor == MESSAGE.descriptor


def test_text_of_another_code_page_is_shown_with_question_marks_and_is_never_longer():
    latin_1 = VECTOR.replace(b"w\xc3\xa4rter     ", b"w\xe4rt\xe9\xfc\xff\xff\xff\xff\xff\xff")
    assert len(latin_1) == MQMD_BYTES
    got = read_delivered_mqmd(latin_1, b"")
    assert got.descriptor.user_identifier == "w?rt????????"
    assert len(write_mqmd(got)) == MQMD_BYTES


@pytest.mark.parametrize("moment", [b" " * 16, bytes(16), b"20261399" + b"99999999", b"\xff" * 16])
def test_a_moment_that_is_none_is_no_reason_to_lose_the_message(moment):
    assert read_delivered_mqmd(VECTOR[:304] + moment + VECTOR[320:], b"").put_us == 0


@given(st.binary(min_size=MQMD_BYTES, max_size=MQMD_BYTES))
def test_whatever_a_library_hands_over_is_a_message(noise):
    assert read_delivered_mqmd(noise, b"body").body == b"body"
