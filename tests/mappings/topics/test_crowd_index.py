"""Patterns past the bound on shapes are all found, in work that no choice of patterns and topics makes explode."""

import random
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mappings.topics import crowd_index, level_index
from mappings.topics.crowd_index import CrowdIndex
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.shapes import Found
from mappings.topics.topics import Scheme, character_patterns, level_pattern, matches
from tests.calls import calls_of

LEVEL = st.sampled_from(["a", "b", "", "$s"])
TOPIC = st.lists(LEVEL, min_size=1, max_size=5).map("/".join)
PATTERN = st.builds(
    lambda levels, end: "/".join(levels + end) if levels + end else "#",
    st.lists(LEVEL | st.just("+"), max_size=5),
    st.sampled_from([[], ["#"]]),
)


class CrowdMachine(RuleBasedStateMachine):
    """An index with room for two shapes and blocks of three patterns, beside a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(level_index, "MOST_STEPS", 2)
        self.patch.setattr(crowd_index, "BLOCK", 3)
        self.indexes = {scheme: PatternIndex[tuple[str, int]]() for scheme in (Scheme.TOPIC, Scheme.MQTT)}
        self.patterns: set[tuple[str, int]] = set()

    def teardown(self) -> None:
        self.patch.undo()

    @rule(pattern=PATTERN, value=st.integers(0, 6))
    def add(self, pattern: str, value: int) -> None:
        for scheme, index in self.indexes.items():
            index.add(pattern, scheme, (pattern, value))
        self.patterns.add((pattern, value))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.patterns:
            found = data.draw(st.sampled_from(sorted(self.patterns)))
            for scheme, index in self.indexes.items():
                index.remove(found[0], scheme, found)
            self.patterns.remove(found)

    @rule(topics=st.lists(TOPIC, min_size=1, max_size=8))
    def look_up(self, topics: list[str]) -> None:
        for (scheme, index), topic in product(self.indexes.items(), topics):
            expected = {each for each in self.patterns if matches(each[0], topic, scheme)}
            assert sorted(index.match(topic)) == sorted(expected), (scheme, topic)

    @invariant()
    def knows_every_shape(self) -> None:
        for scheme, index in self.indexes.items():
            shapes = {index.shape(pattern, scheme) for pattern, _ in self.patterns} - {None}
            assert len(index.shapes) == len(shapes)
            assert all(shape in index.shapes for shape in shapes)


TestCrowdMachine = CrowdMachine.TestCase
TestCrowdMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

ATTACK = ["/".join(each) + "/z" for each in product("a+", repeat=12)]


@pytest.mark.parametrize("ending", ["", "/#"])
def test_a_look_up_in_a_store_of_thousands_of_shapes_takes_few_steps(ending: str) -> None:
    """A step for each shape would be 4,096 of them, and a tree would visit as many nodes."""
    index: PatternIndex[str] = PatternIndex()
    for pattern in ATTACK:
        index.add(pattern + ending, Scheme.TOPIC, pattern)
    topic = "a/" * 12
    index.match(f"{topic}first")
    blocks = -(-len(ATTACK) // crowd_index.BLOCK)
    most = 2 * level_index.MOST_STEPS + blocks * 3 * 13 + 40
    assert calls_of(partial(index.match, f"{topic}new")) <= most
    assert len(index.match(f"{topic}z")) == len(ATTACK)
    assert index.shapes.weight >= len(ATTACK)


def test_patterns_of_every_length_share_their_steps() -> None:
    crowd: CrowdIndex[int] = CrowdIndex()
    for length in range(200):
        crowd.add("/".join(["+"] * length + ["#"]), ["+"] * length, length)
    found: Found[int] = []
    topic = ["a"] * 200
    (block,) = crowd.blocks
    block.find(topic, found, hides=False)
    assert sorted(value for values in found for value in values) == list(range(200))
    assert calls_of(partial(block.find, topic, [], hides=False)) <= 2 * 200 + 40


def test_ordinary_shapes_weigh_127_and_take_steps_beside_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the limit on the others, 384, bounds a look-up by 511 steps."""
    crowded: list[str] = []
    add = CrowdIndex.add

    def noted(crowd: CrowdIndex[int], pattern: str, levels: list[str], value: int) -> bool:
        crowded.append(pattern)
        return add(crowd, pattern, levels, value)

    monkeypatch.setattr(CrowdIndex, "add", noted)
    monkeypatch.setattr(level_index, "MOST_STEPS", 2)
    index: PatternIndex[int] = PatternIndex()
    for place, pattern in enumerate(("+/+/a", "+/+/b/c", "+/+/d/e/f")):
        index.add(pattern, Scheme.TOPIC, place)
    assert index.shapes.unusual_weight == 3
    levels = ["/".join(each) for length in range(1, 11) for each in product("a+", repeat=length)]
    patterns = ["#", *levels, *(f"{each}/#" for each in levels)]
    shapes = {pattern: index.shape(pattern, Scheme.TOPIC) for pattern in patterns}
    ordinary = {shape: pattern for pattern, shape in shapes.items() if shape is not None and shape.is_ordinary}
    assert sum(shape.weight for shape in ordinary) == 127
    for pattern in ordinary.values():
        index.add(pattern, Scheme.TOPIC, -1)
    assert index.shapes.unusual_weight == 3
    assert index.shapes.weight == 3 + 127
    assert crowded == ["+/+/d/e/f"]
    assert sorted(index.match("x/y/d/e/f")) == [-1, 2], "what comes past the steps is found too"


def test_removed_patterns_leave_nothing() -> None:
    crowd: CrowdIndex[int] = CrowdIndex()
    for pattern in ATTACK:
        crowd.add(pattern, pattern.split("/"), 1)
    random.Random(7).shuffle(shuffled := list(ATTACK))
    for pattern in shuffled:
        assert crowd.remove(pattern, pattern.split("/"), 1)
    assert not crowd
    assert not crowd.blocks


FILTER = PATTERN.filter(lambda pattern: pattern != "")


@given(topic_filter=FILTER, topic=TOPIC.filter(bool))
def test_a_level_pattern_stands_between_a_filter_and_its_character_patterns(topic_filter: str, topic: str) -> None:
    patterns = character_patterns(topic_filter)
    levels = [level_pattern(pattern) for pattern in patterns]
    assert None not in levels
    by_levels = any(matches(pattern, topic, Scheme.TOPIC) for pattern in levels if pattern is not None)
    if matches(topic_filter, topic, Scheme.MQTT):
        assert by_levels
    if by_levels:
        assert any(matches(pattern, topic, Scheme.CHARACTER) for pattern in patterns)


@pytest.mark.parametrize("pattern", ["a*", "a/*b/c", "?", "a/?/b", "+", "a/#", "a/+/*"])
def test_a_pattern_with_a_wildcard_in_a_level_has_no_level_pattern(pattern: str) -> None:
    assert level_pattern(pattern) is None


def test_escaped_wildcards_are_text_in_a_level_pattern() -> None:
    assert level_pattern("a%*/*/%%b") == "a*/+/%b"
    assert level_pattern("a%?/*") == "a?/+/#"
