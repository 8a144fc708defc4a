"""The index of retained topics against matching one by one, and the bounded store of retained publications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.topics.topics import Scheme, TopicError, matches
from mq_adapters.broker.retained import RetainedPublication, RetainedPublications
from mq_adapters.broker.retained_topics import TopicIndex
from mq_adapters.embedded.unit_of_work import StateKind, UnitOfWork
from mq_adapters.message import KnownHeader, Message, MessageDescriptor
from mq_adapters.reasons import StoreError

_LEVELS = st.sampled_from(["", "a", "b", "ab", "+", "#", "*", "%"])
_TOPICS = st.lists(_LEVELS, min_size=1, max_size=4).map("/".join).filter(bool)
_PATTERNS = st.lists(st.sampled_from(["a", "b", "/", "*", "?", "%%", "%*", "+", "#", ""]), min_size=1, max_size=6)


@given(topics=st.sets(_TOPICS, max_size=12), gone=st.sets(_TOPICS, max_size=6), levels=_TOPICS, text=_PATTERNS)
def test_index_finds_what_matching_one_by_one_finds(topics, gone, levels, text):
    index: TopicIndex[str] = TopicIndex()
    for topic in topics:
        index.put(topic, topic.upper())
    for topic in topics & gone:
        index.remove(topic)
    for pattern, scheme in ((levels, Scheme.TOPIC), ("".join(text), Scheme.CHARACTER)):
        try:
            expected = {topic: topic.upper() for topic in topics - gone if matches(pattern, topic, scheme)}
        except TopicError:
            continue
        found = list(index.matching(pattern, scheme))
        assert dict(found) == expected
        assert len(found) == len(expected)


def test_pattern_with_literal_levels_does_not_look_at_other_topics():
    class Name(str):
        """Counts the topics that are compared with the pattern."""

        seen = 0

        def startswith(self, *arguments):
            Name.seen += 1
            return super().startswith(*arguments)

    index: TopicIndex[int] = TopicIndex()
    for number in range(1_000):
        index.put(f"site/{number}/x", number)
    level = index._root.below["site"]
    level.below = {Name(name): below for name, below in level.below.items()}
    assert dict(index.matching("site/7/+", Scheme.TOPIC)) == {"site/7/x": 7}
    assert dict(index.matching("site/7/*", Scheme.CHARACTER)) == {"site/7/x": 7}
    assert Name.seen == 0


class Store:
    """What was committed, and how often it was read."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.reads = 0

    def state(self, key: bytes) -> bytes | None:
        self.reads += 1
        return self.values.get(key)

    def commit(self, unit: UnitOfWork) -> None:
        for space, key, value in unit.states:
            assert space == StateKind.BROKER_RETAINED
            if value is None:
                del self.values[key]
            else:
                self.values[key] = value
        unit.states.clear()


def publication(number: int) -> RetainedPublication:
    message = Message(MessageDescriptor(), b"x" * 400)
    message.sequence = number
    return RetainedPublication(message=message, is_local=False)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def retained(store):
    """Room for ten publications of 400 bytes."""
    return RetainedPublications(b"RFHB", store.state, cached_bytes=10_000)


def keep(retained, unit, numbers):
    for number in numbers:
        retained.keep(unit, "S", "", (f"t/{number}",), publication(number))


def test_memory_is_bounded_and_everything_is_read_back(retained, store):
    unit = UnitOfWork()
    for number in range(100):
        keep(retained, unit, [number])
        store.commit(unit)
    assert retained.cached_bytes <= 10_000
    found = retained.matching("S", "", "#", Scheme.TOPIC, 1)
    assert len(found) == 100
    assert [retained.publication(found[f"t/{number}"]).message.sequence for number in range(100)] == list(range(100))
    assert retained.cached_bytes <= 10_000


def test_what_is_not_committed_stays_in_memory(retained, store):
    unit = UnitOfWork()
    keep(retained, unit, range(100))
    found = retained.matching("S", "", "t/+", Scheme.TOPIC, 1)
    store.reads = 0
    assert retained.publication(found["t/0"]).message.sequence == 0
    assert store.reads == 0
    store.commit(unit)
    for number in range(100, 140):
        keep(retained, unit, [number])
        store.commit(unit)
    assert retained.cached_bytes <= 10_000


def test_a_command_that_came_with_a_publication_counts_as_memory(retained):
    """The publication keeps it alive, and its header is bytes beside the body."""
    keep(retained, UnitOfWork(), [1])
    without = retained.cached_bytes
    kept = publication(1)
    header = kept.message.written = KnownHeader(bytes(200), format=b"MQHRF2  ", coded_char_set_id=1208, encoding=546)
    unit = UnitOfWork()
    retained.keep(unit, "S", "", ("t/1",), kept)
    assert retained.cached_bytes - without > len(header.data)
    retained.delete(unit, "S", "", "t/1")
    assert retained.cached_bytes == 0


def test_start_reads_topics_and_keeps_no_publication(retained, store):
    unit = UnitOfWork()
    keep(retained, unit, range(3))
    store.commit(unit)
    again = RetainedPublications(b"RFHB", store.state)
    again.load(store.values.items())
    assert again.cached_bytes == 0
    assert set(again.matching("S", "", "t/*", Scheme.CHARACTER, 1)) == {"t/0", "t/1", "t/2"}


def test_publication_that_another_program_took_away_is_an_error_of_the_store(store):
    retained = RetainedPublications(b"RFHB", store.state, cached_bytes=0)
    unit = UnitOfWork()
    keep(retained, unit, [1])
    store.commit(unit)
    keep(retained, unit, [2])
    found = retained.matching("S", "", "t/1", Scheme.TOPIC, 1)
    store.values.clear()
    with pytest.raises(StoreError, match="another program"):
        retained.publication(found["t/1"])
