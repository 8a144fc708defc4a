"""The Filter of a subscription is a content filter, or a selector behind its mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.commands.command import Publish, write_command
from mappings.headers.charset import ENCODING_REVERSED
from mappings.table import Dialect
from mq_adapters.broker.publication_content import PublicationContent
from mq_adapters.broker.received import received_command
from mq_adapters.broker.registered_filter import check_filter, passes
from mq_adapters.command_header import CommandHeader
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.selection.conditions import ContentError, FilterError, UnavailableFilterError


@pytest.fixture
def content() -> PublicationContent:
    usr = "<usr><colour>blue</colour><price>5</price></usr>"
    body = write_command(Publish(topics=("a/b",)), Dialect.MQRFH2, extra_folders=(usr,)) + b"text"
    message = Message(MessageDescriptor(format=b"MQHRF2  ", encoding=ENCODING_REVERSED, priority=7), body)
    published = received_command(message)
    assert isinstance(published, CommandHeader)
    return PublicationContent(message, published)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("colour = 'blue'", True),
        ("price = 5", True),
        ("?price = 5", False),
        ("?price = '5'", True),
        ("?JMSPriority = 7 AND JMSDestination = 'topic://a/b' AND colour IN ('blue')", True),
        ("? colour = 'red'", False),
    ],
)
def test_each_language_has_its_own_truth(content: PublicationContent, text: str, truth: bool) -> None:
    check_filter(text)
    assert passes(text, content) is truth


@pytest.mark.parametrize(
    ("text", "error"), [("?a =", FilterError), ("?a != 1", UnavailableFilterError), ("a =", FilterError)]
)
def test_a_filter_that_cannot_be_evaluated_is_an_error(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_filter(text)


@given(st.data())
def test_no_publication_raises_another_error(data: st.DataObject) -> None:
    usr = "<usr><colour>blue</colour><price dt='i4'>5</price></usr>"
    header = write_command(Publish(topics=("a/b",)), Dialect.MQRFH2, extra_folders=(usr,))
    body = bytearray(header + b"<?xml version='1.0' encoding='cp037'?><a><b>5</b></a>")
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=3)):
        body[at] = data.draw(st.integers(0, 255))
    coded_char_set_id = data.draw(st.sampled_from((819, 1208)))
    descriptor = MessageDescriptor(format=b"MQHRF2  ", encoding=546, coded_char_set_id=coded_char_set_id)
    message = Message(descriptor, bytes(body))
    published = received_command(message)
    if not isinstance(published, CommandHeader) or not isinstance(published.command, Publish):
        return
    hostile = PublicationContent(message, published)
    for text in ("Body.a.b = 5 OR price > 1 OR colour LIKE 'b%'", "?price * 2 > 1 OR JMSDestination LIKE '%b'"):
        try:
            assert passes(text, hostile) in (True, False)
        except ContentError:
            continue
