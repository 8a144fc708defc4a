"""The Filter of a subscription is a content filter, or a selector behind its mark."""

import pytest

from mappings.commands.command import Publish, write_command
from mappings.headers.charset import ENCODING_REVERSED
from mappings.table import Dialect
from mq_adapters.broker.publication_content import PublicationContent
from mq_adapters.broker.received import received_command
from mq_adapters.broker.registered_filter import check_filter, passes
from mq_adapters.command_header import CommandHeader
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.selection.conditions import FilterError, UnavailableFilterError


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
