"""Headers of Publish commands: one for all messages of a topic, unless a message carries something of its own."""

import pytest

from gateway.bridge.messages.usr_folder import NOTHING_CARRIED, CarriedPairs
from mappings.conversion.jms_folders import jms_folders
from tests.gateway.bridge.conftest import NewWorld

JMS = jms_folders("a/b", is_text=True, time_ms=1, priority=0, is_persistent=True)


def test_one_header_serves_all_messages_of_a_topic_persistence_and_retain(new_world: NewWorld) -> None:
    translations = new_world().bridge._to_mq._translations
    first = translations.of("a/b", 2, NOTHING_CARRIED)
    assert translations.of("a/b", 2, NOTHING_CARRIED) is first
    assert translations.of("a/b", 3, NOTHING_CARRIED) is not first
    assert translations.of("a/c", 2, NOTHING_CARRIED) is not first


@pytest.mark.parametrize("carried", [CarriedPairs((("rfhbContentType", "text/plain"),)), CarriedPairs(jms=JMS)])
def test_what_one_message_carries_is_no_other_messages(new_world: NewWorld, carried: CarriedPairs) -> None:
    translations = new_world().bridge._to_mq._translations
    own = translations.of("a/b", 2, carried)
    assert translations.of("a/b", 2, NOTHING_CARRIED).header.data != own.header.data
    assert translations.of("a/b", 2, carried) is not own
