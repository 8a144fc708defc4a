"""A look-up in the index of patterns takes a step for each shape, whatever patterns and topic a stranger chooses."""

import random
import sys
from collections.abc import Iterable
from functools import partial
from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mappings.topics.pattern_index import PatternIndex
from mappings.topics.topics import Scheme, matches
from tests.calls import calls_of

#: Calls of a look-up beside its steps, for each level of the topic and for the rest.
OF_A_LEVEL, OF_THE_REST = 1, 30


def index_of(patterns: Iterable[str], scheme: Scheme = Scheme.TOPIC) -> PatternIndex[str]:
    index: PatternIndex[str] = PatternIndex()
    for pattern in patterns:
        index.add(pattern, scheme, pattern)
    return index


def random_shapes(count: int, levels: int, ends: str) -> Iterable[str]:
    """Patterns of `count` shapes of so many levels, which differ from a topic `a/a/.../a` at their ends alone."""
    chosen = random.Random(15)
    for _ in range(count):
        yield "/".join([*chosen.choices("a+", k=levels - 1), ends])


ATTACKS = {
    "each combination of a and +": ["/".join(each) + "/z" for each in product("a+", repeat=8)],
    "the same, each with an end of its own": [
        "/".join(each) + f"/z{place}" for place, each in enumerate(product("a+", repeat=8))
    ],
    "a comb: each length of each shape": [
        "/".join([*shape, *["a"] * length, "z"]) for shape in product("a+", repeat=4) for length in range(20)
    ],
    "# at each level": ["/".join([*shape, *["a"] * length, "#"]) for shape in ("a", "+") for length in range(100)],
    "long shapes": [*random_shapes(100, 200, "z")],
    "many patterns of one shape": [f"a/+/{number}/+/{number}" for number in range(2_000)],
}
TOPICS = ["/".join(["a"] * levels) for levels in (1, 2, 5, 8, 9, 21, 100, 200)]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_look_up_takes_no_more_steps_than_the_shapes_weigh(attack: str) -> None:
    index = index_of(ATTACKS[attack])
    for topic in (*TOPICS, *(f"{topic}/new" for topic in TOPICS)):
        levels = topic.count("/") + 1
        index.match(topic)  # remembers the steps of topics with so many levels
        other = f"{topic[:-1]}n"
        most = index.shapes.weight + OF_A_LEVEL * levels + OF_THE_REST
        assert calls_of(partial(index.match, other)) <= most, topic


def test_topics_that_match_the_same_patterns_have_one_answer() -> None:
    index: PatternIndex[int] = PatternIndex()
    for number in range(100):
        index.add("a/#", Scheme.TOPIC, number)
        index.add("+/+", Scheme.TOPIC, -number)
    assert len(index.match("a/0")) == 199
    assert all(index.match(f"a/{number}") is index.match("a/0") for number in range(100))
    assert index._kept_values < 250
    for number in range(100):
        index.add(f"a/{number}", Scheme.TOPIC, number + 1_000)
        assert set(index.match(f"a/{number}")) == {*range(-99, 100), number + 1_000}
        assert set(index.match("a/x")) == {*range(-99, 100)}


def test_a_pattern_of_a_known_shape_adds_no_step() -> None:
    index = index_of([f"site/+/device{number}/#" for number in range(10)] + ["a/b", "a/c"])
    index.match("site/x/device1/y")
    before = calls_of(partial(index.match, "site/x/device11/y"))
    for number in range(10, 1_000):
        assert index.shape(f"site/+/device{number}/#", Scheme.TOPIC) in index.shapes
        index.add(f"site/+/device{number}/#", Scheme.TOPIC, "")
    assert len(index.shapes) == index.shapes.weight == 1
    index.match("site/x/device1/y")
    assert calls_of(partial(index.match, "site/x/device1100/y")) == before


def test_a_shape_weighs_one_for_each_eight_levels_begun() -> None:
    weights = {levels: index_of(["/".join(["+"] * levels)]).shapes.weight for levels in (1, 8, 9, 16, 17, 200)}
    assert weights == {1: 1, 8: 1, 9: 2, 16: 2, 17: 3, 200: 25}
    assert index_of(["#"]).shapes.weight == 1
    assert index_of(["a/b/c"]).shapes.weight == 0


def test_patterns_that_must_be_compared_weigh_each_among_those_that_begin_alike() -> None:
    alike = index_of(f"a/#/{number}" for number in range(10)).shapes.weight
    others = index_of(f"{number}/#/a" for number in range(10)).shapes.weight
    assert alike == 10 * others
    alike = index_of((f"a/*/{number}?/*/z" for number in range(10)), Scheme.CHARACTER).shapes.weight
    named = index_of((f"a/*/{number}/*/z" for number in range(10)), Scheme.CHARACTER).shapes.weight
    assert alike == 10 * named


