"""Topics in three wildcard schemes, and the index; tables from IBM's wildcard pages and MQTT 3.1.1 section 4.7."""

import pickle
import re
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mappings.topics.pattern_index import PatternIndex
from mappings.topics.topics import (
    Scheme,
    TopicError,
    character_patterns,
    check_mqtt_topic_filter,
    check_mqtt_topic_name,
    escape_topic,
    matches,
    topic_filter_for,
    unescape_topic,
    why_character_patterns_are_wider,
    why_topic_filter_is_wider,
)

MATCHING = [
    (Scheme.MQTT, "sport/tennis/player1/#", "sport/tennis/player1", True),
    (Scheme.MQTT, "sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
    (Scheme.MQTT, "sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
    (Scheme.MQTT, "sport/#", "sport", True),
    (Scheme.MQTT, "sport/tennis/+", "sport/tennis/player1", True),
    (Scheme.MQTT, "sport/tennis/+", "sport/tennis/player1/ranking", False),
    (Scheme.MQTT, "sport/+", "sport", False),
    (Scheme.MQTT, "sport/+", "sport/", True),
    (Scheme.MQTT, "+/+", "/finance", True),
    (Scheme.MQTT, "/+", "/finance", True),
    (Scheme.MQTT, "+", "/finance", False),
    (Scheme.MQTT, "#", "$SYS/uptime", False),
    (Scheme.MQTT, "+/monitor/Clients", "$SYS/monitor/Clients", False),
    (Scheme.MQTT, "$SYS/#", "$SYS/monitor/Clients", True),
    (Scheme.MQTT, "$SYS/monitor/+", "$SYS/monitor/Clients", True),
    (Scheme.MQTT, "a/*", "a/b", False),
    (Scheme.TOPIC, "#", "$SYS/uptime", True),
    (Scheme.TOPIC, "+/uptime", "$SYS/uptime", True),
    (Scheme.TOPIC, "a/#/b", "a/b", True),
    (Scheme.TOPIC, "a/#/b", "a/x/y/b", True),
    (Scheme.TOPIC, "a/#/b", "a/x/y/c", False),
    (Scheme.TOPIC, "#/b", "b", True),
    (Scheme.TOPIC, "#/b/#", "x/b/y/b/z", True),
    (Scheme.TOPIC, "#/+", "a/b", True),
    (Scheme.TOPIC, "a/#/+/c", "a/c", False),
    (Scheme.TOPIC, "a/#/+/c", "a/b/c", True),
    (Scheme.TOPIC, "a+/b", "a+/b", True),
    (Scheme.TOPIC, "a+/b", "ax/b", False),
    (Scheme.TOPIC, "a", "A", False),
    (Scheme.TOPIC, "a/b", "a", False),
    (Scheme.TOPIC, "a", "a/b", False),
    (Scheme.CHARACTER, "*", "a/b/c", True),
    (Scheme.CHARACTER, "a/*", "a/b/c", True),
    (Scheme.CHARACTER, "a/*", "a/", True),
    (Scheme.CHARACTER, "a/*", "a", False),
    (Scheme.CHARACTER, "*/b", "x/y/b", True),
    (Scheme.CHARACTER, "a*z", "az", True),
    (Scheme.CHARACTER, "a*b*c", "aXbXbXc", True),
    (Scheme.CHARACTER, "a*b*c", "aXcXb", False),
    (Scheme.CHARACTER, "**a**", "bab", True),
    (Scheme.CHARACTER, "ABC?D", "ABC*D", True),
    (Scheme.CHARACTER, "a?b", "a/b", True),
    (Scheme.CHARACTER, "a?b", "ab", False),
    (Scheme.CHARACTER, "ABC%*D", "ABC*D", True),
    (Scheme.CHARACTER, "ABC%*D", "ABCXD", False),
    (Scheme.CHARACTER, "100%%", "100%", True),
    (Scheme.CHARACTER, "a.b", "axb", False),
    (Scheme.CHARACTER, "a*", "a\nb", True),
    (Scheme.CHARACTER, "a", "a\n", False),
    (Scheme.CHARACTER, "a/#", "a/b", False),
    (Scheme.CHARACTER, "*a", "aXa", True),
    (Scheme.CHARACTER, "*ab*ab", "ab", False),
    (Scheme.CHARACTER, "?", "", False),
]


@pytest.mark.parametrize(("scheme", "pattern", "topic", "expected"), MATCHING)
def test_a_pattern_matches_as_its_scheme_says(scheme: Scheme, pattern: str, topic: str, expected: bool) -> None:
    assert matches(pattern, topic, scheme) is expected


@pytest.mark.parametrize(("scheme", "pattern", "topic", "expected"), MATCHING)
def test_the_index_finds_what_matches(scheme: Scheme, pattern: str, topic: str, expected: bool) -> None:
    index: PatternIndex[str] = PatternIndex()
    index.add(pattern, scheme, "value")
    assert (index.match(topic) == ("value",)) is expected
    index.remove(pattern, scheme, "value")
    assert index.match(topic) == ()


@pytest.mark.parametrize(
    ("topic", "text"),
    [("a/b", "a/b"), ("ABC*D", "ABC%*D"), ("100%", "100%%"), ("why?", "why%?"), ("%*?", "%%%*%?"), ("#/+", "#/+")],
)
def test_a_topic_name_is_escaped_for_mqrfh_and_back(topic: str, text: str) -> None:
    assert escape_topic(topic) == text
    assert unescape_topic(text) == topic


@pytest.mark.parametrize("text", ["ABC*D", "a?", "100%", "%a", "a%", "%%%", "*"])
def test_a_bare_wildcard_or_a_wrong_escape_is_no_topic_name(text: str) -> None:
    with pytest.raises(TopicError) as caught:
        unescape_topic(text)
    assert (caught.value.reason_code, caught.value.reason_name) == (3072, "MQRCCF_TOPIC_ERROR")
    assert caught.value.parameter == text
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("pattern", ["a%", "%x*", "*%"])
def test_a_wrong_escape_in_a_character_pattern_is_refused(pattern: str) -> None:
    index: PatternIndex[int] = PatternIndex()
    with pytest.raises(TopicError):
        matches(pattern, "a", Scheme.CHARACTER)
    with pytest.raises(TopicError):
        topic_filter_for(pattern)
    with pytest.raises(TopicError):
        index.add(pattern, Scheme.CHARACTER, 1)


def test_an_error_survives_pickling() -> None:
    with pytest.raises(TopicError) as caught:
        unescape_topic("*")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.parameter) == (TopicError, str(caught.value), "*")


TO_CHARACTER = [
    ("a/b", ("a/b",)),
    ("#", ("*",)),
    ("a/#", ("a", "a/*")),
    ("+", ("*",)),
    ("a/+", ("a/*",)),
    ("a/+/#", ("a/*",)),
    ("a/+/c", ("a/*/c",)),
    ("+/b", ("*/b",)),
    ("+/b/#", ("*/b", "*/b/*")),
    ("a/#/b", ("a/*b",)),
    ("a/50%/#", ("a/50%%", "a/50%%/*")),
    ("what?/*/+", ("what%?/%*/*",)),
    ("#/#", ("*",)),
    ("#/+", ("*",)),
    ("#/b", ("*b",)),
    ("/#", ("/*",)),
    ("+/+", ("*/*",)),
    ("a/#/b/#", ("a/*b", "a/*b/*")),
]


@pytest.mark.parametrize(("topic_filter", "patterns"), TO_CHARACTER)
def test_a_filter_becomes_character_patterns(topic_filter: str, patterns: tuple[str, ...]) -> None:
    assert character_patterns(topic_filter) == patterns


TO_TOPIC = [
    ("a/b", "a/b"),
    ("100%%", "100%"),
    ("*", "#"),
    ("p/*", "p/#"),
    ("p/x*", "p/#"),
    ("p/*x", "p/#"),
    ("p/x?y", "p/#"),
    ("p/*/c", "p/#"),
    ("x*", "#"),
    ("?x", "#"),
    ("/*", "/#"),
    ("/aaa/bbb/c*d", "/aaa/bbb/#"),
    ("a%*/b*", "a*/#"),
]


@pytest.mark.parametrize(("pattern", "topic_filter"), TO_TOPIC)
def test_a_character_pattern_becomes_a_filter(pattern: str, topic_filter: str) -> None:
    assert topic_filter_for(pattern) == topic_filter


@pytest.mark.parametrize("pattern", ["a/+", "#", "a#b/*", "+/x?"])
def test_a_literal_plus_or_hash_cannot_become_a_filter(pattern: str) -> None:
    with pytest.raises(TopicError, match="cannot say literally"):
        topic_filter_for(pattern)


def test_an_empty_filter_has_no_patterns() -> None:
    with pytest.raises(TopicError, match="is empty"):
        character_patterns("")


LEVELS = st.lists(st.sampled_from(["a", "b", "+", "#", "", "*", "%"]), min_size=1, max_size=4)
TOPICS = ["/".join(levels) for size in (1, 2, 3, 4) for levels in product(["a", "b", "", "*"], repeat=size)]


NAMES = st.sampled_from(["a", "b", "", "*", "%", "a?"])
INSTEAD = {"+": NAMES.map(lambda name: [name]), "#": st.lists(NAMES, max_size=3)}


@st.composite
def filters_with_a_topic(draw: st.DrawFn) -> tuple[str, str]:
    """A filter and a topic that it matches: each wildcard is replaced by levels that it stands for."""
    levels = draw(LEVELS.filter(any))
    topic = [name for level in levels for name in (draw(INSTEAD[level]) if level in INSTEAD else [level])]
    return "/".join(levels), "/".join(topic)


@given(filters_with_a_topic())
def test_character_patterns_never_miss_a_topic_of_the_filter(pair: tuple[str, str]) -> None:
    topic_filter, topic = pair
    assume(topic)
    assert matches(topic_filter, topic, Scheme.TOPIC)
    assert any(matches(pattern, topic, Scheme.CHARACTER) for pattern in character_patterns(topic_filter))


@given(st.text(alphabet="ab/*?", min_size=1, max_size=6))
def test_the_filter_never_misses_a_topic_of_the_character_pattern(pattern: str) -> None:
    topic_filter = topic_filter_for(pattern)
    for topic in TOPICS:
        if matches(pattern, topic, Scheme.CHARACTER):
            assert matches(topic_filter, topic, Scheme.TOPIC), topic


@given(st.text(alphabet="ab/*?%", max_size=8), st.text(alphabet="ab/*%", max_size=8))
def test_character_matching_agrees_with_a_plain_regular_expression(pattern: str, topic: str) -> None:
    try:
        found = matches(pattern, topic, Scheme.CHARACTER)
    except TopicError:
        return
    tokens = re.findall(r"%[*?%]|.", pattern)
    plain = "".join({"*": ".*", "?": "."}.get(token) or re.escape(token[-1]) for token in tokens)
    assert found is (re.fullmatch(plain, topic, re.DOTALL) is not None)


@given(LEVELS, st.lists(st.sampled_from(["a", "b", "", "$x"]), min_size=1, max_size=5))
def test_topic_matching_agrees_with_the_definition_by_recursion(pattern: list[str], topic: list[str]) -> None:
    def by_definition(pattern: list[str], topic: list[str]) -> bool:
        if not pattern:
            return not topic
        if pattern[0] == "#":
            return any(by_definition(pattern[1:], topic[skipped:]) for skipped in range(len(topic) + 1))
        return bool(topic) and pattern[0] in ("+", topic[0]) and by_definition(pattern[1:], topic[1:])

    assert matches("/".join(pattern), "/".join(topic), Scheme.TOPIC) is by_definition(pattern, topic)


PATTERNS = st.tuples(
    st.sampled_from(list(Scheme)), st.text(alphabet="ab/+#*?$", min_size=1, max_size=5), st.integers(0, 3)
)


@given(
    st.lists(PATTERNS, max_size=12),
    st.lists(PATTERNS, max_size=6),
    st.sampled_from(["a", "a/b", "b/a/b", "$a/b", "/", "a//b"]),
)
def test_the_index_agrees_with_matching_one_by_one(
    added: list[tuple[Scheme, str, int]], removed: list[tuple[Scheme, str, int]], topic: str
) -> None:
    index: PatternIndex[int] = PatternIndex()
    present: dict[tuple[Scheme, str, int], None] = {}
    for scheme, pattern, value in added:
        index.add(pattern, scheme, value)
        present[scheme, pattern, value] = None
    for scheme, pattern, value in [*removed, *added[::2]]:
        index.remove(pattern, scheme, value)
        present.pop((scheme, pattern, value), None)
    found = index.match(topic)
    assert sorted(found) == sorted({value for scheme, pattern, value in present if matches(pattern, topic, scheme)})


def test_a_value_under_two_patterns_is_found_once() -> None:
    index: PatternIndex[str] = PatternIndex()
    for pattern in ("a", "a/*"):
        index.add(pattern, Scheme.CHARACTER, "x")
    index.add("a/#", Scheme.TOPIC, "x")
    assert index.match("a/b") == ("x",)
    assert index.match("a") == ("x",)


def test_removing_one_pattern_leaves_others_with_the_same_beginning() -> None:
    index: PatternIndex[str] = PatternIndex()
    for pattern, value in [("a/*", "x"), ("a/?", "y"), ("b/*", "z"), ("a/*", "v")]:
        index.add(pattern, Scheme.CHARACTER, value)
    index.remove("a/*", Scheme.CHARACTER, "x")
    assert sorted(index.match("a/1")) == ["v", "y"]
    index.remove("a/*", Scheme.CHARACTER, "v")
    index.remove("a/?", Scheme.CHARACTER, "y")
    assert index.match("a/1") == ()
    assert index.match("b/1") == ("z",)


def test_an_empty_index_keeps_nothing_of_what_was_removed() -> None:
    index: PatternIndex[str] = PatternIndex()
    for scheme, pattern in [
        (Scheme.MQTT, "a/+/c"),
        (Scheme.TOPIC, "a/#"),
        (Scheme.CHARACTER, "a*"),
        (Scheme.CHARACTER, "b"),
    ]:
        index.add(pattern, scheme, "x")
        index.remove(pattern, scheme, "x")
        index.remove(pattern, scheme, "x")
    assert index.shapes.weight == len(index.shapes) == 0
    assert not index._by_characters
    for by_levels in index._by_levels.values():
        assert not by_levels
        assert not any(by_levels._numbers)


def test_remembered_answers_are_forgotten_with_each_generation_and_when_they_are_too_many() -> None:
    index: PatternIndex[str] = PatternIndex(cached_topics=2)
    index.add("a", Scheme.MQTT, "x")
    before = index.generation
    assert index.match("a") is index.match("a")
    index.add("+", Scheme.MQTT, "y")
    assert index.generation == before + 1
    assert sorted(index.match("a")) == ["x", "y"]
    for number in range(10):
        index.match(str(number))
        assert len(index._cache) <= 2


@pytest.mark.timeout(100)
def test_a_look_up_among_a_hundred_and_fifty_thousand_patterns_visits_few_of_them() -> None:
    index: PatternIndex[int] = PatternIndex()
    for number in range(50_000):
        index.add(f"plant/line{number}/+/temperature", Scheme.MQTT, number)
        index.add(f"plant/line{number}/*", Scheme.CHARACTER, number + 100_000)
        index.add(f"*/line{number}/oven/temperature", Scheme.CHARACTER, number + 200_000)
    for number in range(1_000):
        assert index.match(f"plant/line{number}/oven/temperature") == (number, number + 100_000, number + 200_000)


@pytest.mark.timeout(20)
def test_patterns_made_to_be_slow_take_bounded_time() -> None:
    assert not matches("*a" * 500 + "b", "a" * 10_000, Scheme.CHARACTER)
    assert not matches("/".join(["#", "a"] * 200 + ["b"]), "/".join(["a"] * 2_000), Scheme.TOPIC)
    index: PatternIndex[int] = PatternIndex()
    index.add("/".join(["#", "a"] * 20 + ["b"]), Scheme.TOPIC, 1)
    assert index.match("/".join(["a"] * 2_000)) == ()


@pytest.mark.parametrize("text", ["a", "/", "a b/c", "$SYS/x", "*", "x" * 65_535])
def test_an_mqtt_topic_name_may_hold_anything_but_wildcards(text: str) -> None:
    check_mqtt_topic_name(text)
    check_mqtt_topic_filter(text)


@pytest.mark.parametrize("text", ["", "a\0b", "a/+", "#", "a#", "x" * 65_536, "\ud800"])
def test_a_wrong_mqtt_topic_name_is_refused(text: str) -> None:
    with pytest.raises(TopicError):
        check_mqtt_topic_name(text)


@pytest.mark.parametrize("text", ["#", "+", "a/#", "+/a/+", "/+", "/#", "a/+/#"])
def test_an_mqtt_topic_filter_has_wildcards_as_whole_levels(text: str) -> None:
    check_mqtt_topic_filter(text)


@pytest.mark.parametrize("text", ["", "a#", "a/#/b", "#/a", "a+", "+a/b", "##", "a\0", "\udfff"])
def test_a_wrong_mqtt_topic_filter_is_refused(text: str) -> None:
    with pytest.raises(TopicError):
        check_mqtt_topic_filter(text)


# -- does a translation match more? ------------------------------------------------------------------------------------

LEVEL = st.sampled_from(["a", "b", "", "$", "ab", "+", "#", "a+", "*", "?", "%*", "%"])
TRANSLATED = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
SOME_TOPICS = st.lists(st.sampled_from(["a", "b", "", "$", "ab", "a+", "*", "#"]), min_size=1, max_size=5).map("/".join)


@pytest.mark.parametrize(
    ("topic_filter", "is_exact"),
    [
        ("a/b", True),
        ("a/50%", True),
        ("#", True),
        ("a/#", True),
        ("+", False),
        ("a/+", False),
        ("a/+/#", False),
        ("a/+/c", False),
        ("+/b/#", False),
        ("a/#/b", False),
        ("a/#/#", False),
    ],
)
def test_character_patterns_say_why_they_match_more_than_their_filter(topic_filter: str, is_exact: bool) -> None:
    assert why_character_patterns_are_wider(topic_filter) == ("" if is_exact else "* matches / too, and + does not")


@pytest.mark.parametrize(
    ("pattern", "is_exact"),
    [
        ("a/b", True),
        ("a%*b", True),
        ("*", True),
        ("p/*", False),
        ("p/x*", False),
        ("/aaa/bbb/c*d", False),
        ("?x", False),
    ],
)
def test_a_topic_filter_says_why_it_matches_more_than_its_character_pattern(pattern: str, is_exact: bool) -> None:
    assert bool(why_topic_filter_is_wider(pattern)) is not is_exact


@given(TRANSLATED, st.lists(SOME_TOPICS, max_size=8))
def test_a_translation_matches_what_its_pattern_matches_and_no_more_where_it_says_so(
    pattern: str, topics: list[str]
) -> None:
    filtered, characters = Scheme.TOPIC, Scheme.CHARACTER
    translations = [(filtered, characters, character_patterns(pattern), why_character_patterns_are_wider(pattern))]
    with suppress(TopicError):
        translations.append((characters, filtered, (topic_filter_for(pattern),), why_topic_filter_is_wider(pattern)))
    for source, target, patterns, why_wider in translations:
        for topic in filter(None, topics):
            original = matches(pattern, topic, source)
            translated = any(matches(each, topic, target) for each in patterns)
            assert translated or not original
            assert why_wider or translated == original
