"""Publications as subscribers of MQSUB get them. Folders of JMS: IBM MQ, "The MQRFH2 header and JMS"."""

import pytest

from mappings.headers.mqrfh2 import read_mqrfh2, write_mqrfh2
from mq_adapters.embedded.mqi.publications import published
from mq_adapters.message import Message, MessageDescriptor

PSC = b"<psc><Command>Publish</Command><Topic>plant/a&amp;b</Topic></psc>"
USR = b"<usr><rfhbPayloadFormat dt='i4'>1</rfhbPayloadFormat></usr>"
JMS = (b"<mcd><Msd>jms_text</Msd></mcd>", b"<jms><Dst>topic://own</Dst></jms>", b"<usr><unit>bar</unit></usr>")


def copy(*folders: bytes, data: bytes = b"4.2", format: bytes = b"        ", persistence: int = 1) -> Message:
    header = write_mqrfh2(
        folders, format=format, next_coded_char_set_id=1208, next_encoding=273, coded_char_set_id=1208, encoding=546
    )
    descriptor = MessageDescriptor(format=b"MQHRF2  ", persistence=persistence, msg_id=b"M" * 24)
    message = Message(descriptor, header + data)
    message.put_us = 1_700_000_000_123_456
    return message


def folders_of(message: Message) -> tuple[dict[str, bytes], bytes, bytes]:
    """The folders, the format of what follows, and the data."""
    header = read_mqrfh2(message.body, coded_char_set_id=1208, encoding=message.descriptor.encoding)
    return {each.name: each.raw for each in header.folders}, header.format, message.body[header.struc_length :]


def test_a_sensors_reading_becomes_bytes_with_its_topic() -> None:
    folders, format, data = folders_of(published(copy(PSC)))
    assert folders == {
        "mcd": b"<mcd><Msd>jms_bytes</Msd></mcd>",
        "jms": b"<jms><Dst>topic://plant/a&amp;b</Dst><Tms>1700000000123</Tms><Pri>0</Pri><Dlv>2</Dlv></jms>",
        "mqps": b"<mqps><Top>plant/a&amp;b</Top></mqps>",
    }
    assert (format, data) == (b"        ", b"4.2")


@pytest.mark.parametrize(
    ("given", "is_text"),
    [
        (copy(PSC, USR), True),
        (copy(PSC, format=b"MQSTR   "), True),
        (copy(PSC, USR, data=b"\xff"), False),
        (copy(PSC, b"<usr><rfhbPayloadFormat dt='i4'>0</rfhbPayloadFormat></usr>"), False),
    ],
)
def test_data_are_text_only_where_the_publisher_says_so(given: Message, is_text: bool) -> None:
    folders, format, _data = folders_of(published(given))
    assert (b"jms_text" in folders["mcd"]) is is_text
    assert (format == b"MQSTR   ") is is_text


def test_folders_of_jms_stay_as_they_were_written() -> None:
    folders, format, data = folders_of(published(copy(PSC, *JMS, format=b"MQSTR   ")))
    assert tuple(folders.values()) == (*JMS, b"<mqps><Top>plant/a&amp;b</Top></mqps>")
    assert (format, data) == (b"MQSTR   ", b"4.2")


def test_user_data_of_the_subscription_stand_beside_the_topic() -> None:
    psc = PSC.replace(b"</psc>", b"<Topic>plant/c</Topic><SubUserData>orders</SubUserData></psc>")
    folders, _, _ = folders_of(published(copy(psc, b"<mqps><Top>forged</Top></mqps>")))
    assert folders["mqps"] == b"<mqps><Top>plant/a&amp;b</Top><Sud>orders</Sud></mqps>"


def test_what_the_queue_manager_says_of_the_message_stays() -> None:
    given = copy(PSC, persistence=0)
    given.backout_count, given.sequence = 3, 7
    made = published(given)
    assert (made.msg_id, made.backout_count, made.sequence, made.put_us) == (b"M" * 24, 3, 7, given.put_us)
    assert b"<Dlv>1</Dlv>" in made.body
    assert given.body.endswith(PSC.ljust(-len(PSC) % 4 + len(PSC)) + b"4.2")


@pytest.mark.parametrize(
    "message",
    [
        Message(MessageDescriptor(), b"plain"),
        Message(MessageDescriptor(format=b"MQHRF2  "), b"RFH cut"),
        copy(b"<usr><a>1</a></usr>"),
        copy(b"<psc><Command>", data=b""),
    ],
)
def test_what_is_no_copy_of_a_publication_stays(message: Message) -> None:
    assert published(message) is message