def test_long_patterns_take_a_few_bytes_for_a_level() -> None:
    index = index_of(f"{number}/{'a/' * 198}+" for number in range(100))
    (by_mask,) = index._by_levels[Scheme.TOPIC]._closed._of.values()
    (table,) = by_mask.values()
    assert max(map(sys.getsizeof, table)) < 200 * 5


def hashes_of(index: PatternIndex[str]) -> list[int]:
    """The hashes of the keys in all tables of the index."""
    by_length = index._by_levels[Scheme.TOPIC]._closed._of.values()
    return [hash(key) for by_mask in by_length for table in by_mask.values() for key in table]


def test_numbers_of_levels_are_drawn_so_nobody_can_choose_levels_whose_keys_collide() -> None:
    assert len({tuple(hashes_of(index_of(["a/+"]))) for _ in range(4)}) > 1


@pytest.mark.parametrize("distance", [1, 30, 59, 60, 61, 62, 122])
def test_keys_do_not_collide_when_levels_change_places(distance: int) -> None:
    patterns = set()
    for swapped in product([False, True], repeat=6):
        levels = ["x"] * 199
        for place, is_swapped in zip(range(0, 12, 2), swapped, strict=True):
            levels[place], levels[place + distance] = ("b", "a") if is_swapped else ("a", "b")
        patterns.add("/".join([*levels, "+"]))
    found = hashes_of(index_of(patterns))
    assert len(set(found)) == len(found) == len(patterns)
    assert index_of(patterns).match(f"{min(patterns)[:-1]}new") == (min(patterns),)


LEVEL = st.sampled_from(["a", "b", "+", "$c", ""])
PATTERN = st.tuples(st.lists(LEVEL, min_size=1, max_size=10), st.sampled_from(["", "/#"])).map(
    lambda made: "/".join(made[0]) + made[1]
) | st.just("#")


def shape_of(pattern: str) -> tuple[int, tuple[int, ...], bool] | None:
    """What the page on limits says that a shape is: number of levels, places of +, and whether # ends it."""
    levels = pattern.split("/")
    is_open = levels[-1] == "#"
    levels = levels[: len(levels) - is_open]
    places = tuple(place for place, level in enumerate(levels) if level == "+")
    return (len(levels), places, is_open) if places or is_open else None


class IndexMachine(RuleBasedStateMachine):
    """Subscribing and unsubscribing, beside a plain list of patterns."""

    def __init__(self) -> None:
        super().__init__()
        self.index: PatternIndex[int] = PatternIndex()
        self.model: dict[tuple[Scheme, str, int], None] = {}

    @rule(scheme=st.sampled_from([Scheme.TOPIC, Scheme.MQTT]), pattern=PATTERN, value=st.integers(0, 7))
    def subscribe(self, scheme: Scheme, pattern: str, value: int) -> None:
        is_known = any(shape_of(pattern) == shape_of(each) for of, each, _ in self.model if of is scheme)
        shape = self.index.shape(pattern, scheme)
        assert (shape is None or shape in self.index.shapes) is (is_known or shape_of(pattern) is None)
        self.index.add(pattern, scheme, value)
        self.model[scheme, pattern, value] = None

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.model:
            scheme, pattern, value = data.draw(st.sampled_from(list(self.model)))
            self.index.remove(pattern, scheme, value)
            del self.model[scheme, pattern, value]

    @rule(scheme=st.sampled_from([Scheme.TOPIC, Scheme.MQTT]), pattern=PATTERN, value=st.integers(0, 7))
    def unsubscribe_perhaps_nothing(self, scheme: Scheme, pattern: str, value: int) -> None:
        self.index.remove(pattern, scheme, value)
        self.model.pop((scheme, pattern, value), None)

    @rule(topic=st.lists(st.sampled_from(["a", "b", "$c", "", "+", "x"]), min_size=1, max_size=11).map("/".join))
    def publish(self, topic: str) -> None:
        found = self.index.match(topic)
        assert len(found) == len(set(found))
        assert set(found) == {value for scheme, pattern, value in self.model if matches(pattern, topic, scheme)}

    @invariant()
    def has_the_shapes_of_its_patterns(self) -> None:
        shapes = {(scheme, shape) for scheme, pattern, _ in self.model if (shape := shape_of(pattern)) is not None}
        assert len(self.index.shapes) == len(shapes)
        assert self.index.shapes.weight == sum(max(1, -(-levels // 8)) for _, (levels, _, _) in shapes)


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
