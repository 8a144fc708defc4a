"""Filters against filters: the two relations, held against every topic over a small alphabet."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.filters import RuleFilter, covers, touches
from mappings.topics.topics import Scheme, matches

LEVELS = ("a", "b", "")
TOPICS = [
    "/".join((first, *rest))
    for length in (0, 1, 2, 3)
    for first in (*LEVELS, "$s")
    for rest in itertools.product(LEVELS, repeat=length)
]

levels_of_a_filter = st.builds(
    lambda first, rest, last: (first, *rest, *last),
    st.sampled_from(["a", "b", "", "+", "$s"]),
    st.lists(st.sampled_from(["a", "b", "", "+"]), max_size=2),
    st.sampled_from([(), ("#",)]),
).filter(lambda levels: levels != ("",)) | st.just(("#",))


def topics_of(levels: tuple[str, ...]) -> set[str]:
    return {topic for topic in TOPICS if topic and matches("/".join(levels), topic, Scheme.MQTT)}


@given(levels_of_a_filter, levels_of_a_filter)
def test_a_filter_that_covers_another_matches_all_that_it_matches(
    allowed: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    """Where `covers` says no, there may still be no such topic: it never says yes wrongly."""
    if covers(allowed, asked):
        assert topics_of(asked) <= topics_of(allowed)


@given(levels_of_a_filter, levels_of_a_filter)
def test_filters_touch_exactly_where_a_topic_is_matched_by_both(
    denied: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    assert touches(denied, asked) is bool(topics_of(denied) & topics_of(asked))
    assert touches(asked, denied) is touches(denied, asked)


def test_the_empty_filter_level_is_a_level() -> None:
    assert touches(("", "#"), ("", "a"))
    assert not touches(("a", ""), ("a",))


def test_the_empty_topic_which_nobody_can_publish_makes_no_filters_touch() -> None:
    assert not touches(("", "#"), ("+",))
    assert not touches(("+",), ("", "#"))
    assert touches(("", "#"), ("+", "#"))
    assert touches(("a", "#"), ("+",))


@given(st.text(max_size=12), st.text(max_size=12) | st.none())
def test_a_name_never_opens_more_than_one_level_of_its_own(client: str, user: str | None) -> None:
    for text, name in (("d/%c/#", client), ("d/x-%u/#", user)):
        levels = RuleFilter.parse(text).allowing(user, client)
        if levels is not None:
            assert name is not None
            assert len(levels) == 3
            assert levels[1].endswith(name)
            assert not set("+#/") & set(levels[1])


@pytest.mark.parametrize("text", ["%", "a/%", "%x", "%C", "a%/c", "%u%c", "%c-%u", "%c%c", "a/#/b", "a+", "", "%c#"])
def test_what_is_no_filter_or_has_a_percent_sign_too_many_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        RuleFilter.parse(text)
