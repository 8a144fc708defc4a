"""Patterns in another scheme: the table of translations, and the fit held to what really matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.topics.pattern_translation import Fit, translate_pattern
from mappings.topics.topics import Scheme, TopicError, matches

TABLE = [
    # MQTT and topic scheme to character scheme.
    ("a/b", Scheme.MQTT, Scheme.CHARACTER, ("a/b",), Fit.EXACT),
    ("a/50%", Scheme.TOPIC, Scheme.CHARACTER, ("a/50%%",), Fit.EXACT),
    ("#", Scheme.TOPIC, Scheme.CHARACTER, ("*",), Fit.EXACT),
    ("#", Scheme.MQTT, Scheme.CHARACTER, ("*",), Fit.SUPERSET),
    ("a/#", Scheme.MQTT, Scheme.CHARACTER, ("a", "a/*"), Fit.EXACT),
    ("+", Scheme.TOPIC, Scheme.CHARACTER, ("*",), Fit.SUPERSET),
    ("a/+", Scheme.MQTT, Scheme.CHARACTER, ("a/*",), Fit.SUPERSET),
    ("a/+/#", Scheme.MQTT, Scheme.CHARACTER, ("a/*",), Fit.SUPERSET),
    ("a/+/c", Scheme.MQTT, Scheme.CHARACTER, ("a/*/c",), Fit.SUPERSET),
    ("+/b", Scheme.MQTT, Scheme.CHARACTER, ("*/b",), Fit.SUPERSET),
    ("+/b/#", Scheme.MQTT, Scheme.CHARACTER, ("*/b", "*/b/*"), Fit.SUPERSET),
    ("a/#/b", Scheme.TOPIC, Scheme.CHARACTER, ("a/*b",), Fit.SUPERSET),
    # Character scheme to MQTT and topic scheme.
    ("a/b", Scheme.CHARACTER, Scheme.MQTT, ("a/b",), Fit.EXACT),
    ("a%*b", Scheme.CHARACTER, Scheme.TOPIC, ("a*b",), Fit.EXACT),
    ("a+b", Scheme.CHARACTER, Scheme.TOPIC, (), Fit.CANNOT_BE_EXPRESSED),
    ("a/#", Scheme.CHARACTER, Scheme.MQTT, (), Fit.CANNOT_BE_EXPRESSED),
    ("a\0/b", Scheme.CHARACTER, Scheme.MQTT, (), Fit.CANNOT_BE_EXPRESSED),
    ("*", Scheme.CHARACTER, Scheme.TOPIC, ("#",), Fit.EXACT),
    ("*", Scheme.CHARACTER, Scheme.MQTT, (), Fit.CANNOT_BE_EXPRESSED),
    ("p/*", Scheme.CHARACTER, Scheme.MQTT, ("p/#",), Fit.SUPERSET),
    ("p/x*", Scheme.CHARACTER, Scheme.TOPIC, ("p/#",), Fit.SUPERSET),
    ("/aaa/bbb/c*d", Scheme.CHARACTER, Scheme.TOPIC, ("/aaa/bbb/#",), Fit.SUPERSET),
    ("?x", Scheme.CHARACTER, Scheme.TOPIC, ("#",), Fit.SUPERSET),
    # Between MQTT and the topic scheme.
    ("a/#", Scheme.MQTT, Scheme.TOPIC, ("a/#",), Fit.EXACT),
    ("#", Scheme.MQTT, Scheme.TOPIC, ("#",), Fit.SUPERSET),
    ("a/#/b", Scheme.TOPIC, Scheme.MQTT, ("a/#",), Fit.SUPERSET),
    ("a/+", Scheme.TOPIC, Scheme.MQTT, ("a/+",), Fit.EXACT),
    ("+/a", Scheme.TOPIC, Scheme.MQTT, (), Fit.CANNOT_BE_EXPRESSED),
    ("a/b+", Scheme.TOPIC, Scheme.MQTT, (), Fit.CANNOT_BE_EXPRESSED),
    ("a/#", Scheme.MQTT, Scheme.MQTT, ("a/#",), Fit.EXACT),
]


@pytest.mark.parametrize(("pattern", "source", "target", "patterns", "fit"), TABLE)
def test_a_pattern_is_translated_with_a_verdict(
    pattern: str, source: Scheme, target: Scheme, patterns: tuple[str, ...], fit: Fit
) -> None:
    translation = translate_pattern(pattern, source, target)
    assert (translation.patterns, translation.fit) == (patterns, fit)
    assert translation.reason


@pytest.mark.parametrize(
    ("pattern", "source"), [("a%b", Scheme.CHARACTER), ("a/#/b", Scheme.MQTT), ("", Scheme.MQTT), ("a+", Scheme.MQTT)]
)
def test_a_pattern_that_is_wrong_in_its_own_scheme_is_refused(pattern: str, source: Scheme) -> None:
    with pytest.raises(TopicError):
        translate_pattern(pattern, source, Scheme.TOPIC)


LEVEL = st.sampled_from(["a", "b", "", "$", "ab", "+", "#", "a+", "*", "?", "%*", "%"])
PATTERNS = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
TOPICS = st.lists(st.sampled_from(["a", "b", "", "$", "ab", "a+", "*", "#"]), min_size=1, max_size=5).map("/".join)


@given(PATTERNS, st.sampled_from(list(Scheme)), st.sampled_from(list(Scheme)), st.lists(TOPICS, max_size=8))
def test_a_verdict_holds_for_every_topic(pattern: str, source: Scheme, target: Scheme, topics: list[str]) -> None:
    try:
        translation = translate_pattern(pattern, source, target)
    except TopicError:
        return
    if translation.fit is Fit.CANNOT_BE_EXPRESSED:
        assert translation.patterns == ()
        return
    for topic in filter(None, topics):
        original = matches(pattern, topic, source)
        translated = any(matches(each, topic, target) for each in translation.patterns)
        assert translated or not original
        if translation.fit is Fit.EXACT:
            assert translated == original
