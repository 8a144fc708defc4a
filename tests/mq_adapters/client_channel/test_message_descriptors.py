"""MQMD of both versions, laid out by its offsets; what a message becomes of it, and is written as."""

import pytest

from mq_adapters.client_channel.errors import ChannelProtocolError, UsageError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.segments import ByteOrder
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.mq_adapters.client_channel.layouts import descriptor, descriptor_value

BIG, LITTLE = ByteOrder
VERSIONS = (1, 2)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("order", ByteOrder)
def test_a_descriptor_is_read_and_written_in_its_version(version: int, order: ByteOrder) -> None:
    data = descriptor(version, order)
    assert len(data) == (324 if version == 1 else 364)
    body = BodyReader(data + b"behind", order)
    assert Mqmd.read(body) == descriptor_value(version)
    assert body.rest() == b"behind"
    assert descriptor_value(version).write(order) == data


@pytest.mark.parametrize("version", VERSIONS)
def test_a_descriptor_is_refused_at_every_shorter_length(version: int) -> None:
    data = descriptor(version)
    for length in range(len(data)):
        with pytest.raises(ChannelProtocolError):
            Mqmd.read(BodyReader(data[:length], BIG))


@pytest.mark.parametrize("version", [0, 3, -1, 0x01000000])
def test_another_version_is_refused(version: int) -> None:
    data = b"MD  " + version.to_bytes(4, "big", signed=True) + descriptor(2)[8:]
    with pytest.raises(ChannelProtocolError):
        Mqmd.read(BodyReader(data, BIG))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_is_made_of_a_descriptor_and_a_descriptor_of_a_message(version: int) -> None:
    message = descriptor_value(version).message(b"body")
    told = message.descriptor
    assert (told.reply_to_q, told.user_identifier, told.put_appl_name) == ("REPLY.Q", "alice", "java")
    assert (told.encoding, told.coded_char_set_id, told.format, told.priority) == (273, 1208, b"MQHRF2  ", 4)
    assert (message.msg_id, told.correl_id, message.backout_count) == (b"m" * 24, b"c" * 24, 2)
    assert message.body == b"body"
    assert Mqmd.of(message, version) == descriptor_value(version)


def test_fields_are_known_by_ibms_names() -> None:
    read = descriptor_value(1)
    assert (read.value("MsgId"), read.value("Persistence")) == (b"m" * 24, 1)
    changed = read.changed(MsgId=b"n" * 24, BackoutCount=7)
    assert changed.write(BIG) == descriptor(1)[:48] + b"n" * 24 + b"c" * 24 + b"\0\0\0\7" + descriptor(1)[100:]
    assert read.value("MsgId") == b"m" * 24


def test_texts_are_iso_8859_1_for_the_client_and_utf_8_here() -> None:
    read = descriptor_value(2).changed(UserIdentifier=b"M\xdcLLER\0rubbi"[:12].ljust(12))
    message = read.message(b"")
    assert message.descriptor.user_identifier == "MÜLLER"
    assert Mqmd.of(message, 2).value("UserIdentifier") == b"M\xdcLLER".ljust(12)


def test_a_text_that_is_longer_in_utf_8_loses_its_end() -> None:
    assert descriptor_value(2).changed(UserIdentifier=b"\xdc" * 12).message(b"").descriptor.user_identifier == "Ü" * 6
    odd = descriptor_value(2).changed(UserIdentifier=b"a" + b"\xdc" * 11)
    assert odd.message(b"").descriptor.user_identifier == "a" + "Ü" * 5


def test_a_character_that_the_client_cannot_have_becomes_a_question_mark() -> None:
    message = descriptor_value(2).message(b"")
    message.descriptor = message.descriptor.replace(put_appl_name="€uro")
    assert Mqmd.of(message, 1).value("PutApplName") == b"?uro".ljust(28)


@pytest.mark.parametrize(
    ("name", "value", "reason_code"),
    [
        ("Persistence", 7, ReasonCode.MQRC_PERSISTENCE_ERROR),
        ("Expiry", 0, ReasonCode.MQRC_EXPIRY_ERROR),
        ("GroupId", b"g" * 24, ReasonCode.MQRC_MD_ERROR),
    ],
)
def test_a_wrong_field_is_refused_with_the_reason_code_to_answer(
    name: str, value: int | bytes, reason_code: ReasonCode
) -> None:
    with pytest.raises(QueueManagerError) as refused:
        descriptor_value(2).changed(**{name: value}).message(b"")
    assert refused.value.reason_code == reason_code


def test_a_value_without_a_place_is_our_own_mistake() -> None:
    with pytest.raises(UsageError):
        descriptor_value(1).changed(Report=2**31).write(BIG)
