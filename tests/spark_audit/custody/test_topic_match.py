"""Which topics a pattern matches: the examples of the standards, and the same answers as the gateway's own matcher."""

import time

from hypothesis import given
from hypothesis import strategies as st

from mappings.topics import wildcards
from spark_audit.custody.topic_match import PatternIndex, Scheme, behind_group, topic_matches
from tests.every_case import for_every

_LEVELS, _CHARACTERS, _MQTT = Scheme.LEVELS, Scheme.CHARACTERS, Scheme.MQTT
_GATEWAYS = {
    _LEVELS: wildcards.Scheme.TOPIC,
    _CHARACTERS: wildcards.Scheme.CHARACTER,
    _MQTT: wildcards.Scheme.MQTT,
}

#: Scheme, pattern, topics that it matches, topics that it does not match.
_EXAMPLES = [
    # MQTT 3.1.1 section 4.7.1.2 and 4.7.1.3
    (_MQTT, "sport/tennis/player1/#", ["sport/tennis/player1", "sport/tennis/player1/ranking"], ["sport/tennis"]),
    (_MQTT, "sport/#", ["sport", "sport/", "sport/a/b"], ["sports", "/sport"]),
    (_MQTT, "#", ["a", "/", "a/b"], ["$SYS/a"]),
    (_MQTT, "sport/tennis/+", ["sport/tennis/player1", "sport/tennis/"], ["sport/tennis/player1/ranking"]),
    (_MQTT, "sport/+", ["sport/"], ["sport"]),
    (_MQTT, "+/+", ["/finance"], ["finance"]),
    (_MQTT, "/+", ["/finance"], ["finance", "/finance/x"]),
    (_MQTT, "+", ["finance"], ["/finance", "$SYS"]),
    # MQTT 3.1.1 section 4.7.2
    (_MQTT, "+/monitor/Clients", ["SYS/monitor/Clients"], ["$SYS/monitor/Clients"]),
    (_MQTT, "$SYS/#", ["$SYS", "$SYS/monitor"], ["SYS"]),
    (_MQTT, "$SYS/monitor/+", ["$SYS/monitor/Clients"], ["$SYS/monitor"]),
    # MQTT 3.1.1 section 4.7.3: topics are compared as they are
    (_MQTT, "ACCOUNTS", ["ACCOUNTS"], ["Accounts", "ACCOUNTS/"]),
    # IBM MQ, "Topic-based wildcard scheme"
    (_LEVELS, "#", ["a", "$SYS/a"], []),
    (_LEVELS, "Sport/#/Results", ["Sport/Results", "Sport/a/Results", "Sport/a/b/Results"], ["Sport/Results/a"]),
    (_LEVELS, "#/Results/#", ["Results", "a/Results/b/c"], ["a/b"]),
    (_LEVELS, "a/+/c", ["a/b/c", "a//c"], ["a/c", "a/b/b/c"]),
    (_LEVELS, "a+/#b", ["a+/#b"], ["ab/b"]),
    # IBM MQ, "Character-based wildcard scheme"
    (_CHARACTERS, "Sport/*/Results", ["Sport/a/Results", "Sport/a/b/Results"], ["Sport/Results"]),
    (_CHARACTERS, "Sport/?/x", ["Sport/a/x", "Sport///x"], ["Sport/ab/x", "Sport/x"]),
    (_CHARACTERS, "*", ["", "a", "a/b"], []),
    (_CHARACTERS, "100%%%*", ["100%*"], ["100%a"]),
    (_CHARACTERS, "a%?*", ["a?", "a?b"], ["ab"]),
]


@for_every(_EXAMPLES)
def test_the_examples_of_the_standards_are_matched(case: tuple[Scheme, str, list[str], list[str]]) -> None:
    scheme, pattern, matched, others = case
    index: PatternIndex[str] = PatternIndex()
    index.add(pattern, scheme, "it")
    assert [topic for topic in matched if not topic_matches(pattern, topic, scheme)] == []
    assert [topic for topic in others if topic_matches(pattern, topic, scheme)] == []
    assert [topic for topic in matched if index.matching(topic) != ("it",)] == []
    assert [topic for topic in others if index.matching(topic)] == []


def test_a_shared_subscription_has_its_filter_behind_the_group() -> None:
    assert [behind_group(each) for each in ("$share/crew/jobs/#", "$share/crew//x", "jobs/#", "$shared/a/b")] == [
        *("jobs/#", "/x", "jobs/#", "$shared/a/b")
    ]


_NAMES = st.lists(st.sampled_from(["", "a", "b", "$x", "a*", "%"]), min_size=1, max_size=5).map("/".join)
_LEVEL_PATTERNS = st.lists(st.sampled_from(["", "a", "b", "$x", "+", "#"]), min_size=1, max_size=5).map("/".join)
_CHARACTER_PATTERNS = st.lists(
    st.sampled_from(["", "a", "b", "$x", "/", "*", "?", "%*", "%?", "%%"]), min_size=1, max_size=8
).map("".join)
_PATTERNS = st.one_of(
    st.tuples(st.sampled_from([_LEVELS, _MQTT]), _LEVEL_PATTERNS), st.tuples(st.just(_CHARACTERS), _CHARACTER_PATTERNS)
)


@given(_PATTERNS, _NAMES)
def test_the_gateways_own_matcher_agrees(pattern: tuple[Scheme, str], topic: str) -> None:
    scheme, text = pattern
    assert topic_matches(text, topic, scheme) == wildcards.matches(text, topic, _GATEWAYS[scheme])


@given(st.lists(_PATTERNS, max_size=12), st.lists(_NAMES, min_size=1, max_size=4), st.data())
def test_an_index_finds_what_comparing_one_by_one_finds(
    patterns: list[tuple[Scheme, str]], topics: list[str], data: st.DataObject
) -> None:
    index: PatternIndex[int] = PatternIndex()
    for value, (scheme, text) in enumerate(patterns):
        index.add(text, scheme, value)
    gone = data.draw(st.sets(st.sampled_from(range(len(patterns))))) if patterns else set()
    assert index.matching(topics[0]) is index.matching(topics[0])
    for value in gone:
        index.remove(patterns[value][1], patterns[value][0], value)
    for topic in topics:
        wanted = {
            value
            for value, (scheme, text) in enumerate(patterns)
            if value not in gone and topic_matches(text, topic, scheme)
        }
        assert set(index.matching(topic)) == wanted


def test_a_pattern_with_many_hashes_takes_a_time_that_grows_with_its_levels_alone() -> None:
    pattern, topic = "/".join(["#", "a"] * 40), "/".join(["a"] * 200 + ["b"])
    begin = time.process_time()
    assert not topic_matches(pattern, topic, _LEVELS)
    assert time.process_time() - begin < 1
