"""Commands that travel with their messages: believed only where the bytes are those that their writer knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.bridge.commands.requests import OwnCommands
from mappings.commands.command import DeregisterSubscriber, Dialect, RegisterSubscriber
from mappings.commands.options import RegistrationOption
from mappings.errors import MappingError
from mq_adapters.broker.received import received_command
from mq_adapters.command_header import CommandHeader, WrittenCommand
from mq_adapters.embedded.application import Application
from mq_adapters.message import MQPER_PERSISTENT, KnownHeader, Message, MessageDescriptor
from mq_adapters.system_queues import DEFAULT_STREAM
from tests.mq_adapters.broker.conftest import Station
from tests.written_headers import HeaderDiffers, compare

DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
TOPICS = st.one_of(
    st.sampled_from(["a b", "100%", "*?", 'say "x"', "<a>&amp;", "\U0001f600", " a ", "a\r\nb", "x" * 1_500]),
    st.text(min_size=1, max_size=40),
)
PROPERTIES = st.lists(
    st.tuples(st.sampled_from(["rfhbUserProps", "rfhbCorrel", "rfhbPayloadFormat"]), st.text(max_size=20)), max_size=2
)


def commands(dialect: Dialect) -> OwnCommands:
    return OwnCommands(dialect=dialect, queue_manager_name="QM1", subscriber_queue="NEW", reply_queue="REPLY")


def message_of(header: CommandHeader, body: bytes = b"payload", **fields: object) -> Message:
    """A message with the header in front of a body, and the header's values beside it."""
    described = {"format": header.format, "persistence": MQPER_PERSISTENT, **fields}
    message = Message(MessageDescriptor(**described), header.data + body)  # type: ignore[arg-type]  # by name
    message.written = header
    return message


@given(TOPICS, st.sampled_from(list(Dialect)), st.booleans(), PROPERTIES)
def test_a_publish_that_the_gateway_writes_is_read_as_it_travels(
    topic: str, dialect: Dialect, retain: bool, properties: list[tuple[str, str]]
) -> None:
    try:
        header = commands(dialect).write_publish(topic, retain=retain, properties=tuple(properties))
    except MappingError:
        return
    compare(header, message_of(header))


@given(TOPICS, st.sampled_from(list(Dialect)), st.sampled_from([RegisterSubscriber, DeregisterSubscriber]))
def test_a_subscription_that_the_gateway_writes_is_read_as_it_travels(
    pattern: str, dialect: Dialect, kind: type[RegisterSubscriber | DeregisterSubscriber]
) -> None:
    command = kind(
        topics=(pattern,),
        registration_options=RegistrationOption.CORREL_ID_AS_IDENTITY,
        queue_name="NEW",
        queue_manager_name="QM1",
    )
    try:
        header = commands(dialect).write(command)
    except MappingError:
        return
    compare(header, message_of(header))


@DIALECTS
def test_a_command_that_is_not_the_one_of_its_bytes_is_found(dialect: Dialect) -> None:
    written = commands(dialect).write_publish("plant/a", retain=False)
    other = commands(dialect).write_publish("plant/b", retain=False)
    planted = WrittenCommand(other.command, dialect, written.data)
    with pytest.raises(HeaderDiffers, match="command"):
        received_command(message_of(planted))


@DIALECTS
@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "body", message.body[:60] + b"?" + message.body[61:]),
        lambda message: setattr(message, "body", b"another body"),
        lambda message: setattr(message, "descriptor", message.descriptor.replace(format=b"MQSTR   ")),
        lambda message: setattr(message, "descriptor", message.descriptor.replace(coded_char_set_id=819)),
        lambda message: setattr(message, "descriptor", message.descriptor.replace(encoding=273)),
    ],
    ids=["a byte of the header", "all of the data", "Format", "CodedCharSetId", "Encoding"],
)
def test_a_command_is_not_believed_when_the_message_has_changed(dialect: Dialect, change: object) -> None:
    message = message_of(commands(dialect).write_publish("plant/a", retain=False))
    assert KnownHeader.of(message) is message.written
    assert callable(change)
    change(message)
    assert KnownHeader.of(message) is None


@DIALECTS
def test_another_payload_behind_the_same_header_leaves_the_command(dialect: Dialect) -> None:
    header = commands(dialect).write_publish("plant/a", retain=False)
    message = message_of(header)
    message.body = header.data + b"another payload"
    assert KnownHeader.of(message) is header


@DIALECTS
def test_what_an_application_puts_is_read_whatever_travels_with_it(station: Station, dialect: Dialect) -> None:
    station.subscribe_new("plant/#")
    written = commands(dialect).write_publish("plant/a", retain=False)
    lie = commands(dialect).write_publish("plant/b", retain=False).command
    message = message_of(WrittenCommand(lie, dialect, written.data))
    Application(station.engine, "app", user="somebody", operator="somebody").put(DEFAULT_STREAM, message, lambda: None)
    assert [delivery.topics for _, _, delivery in station.listener.copies] == [("plant/a",)]


def test_a_message_that_comes_back_from_the_store_is_read(station: Station) -> None:
    header = commands(Dialect.MQRFH2).write_publish("plant/a", retain=False)
    unit = station.engine.begin()
    station.engine.put(unit, station.engine.queue("OLD"), message_of(header))
    station.engine.submit(unit)
    station.restart()
    (message,) = station.take_all("OLD")
    assert message.body == header.data + b"payload"
    assert message.written is None


def test_a_header_in_which_nothing_changes_is_delivered_as_the_same_bytes(station: Station) -> None:
    station.subscribe_new("plant/#")
    header = commands(Dialect.MQRFH2).write_publish("plant/a", retain=False)
    message = message_of(header)
    unit = station.engine.begin()
    station.engine.put(unit, station.engine.queue(DEFAULT_STREAM), message)
    station.engine.submit(unit)
    ((_, copy, delivery),) = station.listener.copies
    assert delivery.output_header is delivery.input_header is header.data
    assert copy.body is message.body
