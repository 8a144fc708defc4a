"""Calls of SPI and their replies: structures laid out by hand, in the order that IBM's client sends them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.errors import ChannelProtocolError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.parameters import NOTHING, Unknown
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.client_channel.spi import (
    SpiActivate,
    SpiActivateMode,
    SpiOpen,
    SpiPut,
    SpiPutDescriptor,
    SpiPutOptions,
    SpiQueryReply,
    SpiReply,
    SpiRequest,
    SpiSubscribe,
    SpiVerb,
)
from tests.every_case import for_every
from tests.mq_adapters.client_channel.layouts import STRUCTURES, descriptor, descriptor_value, laid_out

BIG, LITTLE = ByteOrder
LPOO, LSD, SD, PMO = (STRUCTURES[name] for name in ("LPOO", "LSD", "MQSD", "MQPMO 1"))
OD_2, OD_4 = STRUCTURES["MQOD 2"], STRUCTURES["MQOD 4 with strings"]


def _beginning(verb: int, longest_reply: int, order: ByteOrder) -> bytes:
    return laid_out(12, {0: verb, 4: 1, 8: longest_reply}, order)


def _structure(struc_id: bytes, length: int, order: ByteOrder, content: bytes = b"") -> bytes:
    assert length == 12 + len(content)
    return laid_out(12, {0: struc_id, 4: 1, 8: length}, order) + content


def _query(order: ByteOrder) -> bytes:
    return _beginning(1, 256, order) + _structure(b"SPQU", 12, order) + _structure(b"SPQI", 12, order)


def _no_verbs(order: ByteOrder) -> bytes:
    none = _structure(b"SPQO", 16, order, bytes(4))
    return _beginning(1, 256, order) + _structure(b"SPQU", 12, order) + none


def _two_verbs(order: ByteOrder) -> bytes:
    numbers = {0: 2, 4: 7, 8: 1, 12: 1, 16: 1, 20: 0, 24: 12, 28: 1, 32: 1, 36: 1, 40: 0}
    verbs = _structure(b"SPQO", 56, order, laid_out(44, dict(numbers), order))
    return _beginning(1, 256, order) + _structure(b"SPQU", 12, order) + verbs


def _open(order: ByteOrder, struc_id: bytes = b"SPOI", od: Any = OD_2, longest_reply: int = 244) -> bytes:
    content = LPOO.data(order) + od.data(order)
    opened = _structure(struc_id, 12 + len(content), order, content)
    return _beginning(12, longest_reply, order) + _structure(b"SPOU", 12, order) + opened


def _put(order: ByteOrder) -> bytes:
    described = _structure(b"SPPU", 504, order, descriptor(2, order) + PMO.data(order))
    deferred = _structure(b"SPPI", 24, order, laid_out(8, {0: 4, 4: 4}, order) + b"data")
    return _beginning(2, 516, order) + described + deferred


def _put_reply(order: ByteOrder) -> bytes:
    described = _structure(b"SPPU", 504, order, descriptor(2, order) + PMO.data(order))
    return _beginning(2, 516, order) + described + _structure(b"SPPO", 12, order)


def _activate(order: ByteOrder) -> bytes:
    message = laid_out(124, {0: 2, 4: (" ", 48), 52: (" ", 48), 100: b"m" * 24}, order)
    return _beginning(4, 24, order) + _structure(b"SPAU", 12, order) + _structure(b"SPAI", 136, order, message)


def _subscribe(order: ByteOrder, struc_id: bytes = b"SPBI", handle: int = 0) -> bytes:
    content = laid_out(4, {0: handle}, order) + LSD.data(order) + SD.data(order)
    subscribed = _structure(struc_id, 12 + len(content), order, content)
    return _beginning(7, 540, order) + _structure(b"SPBU", 12, order) + subscribed


PUT_DESCRIPTOR = SpiPutDescriptor(message_descriptor=descriptor_value(2), put_message_options=PMO.value)
VECTORS: dict[str, tuple[Any, Any]] = {
    "QUERY": (_query, SpiRequest(verb=SpiVerb.QUERY, longest_reply=256)),
    "QUERY that is answered without a verb": (
        _no_verbs,
        SpiReply(verb=SpiVerb.QUERY, longest_reply=256, content=SpiQueryReply()),
    ),
    "QUERY that is answered with two verbs": (
        _two_verbs,
        SpiReply(
            verb=SpiVerb.QUERY,
            longest_reply=256,
            content=SpiQueryReply(verbs=((SpiVerb.SUBSCRIBE, 1, 1, 1, 0), (SpiVerb.OPEN, 1, 1, 1, 0))),
        ),
    ),
    "OPEN of a queue": (
        _open,
        SpiRequest(
            verb=SpiVerb.OPEN,
            longest_reply=244,
            content=SpiOpen(lpoo=LPOO.value, object_descriptor=OD_2.value),
        ),
    ),
    "OPEN of a topic with a selector": (
        lambda order: _open(order, b"SPOO", OD_4, 444),
        SpiReply(
            verb=SpiVerb.OPEN,
            longest_reply=444,
            content=SpiOpen(lpoo=LPOO.value, object_descriptor=OD_4.value),
        ),
    ),
    "PUT of a deferred message": (
        _put,
        SpiRequest(
            verb=SpiVerb.PUT,
            longest_reply=516,
            in_out=PUT_DESCRIPTOR,
            content=SpiPut(options=SpiPutOptions.DEFERRED, data=b"data"),
        ),
    ),
    "PUT that is answered": (
        _put_reply,
        SpiReply(verb=SpiVerb.PUT, longest_reply=516, in_out=PUT_DESCRIPTOR),
    ),
    "ACTIVATE": (
        _activate,
        SpiRequest(
            verb=SpiVerb.ACTIVATE,
            longest_reply=24,
            content=SpiActivate(mode=SpiActivateMode.THROW_AWAY, msg_id=b"m" * 24),
        ),
    ),
    "SUBSCRIBE": (
        _subscribe,
        SpiRequest(
            verb=SpiVerb.SUBSCRIBE,
            longest_reply=540,
            content=SpiSubscribe(lsd=LSD.value, subscription_descriptor=SD.value),
        ),
    ),
    "SUBSCRIBE that is answered": (
        lambda order: _subscribe(order, b"SPBO", 9),
        SpiReply(
            verb=SpiVerb.SUBSCRIBE,
            longest_reply=540,
            content=SpiSubscribe(subscription_handle=9, lsd=LSD.value, subscription_descriptor=SD.value),
        ),
    ),
    "a verb that is not known": (
        lambda order: _beginning(11, 99, order) + b"SPNU and more",
        SpiRequest(verb=11, longest_reply=99, content=Unknown(data=b"SPNU and more")),
    ),
}


@for_every(VECTORS)
def test_a_call_is_read_and_written(vector: tuple[Any, Any]) -> None:
    written, value = vector
    for order in ByteOrder:
        found = type(value).read(BodyReader(written(order), order))
        assert found == value
        assert found.write(order) == written(order)


@for_every(VECTORS)
def test_a_call_is_refused_at_every_shorter_length(vector: tuple[Any, Any]) -> None:
    written, value = vector
    data = written(BIG)
    needed = 12 if isinstance(value.content, Unknown) else len(data)
    for length in range(needed):
        with pytest.raises(ChannelProtocolError):
            type(value).read(BodyReader(data[:length], BIG))


def test_a_reply_returns_what_the_request_said() -> None:
    request = SpiRequest.read(BodyReader(_subscribe(BIG), BIG))
    assert isinstance(request.content, SpiSubscribe)
    content = SpiSubscribe(
        subscription_handle=9, lsd=request.content.lsd, subscription_descriptor=request.content.subscription_descriptor
    )
    assert request.reply(content).write(BIG) == _subscribe(BIG, b"SPBO", 9)


def test_a_reply_to_put_has_the_descriptor_that_it_is_given() -> None:
    request = SpiRequest.read(BodyReader(_put(LITTLE), LITTLE))
    assert request.reply().write(LITTLE) == _put_reply(LITTLE)
    stored = SpiPutDescriptor(
        message_descriptor=descriptor_value(2).changed(MsgId=b"n" * 24), put_message_options=PMO.value
    )
    assert SpiReply.read(BodyReader(request.reply(in_out=stored).write(BIG), BIG)).in_out == stored


@pytest.mark.parametrize("length", [0, 11, -1, 13, 2**31 - 1])
def test_a_structure_whose_length_lies_is_refused(length: int) -> None:
    data = _query(BIG)
    lying = data[:-4] + length.to_bytes(4, "big", signed=True)
    with pytest.raises(ChannelProtocolError):
        SpiRequest.read(BodyReader(lying, BIG))


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_of_a_structure_is_refused(version: int) -> None:
    data = bytearray(_query(BIG))
    data[19] = version
    with pytest.raises(ChannelProtocolError, match="SPQU has the version"):
        SpiRequest.read(BodyReader(bytes(data), BIG))


@pytest.mark.parametrize("count", [-1, 3, 2**31 - 1])
def test_a_count_of_verbs_that_lies_is_refused(count: int) -> None:
    data = _two_verbs(BIG)
    lying = data[:36] + count.to_bytes(4, "big", signed=True) + data[40:]
    with pytest.raises(ChannelProtocolError):
        SpiReply.read(BodyReader(lying, BIG))


@given(st.sampled_from(sorted(VECTORS)), st.integers(0, 900), st.binary(max_size=8), st.sampled_from(ByteOrder))
def test_wrong_bytes_end_in_a_value_or_in_our_error(name: str, at: int, wrong: bytes, order: ByteOrder) -> None:
    written, value = VECTORS[name]
    data = written(order)
    damaged = data[:at] + wrong + data[at + len(wrong) :]
    try:
        found = type(value).read(BodyReader(damaged, order))
    except ChannelProtocolError:
        return
    assert isinstance(found.write(order), bytes)


def test_nothing_is_written_for_a_refusal_without_content() -> None:
    written = SpiReply(verb=SpiVerb.QUERY, content=NOTHING).write(BIG)
    assert written == _beginning(1, 0, BIG) + _structure(b"SPQU", 12, BIG) + _structure(b"SPQO", 12, BIG)


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (_query, _no_verbs),
        (_put, _put_reply),
        (_open, lambda order: _open(order, b"SPOO")),
        (_subscribe, lambda order: _subscribe(order, b"SPBO")),
    ],
    ids=["QUERY", "PUT", "OPEN", "SUBSCRIBE"],
)
def test_a_refusal_has_the_structures_of_the_call(call: Any, refused: Any) -> None:
    assert SpiRequest.read(BodyReader(call(LITTLE), LITTLE)).refusal().write(LITTLE) == refused(LITTLE)


def test_a_refusal_of_a_verb_that_is_not_known_has_nothing() -> None:
    assert SpiRequest(verb=11, content=Unknown(data=b"x")).refusal() is NOTHING
