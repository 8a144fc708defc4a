"""Calls of the MQI and their replies: structures laid out by hand, in the order that IBM's client sends them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel import verbs
from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.parameters import NOTHING, Unknown
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.structures import Fopa
from mq_adapters.client_channel.verbs import (
    VERBS,
    ApiHeader,
    Mqconn,
    read_reply,
    read_request,
    refusal,
    refusal_of_beginning,
)
from tests.every_case import for_every
from tests.mq_adapters.client_channel.layouts import STRUCTURES, descriptor, descriptor_value, laid_out

BIG, LITTLE = ByteOrder
MD = descriptor_value(2)
GMO = STRUCTURES["MQGMO 4"]
PMO = STRUCTURES["MQPMO 2"]
OD = STRUCTURES["MQOD 1"]
OD_4 = STRUCTURES["MQOD 4 with strings"]
SD = STRUCTURES["MQSD"]
FOPA = STRUCTURES["FOPA"]
STS = STRUCTURES["MQSTS"]
SRO = STRUCTURES["MQSRO"]


def _int(value: int, order: ByteOrder) -> bytes:
    return laid_out(4, {0: value}, order)


Bytes = Callable[[ByteOrder], bytes]
#: Type of the call, what is read (a request or its reply), its bytes in a byte order, and its value.
VECTORS: dict[str, tuple[SegmentType, Callable[[int, BodyReader], Any], Bytes, Any]] = {
    "MQCONN": (
        SegmentType.MQCONN,
        read_request,
        lambda order: (
            laid_out(120, {0: ("QM1", 48), 48: ("Main", 28), 76: 28, 80: b"a" * 32, 112: 7, 116: 0x200000}, order)
            + b"FCNO and what it has"
        ),
        verbs.Mqconn(
            q_mgr_name="QM1",
            appl_name="Main",
            accounting_token=b"a" * 32,
            options=7,
            x_options=0x200000,
            tail=b"FCNO and what it has",
        ),
    ),
    "MQDISC": (SegmentType.MQDISC, read_request, lambda _: b"", NOTHING),
    "MQCMIT": (SegmentType.MQCMIT, read_reply, lambda _: b"", NOTHING),
    "MQOPEN": (
        SegmentType.MQOPEN,
        read_request,
        lambda order: OD_4.data(order) + _int(0x2020, order) + FOPA.data(order),
        verbs.Mqopen(object_descriptor=OD_4.value, options=0x2020, fopa=FOPA.value),
    ),
    "MQOPEN reply": (
        SegmentType.MQOPEN,
        read_reply,
        lambda order: (
            OD.data(order)
            + _int(0x2020, order)
            + laid_out(28, {0: b"FOPA", 4: 1, 8: 28, 12: 0, 16: 1, 20: 0, 24: 0}, order)
        ),
        verbs.Mqopen(object_descriptor=OD.value, options=0x2020, fopa=Fopa()),
    ),
    "MQCLOSE": (SegmentType.MQCLOSE, read_request, lambda order: _int(8, order), verbs.Mqclose(options=8)),
    "MQPUT": (
        SegmentType.MQPUT,
        read_request,
        lambda order: descriptor(2, order) + PMO.data(order) + _int(2, order) + b"AB\0\0",
        verbs.MqputRequest(message_descriptor=MD, put_message_options=PMO.value, data=b"AB"),
    ),
    "MQPUT reply": (
        SegmentType.MQPUT,
        read_reply,
        lambda order: descriptor(1, order) + PMO.data(order) + _int(0, order),
        verbs.MqputReply(message_descriptor=descriptor_value(1), put_message_options=PMO.value),
    ),
    "MQPUT1": (
        SegmentType.MQPUT1,
        read_request,
        lambda order: OD.data(order) + descriptor(2, order) + PMO.data(order) + _int(4, order) + b"ABCD",
        verbs.Mqput1Request(
            object_descriptor=OD.value, message_descriptor=MD, put_message_options=PMO.value, data=b"ABCD"
        ),
    ),
    "MQPUT1 reply": (
        SegmentType.MQPUT1,
        read_reply,
        lambda order: OD.data(order) + descriptor(2, order) + PMO.data(order) + _int(0, order),
        verbs.Mqput1Reply(object_descriptor=OD.value, message_descriptor=MD, put_message_options=PMO.value),
    ),
    "MQGET": (
        SegmentType.MQGET,
        read_request,
        lambda order: descriptor(2, order) + GMO.data(order) + _int(4_096, order),
        verbs.MqgetRequest(message_descriptor=MD, get_message_options=GMO.value, buffer_length=4_096),
    ),
    "MQGET reply of a message that is longer than the buffer": (
        SegmentType.MQGET,
        read_reply,
        lambda order: descriptor(2, order) + GMO.data(order) + _int(9_000, order) + b"ABC",
        verbs.MqgetReply(message_descriptor=MD, get_message_options=GMO.value, data_length=9_000, data=b"ABC"),
    ),
    "MQSTAT": (
        SegmentType.MQSTAT,
        read_request,
        lambda order: _int(0, order) + STS.data(order),
        verbs.Mqstat(status=STS.value),
    ),
    "MQSUB": (
        SegmentType.MQSUB,
        read_request,
        lambda order: _int(-1, order) + _int(0, order) + SD.data(order),
        verbs.Mqsub(subscription_descriptor=SD.value),
    ),
    "MQSUBRQ": (
        SegmentType.MQSUBRQ,
        read_request,
        lambda order: _int(1, order) + SRO.data(order),
        verbs.Mqsubrq(action=1, options=SRO.value),
    ),
    "a call that is not known here": (
        SegmentType.XA_FORGET,
        read_request,
        lambda _: b"anything",
        Unknown(data=b"anything"),
    ),
}


@for_every(VECTORS)
def test_a_call_is_read_and_written(
    vector: tuple[SegmentType, Callable[[int, BodyReader], Any], Bytes, Any],
) -> None:
    call_type, read, written, value = vector
    for order in ByteOrder:
        data = written(order)
        found = read(call_type, BodyReader(data, order))
        assert found == value
        assert found.write(order) == data


@for_every(VECTORS)
def test_a_call_that_is_cut_ends_in_a_value_or_in_our_error(
    vector: tuple[SegmentType, Callable[[int, BodyReader], Any], Bytes, Any],
) -> None:
    call_type, read, written, _ = vector
    data = written(LITTLE)
    ends = 0
    for length in range(len(data)):
        try:
            read(call_type, BodyReader(data[:length], LITTLE))
        except ChannelProtocolError:
            ends += 1
    assert ends >= len(data) - 20, "only a tail, or bytes that fill up, may be missing"


def test_every_verb_of_the_table_has_a_vector() -> None:
    others = {SegmentType.MQBACK, SegmentType.MQINQ, SegmentType.MQSET, SegmentType.SPI}  # in tests of their own
    assert {vector[0] for vector in VECTORS.values()} | others == {*VERBS, SegmentType.XA_FORGET}


@given(st.sampled_from(sorted(VERBS)), st.binary(max_size=400), st.sampled_from(ByteOrder))
def test_random_bytes_end_in_a_value_or_in_our_error(call_type: int, data: bytes, order: ByteOrder) -> None:
    for read in (read_request, read_reply):
        for beginning in (b"", descriptor(1, order) + PMO.data(order)[:8], OD_4.data(order)[:340]):
            try:
                found = read(call_type, BodyReader(beginning + data, order))
            except ChannelProtocolError:
                continue
            assert isinstance(found.write(order), bytes)


def test_the_length_of_the_api_header_is_big_endian_whatever_the_others_are() -> None:
    header = ApiHeader(length=0x1208, completion_code=2, reason_code=2033, object_handle=-1)
    big = bytes.fromhex("00001208 00000002 000007F1 FFFFFFFF")
    little = bytes.fromhex("00001208 02000000 F1070000 FFFFFFFF")
    assert (header.write(BIG), header.write(LITTLE)) == (big, little)
    assert ApiHeader.read(BodyReader(big, BIG)) == ApiHeader.read(BodyReader(little, LITTLE)) == header


def test_an_api_header_is_refused_at_every_shorter_length() -> None:
    for length in range(16):
        with pytest.raises(ChannelProtocolError):
            ApiHeader.read(BodyReader(bytes(length), BIG))


@pytest.mark.parametrize("header", [ApiHeader(length=-1), ApiHeader(length=0, object_handle=2**31)])
def test_a_header_without_a_place_is_our_own_mistake(header: ApiHeader) -> None:
    with pytest.raises(UsageError):
        header.write(BIG)


@for_every(
    {
        "MQPUT": ("MQPUT", "MQPUT reply"),
        "MQPUT1": ("MQPUT1", "MQPUT1 reply"),
        "MQGET": ("MQGET", "MQGET reply of a message that is longer than the buffer"),
        "MQOPEN": ("MQOPEN", "MQOPEN reply"),
    }
)
def test_a_refusal_has_the_structures_of_the_call(names: tuple[str, str]) -> None:
    (call_type, _, written, _), reply = VECTORS[names[0]], VECTORS[names[1]][3]
    refused = refusal(read_request(call_type, BodyReader(written(BIG), BIG)))
    assert type(refused) is type(reply)
    structures = written(BIG)[: -8 if names[0].startswith("MQPUT") else -4]
    assert refused.write(BIG).startswith(structures)
    assert read_reply(call_type, BodyReader(refused.write(BIG), BIG)) == refused


def test_a_call_of_which_only_its_beginning_is_there_is_refused_with_its_structures() -> None:
    put = descriptor(2) + PMO.data(BIG)
    refused = refusal_of_beginning(SegmentType.MQPUT, BodyReader(put + _int(9_000_000, BIG) + b"data", BIG))
    assert refused.write(BIG) == put + bytes(4)
    assert refusal_of_beginning(SegmentType.MQPUT, BodyReader(put[:400], BIG)) is NOTHING
    assert refusal_of_beginning(SegmentType.MQCLOSE, BodyReader(bytes(9), BIG)) is NOTHING


@pytest.mark.parametrize(
    ("tail", "is_tagged"),
    [
        (b"FCNO" + bytes(348), True),
        (b"FCNO" + bytes(8) + b"T" * 128 + bytes(212), False),
        (b"FCNO" + bytes(200), False),
        (b"", False),
    ],
)
def test_a_first_connection_gets_a_tag_and_the_others_keep_theirs(tail: bytes, is_tagged: bool) -> None:
    asked = Mqconn(tail=tail)
    told = asked.tagged(b"R" * 24)
    assert len(told.tail) == len(tail)
    assert (told == asked) is not is_tagged
    if is_tagged:
        assert told.tail[12:36] == told.tail[140:164] == b"R" * 24
        assert told.tail[:12] + told.tail[268:] == tail[:12] + tail[268:]
        assert not any(told.tail[36:140] + told.tail[164:268])
