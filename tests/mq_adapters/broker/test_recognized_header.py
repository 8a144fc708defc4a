"""A stored header that the gateway wrote is recognized, with the values that reading it gives; any other is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.commands.command import Publish, write_command
from mappings.commands.options import PublicationOption
from mappings.errors import MappingError
from mappings.table import Dialect
from mq_adapters.broker.received import read_command_header
from mq_adapters.broker.recognized_header import recognized_header
from mq_adapters.command_header import FORMAT_OF_DIALECT, CommandHeader
from mq_adapters.message import Message, MessageDescriptor

RETAINED = PublicationOption.RETAIN_PUBLICATION
OPTIONS = {Dialect.MQRFH2: RETAINED, Dialect.MQRFH: RETAINED | PublicationOption.NO_REGISTRATION}
FOLDER = "<usr><rfhbContentType>text</rfhbContentType></usr>"


def message_of(
    topic: str, dialect: Dialect = Dialect.MQRFH2, *, folder: str = "", body: bytes = b"21.5", origin: bytes = b"client"
) -> Message:
    publish = Publish(topics=(topic,), publication_options=OPTIONS[dialect])
    header = write_command(publish, dialect, extra_folders=(folder,) if folder else ())
    return Message(MessageDescriptor(format=FORMAT_OF_DIALECT[dialect]), header + body, origin)


@given(st.text(min_size=1, max_size=30), st.sampled_from(list(Dialect)), st.sampled_from(["", FOLDER]))
def test_a_recognized_header_has_the_values_that_reading_it_gives(topic: str, dialect: Dialect, folder: str) -> None:
    try:
        message = message_of(topic, dialect, folder=folder if dialect is Dialect.MQRFH2 else "")
    except MappingError:  # MQ cannot carry the topic
        return
    found = recognized_header(message)
    if found is None:
        assert not topic.isalnum()
        return
    read = read_command_header(message)
    assert isinstance(read, CommandHeader)
    for name in ("command", "dialect", "data", "format", "coded_char_set_id", "encoding", "fields", "echo"):
        assert getattr(found, name) == getattr(read, name), name
    assert [(each.name, each.raw) for each in found.property_folders] == [
        (each.name, each.raw) for each in read.property_folders
    ]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_header_of_a_plain_publish_is_recognized(dialect: Dialect) -> None:
    found = recognized_header(message_of("plant/1/temperature", dialect))
    assert found is not None
    assert found.command == Publish(topics=("plant/1/temperature",), publication_options=OPTIONS[dialect])


@pytest.mark.parametrize(
    "message",
    [
        message_of("a", origin=b""),
        message_of("a & b"),
        message_of("a", folder="<mcd><Msd>xml</Msd></mcd>"),
        Message(MessageDescriptor(format=b"MQSTR   "), b"text", b"client"),
        Message(MessageDescriptor(format=b"MQHRF2  "), b"RFH ", b"client"),
        Message(MessageDescriptor(format=b"MQHRF2  "), b"", b"client"),
    ],
    ids=["an application's", "escaped", "another folder", "no command", "cut off", "empty"],
)
def test_any_other_message_is_read(message: Message) -> None:
    assert recognized_header(message) is None


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_header_that_is_cut_off_or_changed_is_read(dialect: Dialect) -> None:
    whole = message_of("a", dialect, body=b"")
    for place in range(len(whole.body)):
        cut = Message(whole.descriptor, whole.body[:place], whole.origin)
        assert recognized_header(cut) is None
        changed = whole.body[:place] + bytes((whole.body[place] ^ 0x20,)) + whole.body[place + 1 :]
        found = recognized_header(Message(whole.descriptor, changed, whole.origin))
        assert found is None or found.command.topics == ("A",)  # type: ignore[union-attr]
