"""What the bridge keeps of topics takes a bounded memory, whatever topics clients choose: the worst case, measured."""

import tracemalloc
from collections.abc import Callable

import pytest

from gateway.bridge.messages import publications
from gateway.bridge.messages.usr_folder import NOTHING_CARRIED
from gateway.bridge.publish import translations
from mq_adapters.message import Message, MessageDescriptor
from tests.gateway.bridge.conftest import NewWorld, mqrfh2

KEPT_BYTES = 1024 * 1024
#: More than fit, of the shortest topics.
TOPICS = 2_000
LENGTHS = pytest.mark.parametrize("topic_bytes", [10, 300, 920])
#: Sizes of objects differ a little from one interpreter to the next.
TOLERANCE = 1.2


def _memory_of(keep_one: Callable[[str], None], topic_bytes: int) -> int:
    """The memory that different topics leave behind, bytes."""
    tracemalloc.start()
    try:
        for number in range(TOPICS):
            keep_one(f"{number:08}".ljust(topic_bytes, "x"))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@LENGTHS
def test_translations_of_many_topics_stay_within_their_memory(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch, topic_bytes: int
) -> None:
    """A content filter reads the whole header, which then stays with it: that is the most that a translation holds."""
    monkeypatch.setattr(translations, "KEPT_TRANSLATIONS_BYTES", KEPT_BYTES)
    to_mq = new_world().bridge._to_mq

    def publish(topic: str) -> None:
        translation = to_mq._translations.of(topic, len(topic) % 8, NOTHING_CARRIED)
        assert translation.header.chain.body_offset == len(translation.header.data)

    assert KEPT_BYTES / 4 < _memory_of(publish, topic_bytes) < KEPT_BYTES * TOLERANCE


@LENGTHS
def test_publications_of_many_topics_stay_within_their_memory(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch, topic_bytes: int
) -> None:
    """Both what is read of a header and its context for the audit are kept."""
    monkeypatch.setattr(publications, "KEPT_BYTES", KEPT_BYTES)
    kept = new_world().bridge._to_mqtt._publications

    def deliver(topic: str) -> None:
        message = Message(MessageDescriptor(format=b"MQHRF2  ", encoding=546, coded_char_set_id=1208), mqrfh2(topic))
        publication = kept.of(message)
        assert publication is not None
        kept.context(publication, message)

    assert KEPT_BYTES / 4 < _memory_of(deliver, topic_bytes) < 2 * KEPT_BYTES * TOLERANCE
